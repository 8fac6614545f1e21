//! Finds the file and line of a problem so that messages can point at it.

use navicert_types::tree::{Node, Span, Syntax, parse};

use super::advice::Advice;
use super::merge::{EntryKind, EntryOrigin, MergedKubeconfig};
use super::obstacle::Obstacle;
use super::resolve::Effective;
use super::validate::Problem;

/// A position in a kubeconfig file.
#[derive(Debug)]
pub struct SourceLocation<'a> {
    /// The file.
    pub origin: &'a EntryOrigin,
    /// The position in the file.
    pub span: Span,
}

/// An entry and a path of fields in it; the deepest existing field is located.
struct EntryField<'a> {
    kind: EntryKind,
    name: &'a str,
    fields: &'static [&'static str],
}

impl MergedKubeconfig {
    /// The location of a problem of the selected context; `None` if it concerns a missing entry.
    pub fn location_of_problem(&self, problem: &Problem) -> Option<SourceLocation<'_>> {
        self.locate(&problem_field(problem)?)
    }

    /// The location of an obstacle.
    pub fn location_of_obstacle(
        &self,
        obstacle: &Obstacle,
        effective: &Effective,
    ) -> Option<SourceLocation<'_>> {
        self.locate(&obstacle_field(obstacle, effective))
    }

    /// The location of the field an advice is about.
    pub fn location_of_advice(&self, advice: &Advice, effective: &Effective) -> Option<SourceLocation<'_>> {
        if let Advice::PlainHttp(server) | Advice::NoScheme(server) = advice {
            // A server from the command line has no location.
            self.cluster(&effective.cluster_name).filter(|cluster| cluster.server == *server)?;
        }
        self.locate(&advice_field(advice, effective))
    }

    fn locate(&self, subject: &EntryField<'_>) -> Option<SourceLocation<'_>> {
        let origin = self.origin(subject.kind, subject.name)?;
        let tree = parse(origin.text.expose(), Syntax::Yaml).ok()?;
        Some(SourceLocation { origin, span: find(&tree, subject)? })
    }
}

fn find(tree: &Node, subject: &EntryField<'_>) -> Option<Span> {
    let (list, inner) = match subject.kind {
        EntryKind::Cluster => ("clusters", "cluster"),
        EntryKind::User => ("users", "user"),
        EntryKind::Context => ("contexts", "context"),
    };
    let entries = tree.as_mapping()?.last(list)?.value.as_sequence()?;
    let entry = entries.iter().filter_map(Node::as_mapping).find(|entry| {
        let name = entry.last("name").and_then(|name| name.value.as_str()).unwrap_or_default();
        name == subject.name
    })?;
    let mut span = entry.last("name").map(|name| name.value.span)?;
    let mut node = &entry.last(inner)?.value;
    for field in subject.fields {
        let Some(found) = node.as_mapping().and_then(|mapping| mapping.last(field)) else { break };
        span = found.key_span;
        node = &found.value;
    }
    Some(span)
}

fn problem_field(problem: &Problem) -> Option<EntryField<'_>> {
    let user = |name, fields| Some(EntryField { kind: EntryKind::User, name, fields });
    let cluster = |name, fields| Some(EntryField { kind: EntryKind::Cluster, name, fields });
    match problem {
        Problem::ClusterNotFound { context, .. } => {
            Some(EntryField { kind: EntryKind::Context, name: context, fields: &["cluster"] })
        }
        Problem::NoServer(name) => cluster(name, &["server"]),
        Problem::Proxy { cluster: name, .. } => cluster(name, &["proxy-url"]),
        Problem::TwoAuthorities(name) => cluster(name, &["certificate-authority"]),
        Problem::Unreadable { field: "certificate-authority", entry, .. } => {
            cluster(entry, &["certificate-authority"])
        }
        Problem::Unreadable { field: "client-key", entry, .. } => user(entry, &["client-key"]),
        Problem::Unreadable { entry, .. } => user(entry, &["client-certificate"]),
        Problem::TwoCertificates(name) => user(name, &["client-certificate"]),
        Problem::TwoKeys(name) => user(name, &["client-key"]),
        Problem::NoKey(name) => user(name, &[]),
        Problem::ExecAndProvider(name) => user(name, &["auth-provider"]),
        Problem::ExecLacks { what: "env variable name", user: name } => user(name, &["exec", "env"]),
        Problem::ExecLacks { user: name, .. } => user(name, &["exec"]),
        Problem::InteractiveMode { user: name, .. } => user(name, &["exec", "interactiveMode"]),
        Problem::TwoMethods(name) => user(name, &["token"]),
        Problem::ImpersonationWithoutUser(name) => user(name, &[]),
        Problem::TokenFile { user: name, .. } => user(name, &["tokenFile"]),
        Problem::NoSuchContext(_)
        | Problem::NoSuchUser(_)
        | Problem::NoSuchCluster(_)
        | Problem::ContextNotFound(_)
        | Problem::NoConfiguration
        | Problem::NoClusterSelected => None,
    }
}

fn obstacle_field<'a>(obstacle: &Obstacle, effective: &'a Effective) -> EntryField<'a> {
    let (kind, fields): (EntryKind, &'static [&'static str]) = match obstacle {
        Obstacle::Server { .. } => (EntryKind::Cluster, &["server"]),
        Obstacle::AuthorityAndInsecure => (EntryKind::Cluster, &["insecure-skip-tls-verify"]),
        Obstacle::NoCertificate("certificate-authority") => {
            (EntryKind::Cluster, &["certificate-authority-data"])
        }
        Obstacle::NoCertificate(_) | Obstacle::Identity(_) => (EntryKind::User, &["client-certificate-data"]),
        Obstacle::NoKey(_) => (EntryKind::User, &["client-key-data"]),
        Obstacle::ExecVersion(_) => (EntryKind::User, &["exec", "apiVersion"]),
        Obstacle::RemovedProvider { .. } | Obstacle::UnknownProvider(_) | Obstacle::ProviderLacks(_) => {
            (EntryKind::User, &["auth-provider", "name"])
        }
        Obstacle::BasicAndBearer => (EntryKind::User, &["username"]),
        Obstacle::EmptyTokenFile(_) => (EntryKind::User, &["tokenFile"]),
    };
    EntryField { kind, name: name_of(kind, effective), fields }
}

fn advice_field<'a>(advice: &Advice, effective: &'a Effective) -> EntryField<'a> {
    let (kind, fields): (EntryKind, &'static [&'static str]) = match advice {
        Advice::UserMissing(_) | Advice::NoUser => (EntryKind::Context, &["user"]),
        Advice::PlainHttp(_) | Advice::NoScheme(_) => (EntryKind::Cluster, &["server"]),
        Advice::Insecure => (EntryKind::Cluster, &["insecure-skip-tls-verify"]),
        Advice::KeyIgnored(_) => (EntryKind::User, &["client-key"]),
        Advice::TokenFileWins(_) => (EntryKind::User, &["tokenFile"]),
        Advice::ExecUnused(_) => (EntryKind::User, &["exec"]),
    };
    EntryField { kind, name: name_of(kind, effective), fields }
}

fn name_of(kind: EntryKind, effective: &Effective) -> &str {
    match kind {
        EntryKind::Cluster => &effective.cluster_name,
        EntryKind::User => &effective.user_name,
        EntryKind::Context => effective.context.as_deref().unwrap_or_default(),
    }
}
