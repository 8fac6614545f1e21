//! Writes the configuration as a commented file: keys in the order of the schema, and why each value is what it is.

use navicert_types::authentication_config::{AuthenticationConfiguration, PrefixedClaimOrExpression};
use navicert_types::tree::{yaml_quoted, yaml_text};

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
        line(&mut out, &format!("    url: {}", yaml_scalar(&issuer.url)));
        if !issuer.certificate_authority.is_empty() {
            line(
                &mut out,
                &format!("    # Contents of {} at the time of the migration.", flags.value("oidc-ca-file")),
            );
            let authority = yaml_text(&issuer.certificate_authority, 6);
            line(&mut out, &format!("    certificateAuthority: {}", authority.trim_end_matches('\n')));
        }
        line(&mut out, "    audiences:");
        for audience in &issuer.audiences {
            line(&mut out, &format!("    - {}", yaml_scalar(audience)));
        }
        if !authenticator.claim_validation_rules.is_empty() {
            line(&mut out, "  claimValidationRules:");
        }
        for rule in &authenticator.claim_validation_rules {
            if rule.expression.is_empty() {
                line(&mut out, &format!("  - claim: {}", yaml_scalar(&rule.claim)));
                line(&mut out, &format!("    requiredValue: {}", yaml_scalar(&rule.required_value)));
            } else {
                line(&mut out, "  # --oidc-required-claim compares strings; tokens have a boolean here.");
                line(&mut out, &format!("  - expression: {}", yaml_quoted(&rule.expression)));
                line(&mut out, &format!("    message: {}", yaml_quoted(&rule.message)));
            }
        }
        line(&mut out, "  claimMappings:");
        line(&mut out, "    username:");
        username(&mut out, &authenticator.claim_mappings.username, flags);
        if !authenticator.claim_mappings.groups.claim.is_empty() {
            let groups = &authenticator.claim_mappings.groups;
            line(&mut out, "    groups:");
            line(&mut out, &format!("      claim: {}", yaml_scalar(&groups.claim)));
            if !flags.has("oidc-groups-prefix") {
                line(&mut out, "      # No --oidc-groups-prefix: groups have no prefix.");
            }
            line(
                &mut out,
                &format!("      prefix: {}", yaml_quoted(groups.prefix.as_deref().unwrap_or_default())),
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
    line(out, &format!("      claim: {}", yaml_scalar(&username.claim)));
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
    line(out, &format!("      prefix: {}", yaml_quoted(username.prefix.as_deref().unwrap_or_default())));
}

/// A `NavicertConfiguration` that keeps the restricted algorithms.
// H25
pub(super) fn navicert_config(issuer: &str, algorithms: &[JwsAlgorithm]) -> String {
    let names: Vec<&str> = algorithms.iter().map(|algorithm| algorithm.name()).collect();
    format!(
        "apiVersion: navicert/v1alpha1\nkind: NavicertConfiguration\nissuers:\n- url: {}\n  allowedAlgorithms: [{}]\n",
        yaml_scalar(issuer),
        names.join(", ")
    )
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

/// A text on one line.
fn yaml_scalar(text: &str) -> String {
    yaml_text(text, 0)
}
