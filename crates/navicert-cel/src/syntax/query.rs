//! Queries on a syntax tree, for validation: which fields of a variable does an expression read?

use super::ast::{Node, NodeId, Tree};

/// The fields of a variable that are selected by name anywhere in the expression: `claims.email`, `claims.?email`
/// and `has(claims.email)`, but not `claims["email"]`. In source order, without duplicates.
///
/// Kubernetes uses this query to require that an expression using `claims.email` also uses `claims.email_verified`.
/// Index syntax is not detected there either. Names count, not what they refer to: an iteration variable `claims` does,
/// and `.claims` within its scope does not; elsewhere `.claims` is the same as `claims`.
pub fn selected_fields<'t>(tree: &'t Tree, variable: &str) -> Vec<&'t str> {
    let mut fields = Vec::new();
    let shadowed = shadowed_nodes(tree, variable);
    let is_variable = |id: NodeId| {
        let Node::Ident(name) = tree.node(id) else { return false };
        match tree.text(name).strip_prefix('.') {
            Some(global) => global == variable && !shadowed.get(id.index()).copied().unwrap_or(false),
            None => tree.text(name) == variable,
        }
    };
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

/// Marks the nodes in the scope of an iteration variable with this name.
fn shadowed_nodes(tree: &Tree, variable: &str) -> Vec<bool> {
    let mut shadowed = vec![false; tree.nodes.len()];
    let mark = |shadowed: &mut Vec<bool>, id: NodeId| {
        if let Some(flag) = shadowed.get_mut(id.index()) {
            *flag = true;
        }
    };
    // Children precede their parents.
    for (index, node) in tree.nodes.iter().enumerate().rev() {
        let outer = shadowed.get(index).copied().unwrap_or(false);
        if let Node::Fold(fold) = *node
            && let Some(fold) = tree.fold(fold)
        {
            let binds = |name| tree.text(name) == variable;
            if outer || binds(fold.variable) || fold.second.is_some_and(binds) {
                mark(&mut shadowed, fold.body);
                fold.filter.into_iter().for_each(|id| mark(&mut shadowed, id));
            }
        }
        if outer {
            tree.each_child(*node, |id| mark(&mut shadowed, id));
        }
    }
    shadowed
}

/// Whether the field of a variable is selected by name.
pub fn selects(tree: &Tree, variable: &str, field: &str) -> bool {
    selected_fields(tree, variable).contains(&field)
}

/// The fields of a variable that are read by a literal name, by selection or index, also through `dyn(…)`.
pub fn mentioned_fields<'t>(tree: &'t Tree, variable: &str) -> Vec<&'t str> {
    let mut fields = Vec::new();
    for node in &tree.nodes {
        if let Some((operand, field)) = named_access(tree, node)
            && is_variable(tree, operand, variable, true)
            && !fields.contains(&field)
        {
            fields.push(field);
        }
    }
    fields
}

/// All fields of a variable that an evaluation can read, as written; `None` if the expression also uses the
/// variable in another way and may read any field.
pub fn reached_fields<'t>(tree: &'t Tree, variable: &str) -> Option<Vec<&'t str>> {
    let mut fields = Vec::new();
    // Macro expansion may leave two nodes with one operand, so operands are marked by node index.
    let mut read_by_name = vec![false; tree.nodes.len()];
    for node in &tree.nodes {
        if let Some((operand, field)) = named_access(tree, node)
            && is_variable(tree, operand, variable, false)
        {
            if let Some(read) = read_by_name.get_mut(operand.0 as usize) {
                *read = true;
            }
            if !fields.contains(&field) {
                fields.push(field);
            }
        }
    }
    let is_bare = |(node, read): (&Node, bool)| {
        !read && matches!(*node, Node::Ident(name) if tree.text(name).trim_start_matches('.') == variable)
    };
    if tree.nodes.iter().zip(read_by_name).any(is_bare) { None } else { Some(fields) }
}

/// Whether the variable is used as a collection: `claims.all(…)`, `size(claims)`, `x in claims`.
pub fn treats_as_collection(tree: &Tree, variable: &str) -> bool {
    let is_target = |id: NodeId| is_variable(tree, id, variable, true);
    tree.nodes.iter().any(|node| match *node {
        Node::Fold(index) => tree.fold(index).is_some_and(|fold| is_target(fold.range)),
        Node::Call { function, target, args } => {
            match (tree.function_name(function), target, tree.children(args)) {
                ("size", Some(target), []) => is_target(target),
                ("size", None, &[argument]) | ("@in", None, &[_, argument]) => is_target(argument),
                _ => false,
            }
        }
        _ => false,
    })
}

/// The operand and name of `a.f`, `a.?f`, `a["f"]` or `a[?"f"]`.
fn named_access<'t>(tree: &'t Tree, node: &Node) -> Option<(NodeId, &'t str)> {
    match *node {
        Node::Select { operand, field, .. } => Some((operand, tree.text(field))),
        Node::Call { function, target: None, args }
            if matches!(tree.text(function), "_?._" | "_[_]" | "_[?_]") =>
        {
            let [operand, key] = *tree.children(args) else { return None };
            let Node::Str(field) = tree.node(key) else { return None };
            Some((operand, tree.text(field)))
        }
        _ => None,
    }
}

fn is_variable(tree: &Tree, id: NodeId, variable: &str, through_dyn: bool) -> bool {
    match tree.node(id) {
        Node::Ident(name) => tree.text(name).trim_start_matches('.') == variable,
        Node::Call { function, target: None, args }
            if through_dyn && tree.function_name(function) == "dyn" =>
        {
            matches!(*tree.children(args), [inner] if is_variable(tree, inner, variable, true))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kubernetes::claims_environment;

    #[test]
    fn index_and_dyn_count_as_mentions() {
        let mentions = |text: &str| {
            let program = claims_environment().compile(text).unwrap();
            mentioned_fields(program.tree(), "claims").join(" ")
        };
        assert_eq!(mentions(r#"claims["email"]"#), "email");
        assert_eq!(mentions(r#"claims[?"email"].orValue("x")"#), "email");
        assert_eq!(mentions("dyn(claims).email"), "email");
        assert_eq!(mentions("has(claims.a) && claims.?b.orValue(1) == 1"), "a b");
        assert_eq!(mentions("[claims][0].email"), "");
    }

    #[test]
    fn detects_use_of_claims_as_a_collection() {
        let treats = |text: &str| {
            let program = claims_environment().compile(text).unwrap();
            treats_as_collection(program.tree(), "claims")
        };
        for text in ["claims.exists(c, c == 'a')", "size(claims) > 1", "claims.size() > 1", "'a' in claims"] {
            assert!(treats(text), "{text}");
        }
        for text in ["dyn(claims.l).exists(c, c == 1)", "size(claims.l) > 1", "'a' in claims.l", "claims.a"] {
            assert!(!treats(text), "{text}");
        }
    }

    #[test]
    fn bare_use_of_the_variable_may_read_any_field() {
        let reached = |text: &str| {
            let program = claims_environment().compile(text).unwrap();
            reached_fields(program.tree(), "claims").map(|fields| fields.join(" "))
        };
        assert_eq!(reached(r#"claims.a == claims["b"] || has(claims.c)"#).as_deref(), Some("a b c"));
        assert_eq!(reached("claims.?a.orValue(1) == 1").as_deref(), Some("a"));
        assert_eq!(reached("dyn(claims).a"), None);
        assert_eq!(reached("has(claims.a) && dyn(claims).b == 1"), None);
        assert_eq!(reached(r#"claims["a" + "b"]"#), None);
        assert_eq!(reached("claims.exists(c, c == claims.a)"), None);
        assert_eq!(reached("dyn(claims.l).map(x, x + claims.a)").as_deref(), Some("l a"));
    }
}
