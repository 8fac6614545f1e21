//! Writes the configuration as a commented file: keys in the order of the schema, and why each value is what it is.

use std::fmt::Write as _;

use navicert_types::authentication_config::{AuthenticationConfiguration, PrefixedClaimOrExpression};

use super::{MigrateOptions, OidcFlags};
use crate::jwt::JwsAlgorithm;

/// The file of a converted configuration.
pub(super) fn configuration(
    configuration: &AuthenticationConfiguration,
    flags: &OidcFlags,
    options: &MigrateOptions<'_>,
) -> String {
    let version = if options.v1beta1 { "v1beta1" } else { "v1" };
    let mut out =
        format!("apiVersion: apiserver.config.k8s.io/{version}\nkind: AuthenticationConfiguration\njwt:\n");
    for authenticator in &configuration.jwt {
        let issuer = &authenticator.issuer;
        line(&mut out, "- issuer:");
        line(&mut out, &format!("    url: {}", scalar(&issuer.url)));
        if !issuer.certificate_authority.is_empty() {
            line(
                &mut out,
                &format!("    # Contents of {} at the time of the migration.", flags.value("oidc-ca-file")),
            );
            block(&mut out, "    certificateAuthority:", &issuer.certificate_authority);
        }
        line(&mut out, "    audiences:");
        for audience in &issuer.audiences {
            line(&mut out, &format!("    - {}", scalar(audience)));
        }
        if !authenticator.claim_validation_rules.is_empty() {
            line(&mut out, "  claimValidationRules:");
        }
        for rule in &authenticator.claim_validation_rules {
            if rule.expression.is_empty() {
                line(&mut out, &format!("  - claim: {}", scalar(&rule.claim)));
                line(&mut out, &format!("    requiredValue: {}", scalar(&rule.required_value)));
            } else {
                line(&mut out, "  # --oidc-required-claim compares strings; tokens have a boolean here.");
                line(&mut out, &format!("  - expression: {}", quoted(&rule.expression)));
                line(&mut out, &format!("    message: {}", quoted(&rule.message)));
            }
        }
        line(&mut out, "  claimMappings:");
        line(&mut out, "    username:");
        username(&mut out, &authenticator.claim_mappings.username, flags);
        if !authenticator.claim_mappings.groups.claim.is_empty() {
            let groups = &authenticator.claim_mappings.groups;
            line(&mut out, "    groups:");
            line(&mut out, &format!("      claim: {}", scalar(&groups.claim)));
            if !flags.has("oidc-groups-prefix") {
                line(&mut out, "      # No --oidc-groups-prefix: groups have no prefix.");
            }
            line(
                &mut out,
                &format!("      prefix: {}", scalar(groups.prefix.as_deref().unwrap_or_default())),
            );
        }
    }
    if let Some(anonymous) = &configuration.anonymous {
        line(&mut out, "# From --anonymous-auth. Remove the flag: kube-apiserver rejects both together.");
        line(&mut out, &format!("anonymous:\n  enabled: {}", anonymous.enabled));
    }
    out
}

fn username(out: &mut String, username: &PrefixedClaimOrExpression, flags: &OidcFlags) {
    if !flags.has("oidc-username-claim") {
        line(out, "      # No --oidc-username-claim: `sub` is its default.");
    }
    line(out, &format!("      claim: {}", scalar(&username.claim)));
    match flags.value("oidc-username-prefix") {
        "-" => line(out, "      # --oidc-username-prefix=- means none."),
        "" if username.claim == "email" => {
            line(out, "      # No --oidc-username-prefix: e-mail addresses have none by default.");
        }
        "" => line(
            out,
            "      # No --oidc-username-prefix: the issuer and `#` are its default, unless the claim is `email`.",
        ),
        _ => {}
    }
    line(out, &format!("      prefix: {}", scalar(username.prefix.as_deref().unwrap_or_default())));
}

/// A `NavicertConfiguration` that keeps the restricted algorithms.
// H25
pub(super) fn navicert_config(issuer: &str, algorithms: &[JwsAlgorithm]) -> String {
    let names: Vec<&str> = algorithms.iter().map(|algorithm| algorithm.name()).collect();
    format!(
        "apiVersion: navicert/v1alpha1\nkind: NavicertConfiguration\nissuers:\n- url: {}\n  allowedAlgorithms: [{}]\n",
        scalar(issuer),
        names.join(", ")
    )
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

/// A multi-line string as a literal block if YAML preserves it; otherwise quoted.
fn block(out: &mut String, key: &str, text: &str) {
    let indent = " ".repeat(key.len() - key.trim_start().len() + 2);
    let plain = |symbol: char| symbol == '\n' || matches!(symbol, ' '..='~');
    let body = text.trim_end_matches('\n');
    if body.is_empty() || text.starts_with([' ', '\n']) || !text.chars().all(plain) {
        return line(out, &format!("{key} {}", quoted(text)));
    }
    let style = match text.len() - body.len() {
        0 => "|-",
        1 => "|",
        _ => "|+",
    };
    line(out, &format!("{key} {style}"));
    for text in text.strip_suffix('\n').unwrap_or(text).split('\n') {
        line(out, &if text.is_empty() { String::new() } else { format!("{indent}{text}") });
    }
}

/// A string as a YAML scalar: plain if it is unambiguous.
fn scalar(text: &str) -> String {
    let words = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];
    let is_word = words.contains(&text.to_ascii_lowercase().as_str());
    let begins = text.starts_with(|symbol: char| symbol.is_ascii_alphabetic());
    let plain = |symbol: char| symbol.is_ascii_alphanumeric() || "-_./:@".contains(symbol);
    if begins && !is_word && text.chars().all(plain) && !text.ends_with(':') {
        return text.to_owned();
    }
    quoted(text)
}

/// In double quotes, with the escapes that JSON and YAML share.
fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for symbol in text.chars() {
        match symbol {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0'..' ' | '\u{7f}'..='\u{a0}' | '\u{2028}' | '\u{2029}' | '\u{feff}' => {
                _ = write!(out, "\\u{:04x}", u32::from(symbol));
            }
            other => out.push(other),
        }
    }
    out.push('"');
    out
}
