//! `navicert exec-plugin check`: reports the rules a plugin violates, case by case, with a one-line conclusion.

use std::time::Duration;

use navicert_client::exec::Surroundings;
use navicert_client::exec::conformance::{ConformanceCase, PluginRule, PluginUnderTest, RuleViolation};
use navicert_types::exec_credential::ExecVersion;
use serde_json::{Value, json};

use super::terminal::with_terminal;
use crate::args::exec_plugin::{CheckPluginArgs, ExecVersionArg};
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Runs every case and reports.
pub(super) fn run(
    args: &CheckPluginArgs,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let (command, arguments) =
        args.command.split_first().map_or(("", &[][..]), |(first, rest)| (first, rest));
    let subject = PluginUnderTest::new(command, arguments.to_vec(), Duration::from_secs(args.limit));
    let around = Surroundings::new(environment.inherited.clone());
    let only = args.api_version.map(|version| match version {
        ExecVersionArg::V1 => ExecVersion::V1,
        ExecVersionArg::V1beta1 => ExecVersion::V1Beta1,
    });
    let mut reports = Vec::new();
    for case in ConformanceCase::all(only) {
        let report = CaseReport::run(case, &subject, &around);
        if !output.is_json() {
            report.print(output)?;
        }
        reports.push(report);
    }
    let broken = broken(&reports);
    if output.is_json() {
        output.json(&json!({
            "conforms": broken.is_empty(),
            "broken": broken.iter().map(|rule| rule.name()).collect::<Vec<_>>(),
            "cases": reports.iter().map(CaseReport::json).collect::<Vec<_>>(),
        }))?;
    } else {
        output.text(&conclusion(command, &broken))?;
    }
    Ok(if broken.is_empty() { Exit::Done } else { Exit::No })
}

/// The violated rules that are not advice, without duplicates.
fn broken(reports: &[CaseReport]) -> Vec<PluginRule> {
    let findings = reports.iter().flat_map(|report| report.findings.iter().flatten());
    let mut rules: Vec<PluginRule> =
        findings.map(|finding| finding.rule).filter(|rule| !rule.is_advice()).collect();
    rules.sort();
    rules.dedup();
    rules
}

fn conclusion(command: &str, broken: &[PluginRule]) -> String {
    let names: Vec<&str> = broken.iter().map(|rule| rule.name()).collect();
    match names.as_slice() {
        [] => format!("`{command}` conforms to every required rule\n"),
        [name] => format!("`{command}` violates the rule {name}\n"),
        _ => format!("`{command}` violates the rules {}\n", names.join(", ")),
    }
}

/// The result of one case; `None` if the case could not be run.
struct CaseReport {
    case: ConformanceCase,
    findings: Option<Vec<RuleViolation>>,
}

impl CaseReport {
    fn run(case: ConformanceCase, subject: &PluginUnderTest, around: &Surroundings) -> Self {
        let findings = if case.terminal {
            with_terminal(|| subject.run(case, around)).ok()
        } else {
            Some(subject.run(case, around))
        };
        CaseReport { case, findings }
    }

    fn print(&self, output: &mut Output) -> Result<(), Failure> {
        let Some(findings) = &self.findings else {
            return output.text(&format!("{}: skipped, failed to open a pseudo-terminal\n", self.case));
        };
        let verdict = match findings.iter().any(|finding| !finding.rule.is_advice()) {
            true => "fail",
            false => "pass",
        };
        output.text(&format!("{}: {verdict}\n", self.case))?;
        for finding in findings {
            let sort = if finding.rule.is_advice() { " (advice)" } else { "" };
            let (rule, message) = (finding.rule.name(), &finding.message);
            output.text(&format!(
                "  {rule}{sort}: {message}\n    required: {}\n",
                finding.rule.requirement()
            ))?;
        }
        Ok(())
    }

    fn json(&self) -> Value {
        let finding = |finding: &RuleViolation| {
            json!({
                "rule": finding.rule.name(),
                "advice": finding.rule.is_advice(),
                "message": finding.message,
                "demand": finding.rule.requirement(),
            })
        };
        json!({
            "apiVersion": self.case.version.api_version(),
            "clusterInfo": self.case.cluster,
            "terminal": self.case.terminal,
            "findings": self.findings.as_ref().map(|findings| findings.iter().map(finding).collect::<Vec<_>>()),
        })
    }
}
