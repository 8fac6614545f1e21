//! Finds the file and line of a problem so that messages can point at it.

use navicert_types::tree::{Node, Span, Syntax, parse};

use super::merge::{EntryKind, EntryOrigin, MergedKubeconfig};

/// A position in a kubeconfig file.
#[derive(Debug)]
pub(crate) struct SourceLocation<'a> {
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
    /// The location of the deepest existing field on a path in an entry.
    pub(crate) fn locate_field(
        &self,
        kind: EntryKind,
        name: &str,
        fields: &'static [&'static str],
    ) -> Option<SourceLocation<'_>> {
        self.locate(&EntryField { kind, name, fields })
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
