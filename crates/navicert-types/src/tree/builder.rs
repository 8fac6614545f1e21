//! Builds a tree from the events of either parser and enforces the limits. Input never causes recursion, and never
//! more allocation than the limits permit.

use std::collections::{HashMap, HashSet};
use std::mem;

use super::{Mapping, MappingEntry, Node, Number, ParseLimits, Span, Value};
use crate::diagnostic::{Diagnostic, DiagnosticKind};
use crate::field_path::FieldPath;

/// A tree under construction. Collections are opened and closed; values go into the innermost open one.
pub(super) struct Builder {
    limits: ParseLimits,
    open: Vec<OpenCollection>,
    root: Option<Node>,
    nodes: usize,
    alias_bytes: usize,
    anchors: HashMap<usize, Anchored>,
}

/// A collection that has not been closed yet.
struct OpenCollection {
    content: Content,
    span: Span,
    anchor: usize,
}

enum Content {
    Sequence(Vec<Node>),
    Mapping { entries: Vec<MappingEntry>, seen: SeenKeys, key: Option<Key> },
}

enum Key {
    Name(String, Span),
    Merge(Span),
}

/// A finished node that aliases may repeat, with the cost of one repetition.
struct Anchored {
    node: Node,
    cost: Cost,
}

#[derive(Default)]
struct Cost {
    nodes: usize,
    bytes: usize,
    height: usize,
}

/// Anchor number of a node without an anchor.
pub(super) const NO_ANCHOR: usize = 0;

impl Builder {
    pub(super) fn new(limits: ParseLimits) -> Self {
        Builder { limits, open: Vec::new(), root: None, nodes: 0, alias_bytes: 0, anchors: HashMap::new() }
    }

    /// Whether the next scalar is a mapping's key.
    pub(super) fn expects_key(&self) -> bool {
        matches!(self.open.last(), Some(OpenCollection { content: Content::Mapping { key: None, .. }, .. }))
    }

    pub(super) fn scalar(&mut self, value: Value, span: Span, anchor: usize) -> Result<(), Diagnostic> {
        self.charge(1, span)?;
        self.finish_node(Node { value, span }, anchor)
    }

    /// The key `<<`.
    pub(super) fn merge_key(&mut self, span: Span) {
        if let Some(OpenCollection { content: Content::Mapping { key, .. }, .. }) = self.open.last_mut() {
            *key = Some(Key::Merge(span));
        }
    }

    pub(super) fn open_sequence(&mut self, span: Span, anchor: usize) -> Result<(), Diagnostic> {
        self.open_collection(Content::Sequence(Vec::new()), span, anchor)
    }

    pub(super) fn open_mapping(&mut self, span: Span, anchor: usize) -> Result<(), Diagnostic> {
        // Most mappings have two or three entries.
        let content =
            Content::Mapping { entries: Vec::with_capacity(2), seen: SeenKeys::default(), key: None };
        self.open_collection(content, span, anchor)
    }

    /// Closes the innermost collection. `end` is the end of its closing bracket; a block collection has none and ends
    /// with its last entry.
    pub(super) fn close(&mut self, end: Option<usize>) -> Result<(), Diagnostic> {
        let Some(OpenCollection { content, mut span, anchor }) = self.open.pop() else { return Ok(()) };
        let (value, last) = match content {
            Content::Sequence(items) => {
                let last = items.last().map(|node| node.span.end);
                (Value::Sequence(items), last)
            }
            Content::Mapping { entries, .. } => {
                let last = entries.last().map(|entry| entry.value.span.end.max(entry.key_span.end));
                (Value::Mapping(Mapping(entries)), last)
            }
        };
        span.end = end.or(last).unwrap_or(span.end).max(span.start);
        self.finish_node(Node { value, span }, anchor)
    }

    /// Adds a copy of the anchored node.
    pub(super) fn alias(&mut self, anchor: usize, span: Span) -> Result<(), Diagnostic> {
        let Some(Anchored { node, cost }) = self.anchors.get(&anchor) else {
            // The parser knows the anchor, so its node is still open.
            return Err(syntax_error(span, "anchor contains an alias of itself"));
        };
        if self.open.len() + cost.height > self.limits.depth {
            return Err(too_deep(span, self.limits.depth));
        }
        let node = node.clone_within(&mut self.alias_bytes, cost.bytes, self.limits.alias_bytes, span)?;
        let nodes = cost.nodes;
        self.charge(nodes, span)?;
        self.finish_node(node, NO_ANCHOR)
    }

    /// The finished tree; null if it is empty.
    pub(super) fn finish(self) -> Node {
        self.root.unwrap_or(Node { value: Value::Null, span: Span::START })
    }

    fn open_collection(&mut self, content: Content, span: Span, anchor: usize) -> Result<(), Diagnostic> {
        if self.expects_key() {
            return Err(syntax_error(span, "mapping key must be a scalar, not a list or a mapping"));
        }
        if self.open.len() >= self.limits.depth {
            return Err(too_deep(span, self.limits.depth));
        }
        self.charge(1, span)?;
        self.open.push(OpenCollection { content, span, anchor });
        Ok(())
    }

    fn finish_node(&mut self, node: Node, anchor: usize) -> Result<(), Diagnostic> {
        if anchor != NO_ANCHOR {
            self.store_anchor(&node, anchor)?;
        }
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(OpenCollection { content: Content::Sequence(items), .. }) => items.push(node),
            Some(OpenCollection { content: Content::Mapping { entries, seen, key }, .. }) => match key.take()
            {
                None => *key = Some(Key::Name(key_name(node.value, node.span)?, node.span)),
                Some(Key::Name(name, key_span)) => seen.push(entries, name, key_span, node),
                Some(Key::Merge(span)) => merge(entries, seen, node, span)?,
            },
        }
        Ok(())
    }

    /// Stores a copy for aliases. The copy counts against the limits.
    fn store_anchor(&mut self, node: &Node, anchor: usize) -> Result<(), Diagnostic> {
        let cost = node.cost();
        let copy =
            node.clone_within(&mut self.alias_bytes, cost.bytes, self.limits.alias_bytes, node.span)?;
        self.charge(cost.nodes, node.span)?;
        self.anchors.insert(anchor, Anchored { node: copy, cost });
        Ok(())
    }

    fn charge(&mut self, nodes: usize, span: Span) -> Result<(), Diagnostic> {
        self.nodes = self.nodes.saturating_add(nodes);
        if self.nodes > self.limits.nodes {
            return Err(limit_exceeded(
                span,
                format!("more than {} values after expanding aliases", self.limits.nodes),
            ));
        }
        Ok(())
    }
}

impl Node {
    fn cost(&self) -> Cost {
        let children: &mut dyn Iterator<Item = &Node> = match &self.value {
            Value::Null | Value::Bool(_) | Value::Number(_) => return Cost { nodes: 1, ..Cost::default() },
            Value::String(text) => return Cost { nodes: 1, bytes: text.len(), height: 0 },
            Value::Sequence(items) => &mut items.iter(),
            Value::Mapping(mapping) => &mut mapping.0.iter().map(|entry| &entry.value),
        };
        let mut total = Cost { nodes: 1, ..Cost::default() };
        for child in children {
            let cost = child.cost();
            total.nodes += cost.nodes;
            total.bytes += cost.bytes;
            total.height = total.height.max(cost.height);
        }
        if let Value::Mapping(mapping) = &self.value {
            total.bytes += mapping.0.iter().map(|entry| entry.key.len()).sum::<usize>();
        }
        total.height += 1;
        total
    }

    /// A copy, if the repeated bytes are within the limit.
    fn clone_within(
        &self,
        spent: &mut usize,
        bytes: usize,
        limit: usize,
        span: Span,
    ) -> Result<Node, Diagnostic> {
        *spent = spent.saturating_add(bytes);
        if *spent > limit {
            return Err(limit_exceeded(span, format!("aliases expand to more than {limit} bytes")));
        }
        Ok(self.clone())
    }
}

/// Finds repeated keys of a mapping: by comparison in a small one, by hash in a larger one.
#[derive(Default)]
struct SeenKeys(HashSet<String>);

impl SeenKeys {
    /// Up to this many entries, comparing with each is faster than hashing.
    const COMPARED: usize = 16;

    fn push(&mut self, entries: &mut Vec<MappingEntry>, key: String, key_span: Span, value: Node) {
        let repeated = if entries.len() < Self::COMPARED {
            entries.iter().any(|entry| entry.key == key)
        } else {
            if self.0.is_empty() {
                self.0.extend(entries.iter().map(|entry| entry.key.clone()));
            }
            !self.0.insert(key.clone())
        };
        entries.push(MappingEntry { key, key_span, value, repeated });
    }
}

/// Adds the entries of `<<` in its position. As in go-yaml v2 the last entry in the text wins, and among several merged
/// mappings the first.
fn merge(
    entries: &mut Vec<MappingEntry>,
    seen: &mut SeenKeys,
    node: Node,
    span: Span,
) -> Result<(), Diagnostic> {
    let sources = match node.value {
        Value::Mapping(mapping) => vec![mapping],
        Value::Sequence(items) => items
            .into_iter()
            .rev()
            .map(|item| match item.value {
                Value::Mapping(mapping) => Ok(mapping),
                _ => Err(not_mergeable(span)),
            })
            .collect::<Result<_, _>>()?,
        _ => return Err(not_mergeable(span)),
    };
    for MappingEntry { key, key_span, value, .. } in sources.into_iter().flat_map(|mapping| mapping.0) {
        seen.push(entries, key, key_span, value);
    }
    Ok(())
}

/// The spelling sigs.k8s.io/yaml gives a key that is not a string. It rejects null and integers above i64.
fn key_name(value: Value, span: Span) -> Result<String, Diagnostic> {
    match value {
        Value::String(mut text) => Ok(mem::take(&mut *text)),
        Value::Bool(value) => Ok(value.to_string()),
        Value::Number(Number::Integer(value)) => Ok(value.to_string()),
        Value::Number(Number::Float(value)) => Ok(super::scalar::float_key(value)),
        Value::Null => Err(syntax_error(span, "mapping key must not be null; put it in quotes")),
        _ => Err(syntax_error(span, "mapping key is out of range; put it in quotes")),
    }
}

fn not_mergeable(span: Span) -> Diagnostic {
    syntax_error(span, "merge key `<<` requires a mapping or a list of mappings")
}

pub(super) fn too_deep(span: Span, depth: usize) -> Diagnostic {
    limit_exceeded(span, format!("lists and mappings are nested deeper than {depth} levels"))
}

/// A syntax error.
pub(super) fn syntax_error(span: Span, message: impl Into<String>) -> Diagnostic {
    document_level(span, DiagnosticKind::Syntax, message.into())
}

/// An error for input beyond the limits.
pub(super) fn limit_exceeded(span: Span, message: impl Into<String>) -> Diagnostic {
    document_level(span, DiagnosticKind::Limit, message.into())
}

fn document_level(span: Span, kind: DiagnosticKind, message: String) -> Diagnostic {
    Diagnostic { path: FieldPath::root(), span, kind, message, hint: None, is_secret: false }
}
