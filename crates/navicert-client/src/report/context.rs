//! The check of kubeconfig files and contexts, as a report.

use navicert_types::tree::Span;
use serde::Serialize;

use crate::config::ConfigReport;

/// The result of `kubeconfig check`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KubeconfigSummary {
    /// Whether every checked context is usable.
    pub usable: bool,
    /// What concerns the files and not a context.
    pub findings: Vec<ConfigFinding>,
    /// The selected context, or with `--all-contexts` every one.
    pub contexts: Vec<ContextSummary>,
}

/// The check of one context.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContextSummary {
    /// Its name; `null` without a kubeconfig, or if no context is selected.
    pub context: Option<String>,
    /// Whether a client can be built from it.
    pub usable: bool,
    /// Every problem, and the warnings of a valid context.
    pub findings: Vec<ConfigFinding>,
    /// The server URL, if the context is valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The kinds of credential a client would send, if the context is valid; empty: anonymous.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Vec<&'static str>>,
}

/// A problem or a warning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConfigFinding {
    /// Its severity.
    pub severity: FindingSeverity,
    /// What is wrong.
    pub message: String,
    /// How to fix it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The file, if it concerns a position in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The column in characters, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
}

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum FindingSeverity {
    /// No client can be built.
    Error,
    /// Valid, but probably unintended.
    Warning,
}

impl KubeconfigSummary {
    /// The report of these contexts.
    pub fn new(findings: Vec<ConfigFinding>, contexts: Vec<ContextSummary>) -> Self {
        KubeconfigSummary { usable: contexts.iter().all(|context| context.usable), findings, contexts }
    }
}

impl ContextSummary {
    /// The report of a context with its findings.
    pub fn new(context: Option<String>, report: &ConfigReport, findings: Vec<ConfigFinding>) -> Self {
        let server = report.server().filter(|_| report.is_valid());
        let credentials = server.is_some().then(|| report.credential_kinds());
        ContextSummary { context, usable: report.is_usable(), findings, server, credentials }
    }
}

impl ConfigFinding {
    /// A finding without a position.
    pub fn new(severity: FindingSeverity, message: String, hint: Option<String>) -> Self {
        ConfigFinding { severity, message, hint, file: None, line: None, column: None }
    }

    /// The same at a position in a file.
    #[must_use]
    pub fn at(self, file: &str, span: Span) -> Self {
        ConfigFinding {
            file: Some(file.to_owned()),
            line: Some(span.line),
            column: Some(span.column),
            ..self
        }
    }
}
