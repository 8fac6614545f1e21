//! Which problems of a context are certain although a file has fields that cannot be decoded.

use navicert_types::FieldPath;
use navicert_types::diagnostic::Diagnostic;

use super::error::{ConfigError, ConfigErrorClass};
use super::report::ConfigReport;
use crate::kubeconfig::{
    EntryKind, KubeconfigFile, KubeconfigFileError, KubeconfigFileErrorReason, LoadedKubeconfig,
};

/// What is not known because a field cannot be decoded.
#[derive(Debug, Default)]
pub(super) struct UndecodedFields {
    /// The lists whose names are not all known.
    lists: Vec<EntryKind>,
    /// The entries with an invalid field.
    entries: Vec<(EntryKind, String)>,
    /// Anything else that selects entries, such as `current-context`.
    has_other: bool,
}

impl UndecodedFields {
    /// The fields that the errors concern; every file of an error is in `loaded`.
    pub(super) fn new(errors: &[KubeconfigFileError], loaded: &LoadedKubeconfig) -> Self {
        let mut undecoded = UndecodedFields::default();
        for error in errors {
            let file = loaded.files.iter().find(|file| file.path == error.path);
            match (&error.reason, file) {
                (KubeconfigFileErrorReason::Undecodable { diagnostics, .. }, Some(file)) => {
                    diagnostics.iter().for_each(|diagnostic| undecoded.add(diagnostic, file));
                }
                _ => undecoded.has_other = true,
            }
        }
        undecoded
    }

    fn add(&mut self, diagnostic: &Diagnostic, file: &KubeconfigFile) {
        let config = &file.config;
        let clusters = config.clusters.iter().map(|entry| (EntryKind::Cluster, entry.name.as_str()));
        let users = config.users.iter().map(|entry| (EntryKind::User, entry.name.as_str()));
        let contexts = config.contexts.iter().map(|entry| (EntryKind::Context, entry.name.as_str()));
        let is_inside = |path: &FieldPath| diagnostic.path.starts_with(path);
        let entries = clusters.enumerate().chain(users.enumerate()).chain(contexts.enumerate());
        for (index, (kind, name)) in entries {
            let (list, value) = fields_of(kind);
            if is_inside(&FieldPath::root().field(list).index(index).field(value)) {
                return self.entries.push((kind, name.to_owned()));
            }
        }
        let is_list = |kind: &EntryKind| is_inside(&FieldPath::root().field(fields_of(*kind).0));
        match [EntryKind::Cluster, EntryKind::User, EntryKind::Context].into_iter().find(is_list) {
            Some(kind) => self.lists.push(kind),
            None => self.has_other |= !is_inside(&FieldPath::root().field("preferences")),
        }
    }

    /// The errors of a report that do not depend on these fields.
    pub(super) fn retain_known(&self, report: ConfigReport) -> Vec<ConfigError> {
        let effective = report.effective.as_ref();
        let context = effective.and_then(|effective| effective.context.as_deref()).unwrap_or_default();
        if self.has_other || !self.knows(EntryKind::Context, context) {
            return Vec::new();
        }
        let cluster = effective.map_or("", |effective| &effective.cluster_name);
        let user = effective.map_or("", |effective| &effective.user_name);
        let knows = |error: &ConfigError| match kind_of(error.class()) {
            Some(EntryKind::Cluster) => self.knows(EntryKind::Cluster, cluster),
            Some(EntryKind::User) => self.knows(EntryKind::User, user),
            Some(EntryKind::Context) => true,
            None => self.knows(EntryKind::Cluster, cluster) && self.knows(EntryKind::User, user),
        };
        report.errors.into_iter().filter(knows).collect()
    }

    /// Whether an entry, or the fact that it does not exist, is known.
    fn knows(&self, kind: EntryKind, name: &str) -> bool {
        !self.lists.contains(&kind) && !self.entries.iter().any(|entry| *entry == (kind, name.to_owned()))
    }
}

/// The list of an entry, and the field of its value.
fn fields_of(kind: EntryKind) -> (&'static str, &'static str) {
    match kind {
        EntryKind::Cluster => ("clusters", "cluster"),
        EntryKind::User => ("users", "user"),
        EntryKind::Context => ("contexts", "context"),
    }
}

/// The entry that a problem concerns; `None` for all of them.
fn kind_of(class: ConfigErrorClass) -> Option<EntryKind> {
    match class {
        ConfigErrorClass::ContextNotFound => Some(EntryKind::Context),
        ConfigErrorClass::ClusterNotFound
        | ConfigErrorClass::Server
        | ConfigErrorClass::Proxy
        | ConfigErrorClass::Authority => Some(EntryKind::Cluster),
        ConfigErrorClass::UserNotFound
        | ConfigErrorClass::ClientCertificate
        | ConfigErrorClass::Token
        | ConfigErrorClass::Exec
        | ConfigErrorClass::AuthProvider
        | ConfigErrorClass::ExternalSigner
        | ConfigErrorClass::Impersonation
        | ConfigErrorClass::MissingFeature
        | ConfigErrorClass::PolicyDenied => Some(EntryKind::User),
        ConfigErrorClass::NoConfiguration | ConfigErrorClass::Unreadable | ConfigErrorClass::Malformed => {
            None
        }
    }
}
