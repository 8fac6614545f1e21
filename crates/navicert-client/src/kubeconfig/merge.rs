//! Step three: several files become one (C123, C124). The first file that defines a name gives the whole entry, and every
//! entry remembers its file: paths are relative to it, and messages point into it.

use std::collections::HashMap;
use std::path::PathBuf;

use navicert_types::Secret;
use navicert_types::external_signer::PROVIDER;
use navicert_types::kubeconfig::{AuthInfo, Cluster, Config, Context, NamedExtension};

use super::load::{File, Loaded, Text};
use super::paths;

/// One kubeconfig made of several, as written: paths are not resolved yet.
#[derive(Clone, Debug, Default)]
pub struct Merged {
    /// The entries, each taken whole from one file.
    pub config: Config,
    files: Vec<Origin>,
    clusters: HashMap<String, usize>,
    users: HashMap<String, usize>,
    contexts: HashMap<String, usize>,
}

/// Where an entry comes from.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The file as it was named.
    pub path: PathBuf,
    /// Its absolute folder.
    pub folder: String,
    /// Its text.
    pub text: Text,
}

/// The three kinds of named entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// An entry of `clusters`.
    Cluster,
    /// An entry of `users`.
    User,
    /// An entry of `contexts`.
    Context,
}

impl Merged {
    /// Merges: first wins.
    pub fn new(loaded: Loaded) -> Self {
        let mut merged = Merged::default();
        for file in loaded.files {
            merged.add(file);
        }
        merged
    }

    fn add(&mut self, file: File) {
        let File { path, folder, text, config } = file;
        let index = self.files.len();
        self.files.push(Origin { path, folder, text });
        let merged = &mut self.config;
        for entry in config.clusters {
            if !self.clusters.contains_key(&entry.name) {
                self.clusters.insert(entry.name.clone(), index);
                merged.clusters.push(entry);
            }
        }
        for entry in config.users {
            if !self.users.contains_key(&entry.name) {
                self.users.insert(entry.name.clone(), index);
                merged.users.push(entry);
            }
        }
        for entry in config.contexts {
            if !self.contexts.contains_key(&entry.name) {
                self.contexts.insert(entry.name.clone(), index);
                merged.contexts.push(entry);
            }
        }
        if merged.current_context.is_empty() {
            merged.current_context = config.current_context;
        }
        merged.preferences.colors |= config.preferences.colors;
        add_extensions(&mut merged.preferences.extensions, config.preferences.extensions);
        add_extensions(&mut merged.extensions, config.extensions);
    }

    /// The file an entry comes from.
    pub fn origin(&self, kind: EntryKind, name: &str) -> Option<&Origin> {
        let entries = match kind {
            EntryKind::Cluster => &self.clusters,
            EntryKind::User => &self.users,
            EntryKind::Context => &self.contexts,
        };
        entries.get(name).and_then(|index| self.files.get(*index))
    }

    /// The files that were merged, in order.
    pub fn origins(&self) -> &[Origin] {
        &self.files
    }

    /// A context.
    pub fn context(&self, name: &str) -> Option<&Context> {
        self.config.contexts.iter().find(|entry| entry.name == name).map(|entry| &entry.context)
    }

    /// A cluster with absolute paths.
    pub fn cluster(&self, name: &str) -> Option<Cluster> {
        let entry = self.config.clusters.iter().find(|entry| entry.name == name)?;
        let mut cluster = entry.cluster.clone();
        if let Some(origin) = self.origin(EntryKind::Cluster, name) {
            resolve_cluster(&mut cluster, &origin.folder);
        }
        Some(cluster)
    }

    /// A user with absolute paths.
    pub fn user(&self, name: &str) -> Option<AuthInfo> {
        let entry = self.config.users.iter().find(|entry| entry.name == name)?;
        let mut user = entry.user.clone();
        if let Some(origin) = self.origin(EntryKind::User, name) {
            resolve_user(&mut user, &origin.folder);
        }
        Some(user)
    }

    /// The whole configuration with absolute paths: what a client works with.
    pub fn resolved(&self) -> Config {
        let mut config = self.config.clone();
        for entry in &mut config.clusters {
            if let Some(origin) = self.origin(EntryKind::Cluster, &entry.name) {
                resolve_cluster(&mut entry.cluster, &origin.folder);
            }
        }
        for entry in &mut config.users {
            if let Some(origin) = self.origin(EntryKind::User, &entry.name) {
                resolve_user(&mut entry.user, &origin.folder);
            }
        }
        config
    }
}

fn add_extensions(merged: &mut Vec<NamedExtension>, more: Vec<NamedExtension>) {
    for extension in more {
        if !merged.iter().any(|known| known.name == extension.name) {
            merged.push(extension);
        }
    }
}

fn resolve_cluster(cluster: &mut Cluster, folder: &str) {
    cluster.certificate_authority = paths::resolve(&cluster.certificate_authority, folder);
}

fn resolve_user(user: &mut AuthInfo, folder: &str) {
    for path in [&mut user.client_certificate, &mut user.client_key, &mut user.token_file] {
        *path = paths::resolve(path, folder);
    }
    if let Some(exec) = &mut user.exec {
        exec.command = paths::resolve_command(&exec.command, folder);
    }
    // A signer's program is resolved as a plugin's is, and no other of its settings (C813).
    let provider = user.auth_provider.as_mut().filter(|provider| provider.name == PROVIDER);
    if let Some(program) = provider.and_then(|provider| provider.config.get_mut("pathExec")) {
        *program = Secret::new(paths::resolve_command(program.expose(), folder));
    }
}
