//! Checks an authentication configuration: errors, lint warnings and differences between the profiles, each with its position
//! in the file.

use std::io;
use std::path::Path;

use navicert_types::FieldPath;
use navicert_types::tree::{self, Node, Span, Syntax};
use serde::Serialize;

use super::IssuerReport;
use crate::config::lint::{Lint, lint};
use crate::config::{ConfigError, NavicertConfiguration, Violation, ViolationKind, load_excluding_issuers};
use crate::profile::AuthnProfile;

/// The result of `authn check`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckReport {
    /// Whether the selected profile accepts the configuration.
    pub valid: bool,
    /// Errors.
    pub findings: Vec<CheckFinding>,
    /// Warnings: likely mistakes, and what only the other profile rejects.
    pub lints: Vec<CheckFinding>,
    /// The probe of every issuer, with `--online`.
    pub online: Vec<IssuerReport>,
}

/// An error or a warning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckFinding {
    /// The name of the lint; empty for errors.
    pub code: String,
    /// What is wrong.
    pub message: String,
    /// How to fix it.
    pub hint: Option<String>,
    /// The line in the file, from 1.
    pub line: Option<usize>,
    /// The column in characters, from 1.
    pub column: Option<usize>,
    /// The position in the file.
    #[serde(skip)]
    pub span: Option<Span>,
}

/// One result of `authn check --jsonl`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConfigCheckResult {
    /// Whether the configuration is valid.
    pub valid: bool,
    /// The stage that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<ConfigStage>,
    /// The errors of stage `validate`.
    pub errors: Vec<FieldError>,
    /// The errors of stage `decode`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<String>,
}

/// A stage of reading a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ConfigStage {
    /// The text is read as an AuthenticationConfiguration.
    Decode,
    /// Its fields are validated.
    Validate,
}

/// A validation error as kube-apiserver reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FieldError {
    /// The type.
    #[serde(rename = "type")]
    pub kind: ViolationKind,
    /// The field path.
    pub field: FieldPath,
    /// The detail, one clause.
    pub detail: String,
}

impl From<&Violation> for FieldError {
    fn from(violation: &Violation) -> Self {
        FieldError { kind: violation.kind, field: violation.path.clone(), detail: violation.detail.clone() }
    }
}

impl From<Result<(), ConfigError>> for ConfigCheckResult {
    fn from(loaded: Result<(), ConfigError>) -> Self {
        let undecodable = |messages| ConfigCheckResult {
            valid: false,
            stage: Some(ConfigStage::Decode),
            errors: Vec::new(),
            messages,
        };
        match loaded {
            Ok(()) => {
                ConfigCheckResult { valid: true, stage: None, errors: Vec::new(), messages: Vec::new() }
            }
            Err(ConfigError::Invalid { violations, .. }) => ConfigCheckResult {
                valid: false,
                stage: Some(ConfigStage::Validate),
                errors: violations.iter().map(FieldError::from).collect(),
                messages: Vec::new(),
            },
            Err(ConfigError::Decode(diagnostics)) => {
                undecodable(diagnostics.iter().map(ToString::to_string).collect())
            }
            Err(error) => undecodable(vec![error.to_string()]),
        }
    }
}

impl CheckReport {
    /// The conclusion in words: `valid, 2 warnings`.
    pub fn verdict(&self) -> String {
        let mut verdict = match self.findings.len() {
            0 => "valid".to_owned(),
            1 => "invalid, 1 error".to_owned(),
            count => format!("invalid, {count} errors"),
        };
        match self.lints.len() {
            0 => {}
            1 => verdict += ", 1 warning",
            count => verdict += &format!(", {count} warnings"),
        }
        verdict
    }
}

/// Checks a configuration. `read` returns the contents of the files that the NavicertConfiguration names. Nothing is fetched.
pub fn check_config(
    text: &[u8],
    profile: &AuthnProfile,
    navicert_config: &NavicertConfiguration,
    read: impl Fn(&Path) -> io::Result<Vec<u8>>,
) -> CheckReport {
    let (mut findings, mut warnings) = compare_profiles(text, profile, navicert_config);
    if findings.is_empty()
        && warnings.is_empty()
        && let Err(wrong) = navicert_config.compile(text, profile, read)
    {
        findings.push(CheckFinding::new(wrong, None, None));
    }
    warnings.extend(lints(text, profile, navicert_config));
    CheckReport { valid: findings.is_empty(), findings, lints: warnings, online: Vec::new() }
}

/// The errors of the profile, marked where the other profile accepts them; and as warnings what only the other rejects.
fn compare_profiles(
    text: &[u8],
    profile: &AuthnProfile,
    navicert_config: &NavicertConfiguration,
) -> (Vec<CheckFinding>, Vec<CheckFinding>) {
    let (other, who) = if profile.is_kube() {
        (AuthnProfile::HARDENED.with_version(profile.version), "profile `hardened`".to_owned())
    } else {
        (AuthnProfile::kube(profile.version), format!("kube-apiserver {}", profile.version))
    };
    let (accepts, rejects) = (format!("{who} accepts this"), format!("{who} rejects this"));
    let ours = errors(text, profile, navicert_config);
    let theirs = errors(text, &other, navicert_config);
    let is_in = |finding: &CheckFinding, list: &[CheckFinding]| {
        list.iter().any(|other| other.message == finding.message)
    };
    let mut warnings: Vec<CheckFinding> =
        theirs.iter().filter(|finding| !is_in(finding, &ours)).cloned().collect();
    for finding in &mut warnings {
        finding.message = format!("{rejects}: {}", finding.message);
    }
    let mut found = ours;
    for finding in &mut found {
        if !is_in(finding, &theirs) {
            finding.message += &format!(" ({accepts})");
        }
    }
    (found, warnings)
}

fn errors(text: &[u8], profile: &AuthnProfile, navicert_config: &NavicertConfiguration) -> Vec<CheckFinding> {
    match load_excluding_issuers(text, profile, &navicert_config.disallowed_issuers) {
        Ok(_) => Vec::new(),
        Err(ConfigError::Decode(diagnostics)) => diagnostics
            .into_iter()
            .map(|wrong| {
                let message = if wrong.path.is_root() {
                    wrong.message.clone()
                } else {
                    format!("{}: {}", wrong.path, wrong.message)
                };
                CheckFinding::new(message, wrong.hint, Some(wrong.span))
            })
            .collect(),
        Err(ConfigError::Invalid { violations, tree }) => violations
            .iter()
            .map(|violation| {
                let span = violation.path.nearest(&tree).span;
                CheckFinding::new(violation.to_string(), violation.hint.clone(), Some(span))
            })
            .collect(),
        Err(error) => vec![CheckFinding::new(error.to_string(), None, None)],
    }
}

fn lints(text: &[u8], profile: &AuthnProfile, navicert_config: &NavicertConfiguration) -> Vec<CheckFinding> {
    let loaded = load_excluding_issuers(text, profile, &navicert_config.disallowed_issuers);
    let (Ok(loaded), Ok(tree)) = (loaded, tree::parse(text, Syntax::JsonOrYaml)) else {
        return Vec::new();
    };
    lint(&loaded).into_iter().map(|lint| CheckFinding::from_lint(lint, text, &tree)).collect()
}

impl CheckFinding {
    fn new(message: String, hint: Option<String>, span: Option<Span>) -> Self {
        let (line, column) = (span.map(|span| span.line), span.map(|span| span.column));
        CheckFinding { code: String::new(), message, hint, line, column, span }
    }

    fn from_lint(lint: Lint, text: &[u8], tree: &Node) -> Self {
        let whole = lint.path.nearest(tree).span;
        let span = narrow_span(text, whole, &lint.part).unwrap_or(whole);
        let message = format!("{}: {}", lint.path, lint.message);
        CheckFinding { code: lint.code.to_owned(), ..CheckFinding::new(message, Some(lint.hint), Some(span)) }
    }
}

/// The span of a subexpression in the file, if the file contains it literally.
fn narrow_span(text: &[u8], whole: Span, part: &str) -> Option<Span> {
    let written = std::str::from_utf8(text.get(whole.start..whole.end)?).ok()?;
    let part = part.lines().next().filter(|part| !part.is_empty())?;
    let offset = written.find(part)?;
    let before = written.get(..offset)?;
    let (line, column) = match before.rsplit_once('\n') {
        None => (whole.line, whole.column + before.chars().count()),
        Some((lines, last)) => (whole.line + lines.matches('\n').count() + 1, last.chars().count() + 1),
    };
    Some(Span { start: whole.start + offset, end: whole.start + offset + part.len(), line, column })
}
