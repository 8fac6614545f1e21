//! The check of an exec plugin, as a report.

use navicert_types::exec_credential::ExecVersion;
use serde::Serialize;

use crate::exec::conformance::{CaseResult, ConformanceReport, PluginRule, RuleViolation};

/// The result of `exec-plugin check`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ConformanceSummary {
    /// Whether the plugin breaks no required rule.
    pub conforms: bool,
    /// The required rules that it breaks, each once.
    pub broken: Vec<PluginRule>,
    /// The API version that the plugin supports, if it conforms in one version and supports no other.
    pub speaks_only: Option<&'static str>,
    /// Every run, in order.
    pub cases: Vec<CaseSummary>,
}

/// One run of the plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CaseSummary {
    /// The API version of the request.
    pub api_version: &'static str,
    /// Whether the request has cluster information.
    pub cluster_info: bool,
    /// Whether standard input is a terminal.
    pub terminal: bool,
    /// The broken rules; `null` if the plugin was not run.
    pub findings: Option<Vec<ViolationSummary>>,
}

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ViolationSummary {
    /// The rule.
    pub rule: PluginRule,
    /// Whether the rule is a recommendation.
    pub advice: bool,
    /// What happened.
    pub message: String,
    /// What the rule requires.
    #[serde(rename = "demand")]
    pub requirement: &'static str,
}

impl From<&ConformanceReport> for ConformanceSummary {
    fn from(report: &ConformanceReport) -> Self {
        let broken = report.broken();
        ConformanceSummary {
            conforms: broken.is_empty(),
            broken,
            speaks_only: report.only_version().map(ExecVersion::api_version),
            cases: report.results.iter().map(CaseSummary::from).collect(),
        }
    }
}

impl From<&CaseResult> for CaseSummary {
    fn from(result: &CaseResult) -> Self {
        let findings = result.findings.as_ref();
        CaseSummary {
            api_version: result.case.version.api_version(),
            cluster_info: result.case.cluster,
            terminal: result.case.terminal,
            findings: findings.map(|findings| findings.iter().map(ViolationSummary::from).collect()),
        }
    }
}

impl From<&RuleViolation> for ViolationSummary {
    fn from(violation: &RuleViolation) -> Self {
        ViolationSummary {
            rule: violation.rule,
            advice: violation.rule.is_advice(),
            message: violation.message.clone(),
            requirement: violation.rule.requirement(),
        }
    }
}

impl ConformanceReport {
    /// The result in one sentence, about the command with this name.
    pub fn conclusion(&self, command: &str) -> String {
        let broken = self.broken();
        let names: Vec<&str> = broken.iter().map(|rule| rule.name()).collect();
        match (names.as_slice(), self.only_version()) {
            ([], Some(version)) => {
                let api_version = version.api_version();
                let short = api_version.rsplit('/').next().unwrap_or_default();
                format!(
                    "`{command}` conforms to every required rule and speaks {short} only: write `apiVersion: {api_version}` in the kubeconfig"
                )
            }
            ([], None) => format!("`{command}` conforms to every required rule"),
            ([name], _) => format!("`{command}` violates the rule {name}"),
            _ => format!("`{command}` violates the rules {}", names.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_serialized_by_their_names() {
        for rule in PluginRule::ALL {
            assert_eq!(serde_json::to_value(rule).unwrap(), rule.name());
        }
    }
}
