//! The results of verbs that look up no credentials: `match`, `keyring`, `response`, `check` and `plugin-check`.

use std::fmt;

use navicert_types::error_chain;
use navicert_types::redact;
use navicert_types::report::ReportedSecret;
use serde::Serialize;

use crate::config::{ConfigFile, LintFinding, LintSeverity};
use crate::conformance::{ConformanceResult, ConformanceRule};
use crate::credential::RegistryCredential;
use crate::response::{Response, ResponseError, ResponseStage};

/// The result of `image match`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MatchReport {
    /// The pattern.
    pub pattern: String,
    /// The image, as a kubelet spells it.
    pub image: String,
    /// Whether the pattern matches.
    #[serde(rename = "match")]
    pub matches: bool,
    /// Why it does not match.
    pub reason: Option<String>,
}

/// The result of `image keyring`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KeyringReport {
    /// The image, as a kubelet spells it.
    pub image: String,
    /// The credentials for it, in the order they are tried.
    pub credentials: Vec<KeyringCredential>,
}

/// A credential of a keyring.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KeyringCredential {
    /// The user name.
    pub username: String,
    /// The password; redacted without `--show-secrets`.
    pub password: ReportedSecret,
}

/// The result of `image response`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResponseReport {
    /// Whether a kubelet accepts the response.
    pub ok: bool,
    /// The stage at which it rejects the response.
    pub stage: Option<ResponseStage>,
    /// Why.
    pub error: Option<String>,
}

/// The result of `image check`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckReport {
    /// Whether no finding is an error.
    pub valid: bool,
    /// The hash of the configuration, as the kubelet's metric shows it.
    pub hash: String,
    /// Errors and warnings.
    pub findings: Vec<LintReport>,
}

/// An error or a warning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LintReport {
    /// Its severity.
    pub severity: LintSeverity,
    /// The name of the rule.
    pub rule: &'static str,
    /// Whether a kubelet accepts the configuration anyway.
    pub kubelet_accepts: bool,
    /// The file.
    pub file: String,
    /// The field path: `providers[1](ecr).matchImages[0]`.
    pub path: String,
    /// The line, from 1.
    pub line: Option<usize>,
    /// The column in characters, from 1.
    pub column: Option<usize>,
    /// What is wrong.
    pub message: String,
    /// How to fix it.
    pub hint: Option<String>,
}

/// The result of `image plugin-check`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConformanceReport {
    /// Whether every rule holds.
    pub conforms: bool,
    /// Every rule that could be decided.
    pub rules: Vec<RuleReport>,
}

/// Whether a rule holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RuleReport {
    /// The rule.
    pub rule: ConformanceRule,
    /// Whether it holds.
    pub holds: bool,
    /// How it is violated.
    pub reason: Option<String>,
}

impl KeyringCredential {
    /// The credential, with or without its password.
    pub fn new(credential: &RegistryCredential, show_secrets: bool) -> Self {
        KeyringCredential {
            username: credential.username.clone(),
            password: ReportedSecret::new(&credential.password, show_secrets),
        }
    }
}

impl From<&Result<Response, ResponseError>> for ResponseReport {
    fn from(decoded: &Result<Response, ResponseError>) -> Self {
        let error = decoded.as_ref().err();
        ResponseReport {
            ok: error.is_none(),
            stage: error.map(ResponseError::stage),
            error: error.map(|error| error_chain(error)),
        }
    }
}

impl CheckReport {
    /// The report of these files.
    pub fn new(files: &[ConfigFile], findings: &[LintFinding]) -> Self {
        CheckReport {
            valid: !findings.iter().any(|finding| finding.severity == LintSeverity::Error),
            hash: crate::config::hash(files),
            findings: findings.iter().map(LintReport::from).collect(),
        }
    }
}

impl From<&LintFinding> for LintReport {
    fn from(finding: &LintFinding) -> Self {
        LintReport {
            severity: finding.severity,
            rule: finding.rule,
            kubelet_accepts: finding.kubelet_accepts,
            file: finding.file.to_string_lossy().into_owned(),
            path: finding.path.clone(),
            line: finding.span.map(|span| span.line),
            column: finding.span.map(|span| span.column),
            message: finding.message.clone(),
            hint: finding.hint.clone(),
        }
    }
}

impl From<Vec<ConformanceResult>> for ConformanceReport {
    fn from(results: Vec<ConformanceResult>) -> Self {
        let rules = results.into_iter().map(|result| RuleReport {
            rule: result.rule,
            holds: result.result.is_ok(),
            reason: result.result.err(),
        });
        let rules: Vec<RuleReport> = rules.collect();
        ConformanceReport { conforms: rules.iter().all(|rule| rule.holds), rules }
    }
}

impl fmt::Display for MatchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: ", self.pattern, self.image)?;
        match &self.reason {
            None => writeln!(f, "matches"),
            Some(reason) => writeln!(f, "does not match: {reason}"),
        }
    }
}

/// The credentials, one to a line.
impl fmt::Display for KeyringReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.credentials.iter().try_for_each(|credential| {
            writeln!(f, "{}\t{}", redact::terminal(&credential.username), credential.password.shown())
        })
    }
}

/// What a kubelet reads in a response, without passwords.
impl fmt::Display for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let duration =
            self.cache_duration.map_or_else(|| "as configured".to_owned(), |duration| duration.to_string());
        writeln!(f, "valid: applies to {}, cache duration {duration}", self.cache_key_type.scope())?;
        for (key, credential) in &self.auth {
            let user = if credential.is_anonymous() {
                "anonymous".into()
            } else {
                redact::terminal(&credential.username)
            };
            writeln!(f, "  {}  {user}", redact::terminal(key))?;
        }
        Ok(())
    }
}

/// The rules, one to a line.
impl fmt::Display for ConformanceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rules.iter().try_for_each(|RuleReport { rule, reason, .. }| match reason {
            None => writeln!(f, "pass  {rule}"),
            Some(reason) => writeln!(f, "fail  {rule}: {}", redact::terminal(reason)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache_key::CacheKeyType;
    use crate::config::{ConfigStage, FieldErrorType};

    #[test]
    fn serialized_names_are_those_of_the_types() {
        let name = |value: serde_json::Result<serde_json::Value>| value.unwrap().as_str().unwrap().to_owned();
        for key_type in CacheKeyType::LOOKUP_ORDER {
            assert_eq!(name(serde_json::to_value(key_type)), key_type.as_str());
        }
        for stage in [ResponseStage::Decode, ResponseStage::Version, ResponseStage::CacheKeyType] {
            assert_eq!(name(serde_json::to_value(stage)), stage.as_str());
        }
        for stage in [ConfigStage::Decode, ConfigStage::Merge, ConfigStage::Validate] {
            assert_eq!(name(serde_json::to_value(stage)), stage.as_str());
        }
        for error_type in [
            FieldErrorType::Required,
            FieldErrorType::Invalid,
            FieldErrorType::Duplicate,
            FieldErrorType::Forbidden,
            FieldErrorType::NotSupported,
        ] {
            assert_eq!(name(serde_json::to_value(error_type)), error_type.as_str());
        }
        for rule in ConformanceRule::ALL {
            assert_eq!(name(serde_json::to_value(rule)), rule.as_str());
        }
    }
}
