//! Step three: merges several files. The first file that defines a name provides the whole entry, and every entry keeps its
//! origin: paths are relative to it, and messages point into it.
// C123, C124

use std::collections::HashMap;
use std::path::PathBuf;

use navicert_types::Secret;
use navicert_types::external_signer::PROVIDER;
use navicert_types::kubeconfig::{AuthInfo, Cluster, Context, Kubeconfig, NamedExtension};

use super::load::{KubeconfigFile, KubeconfigText, LoadedKubeconfig};
use super::paths;

/// A kubeconfig merged from several files, with unresolved paths.
#[derive(Clone, Debug, Default)]
pub struct MergedKubeconfig {
    /// The entries, each from one file.
    pub config: Kubeconfig,
    files: Vec<EntryOrigin>,
    clusters: HashMap<String, usize>,
    users: HashMap<String, usize>,
    contexts: HashMap<String, usize>,
}

/// The file an entry comes from.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EntryOrigin {
    /// The path as given.
    pub path: PathBuf,
    /// Its absolute directory.
    pub directory: String,
    /// Its text.
    pub text: KubeconfigText,
}

/// The three kinds of named entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryKind {
    /// An entry of `clusters`.
    Cluster,
    /// An entry of `users`.
    User,
    /// An entry of `contexts`.
    Context,
}

impl MergedKubeconfig {
    /// Merges the files; the first definition of a name wins.
    pub(crate) fn new(loaded: LoadedKubeconfig) -> Self {
        let mut merged = MergedKubeconfig::default();
        for file in loaded.files {
            merged.add(file);
        }
        merged
    }

    fn add(&mut self, file: KubeconfigFile) {
        let KubeconfigFile { path, directory, text, config } = file;
        let index = self.files.len();
        self.files.push(EntryOrigin { path, directory, text });
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
    pub(crate) fn origin(&self, kind: EntryKind, name: &str) -> Option<&EntryOrigin> {
        let entries = match kind {
            EntryKind::Cluster => &self.clusters,
            EntryKind::User => &self.users,
            EntryKind::Context => &self.contexts,
        };
        entries.get(name).and_then(|index| self.files.get(*index))
    }

    /// The merged files in order.
    pub fn origins(&self) -> &[EntryOrigin] {
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
            resolve_cluster(&mut cluster, &origin.directory);
        }
        Some(cluster)
    }

    /// A user with absolute paths.
    pub fn user(&self, name: &str) -> Option<AuthInfo> {
        let entry = self.config.users.iter().find(|entry| entry.name == name)?;
        let mut user = entry.user.clone();
        if let Some(origin) = self.origin(EntryKind::User, name) {
            resolve_user(&mut user, &origin.directory);
        }
        Some(user)
    }

    /// The whole configuration with absolute paths.
    pub fn resolved(&self) -> Kubeconfig {
        let mut config = self.config.clone();
        for entry in &mut config.clusters {
            if let Some(origin) = self.origin(EntryKind::Cluster, &entry.name) {
                resolve_cluster(&mut entry.cluster, &origin.directory);
            }
        }
        for entry in &mut config.users {
            if let Some(origin) = self.origin(EntryKind::User, &entry.name) {
                resolve_user(&mut entry.user, &origin.directory);
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

fn resolve_cluster(cluster: &mut Cluster, directory: &str) {
    cluster.certificate_authority = paths::resolve(&cluster.certificate_authority, directory);
}

fn resolve_user(user: &mut AuthInfo, directory: &str) {
    for path in [&mut user.client_certificate, &mut user.client_key, &mut user.token_file] {
        *path = paths::resolve(path, directory);
    }
    if let Some(exec) = &mut user.exec {
        exec.command = paths::resolve_command(&exec.command, directory);
    }
    // Of a signer's settings, only its program is resolved, like a plugin's (C813).
    let provider = user.auth_provider.as_mut().filter(|provider| provider.name == PROVIDER);
    if let Some(program) = provider.and_then(|provider| provider.config.get_mut("pathExec")) {
        *program = Secret::new(paths::resolve_command(program.expose(), directory));
    }
}
