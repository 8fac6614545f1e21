//! Lints: valid configurations that are likely mistakes. Expressions are checked as syntax trees, so a lint does not depend on
//! how an expression is written.
// S307

pub(super) mod provider;

use navicert_cel::syntax::ast::{Node, NodeId, Run, Tree};
use navicert_cel::{Arena, Bindings, ValueRef};
use navicert_types::FieldPath;

use super::compile::{AttributeMapping, CompiledAuthenticator, CompiledExpression, ValidationRule};
use super::load::LoadedConfig;

/// A lint finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lint {
    /// The lint's name in kebab-case.
    pub code: &'static str,
    /// Field path.
    pub path: FieldPath,
    /// The part of the expression it refers to; empty: the whole.
    pub part: String,
    /// The message, one clause.
    pub message: String,
    /// What to write instead.
    pub hint: String,
}

/// Runs every lint.
pub fn lint(loaded: &LoadedConfig) -> Vec<Lint> {
    let mut found = Vec::new();
    for authenticator in &loaded.compiled.authenticators {
        mappings(authenticator, &mut found);
        for rule in &authenticator.claim_rules {
            over_claims(&rule.expression, &mut found);
            constant(rule, &mut found);
        }
        for rule in &authenticator.user_rules {
            constant(rule, &mut found);
        }
        system_names(authenticator, &mut found);
        provider::lint(authenticator, &mut found);
    }
    near_duplicate_issuers(&loaded.compiled.authenticators, &mut found);
    found
}

fn mappings(authenticator: &CompiledAuthenticator, found: &mut Vec<Lint>) {
    if let AttributeMapping::Expression(expression) = &authenticator.username {
        // A login without a username has to fail, so a missing claim needs no guard here.
        over_claims(expression, found);
    }
    let lists = authenticator.groups.as_ref().and_then(AttributeMapping::expression).into_iter();
    for expression in lists.chain(authenticator.extra.iter().map(|extra| &extra.value)) {
        over_claims(expression, found);
        unguarded(expression, found);
        native_list(expression, found);
    }
    if let Some(expression) = authenticator.uid.as_ref().and_then(AttributeMapping::expression) {
        over_claims(expression, found);
        unguarded(expression, found);
    }
}

/// Claims that every ID token has.
const STANDARD_CLAIMS: [&str; 5] = ["iss", "aud", "exp", "iat", "sub"];

/// Claims that are always strings.
const STRING_CLAIMS: [&str; 10] =
    ["iss", "sub", "email", "name", "preferred_username", "given_name", "family_name", "jti", "azp", "nonce"];

/// Lints for any expression over `claims`.
fn over_claims(expression: &CompiledExpression, found: &mut Vec<Lint>) {
    let tree = expression.program.tree();
    let asks_type = tree.iter().any(|(_, node)| {
        call(tree, node, "type").is_some_and(|args| matches!(*args, [one] if claim(tree, one) == Some("aud")))
    });
    for (id, node) in tree.iter() {
        if let Some(&[argument]) = call(tree, node, "string")
            && let Some(name) = claim(tree, argument).filter(|name| !STRING_CLAIMS.contains(name))
        {
            found.push(about(expression, id, "string-of-number", format!(
                "if `{name}` is a number, this returns `1.2345678e+07` for 12345678: every number in a token is a double"
            ), format!("write `string(int(claims.{name}))` for a number; a string needs no conversion")));
        }
        let compared = ["_==_", "_!=_"].iter().find_map(|name| call(tree, node, name));
        if let Some(&[left, right]) = compared
            && !asks_type
            && [(left, right), (right, left)].iter().any(|(one, other)| {
                claim(tree, *one) == Some("aud") && matches!(tree.node(*other), Node::Str(_))
            })
        {
            found.push(about(expression, id, "audience-as-text", "`aud` may be a list, which never equals a string".to_owned(),
                "audiences are checked already; to match one of several, write `type(claims.aud) == string ? claims.aud == \"x\" : \"x\" in claims.aud`".to_owned()));
        }
        if let Some(&[_, list]) = call(tree, node, "@in")
            && claim(tree, list) == Some("aud")
            && !asks_type
        {
            found.push(about(
                expression,
                id,
                "audience-as-list",
                "`aud` may be a string, which `in` does not support".to_owned(),
                "write `type(claims.aud) == string ? claims.aud == \"x\" : \"x\" in claims.aud`".to_owned(),
            ));
        }
        optional_elements(expression, node, found);
    }
}

/// `[?claims.sub]`: an optional element with a plain value makes kube-apiserver panic.
fn optional_elements(expression: &CompiledExpression, node: Node, found: &mut Vec<Lint>) {
    let tree = expression.program.tree();
    let (elements, flags, step) = match node {
        Node::List { elements, optional } => (elements, optional, 1),
        Node::Map { entries, optional } => (entries, optional, 2),
        _ => return,
    };
    let values = tree.children(elements).iter().skip(step - 1).step_by(step);
    for (value, is_optional) in values.zip(tree.flags(flags)) {
        if *is_optional && is_plain_value(tree, *value) {
            let text = tree.source().slice(tree.span(*value)).to_owned();
            found.push(about(expression, *value, "optional-element", format!(
                "`?` expects an optional value, and `{text}` is not optional: kube-apiserver v1.37.1 panics"
            ), format!("write `?{}`", text.replacen("claims.", "claims.?", 1))));
        }
    }
}

/// Whether it is a claim, or part of one, that is not selected as an optional.
fn is_plain_value(tree: &Tree, mut id: NodeId) -> bool {
    loop {
        match tree.node(id) {
            Node::Ident(name) => return tree.text(name) == "claims",
            Node::Select { operand, .. } => id = operand,
            node => match call(tree, node, "_[_]").or_else(|| call(tree, node, "dyn")) {
                Some(&[operand, ..]) => id = operand,
                _ => return false,
            },
        }
    }
}

/// A claim that may be missing: mapping fails before any rule can report why.
// S131
fn unguarded(expression: &CompiledExpression, found: &mut Vec<Lint>) {
    let tree = expression.program.tree();
    let is_claims = |id: NodeId| matches!(tree.node(id), Node::Ident(name) if tree.text(name).trim_start_matches('.') == "claims");
    let tested: Vec<&str> = tree
        .iter()
        .filter_map(|(_, node)| match node {
            Node::Select { operand, field, test: true } if is_claims(operand) => Some(tree.text(field)),
            _ => None,
        })
        .collect();
    let mut reported: Vec<&str> = Vec::new();
    for (id, _) in tree.iter() {
        let Some(name) = claim(tree, id) else { continue };
        if STANDARD_CLAIMS.contains(&name) || tested.contains(&name) || reported.contains(&name) {
            continue;
        }
        reported.push(name);
        found.push(about(expression, id, "unguarded-claim", format!(
            "a token without `{name}` is always rejected: mappings run before rules and fail on a missing claim"
        ), format!("write `claims.?{name}.orValue(…)` if it may be missing")));
    }
}

/// A list of strings that kube-apiserver does not accept as one.
// S94
fn native_list(expression: &CompiledExpression, found: &mut Vec<Lint>) {
    let tree = expression.program.tree();
    if is_native(tree, tree.root()) {
        found.push(about(
            expression,
            tree.root(),
            "native-list",
            "kube-apiserver rejects this list of strings, for some tokens or all; navicert accepts it"
                .to_owned(),
            "append `.map(x, x)`".to_owned(),
        ));
    }
}

fn is_native(tree: &Tree, root: NodeId) -> bool {
    let mut todo = vec![root];
    while let Some(id) = todo.pop() {
        let node = tree.node(id);
        if let Node::Call { function, target: Some(_), .. } = node
            && matches!(tree.text(function), "split" | "findAll")
        {
            return true;
        }
        if let Some(&[map, _]) = call(tree, node, "_[_]")
            && let Node::Call { function, .. } = tree.node(map)
            && tree.text(function) == "getQuery"
        {
            return true;
        }
        if let Some(&[_, yes, no]) = call(tree, node, "_?_:_") {
            todo.extend([yes, no]);
        }
        if let Some(&[left, right]) = call(tree, node, "_+_") {
            // Concatenation with an empty list returns the other list itself.
            for (one, other) in [(left, right), (right, left)] {
                if may_be_empty(tree, other) {
                    todo.push(one);
                }
            }
        }
    }
    false
}

fn may_be_empty(tree: &Tree, root: NodeId) -> bool {
    let mut todo = vec![root];
    while let Some(id) = todo.pop() {
        match tree.node(id) {
            Node::List { elements, .. } if tree.children(elements).is_empty() => return true,
            node => {
                if let Some(&[_, yes, no]) = call(tree, node, "_?_:_") {
                    todo.extend([yes, no]);
                }
            }
        }
    }
    false
}

/// Rules that are always true or always false.
fn constant(rule: &ValidationRule, found: &mut Vec<Lint>) {
    let tree = rule.expression.program.tree();
    let Some(always) = constant_value(rule, tree, tree.root(), 0) else { return };
    let (code, message) = if always {
        ("never-false", "this rule is always true: it rejects no token")
    } else {
        ("never-true", "this rule is always false: it rejects every token")
    };
    let hint = "remove it, or compare the claim it is meant to check".to_owned();
    found.push(about(&rule.expression, tree.root(), code, message.to_owned(), hint));
}

/// Maximum nesting of conditions that is analysed.
const MAX_CONDITION_DEPTH: usize = 200;

/// The value of a condition for every token, if it is constant.
fn constant_value(rule: &ValidationRule, tree: &Tree, id: NodeId, depth: usize) -> Option<bool> {
    if depth > MAX_CONDITION_DEPTH {
        return None;
    }
    let settled = |id: NodeId| constant_value(rule, tree, id, depth + 1);
    let node = tree.node(id);
    match node {
        Node::Bool(value) => return Some(value),
        // All fields of `user` always exist (S86).
        Node::Select { operand, test: true, .. } => {
            let is_user = matches!(tree.node(operand), Node::Ident(name) if tree.text(name) == "user");
            return is_user.then_some(true);
        }
        _ => {}
    }
    if let Some(&[left, right]) = call(tree, node, "_||_") {
        let sides = [settled(left), settled(right)];
        return match sides {
            [Some(true), _] | [_, Some(true)] => Some(true),
            [Some(false), Some(false)] => Some(false),
            _ => None,
        };
    }
    if let Some(&[left, right]) = call(tree, node, "_&&_") {
        let sides = [settled(left), settled(right)];
        return match sides {
            [Some(false), _] | [_, Some(false)] => Some(false),
            [Some(true), Some(true)] => Some(true),
            _ => None,
        };
    }
    if let Some(&[inner]) = call(tree, node, "!_") {
        return settled(inner).map(|value| !value);
    }
    let is_variable = |(_, node): (NodeId, Node)| matches!(node, Node::Ident(name) if matches!(tree.text(name), "claims" | "user"));
    if id == tree.root() && !tree.iter().any(is_variable) {
        let arena = Arena::new();
        return match rule
            .expression
            .program
            .evaluate(&arena, &Bindings::new())
            .map(|evaluation| evaluation.value)
        {
            Ok(ValueRef::Bool(value)) => Some(value),
            _ => None,
        };
    }
    None
}

/// Names without a prefix or rule that would reject `system:masters`.
fn system_names(authenticator: &CompiledAuthenticator, found: &mut Vec<Lint>) {
    if authenticator.user_rules.iter().any(|rule| rule.expression.text.contains("system:")) {
        return;
    }
    let path = authenticator.path.field("claimMappings");
    for (name, mapping) in
        [("username", Some(&authenticator.username)), ("groups", authenticator.groups.as_ref())]
    {
        if let Some(AttributeMapping::Claim { claim, prefix }) = mapping
            && prefix.is_empty()
            && claim != "email"
        {
            found.push(Lint {
                code: "system-names",
                path: path.field(name).field("prefix"),
                part: String::new(),
                message: format!("the issuer can put `system:…` into `{claim}`, and kube-apiserver accepts it"),
                hint: "add a prefix, or a user validation rule such as `user.groups.all(g, !g.startsWith('system:'))`".to_owned(),
            });
        }
    }
}

/// Issuers that differ only by a trailing slash or letter case.
// A68
fn near_duplicate_issuers(authenticators: &[CompiledAuthenticator], found: &mut Vec<Lint>) {
    let bare = |url: &str| url.trim_end_matches('/').to_ascii_lowercase();
    for (index, one) in authenticators.iter().enumerate() {
        let near_duplicate =
            authenticators.iter().take(index).find(|other| bare(&other.issuer.url) == bare(&one.issuer.url));
        if let Some(other) = near_duplicate {
            found.push(Lint {
                code: "twin-issuer",
                path: one.path.field("issuer").field("url"),
                part: String::new(),
                message: format!(
                    "differs from {}.issuer.url only by a trailing slash or letter case",
                    other.path
                ),
                hint: "issuers are matched by the exact text of `iss`; if both are intended, add a comment"
                    .to_owned(),
            });
        }
    }
}

fn about(
    expression: &CompiledExpression,
    id: NodeId,
    code: &'static str,
    message: String,
    hint: String,
) -> Lint {
    let tree = expression.program.tree();
    let part = tree.source().slice(tree.span(id)).to_owned();
    Lint { code, path: expression.path.clone(), part, message, hint }
}

/// The arguments of a call of this function without a receiver.
fn call<'t>(tree: &'t Tree, node: Node, name: &str) -> Option<&'t [NodeId]> {
    match node {
        Node::Call { function, target: None, args } if tree.function_name(function) == name => {
            Some(children(tree, args))
        }
        _ => None,
    }
}

fn children(tree: &Tree, args: Run) -> &[NodeId] {
    tree.children(args)
}

/// The claim that is read: `claims.x`, `claims["x"]`.
fn claim(tree: &Tree, id: NodeId) -> Option<&str> {
    let is_claims = |id: NodeId| matches!(tree.node(id), Node::Ident(name) if tree.text(name) == "claims");
    match tree.node(id) {
        Node::Select { operand, field, test: false } if is_claims(operand) => Some(tree.text(field)),
        node => match call(tree, node, "_[_]") {
            Some(&[operand, key]) if is_claims(operand) => match tree.node(key) {
                Node::Str(field) => Some(tree.text(field)),
                _ => None,
            },
            _ => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load;
    use crate::profile::AuthnProfile;

    /// Names of the lints for one authenticator with these fields.
    fn lints(fields: &str) -> Vec<&'static str> {
        let text = format!(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt:\n- issuer: {{url: https://i, audiences: [a]}}\n{fields}"
        );
        let loaded =
            load(text.as_bytes(), &AuthnProfile::HARDENED).unwrap_or_else(|error| panic!("{error}\n{text}"));
        lint(&loaded).into_iter().map(|lint| lint.code).collect()
    }

    fn mapped(groups: &str) -> Vec<&'static str> {
        lints(&format!(
            "  claimMappings: {{username: {{expression: claims.sub}}, groups: {{expression: {groups:?}}}}}\n"
        ))
    }

    fn ruled(rule: &str) -> Vec<&'static str> {
        lints(&format!(
            "  claimMappings: {{username: {{expression: claims.sub}}}}\n  claimValidationRules: [{{expression: {rule:?}}}]\n"
        ))
    }

    // S307, S94
    #[test]
    fn finds_mappings_that_fail_on_some_tokens() {
        for (expression, expected) in [
            ("claims.groups", &["unguarded-claim"][..]),
            ("claims['groups']", &["unguarded-claim"]),
            ("claims.realm_access.roles", &["unguarded-claim"]),
            ("claims.?groups.orValue([])", &[]),
            ("has(claims.groups) ? claims.groups : []", &[]),
            ("[claims.sub] + ['x']", &[]),
            ("claims.?csv.orValue('').split(',')", &["native-list"]),
            ("claims.?csv.orValue('').split(',').map(x, x)", &[]),
            (
                "claims.?csv.orValue('').split(',') + (claims.?a.orValue(false) == true ? ['a'] : [])",
                &["native-list"],
            ),
            ("claims.?csv.orValue('').split(',') + ['all']", &[]),
            ("url('https://x?a=b').getQuery()['a']", &["native-list"]),
            ("[?claims.sub]", &["optional-element"]),
            ("[?claims.?sub]", &[]),
            ("[string(claims.sub)]", &[]),
            ("[string(claims.?id.orValue(0))]", &[]),
        ] {
            assert_eq!(mapped(expression), expected, "{expression}");
        }
        assert_eq!(mapped("[string(claims.id)]"), ["string-of-number", "unguarded-claim"]);
        assert_eq!(mapped("[string(int(claims.id))]"), ["unguarded-claim"]);
    }

    // S307, S86, S129
    #[test]
    fn finds_rules_that_do_not_do_what_they_seem_to() {
        for (expression, expected) in [
            ("claims.aud == 'kube'", &["audience-as-text"][..]),
            ("'kube' != claims.aud", &["audience-as-text"]),
            ("'kube' in claims.aud", &["audience-as-list"]),
            ("type(claims.aud) == string ? claims.aud == 'kube' : 'kube' in claims.aud", &[]),
            ("true", &["never-false"]),
            ("claims.a == 1 || true", &["never-false"]),
            ("1 + 1 == 2", &["never-false"]),
            ("claims.a == 1 && false", &["never-true"]),
            ("!true", &["never-true"]),
            ("claims.hd == 'example.com'", &[]),
            ("size({?'a': claims.sub}) == 1", &["optional-element"]),
        ] {
            assert_eq!(ruled(expression), expected, "{expression}");
        }
        let user = "  claimMappings: {username: {expression: claims.sub}}\n  userValidationRules: [{expression: has(user.uid)}]\n";
        assert_eq!(lints(user), ["never-false"]);
    }

    // S140, A68
    #[test]
    fn finds_names_that_an_issuer_could_abuse() {
        let plain =
            "  claimMappings: {username: {claim: sub, prefix: ''}, groups: {claim: groups, prefix: ''}}\n";
        assert_eq!(lints(plain), ["system-names", "system-names"]);
        let guarded = format!(
            "{plain}  userValidationRules: [{{expression: \"user.groups.all(g, !g.startsWith('system:'))\"}}]\n"
        );
        assert_eq!(lints(&guarded), [""; 0]);
        assert_eq!(lints("  claimMappings: {username: {claim: sub, prefix: 'o:'}}\n"), [""; 0]);
        let twin = "  claimMappings: {username: {claim: sub, prefix: 'o:'}}\n- issuer: {url: https://i/, audiences: [a]}\n  claimMappings: {username: {claim: sub, prefix: 'o:'}}\n";
        assert_eq!(lints(twin), ["twin-issuer"]);
    }
}
