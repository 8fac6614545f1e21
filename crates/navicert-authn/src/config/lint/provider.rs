//! Lints about what identity providers put into tokens, and about expressions that kube-apiserver compiles slowly.

use navicert_cel::syntax::ast::{Node, NodeId, Tree};

use navicert_go::url::Url;

use super::{Lint, about, call};
use crate::config::compile::{AttributeMapping, CompiledAuthenticator, CompiledExpression};

/// Claims that the standard defines as booleans.
// OpenID Connect Core, section 5.1
pub(in crate::config) const BOOLEAN_CLAIMS: [&str; 2] = ["email_verified", "phone_number_verified"];

/// Hosts of Microsoft Entra ID: the public cloud, version 1.0 tokens, and the national clouds.
const ENTRA_HOSTS: [&str; 5] = [
    "login.microsoftonline.com",
    "sts.windows.net",
    "login.microsoftonline.us",
    "login.partner.microsoftonline.cn",
    "login.chinacloudapi.cn",
];

/// Microsoft Graph as an audience: by URL and by application ID.
const GRAPH_AUDIENCES: [&str; 3] =
    ["https://graph.microsoft.com", "https://graph.microsoft.com/", "00000003-0000-0000-c000-000000000000"];

/// Links of an `optMap` chain that are reported: seven take kube-apiserver a third of a second, and each further link multiplies that
/// by three to four.
const SLOW_OPT_MAP_LINKS: usize = 7;

/// Runs the lints of this file on one authenticator.
pub(super) fn lint(authenticator: &CompiledAuthenticator, found: &mut Vec<Lint>) {
    required_claims(authenticator, found);
    issuer_slash(authenticator, found);
    access_tokens(authenticator, found);
    group_overage(authenticator, found);
    for expression in expressions(authenticator) {
        opt_map_chain(expression, found);
    }
}

/// Required values of claims that are not strings: kube-apiserver rejects every token.
fn required_claims(authenticator: &CompiledAuthenticator, found: &mut Vec<Lint>) {
    for required in &authenticator.required_claims {
        let claim = required.claim.as_str();
        if BOOLEAN_CLAIMS.contains(&claim) && matches!(required.value.as_str(), "true" | "false") {
            found.push(Lint {
                code: "boolean-as-text",
                path: required.path.clone(),
                part: String::new(),
                message: format!(
                    "every token whose `{claim}` is a boolean, as the standard requires, is rejected: `requiredValue` is compared with strings only"
                ),
                hint: format!("write a rule with `expression: claims.?{claim}.orValue(false) == {}`", required.value),
            });
        }
        if claim == "aud" {
            found.push(Lint {
                code: "audience-as-text",
                path: required.path.clone(),
                part: String::new(),
                message: "every token whose `aud` is a list is rejected: `requiredValue` is compared with strings only"
                    .to_owned(),
                hint: "remove it: `issuer.audiences` already requires the audience, as a string or in a list".to_owned(),
            });
        }
    }
}

/// Auth0's issuer ends in a slash.
fn issuer_slash(authenticator: &CompiledAuthenticator, found: &mut Vec<Lint>) {
    let url = &authenticator.issuer.url;
    if has_host(url, |host| host.ends_with(".auth0.com")) && !url.ends_with('/') {
        found.push(Lint {
            code: "issuer-slash",
            path: authenticator.path.field("issuer").field("url"),
            part: String::new(),
            message: "no token matches: Auth0's tokens and discovery document name the issuer with a trailing slash"
                .to_owned(),
            hint: format!("write `{url}/`"),
        });
    }
}

/// Audiences of access tokens that only their recipient can verify.
fn access_tokens(authenticator: &CompiledAuthenticator, found: &mut Vec<Lint>) {
    let issuer = &authenticator.issuer;
    let is_okta = |host: &str| host.ends_with(".okta.com") || host.ends_with(".oktapreview.com");
    let is_okta_org = has_host(&issuer.url, is_okta) && !issuer.url.contains("/oauth2/");
    for (index, audience) in issuer.audiences.iter().enumerate() {
        let recipient = match audience.as_str() {
            _ if is_okta_org && audience.trim_end_matches('/') == issuer.url.trim_end_matches('/') => {
                "access tokens of Okta's org authorization server are for Okta itself, and their keys are not published"
            }
            graph if GRAPH_AUDIENCES.contains(&graph) => {
                "access tokens for Microsoft Graph can be verified by Microsoft Graph only"
            }
            _ => continue,
        };
        found.push(Lint {
            code: "opaque-access-token",
            path: issuer_field(authenticator, "audiences").index(index),
            part: String::new(),
            message: format!("no token with this audience can be verified: {recipient}"),
            hint: "use ID tokens, whose audience is the application's client ID".to_owned(),
        });
    }
}

/// Entra ID omits `groups` from tokens of users with many groups.
fn group_overage(authenticator: &CompiledAuthenticator, found: &mut Vec<Lint>) {
    let Some(expression) = authenticator.groups.as_ref().and_then(AttributeMapping::expression) else {
        return;
    };
    let is_entra = has_host(&authenticator.issuer.url, |host| ENTRA_HOSTS.contains(&host));
    let tree = expression.program.tree();
    let is_handled = |rule: &CompiledExpression| {
        ["hasgroups", "_claim_names"].iter().any(|claim| rule.text.contains(claim))
    };
    if !is_entra || authenticator.claim_rules.iter().any(|rule| is_handled(&rule.expression)) {
        return;
    }
    let Some(id) = optional_groups(tree) else { return };
    found.push(about(
        expression,
        id,
        "group-overage",
        "users with more than 200 groups log in without any: Entra ID sends `hasgroups` or `_claim_names` instead of `groups`".to_owned(),
        "add a rule with `expression: '!has(claims.hasgroups) && !has(claims._claim_names)'`, and let Entra ID send only the groups assigned to the application".to_owned(),
    ));
}

/// Where an expression reads `groups` as a claim that may be missing: `claims.?groups`, `claims[?"groups"]`,
/// `has(claims.groups)`.
fn optional_groups(tree: &Tree) -> Option<NodeId> {
    let is_claims = |id: NodeId| matches!(tree.node(id), Node::Ident(name) if tree.text(name) == "claims");
    let is_groups = |id: NodeId| matches!(tree.node(id), Node::Str(name) if tree.text(name) == "groups");
    let found = tree.iter().find(|(_, node)| {
        match *node {
        Node::Select { operand, field, test: true } => is_claims(operand) && tree.text(field) == "groups",
        node => ["_?._", "_[?_]"].iter().any(|name| {
            matches!(call(tree, node, name), Some(&[operand, key]) if is_claims(operand) && is_groups(key))
        }),
    }
    });
    found.map(|(id, _)| id)
}

/// `a.optMap(…).optMap(…)`: the macro repeats what stands before it, so that the expression doubles with every link.
fn opt_map_chain(expression: &CompiledExpression, found: &mut Vec<Lint>) {
    let tree = expression.program.tree();
    let longest = tree.iter().map(|(id, _)| (opt_map_links(tree, id), id)).max_by_key(|(links, _)| *links);
    let Some((links, id)) = longest.filter(|(links, _)| *links >= SLOW_OPT_MAP_LINKS) else { return };
    found.push(about(
        expression,
        id,
        "opt-map-chain",
        format!(
            "kube-apiserver compiles this chain of {links} `optMap` calls very slowly: each link doubles the expression, and twelve take more than a minute"
        ),
        "put the steps into one `optMap`".to_owned(),
    ));
}

/// Number of `optMap` and `optFlatMap` calls in a chain that ends at this node.
fn opt_map_links(tree: &Tree, mut id: NodeId) -> usize {
    let mut links = 0;
    loop {
        let node = tree.node(id);
        if let Some(target) = opt_map_target(tree, node) {
            (links, id) = (links + 1, target);
            continue;
        }
        id = match node {
            Node::Call { target: Some(target), .. } => target,
            Node::Select { operand, .. } => operand,
            _ => return links,
        };
    }
}

/// The receiver of an expanded `optMap`: `target.hasValue() ? … : optional.none()`.
fn opt_map_target(tree: &Tree, node: Node) -> Option<NodeId> {
    let &[condition, _, otherwise] = call(tree, node, "_?_:_")? else { return None };
    call(tree, tree.node(otherwise), "optional.none")?;
    match tree.node(condition) {
        Node::Call { function, target, .. } if tree.text(function) == "hasValue" => target,
        _ => None,
    }
}

/// Every expression of an authenticator.
fn expressions(authenticator: &CompiledAuthenticator) -> impl Iterator<Item = &CompiledExpression> {
    let mappings = [Some(&authenticator.username), authenticator.groups.as_ref(), authenticator.uid.as_ref()];
    let rules = authenticator.claim_rules.iter().chain(&authenticator.user_rules);
    mappings
        .into_iter()
        .flatten()
        .filter_map(AttributeMapping::expression)
        .chain(authenticator.extra.iter().map(|extra| &extra.value))
        .chain(rules.map(|rule| &rule.expression))
}

fn issuer_field(authenticator: &CompiledAuthenticator, name: &str) -> navicert_types::FieldPath {
    authenticator.path.field("issuer").field(name)
}

fn has_host(url: &str, is_wanted: impl Fn(&str) -> bool) -> bool {
    Url::parse(url).is_ok_and(|url| is_wanted(&url.host.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use crate::config::lint::lint;
    use crate::config::load;
    use crate::profile::AuthnProfile;

    /// The lints of one authenticator: code, and the field below `jwt[0]`.
    fn lints(issuer: &str, audience: &str, fields: &str) -> Vec<String> {
        let text = format!(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt:\n- issuer: {{url: {issuer:?}, audiences: [{audience:?}]}}\n{fields}"
        );
        let loaded =
            load(text.as_bytes(), &AuthnProfile::KUBE).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let shown = |lint: crate::config::lint::Lint| {
            format!("{} {}", lint.code, lint.path.to_string().trim_start_matches("jwt[0]."))
        };
        lint(&loaded).into_iter().map(shown).collect()
    }

    const NAMED: &str = "  claimMappings: {username: {expression: claims.sub}}\n";

    fn required(claim: &str, value: &str) -> Vec<String> {
        let rule = format!("  claimValidationRules: [{{claim: {claim}, requiredValue: {value:?}}}]\n");
        lints("https://i", "a", &(NAMED.to_owned() + &rule))
    }

    // S8: a required value is a string.
    #[test]
    fn finds_required_values_that_no_standard_token_has() {
        assert_eq!(required("email_verified", "true"), ["boolean-as-text claimValidationRules[0]"]);
        assert_eq!(required("phone_number_verified", "true"), ["boolean-as-text claimValidationRules[0]"]);
        assert_eq!(required("aud", "kube"), ["audience-as-text claimValidationRules[0]"]);
        assert_eq!(required("hd", "true"), [""; 0]);
        assert_eq!(required("email_verified", "yes"), [""; 0]);
    }

    #[test]
    fn finds_issuers_and_audiences_whose_tokens_never_match() {
        let okta = "https://example.okta.com";
        for (issuer, audience, expected) in [
            ("https://example.eu.auth0.com", "a", "issuer-slash issuer.url"),
            ("https://example.eu.auth0.com/", "a", ""),
            ("https://auth0.example.com", "a", ""),
            (okta, okta, "opaque-access-token issuer.audiences[0]"),
            (okta, "0oa1", ""),
            ("https://example.okta.com/oauth2/default", "api://default", ""),
            ("https://i", "https://graph.microsoft.com", "opaque-access-token issuer.audiences[0]"),
            ("https://i", "00000003-0000-0000-c000-000000000000", "opaque-access-token issuer.audiences[0]"),
        ] {
            assert_eq!(lints(issuer, audience, NAMED).join(" "), expected, "{issuer} {audience}");
        }
    }

    #[test]
    fn finds_groups_that_entra_id_leaves_out() {
        let entra = "https://login.microsoftonline.com/11111111-2222-3333-4444-555555555555/v2.0";
        let mapped = |groups: &str, rule: &str| {
            let groups = format!("groups: {{expression: {groups:?}}}");
            format!(
                "  claimMappings: {{username: {{expression: claims.sub}}, {groups}}}\n  claimValidationRules: [{{expression: {rule:?}}}]\n"
            )
        };
        let found = ["group-overage claimMappings.groups.expression"];
        for expression in [
            "claims.?groups.orValue([])",
            "claims[?'groups'].orValue([])",
            "has(claims.groups) ? claims.groups : []",
            "dyn(claims.?groups.orValue([])).map(g, 'entra:' + g)",
        ] {
            assert_eq!(lints(entra, "a", &mapped(expression, "claims.a == 1")), found, "{expression}");
            assert_eq!(
                lints("https://i", "a", &mapped(expression, "claims.a == 1")),
                [""; 0],
                "another issuer"
            );
            for rule in ["!has(claims._claim_names)", "!has(claims.hasgroups)"] {
                assert_eq!(lints(entra, "a", &mapped(expression, rule)), [""; 0], "{rule}");
            }
        }
        assert_eq!(lints(entra, "a", &mapped("claims.?roles.orValue([])", "claims.a == 1")), [""; 0]);
    }

    #[test]
    fn finds_chains_that_kube_apiserver_compiles_slowly() {
        let chain = |links: usize| {
            let links: String = (0..links).map(|link| format!(".optMap(v{link}, v{link} + 'x')")).collect();
            format!("  claimMappings: {{username: {{expression: \"claims.?a{links}.orValue('x')\"}}}}\n")
        };
        assert_eq!(lints("https://i", "a", &chain(6)), [""; 0]);
        for links in [7, 12, 20] {
            assert_eq!(
                lints("https://i", "a", &chain(links)),
                ["opt-map-chain claimMappings.username.expression"]
            );
        }
        // Nested in the body, nothing is repeated.
        let nested = (0..8).rev().fold("optional.of(v7)".to_owned(), |body, link| {
            let value =
                if link == 0 { "claims.?a".to_owned() } else { format!("optional.of(v{})", link - 1) };
            format!("{value}.optFlatMap(v{link}, {body})")
        });
        let nested =
            format!("  claimMappings: {{username: {{expression: \"string({nested}.orValue('x'))\"}}}}\n");
        assert!(!lints("https://i", "a", &nested).join(" ").contains("opt-map-chain"));
    }
}
