//! Where authenticators that are alike find each other, so that one plugin's credential is got once per process and
//! gone with its last client (client-credentials.md C401–C405).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use aws_lc_rs::digest::{Context, SHA256, SHA256_OUTPUT_LEN};
use navicert_types::exec_credential::{ExecCredential, Spec};

use super::entry::Entry;
use super::plugin::Plugin;
use super::settings::{Settings, Surroundings};
use crate::credential::hardware_key::SharedKey;

/// The authenticators of a process, or of a test. Cheap to clone; holds none of them alive.
#[derive(Clone, Debug, Default)]
pub struct Registry(Arc<Registered>);

#[derive(Debug, Default)]
struct Registered {
    plugins: Mutex<HashMap<Key, Weak<Entry>>>,
    /// By what makes two signers one (C841).
    signers: Mutex<HashMap<String, Weak<SharedKey>>>,
}

/// What makes two authenticators one: a digest, because the parts hold secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key([u8; SHA256_OUTPUT_LEN]);

impl Registry {
    /// An empty one, shared with nobody.
    pub fn new() -> Self {
        Registry::default()
    }

    /// The process's own.
    pub fn process() -> &'static Self {
        static PROCESS: OnceLock<Registry> = OnceLock::new();
        PROCESS.get_or_init(Registry::new)
    }

    /// How many authenticators are alive.
    pub fn len(&self) -> usize {
        self.lock().values().filter(|entry| entry.strong_count() > 0).count()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The one for this plugin: of several who ask at once, the first makes it (C405).
    pub(super) fn entry(&self, plugin: &Plugin, settings: &Settings, around: &Surroundings) -> Arc<Entry> {
        let key = Key::of(plugin, settings.isolate_by_server);
        let mut entries = self.lock();
        if let Some(entry) = entries.get(&key).and_then(Weak::upgrade) {
            return entry;
        }
        entries.retain(|_, entry| entry.strong_count() > 0);
        let entry = Arc::new(Entry::new(settings, around));
        entries.insert(key, Arc::downgrade(&entry));
        entry
    }

    /// The key behind a signer: of several clients that are alike, the first makes it, and one PIN serves them all.
    pub(crate) fn signer(&self, alike: String, make: impl FnOnce() -> SharedKey) -> Arc<SharedKey> {
        let mut signers = self.0.signers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = signers.get(&alike).and_then(Weak::upgrade) {
            return key;
        }
        signers.retain(|_, key| key.strong_count() > 0);
        let key = Arc::new(make());
        signers.insert(alike, Arc::downgrade(&key));
        key
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Weak<Entry>>> {
        self.0.plugins.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Key {
    /// Command, arguments, variables in order, version, the cluster's configuration and the cluster as it is told
    /// (C404). Not the install hint, not who has standard input, not the policy, not whom a client impersonates (C472):
    /// these belong to whoever asks.
    pub(super) fn of(plugin: &Plugin, isolate_by_server: bool) -> Self {
        let mut digest = Context::new(&SHA256);
        let mut part = |bytes: &[u8]| {
            digest.update(&bytes.len().to_be_bytes());
            digest.update(bytes);
        };
        part(plugin.command.as_bytes());
        part(&plugin.args.len().to_be_bytes());
        plugin.args.iter().for_each(|argument| part(argument.as_bytes()));
        part(&plugin.env.len().to_be_bytes());
        for (name, value) in &plugin.env {
            part(name.as_bytes());
            part(value.expose().as_bytes());
        }
        part(plugin.version.api_version().as_bytes());
        part(&[u8::from(plugin.cluster.is_some())]);
        part(plugin.config.to_json().as_bytes());
        let spec = Spec { cluster: plugin.cluster.clone(), ..Spec::default() };
        part(ExecCredential { spec, status: None }.question(plugin.version).expose().as_bytes());
        part(if isolate_by_server { plugin.server.as_bytes() } else { b"" });
        let mut key = [0; SHA256_OUTPUT_LEN];
        key.iter_mut().zip(digest.finish().as_ref()).for_each(|(to, from)| *to = *from);
        Key(key)
    }
}
