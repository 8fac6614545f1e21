//! From kube-apiserver's `--oidc-*` flags to an `AuthenticationConfiguration` (S198–S207): `source` finds the flags,
//! this file reads and converts them, `write` puts the result into words with a comment for each assumption.

mod source;
mod write;

use std::collections::BTreeMap;

use navicert_types::authentication_config::{
    AnonymousAuthConfig, AuthenticationConfiguration, ClaimMappings, ClaimValidationRule, Issuer,
    JwtAuthenticator, PrefixedClaimOrExpression,
};

use crate::config::validate;
use crate::jwt::{Algorithm, Algorithms};
use crate::profile::Profile;

pub use source::{Form, find};

/// The flags that count, as kube-apiserver reads them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// The flags about tokens, by their names without dashes, in the order in which they were given.
    pub given: Vec<(String, String)>,
    /// `--authentication-config` is there as well.
    pub has_file: bool,
    /// `--anonymous-auth`, if it is there.
    pub anonymous: Option<bool>,
}

/// How the result is written.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'o> {
    /// `apiserver.config.k8s.io/v1beta1` instead of `…/v1`.
    pub v1beta1: bool,
    /// Turn `--anonymous-auth` into an `anonymous` block.
    pub anonymous: bool,
    /// What is in the file of `--oidc-ca-file`.
    pub certificate_authority: Option<&'o str>,
}

/// A configuration in place of flags.
#[derive(Clone, Debug)]
pub struct Migration {
    /// The configuration, as kube-apiserver itself would make it of the flags.
    pub configuration: AuthenticationConfiguration,
    /// The same as a file.
    pub yaml: String,
    /// A `NavicertConfiguration` that keeps algorithms as narrow as they were; nothing if all nine were allowed.
    pub side_car: Option<String>,
    /// The algorithms that the flags allow.
    pub algorithms: Algorithms,
    /// What changes for those who run it.
    pub warnings: Vec<String>,
    /// The flags to take away.
    pub obsolete: Vec<String>,
}

/// Why flags cannot be turned into a configuration.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    /// There is nothing to do.
    #[error("no `--oidc-*` flag is given")]
    NoFlags,
    /// S198
    #[error("oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set")]
    Incomplete,
    /// S199
    #[error("authentication-config file and oidc-* flags are mutually exclusive")]
    Both,
    /// A flag that kube-apiserver does not take (S59, S204).
    #[error("--{flag}: {problem}")]
    Flag {
        /// Its name.
        flag: String,
        /// What is wrong with it.
        problem: String,
    },
    /// What is in the file of `--oidc-ca-file` has to be known.
    #[error("the content of `{0}` (--oidc-ca-file) is needed")]
    CertificateAuthority(String),
    /// S200
    #[error("invalid authentication configuration: {0}")]
    Invalid(String),
    /// The text has no place for such flags.
    #[error("{0}")]
    Source(String),
}

impl Flags {
    /// The value of a flag: of repeated ones the last, as in any Go program.
    pub fn value(&self, name: &str) -> &str {
        self.values(name).last().unwrap_or_default()
    }

    fn values<'f>(&'f self, name: &str) -> impl DoubleEndedIterator<Item = &'f str> {
        self.given.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn has(&self, name: &str) -> bool {
        self.values(name).next().is_some()
    }

    /// The algorithms that are allowed: `RS256` if nothing else is said (S59).
    fn algorithms(&self) -> Result<Vec<Algorithm>, MigrateError> {
        if !self.has("oidc-signing-algs") {
            return Ok(vec![Algorithm::RS256]);
        }
        let named = |name: &str| {
            Algorithm::named(name).ok_or_else(|| MigrateError::Flag {
                flag: "oidc-signing-algs".to_owned(),
                problem: format!("oidc: unsupported signing alg: {name:?}"),
            })
        };
        self.values("oidc-signing-algs").flat_map(|value| value.split(',')).map(named).collect()
    }

    /// `key=value`, split at the first `=`, both sides trimmed; of repeated keys the last counts (S204).
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

/// Converts as kube-apiserver does at its start.
///
/// # Errors
/// kube-apiserver would not start with these flags, or has nothing to convert.
pub fn migrate(flags: &Flags, options: &Options<'_>) -> Result<Migration, MigrateError> {
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
    validate(&configuration, &Profile::KUBE).map_err(invalid)?;
    if let Some(enabled) = flags.anonymous.filter(|_| options.anonymous) {
        configuration.anonymous = Some(AnonymousAuthConfig { enabled, conditions: Vec::new() });
    }
    let yaml = write::configuration(&configuration, flags, options);
    let allowed: Algorithms = algorithms.iter().copied().collect();
    let side_car =
        (allowed != Algorithms::ALL).then(|| write::side_car(flags.value("oidc-issuer-url"), &algorithms));
    let mut obsolete: Vec<String> = flags.given.iter().map(|(name, _)| format!("--{name}")).collect();
    if configuration.anonymous.is_some() {
        obsolete.push("--anonymous-auth".to_owned());
    }
    obsolete.sort();
    obsolete.dedup();
    let warnings = warnings(flags, &algorithms, options)?;
    Ok(Migration { configuration, yaml, side_car, algorithms: allowed, warnings, obsolete })
}

fn convert(flags: &Flags, options: &Options<'_>) -> Result<AuthenticationConfiguration, MigrateError> {
    let ca_file = flags.value("oidc-ca-file");
    let certificate_authority = match (ca_file, options.certificate_authority) {
        ("", _) => String::new(),
        (_, Some(content)) => content.to_owned(),
        (file, None) => return Err(MigrateError::CertificateAuthority(file.to_owned())),
    };
    let rule = |(claim, required_value)| ClaimValidationRule { claim, required_value, ..Default::default() };
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

fn mapping(claim: &str, prefix: String) -> PrefixedClaimOrExpression {
    PrefixedClaimOrExpression { claim: claim.to_owned(), prefix: Some(prefix), expression: String::new() }
}

fn username_claim(flags: &Flags) -> &str {
    if flags.has("oidc-username-claim") { flags.value("oidc-username-claim") } else { "sub" }
}

/// S201
fn username_prefix(flags: &Flags) -> String {
    match flags.value("oidc-username-prefix") {
        "-" => String::new(),
        "" if username_claim(flags) != "email" => format!("{}#", flags.value("oidc-issuer-url")),
        prefix => prefix.to_owned(),
    }
}

/// S203, S207
fn warnings(
    flags: &Flags,
    algorithms: &[Algorithm],
    options: &Options<'_>,
) -> Result<Vec<String>, MigrateError> {
    let mut warnings = Vec::new();
    if algorithms.iter().copied().collect::<Algorithms>() != Algorithms::ALL {
        let names: Vec<&str> = algorithms.iter().map(|algorithm| algorithm.name()).collect();
        warnings.push(format!(
            "the flags allow {} only, a file always allows all nine algorithms: kube-apiserver will take tokens that it \
             refused before, if the issuer signs them so",
            names.join(", ")
        ));
    }
    if flags.has("oidc-groups-prefix") && flags.value("oidc-groups-claim").is_empty() {
        warnings.push(
            "--oidc-groups-prefix without --oidc-groups-claim has no effect, and is left out".to_owned(),
        );
    }
    if flags.value("oidc-groups-prefix") == "-" {
        warnings
            .push("the prefix of groups is `-` itself: only for user names does `-` mean none".to_owned());
    }
    let claims = flags.required_claims()?.len();
    if claims < flags.values("oidc-required-claim").count() {
        warnings
            .push("a claim is required more than once: the last value counts, as it did before".to_owned());
    }
    if let (Some(enabled), false) = (flags.anonymous, options.anonymous) {
        warnings.push(format!(
            "--anonymous-auth={enabled} stays in force as a flag; with --anonymous it becomes a block of the file \
             (both together are refused)"
        ));
    }
    warnings.push("the file is reloaded when it changes; flags were read once".to_owned());
    warnings.push("a reload waits until every issuer can be reached; a change of the file with an unreachable issuer is not taken".to_owned());
    warnings.push("new metric series appear: apiserver_authentication_config_controller_* and apiserver_authentication_jwt_authenticator_*".to_owned());
    Ok(warnings)
}

#[cfg(test)]
mod tests;
