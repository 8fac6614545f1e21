//! The values that a mapping can give, as far as its expression lists them as literals:
//! `has(claims.admin) ? ['corp:admins'] : ['corp:users']`.

use std::collections::BTreeSet;

use navicert_cel::syntax::ast::{Node, NodeId, Tree};

use super::compile::{AttributeMapping, CompiledExpression};

/// The values that an attribute of a user can have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PossibleValues {
    /// They depend on a token.
    #[default]
    Any,
    /// No others than these, whatever a token contains.
    Only(BTreeSet<String>),
}

impl PossibleValues {
    /// No value.
    pub fn none() -> Self {
        PossibleValues::Only(BTreeSet::new())
    }

    /// Whether there can be a value.
    pub fn is_none(&self) -> bool {
        matches!(self, PossibleValues::Only(values) if values.is_empty())
    }

    /// The values of both.
    #[must_use]
    pub fn or(self, other: PossibleValues) -> Self {
        match (self, other) {
            (PossibleValues::Only(mut values), PossibleValues::Only(more)) => {
                values.extend(more);
                PossibleValues::Only(values)
            }
            _ => PossibleValues::Any,
        }
    }

    /// The values of a mapping. A claim can have any; its prefix is no value.
    pub(crate) fn from_mapping(mapping: &AttributeMapping) -> Self {
        match mapping {
            AttributeMapping::Claim { .. } => PossibleValues::Any,
            AttributeMapping::Expression(expression) => PossibleValues::from_expression(expression),
        }
    }

    /// The values of an expression that gives a string or a list of strings.
    pub(crate) fn from_expression(expression: &CompiledExpression) -> Self {
        let tree = expression.program.tree();
        let found = texts(tree, tree.root()).or_else(|| lists(tree, tree.root()));
        let Some(mut values) = found else { return PossibleValues::Any };
        // An empty string is no group and no value of an extra attribute.
        values.remove("");
        PossibleValues::Only(values)
    }
}

impl<const N: usize> From<[&str; N]> for PossibleValues {
    fn from(values: [&str; N]) -> Self {
        PossibleValues::Only(values.map(str::to_owned).into())
    }
}

/// The strings that a node can be, if it is a literal or selects one.
fn texts(tree: &Tree, node: NodeId) -> Option<BTreeSet<String>> {
    match tree.node(node) {
        Node::Str(text) => Some([tree.text(text).to_owned()].into()),
        _ => branches(tree, node).and_then(|nodes| union(tree, &nodes, texts)),
    }
}

/// The strings in a list, if it is written as literals, selects such a list or joins such lists.
fn lists(tree: &Tree, node: NodeId) -> Option<BTreeSet<String>> {
    match tree.node(node) {
        Node::List { elements, .. } => union(tree, tree.children(elements), texts),
        Node::Call { function, target: None, args } if tree.function_name(function) == "_+_" => {
            union(tree, tree.children(args), lists)
        }
        _ => branches(tree, node).and_then(|nodes| union(tree, &nodes, lists)),
    }
}

/// The results of `condition ? yes : no`.
fn branches(tree: &Tree, node: NodeId) -> Option<[NodeId; 2]> {
    let Node::Call { function, target: None, args } = tree.node(node) else { return None };
    match *tree.children(args) {
        [_, yes, no] if tree.function_name(function) == "_?_:_" => Some([yes, no]),
        _ => None,
    }
}

fn union(
    tree: &Tree,
    nodes: &[NodeId],
    values: fn(&Tree, NodeId) -> Option<BTreeSet<String>>,
) -> Option<BTreeSet<String>> {
    let mut all = BTreeSet::new();
    for node in nodes {
        all.append(&mut values(tree, *node)?);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use navicert_cel::kubernetes::claims_environment;
    use navicert_types::FieldPath;

    use super::*;

    fn values(text: &str) -> PossibleValues {
        let program = claims_environment().compile(text).unwrap();
        let expression = CompiledExpression { path: FieldPath::root(), text: text.to_owned(), program };
        PossibleValues::from_expression(&expression)
    }

    #[test]
    fn literals_are_the_only_values() {
        assert_eq!(values("'ci'"), ["ci"].into());
        assert_eq!(values("['a', 'b', '']"), ["a", "b"].into());
        assert_eq!(values("[]"), PossibleValues::none());
        assert_eq!(values("has(claims.admin) ? 'a' : 'b'"), ["a", "b"].into());
        let idiom =
            "(has(claims.admin) ? ['admins'] : []) + (claims.team == 'ops' ? ['ops', 'all'] : ['all'])";
        assert_eq!(values(idiom), ["admins", "all", "ops"].into());
    }

    #[test]
    fn everything_else_can_be_any_value() {
        for text in [
            "claims.groups",
            "'corp:' + claims.sub",
            "'corp:' + 'x'",
            "['a', string(claims.team)]",
            "has(claims.admin) ? ['a'] : [string(claims.team)]",
            "['a'] + claims.groups",
            "['a', 'b'].map(x, x + claims.sub)",
            "['a', 'b'].filter(x, x in claims.groups)",
            "[?claims.?team]",
            "claims.?team.orValue('a')",
        ] {
            assert_eq!(values(text), PossibleValues::Any, "{text}");
        }
    }
}
