//! Shares credentials between authenticators of the same plugin, so that a process obtains a plugin's credential once
//! and drops it with the last client.
// C401–C405

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use aws_lc_rs::digest::{Context, SHA256, SHA256_OUTPUT_LEN};
use navicert_types::exec_credential::{ExecCredential, ExecCredentialSpec};

use super::plugin::Plugin;
use super::settings::ExecSettings;
use super::shared_credential::SharedCredential;
use crate::context::ClientContext;
#[cfg(feature = "signer")]
use crate::credential::external_signer::SharedSigner;

/// The authenticators of a process or a test. Cheap to clone; holds only weak references.
#[derive(Clone, Debug, Default)]
pub struct AuthenticatorRegistry(Arc<Entries>);

#[derive(Debug, Default)]
struct Entries {
    plugins: Mutex<HashMap<CredentialKey, Weak<SharedCredential>>>,
    /// External signers by identity.
    // C841
    #[cfg(feature = "signer")]
    signers: Mutex<HashMap<String, Weak<SharedSigner>>>,
}

/// The key by which authenticators share a credential: a digest, because its parts contain secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct CredentialKey([u8; SHA256_OUTPUT_LEN]);

impl AuthenticatorRegistry {
    /// An empty registry.
    pub fn new() -> Self {
        AuthenticatorRegistry::default()
    }

    /// The registry of this process.
    pub fn process() -> &'static Self {
        static PROCESS: OnceLock<AuthenticatorRegistry> = OnceLock::new();
        PROCESS.get_or_init(AuthenticatorRegistry::new)
    }

    /// The number of live authenticators.
    pub fn len(&self) -> usize {
        self.lock().values().filter(|entry| entry.strong_count() > 0).count()
    }

    /// Whether there are no live authenticators.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The shared credential of this plugin, created by the first caller.
    // C405
    pub(super) fn shared_credential(
        &self,
        plugin: &Plugin,
        settings: &ExecSettings,
        client_context: &ClientContext,
    ) -> Arc<SharedCredential> {
        let key = CredentialKey::from_plugin(plugin, settings.isolate_by_server);
        let mut entries = self.lock();
        if let Some(entry) = entries.get(&key).and_then(Weak::upgrade) {
            return entry;
        }
        entries.retain(|_, entry| entry.strong_count() > 0);
        let entry = Arc::new(SharedCredential::new(settings, client_context));
        entries.insert(key, Arc::downgrade(&entry));
        entry
    }

    /// The key of an external signer, created by the first client, so that one PIN serves all of them.
    #[cfg(feature = "signer")]
    pub(crate) fn signer(&self, identity: String, make: impl FnOnce() -> SharedSigner) -> Arc<SharedSigner> {
        let mut signers = self.0.signers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = signers.get(&identity).and_then(Weak::upgrade) {
            return key;
        }
        signers.retain(|_, key| key.strong_count() > 0);
        let key = Arc::new(make());
        signers.insert(identity, Arc::downgrade(&key));
        key
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<CredentialKey, Weak<SharedCredential>>> {
        self.0.plugins.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CredentialKey {
    /// Digests command, arguments, variables in order, version, the cluster's exec configuration and the cluster
    /// information. Excludes per-client settings: install hint, use of standard input, policy and impersonation.
    // C404, C472
    pub(super) fn from_plugin(plugin: &Plugin, isolate_by_server: bool) -> Self {
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
        let spec = ExecCredentialSpec { cluster: plugin.cluster.clone(), ..ExecCredentialSpec::default() };
        part(ExecCredential { spec, status: None }.to_request_json(plugin.version).expose().as_bytes());
        part(if isolate_by_server { plugin.server.as_bytes() } else { b"" });
        let mut key = [0; SHA256_OUTPUT_LEN];
        key.iter_mut().zip(digest.finish().as_ref()).for_each(|(to, from)| *to = *from);
        CredentialKey(key)
    }
}
