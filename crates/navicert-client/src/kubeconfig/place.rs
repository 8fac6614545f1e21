//! Where in which file a problem is: the entry's own file, and the line of the field, so that a message can point at it.

use navicert_types::tree::{Node, Span, Syntax, parse};

use super::advice::Advice;
use super::merge::{EntryKind, Merged, Origin};
use super::obstacle::Obstacle;
use super::resolve::Effective;
use super::validate::Problem;

/// A place in a kubeconfig file.
#[derive(Debug)]
pub struct Place<'a> {
    /// The file.
    pub origin: &'a Origin,
    /// Where in it.
    pub span: Span,
}

/// An entry and a field of it, outermost first; the deepest one that is written down is pointed at.
struct Subject<'a> {
    kind: EntryKind,
    name: &'a str,
    fields: &'static [&'static str],
}

impl Merged {
    /// Where a problem of the selected context is written; `None` if it is about something that is not there.
    pub fn place_of_problem(&self, problem: &Problem) -> Option<Place<'_>> {
        self.place(&problem_subject(problem)?)
    }

    /// Where an obstacle is written.
    pub fn place_of_obstacle(&self, obstacle: &Obstacle, effective: &Effective) -> Option<Place<'_>> {
        self.place(&obstacle_subject(obstacle, effective))
    }

    /// Where the reason for an advice is written.
    pub fn place_of_advice(&self, advice: &Advice, effective: &Effective) -> Option<Place<'_>> {
        if let Advice::PlainHttp(server) | Advice::NoScheme(server) = advice {
            // A server from the command line is in no file.
            self.cluster(&effective.cluster_name).filter(|cluster| cluster.server == *server)?;
        }
        self.place(&advice_subject(advice, effective))
    }

    fn place(&self, subject: &Subject<'_>) -> Option<Place<'_>> {
        let origin = self.origin(subject.kind, subject.name)?;
        let tree = parse(origin.text.expose(), Syntax::Yaml).ok()?;
        Some(Place { origin, span: find(&tree, subject)? })
    }
}

fn find(tree: &Node, subject: &Subject<'_>) -> Option<Span> {
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

fn problem_subject(problem: &Problem) -> Option<Subject<'_>> {
    let user = |name, fields| Some(Subject { kind: EntryKind::User, name, fields });
    let cluster = |name, fields| Some(Subject { kind: EntryKind::Cluster, name, fields });
    match problem {
        Problem::ClusterNotFound { context, .. } => {
            Some(Subject { kind: EntryKind::Context, name: context, fields: &["cluster"] })
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

fn obstacle_subject<'a>(obstacle: &Obstacle, effective: &'a Effective) -> Subject<'a> {
    let (kind, fields): (EntryKind, &'static [&'static str]) = match obstacle {
        Obstacle::Server { .. } => (EntryKind::Cluster, &["server"]),
        Obstacle::AuthorityAndInsecure => (EntryKind::Cluster, &["insecure-skip-tls-verify"]),
        Obstacle::NoCertificate("certificate-authority") => {
            (EntryKind::Cluster, &["certificate-authority-data"])
        }
        Obstacle::NoCertificate(_) => (EntryKind::User, &["client-certificate-data"]),
        Obstacle::NoKey(_) => (EntryKind::User, &["client-key-data"]),
        Obstacle::ExecVersion(_) => (EntryKind::User, &["exec", "apiVersion"]),
        Obstacle::RemovedProvider { .. } | Obstacle::UnknownProvider(_) | Obstacle::ProviderLacks(_) => {
            (EntryKind::User, &["auth-provider", "name"])
        }
        Obstacle::BasicAndBearer => (EntryKind::User, &["username"]),
        Obstacle::EmptyTokenFile(_) => (EntryKind::User, &["tokenFile"]),
    };
    Subject { kind, name: name_of(kind, effective), fields }
}

fn advice_subject<'a>(advice: &Advice, effective: &'a Effective) -> Subject<'a> {
    let (kind, fields): (EntryKind, &'static [&'static str]) = match advice {
        Advice::UserMissing(_) | Advice::NoUser => (EntryKind::Context, &["user"]),
        Advice::PlainHttp(_) | Advice::NoScheme(_) => (EntryKind::Cluster, &["server"]),
        Advice::Insecure => (EntryKind::Cluster, &["insecure-skip-tls-verify"]),
        Advice::KeyIgnored(_) => (EntryKind::User, &["client-key"]),
        Advice::TokenFileWins(_) => (EntryKind::User, &["tokenFile"]),
        Advice::ExecUnused(_) => (EntryKind::User, &["exec"]),
    };
    Subject { kind, name: name_of(kind, effective), fields }
}

fn name_of(kind: EntryKind, effective: &Effective) -> &str {
    match kind {
        EntryKind::Cluster => &effective.cluster_name,
        EntryKind::User => &effective.user_name,
        EntryKind::Context => effective.context.as_deref().unwrap_or_default(),
    }
}
