//! `navicert exec-plugin check`: which rules a plugin breaks, case by case, and one line at the end.

use std::time::Duration;

use navicert_client::exec::Surroundings;
use navicert_client::exec::conformance::{Case, Finding, Rule, Subject};
use navicert_types::exec_credential::Version;
use serde_json::{Value, json};

use super::terminal::with_terminal;
use crate::args::exec_plugin::{CheckPluginArgs, ExecVersion};
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
    let subject = Subject::new(command, arguments.to_vec(), Duration::from_secs(args.limit));
    let around = Surroundings::new(environment.inherited.clone());
    let only = args.api_version.map(|version| match version {
        ExecVersion::V1 => Version::V1,
        ExecVersion::V1beta1 => Version::V1Beta1,
    });
    let mut reports = Vec::new();
    for case in Case::all(only) {
        let report = Report::of(case, &subject, &around);
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
            "cases": reports.iter().map(Report::json).collect::<Vec<_>>(),
        }))?;
    } else {
        output.text(&conclusion(command, &broken))?;
    }
    Ok(if broken.is_empty() { Exit::Done } else { Exit::No })
}

/// The rules that are no mere advice, each once.
fn broken(reports: &[Report]) -> Vec<Rule> {
    let findings = reports.iter().flat_map(|report| report.findings.iter().flatten());
    let mut rules: Vec<Rule> =
        findings.map(|finding| finding.rule).filter(|rule| !rule.is_advice()).collect();
    rules.sort();
    rules.dedup();
    rules
}

fn conclusion(command: &str, broken: &[Rule]) -> String {
    let names: Vec<&str> = broken.iter().map(|rule| rule.name()).collect();
    match names.as_slice() {
        [] => format!("`{command}` keeps every rule that clients insist on\n"),
        [name] => format!("`{command}` breaks the rule {name}\n"),
        _ => format!("`{command}` breaks the rules {}\n", names.join(", ")),
    }
}

/// What came of one case; no findings at all if it could not be run.
struct Report {
    case: Case,
    findings: Option<Vec<Finding>>,
}

impl Report {
    fn of(case: Case, subject: &Subject, around: &Surroundings) -> Self {
        let findings = if case.terminal {
            with_terminal(|| subject.run(case, around)).ok()
        } else {
            Some(subject.run(case, around))
        };
        Report { case, findings }
    }

    fn print(&self, output: &mut Output) -> Result<(), Failure> {
        let Some(findings) = &self.findings else {
            return output.text(&format!("{}: not run, there is no pseudo-terminal here\n", self.case));
        };
        let verdict = match findings.iter().any(|finding| !finding.rule.is_advice()) {
            true => "broken",
            false => "good",
        };
        output.text(&format!("{}: {verdict}\n", self.case))?;
        for finding in findings {
            let sort = if finding.rule.is_advice() { " (advice)" } else { "" };
            let (rule, message) = (finding.rule.name(), &finding.message);
            output.text(&format!("  {rule}{sort}: {message}\n    demanded: {}\n", finding.rule.demand()))?;
        }
        Ok(())
    }

    fn json(&self) -> Value {
        let finding = |finding: &Finding| {
            json!({
                "rule": finding.rule.name(),
                "advice": finding.rule.is_advice(),
                "message": finding.message,
                "demand": finding.rule.demand(),
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
