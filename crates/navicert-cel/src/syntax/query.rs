//! Questions about a tree that rules are judged by: which fields of a variable does it select?

use super::ast::{Node, NodeId, Tree};

/// The fields of a variable that are selected by name anywhere in the expression: `claims.email`, `claims.?email`
/// and `has(claims.email)`, but not `claims["email"]`. In the order of the text, without repetition.
///
/// This is the question behind the rule that an expression using `claims.email` must look at
/// `claims.email_verified` too, and the spelling with brackets escapes it there as it does here.
pub fn selected_fields<'t>(tree: &'t Tree, variable: &str) -> Vec<&'t str> {
    let mut fields = Vec::new();
    let is_variable = |id: NodeId| matches!(tree.node(id), Node::Ident(name) if tree.text(name) == variable);
    for node in &tree.nodes {
        let found = match *node {
            Node::Select { operand, field, .. } if is_variable(operand) => tree.text(field),
            Node::Call { function, target: None, args } if tree.text(function) == "_?._" => {
                match *tree.children(args) {
                    [operand, key] if is_variable(operand) => match tree.node(key) {
                        Node::Str(field) => tree.text(field),
                        _ => continue,
                    },
                    _ => continue,
                }
            }
            _ => continue,
        };
        if !fields.contains(&found) {
            fields.push(found);
        }
    }
    fields
}

/// Whether a field of a variable is selected by name.
pub fn selects(tree: &Tree, variable: &str, field: &str) -> bool {
    selected_fields(tree, variable).contains(&field)
}
