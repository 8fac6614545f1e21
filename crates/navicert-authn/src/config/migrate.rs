//! Converts kube-apiserver's `--oidc-*` flags to an `AuthenticationConfiguration`: `source` finds the flags, this file
//! converts them, `write` writes the result with a comment for each assumption.
// S198–S207

mod source;
mod write;

use std::collections::BTreeMap;

use navicert_types::authentication_config::{
    AnonymousAuthConfig, AuthenticationConfiguration, ClaimMappings, ClaimValidationRule, Issuer,
    JwtAuthenticator, PrefixedClaimOrExpression,
};

use crate::config::lint::provider::BOOLEAN_CLAIMS;
use crate::config::validate;
use crate::jwt::{JwsAlgorithm, JwsAlgorithmSet};
use crate::profile::AuthnProfile;

pub use source::{FlagSource, find_flags};

/// The relevant flags, as kube-apiserver reads them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OidcFlags {
    /// The `--oidc-*` flags by name without dashes, in the order given.
    pub given: Vec<(String, String)>,
    /// `--authentication-config` is given as well.
    pub has_file: bool,
    /// `--anonymous-auth`, if given.
    pub anonymous: Option<bool>,
}

/// Output options.
#[derive(Clone, Copy, Debug, Default)]
pub struct MigrateOptions<'o> {
    /// `apiserver.config.k8s.io/v1beta1` instead of `…/v1`.
    pub v1beta1: bool,
    /// Turn `--anonymous-auth` into an `anonymous` block.
    pub anonymous: bool,
    /// Contents of the `--oidc-ca-file`.
    pub certificate_authority: Option<&'o str>,
    /// Write a required `email_verified=true` as a rule that also accepts the boolean of standard tokens. The flag accepts the
    /// string only.
    pub boolean_rules: bool,
}

/// A configuration that replaces the flags.
#[derive(Clone, Debug)]
pub struct Migration {
    /// The configuration that kube-apiserver itself derives from the flags, apart from boolean rules.
    pub configuration: AuthenticationConfiguration,
    /// The configuration as a file.
    pub yaml: String,
    /// A `NavicertConfiguration` that keeps the restricted algorithms; `None` if all nine are allowed.
    pub navicert_config: Option<String>,
    /// The algorithms that the flags allow.
    pub algorithms: JwsAlgorithmSet,
    /// Changes in behaviour that an operator should know.
    pub warnings: Vec<MigrationWarning>,
    /// The flags to remove.
    pub obsolete: Vec<String>,
}

/// A warning about flags or their replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MigrationWarning {
    /// The warning, one sentence.
    pub text: String,
    /// Whether the flags themselves are probably a mistake, and not only their replacement behaves differently.
    pub is_about_flags: bool,
}

impl MigrationWarning {
    fn about_flags(text: impl Into<String>) -> Self {
        MigrationWarning { text: text.into(), is_about_flags: true }
    }

    fn about_file(text: impl Into<String>) -> Self {
        MigrationWarning { text: text.into(), is_about_flags: false }
    }
}

/// Why flags cannot be converted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MigrateError {
    /// No `--oidc-*` flag.
    #[error("missing `--oidc-*` flags")]
    NoFlags,
    /// `--oidc-issuer-url` or `--oidc-client-id` is missing.
    // S198
    #[error("oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set")]
    Incomplete,
    /// Both `--oidc-*` flags and `--authentication-config` are given.
    // S199
    #[error("authentication-config file and oidc-* flags are mutually exclusive")]
    Both,
    /// A flag that kube-apiserver rejects.
    // S59, S204
    #[error("--{flag}: {problem}")]
    Flag {
        /// Its name.
        flag: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The contents of the `--oidc-ca-file` are needed.
    #[error("missing the contents of `{0}` (--oidc-ca-file)")]
    CertificateAuthority(String),
    /// The resulting configuration breaks a validation rule.
    // S200
    #[error("invalid authentication configuration: {0}")]
    Invalid(String),
    /// The text contains no kube-apiserver flags.
    #[error("{0}")]
    Source(String),
}

impl OidcFlags {
    /// The value of a flag; if repeated, the last one, as in any Go program.
    pub fn value(&self, name: &str) -> &str {
        self.values(name).last().unwrap_or_default()
    }

    fn values<'f>(&'f self, name: &str) -> impl DoubleEndedIterator<Item = &'f str> {
        self.given.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn has(&self, name: &str) -> bool {
        self.values(name).next().is_some()
    }

    /// The allowed algorithms: `RS256` by default.
    // S59
    fn algorithms(&self) -> Result<Vec<JwsAlgorithm>, MigrateError> {
        if !self.has("oidc-signing-algs") {
            return Ok(vec![JwsAlgorithm::RS256]);
        }
        let named = |name: &str| {
            JwsAlgorithm::from_name(name).ok_or_else(|| MigrateError::Flag {
                flag: "oidc-signing-algs".to_owned(),
                problem: format!("oidc: unsupported signing alg: {name:?}"),
            })
        };
        self.values("oidc-signing-algs").flat_map(|value| value.split(',')).map(named).collect()
    }

    /// `key=value`, split at the first `=`, both sides trimmed; of repeated keys the last one counts.
    // S204
    fn required_claims(&self) -> Result<BTreeMap<String, String>, MigrateError> {
        let pair = |text: &str| match text.split_once('=') {
            Some((claim, value)) => Ok((claim.trim().to_owned(), value.trim().to_owned())),
            None => Err(MigrateError::Flag {
                flag: "oidc-required-claim".to_owned(),
                problem: format!("malformed pair, expect string=string: `{text}`"),
            }),
        };
        self.values("oidc-required-claim").map(pair).collect()
    }
}

/// Converts as kube-apiserver does at startup.
///
/// # Errors
/// kube-apiserver would not start with these flags, or there is nothing to convert.
pub fn migrate(flags: &OidcFlags, options: &MigrateOptions<'_>) -> Result<Migration, MigrateError> {
    if flags.given.is_empty() {
        return Err(MigrateError::NoFlags);
    }
    if flags.has_file {
        return Err(MigrateError::Both);
    }
    if flags.value("oidc-issuer-url").is_empty() || flags.value("oidc-client-id").is_empty() {
        return Err(MigrateError::Incomplete);
    }
    let algorithms = flags.algorithms()?;
    let mut configuration = convert(flags, options)?;
    let invalid = |wrong: super::Violations| MigrateError::Invalid(wrong.to_string());
    validate(&configuration, &AuthnProfile::KUBE).map_err(invalid)?;
    if let Some(enabled) = flags.anonymous.filter(|_| options.anonymous) {
        configuration.anonymous = Some(AnonymousAuthConfig { enabled, conditions: Vec::new() });
    }
    let yaml = write::configuration(&configuration, flags, options);
    let allowed: JwsAlgorithmSet = algorithms.iter().copied().collect();
    let navicert_config = (allowed != JwsAlgorithmSet::ALL)
        .then(|| write::navicert_config(flags.value("oidc-issuer-url"), &algorithms));
    let mut obsolete: Vec<String> = flags.given.iter().map(|(name, _)| format!("--{name}")).collect();
    if configuration.anonymous.is_some() {
        obsolete.push("--anonymous-auth".to_owned());
    }
    obsolete.sort();
    obsolete.dedup();
    let warnings = warnings(flags, &algorithms, options)?;
    Ok(Migration { configuration, yaml, navicert_config, algorithms: allowed, warnings, obsolete })
}

fn convert(
    flags: &OidcFlags,
    options: &MigrateOptions<'_>,
) -> Result<AuthenticationConfiguration, MigrateError> {
    let ca_file = flags.value("oidc-ca-file");
    let certificate_authority = match (ca_file, options.certificate_authority) {
        ("", _) => String::new(),
        (_, Some(content)) => content.to_owned(),
        (file, None) => return Err(MigrateError::CertificateAuthority(file.to_owned())),
    };
    let rule = |(claim, required_value): (String, String)| {
        if options.boolean_rules && is_boolean(&claim, &required_value) {
            return boolean_rule(&claim, &required_value);
        }
        ClaimValidationRule { claim, required_value, ..Default::default() }
    };
    let authenticator = JwtAuthenticator {
        issuer: Issuer {
            url: flags.value("oidc-issuer-url").to_owned(),
            certificate_authority,
            audiences: vec![flags.value("oidc-client-id").to_owned()],
            ..Default::default()
        },
        claim_validation_rules: flags.required_claims()?.into_iter().map(rule).collect(),
        claim_mappings: ClaimMappings {
            username: mapping(username_claim(flags), username_prefix(flags)),
            groups: match flags.value("oidc-groups-claim") {
                "" => PrefixedClaimOrExpression::default(),
                claim => mapping(claim, flags.value("oidc-groups-prefix").to_owned()),
            },
            ..Default::default()
        },
        user_validation_rules: Vec::new(),
    };
    Ok(AuthenticationConfiguration { jwt: vec![authenticator], anonymous: None })
}

/// Whether a standard token has a boolean where this value is required.
fn is_boolean(claim: &str, required_value: &str) -> bool {
    BOOLEAN_CLAIMS.contains(&claim) && matches!(required_value, "true" | "false")
}

fn boolean_rule(claim: &str, value: &str) -> ClaimValidationRule {
    ClaimValidationRule {
        expression: format!("claims.{claim} == {value} || claims.{claim} == \"{value}\""),
        message: format!("{claim} is not {value}"),
        ..Default::default()
    }
}

fn mapping(claim: &str, prefix: String) -> PrefixedClaimOrExpression {
    PrefixedClaimOrExpression { claim: claim.to_owned(), prefix: Some(prefix), expression: String::new() }
}

fn username_claim(flags: &OidcFlags) -> &str {
    if flags.has("oidc-username-claim") { flags.value("oidc-username-claim") } else { "sub" }
}

// S201
fn username_prefix(flags: &OidcFlags) -> String {
    match flags.value("oidc-username-prefix") {
        "-" => String::new(),
        "" if username_claim(flags) != "email" => format!("{}#", flags.value("oidc-issuer-url")),
        prefix => prefix.to_owned(),
    }
}

// S203, S207
fn warnings(
    flags: &OidcFlags,
    algorithms: &[JwsAlgorithm],
    options: &MigrateOptions<'_>,
) -> Result<Vec<MigrationWarning>, MigrateError> {
    let mut warnings = Vec::new();
    if algorithms.iter().copied().collect::<JwsAlgorithmSet>() != JwsAlgorithmSet::ALL {
        let names: Vec<&str> = algorithms.iter().map(|algorithm| algorithm.name()).collect();
        warnings.push(MigrationWarning::about_file(format!(
            "the flags allow {} only, a file always allows all nine algorithms: kube-apiserver will accept tokens that it \
             rejected before, if the issuer signs with another algorithm",
            names.join(", ")
        )));
    }
    if flags.has("oidc-groups-prefix") && flags.value("oidc-groups-claim").is_empty() {
        warnings.push(MigrationWarning::about_flags(
            "--oidc-groups-prefix without --oidc-groups-claim has no effect and is omitted",
        ));
    }
    if flags.value("oidc-groups-prefix") == "-" {
        warnings.push(MigrationWarning::about_flags(
            "the groups prefix is a literal `-`: only --oidc-username-prefix=- means no prefix",
        ));
    }
    let claims = flags.required_claims()?.len();
    if claims < flags.values("oidc-required-claim").count() {
        warnings.push(MigrationWarning::about_file(
            "a claim is required more than once: the last value counts, as with the flags",
        ));
    }
    for (claim, value) in flags.required_claims()? {
        if options.boolean_rules && is_boolean(&claim, &value) {
            warnings.push(MigrationWarning::about_flags(format!(
                "--oidc-required-claim={claim}={value} accepts the string \"{value}\" only, and rejects every token with the boolean that the \
                 standard requires; the rule in the file accepts both"
            )));
        }
    }
    if let (Some(enabled), false) = (flags.anonymous, options.anonymous) {
        warnings.push(MigrationWarning::about_file(format!(
            "--anonymous-auth={enabled} remains in force as a flag; with --anonymous it becomes a block of the file \
             (kube-apiserver rejects both together)"
        )));
    }
    warnings.extend([
        "the file is reloaded when it changes; flags are read once",
        "a reload waits until every issuer is reachable; a change is not applied while an issuer is unreachable",
        "new metric series appear: apiserver_authentication_config_controller_* and apiserver_authentication_jwt_authenticator_*",
    ].map(MigrationWarning::about_file));
    Ok(warnings)
}

#[cfg(test)]
mod tests;
