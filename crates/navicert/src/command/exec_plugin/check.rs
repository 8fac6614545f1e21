//! `navicert exec-plugin check`: reports the rules a plugin violates, case by case, with a one-line conclusion.

use std::time::Duration;

use navicert_client::ClientContext;
use navicert_client::exec::conformance::{
    CaseResult, ConformanceCase, ConformanceReport, PluginUnderTest, RuleViolation,
};
use navicert_client::report::ConformanceSummary;
use navicert_types::exec_credential::ExecVersion;
use navicert_types::redact;

use super::terminal::with_terminal;
use crate::args::exec_plugin::{CheckPluginArgs, ExecVersionArg};
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output, style};

/// Runs every case and reports.
pub(super) fn run(
    args: &CheckPluginArgs,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let (command, arguments) =
        args.command.split_first().map_or(("", &[][..]), |(first, rest)| (first, rest));
    let subject = PluginUnderTest::new(command, arguments.to_vec(), Duration::from_secs(args.limit));
    let client_context = ClientContext::new(environment.inherited.clone());
    let only = args.api_version.map(|version| match version {
        ExecVersionArg::V1 => ExecVersion::V1,
        ExecVersionArg::V1beta1 => ExecVersion::V1Beta1,
    });
    let report = run_cases(&ConformanceCase::all(only), &subject, &client_context, output);
    let broken = report.broken();
    if output.is_json() {
        output.json(&ConformanceSummary::from(&report))?;
    } else {
        print(&report, output)?;
        output.text(&format!("{}\n", report.conclusion(command)))?;
    }
    if !broken.is_empty() {
        for option in own_options(arguments) {
            output.note(&format!(
                "note: `{option}` was passed to the plugin; options of navicert stand before the command"
            ));
        }
    }
    Ok(if broken.is_empty() { Exit::Done } else { Exit::No })
}

/// Runs the cases. Once the program cannot be started, the others are left out: they would fail in the same way.
fn run_cases(
    cases: &[ConformanceCase],
    subject: &PluginUnderTest,
    client_context: &ClientContext,
    output: &mut Output,
) -> ConformanceReport {
    let mut report = ConformanceReport::default();
    for (number, &case) in cases.iter().enumerate() {
        output.progress(&format!("run {} of {}: {case}", number + 1, cases.len()));
        let findings = match report.results.iter().any(CaseResult::is_not_startable) {
            true => None,
            false if case.terminal => with_terminal(|| subject.run(case, client_context)).ok(),
            false => Some(subject.run(case, client_context)),
        };
        report.results.push(CaseResult { case, findings });
    }
    output.progress("");
    report
}

/// Prints every case. Consecutive cases with the same findings share them, and a finding is printed in full once.
fn print(report: &ConformanceReport, output: &mut Output) -> Result<(), Failure> {
    let mut shown: Vec<&RuleViolation> = Vec::new();
    let (ran, skipped): (Vec<_>, Vec<_>) =
        report.results.iter().partition(|result| result.findings.is_some());
    for group in ran.chunk_by(|one, next| one.findings == next.findings) {
        for result in group {
            let verdict = match (report.is_failure(result), result.is_failed()) {
                (true, _) => "FAIL",
                (false, true) => "SKIP",
                (false, false) => "PASS",
            };
            output.text(&format!("{}  {}\n", style::verdict(verdict), result.case))?;
        }
        for finding in group.first().into_iter().flat_map(|result| result.findings.iter().flatten()) {
            let is_repeated = shown.contains(&finding);
            output.text(&finding_lines(finding, is_repeated))?;
            if !is_repeated {
                shown.push(finding);
            }
        }
    }
    if skipped.is_empty() {
        return Ok(());
    }
    let reason = match report.results.iter().any(CaseResult::is_not_startable) {
        true => "the program cannot be started",
        false => "failed to open a pseudo-terminal",
    };
    let cases = if skipped.len() == 1 { "case" } else { "cases" };
    output.text(&format!("{}  {} more {cases}: {reason}\n", style::verdict("SKIP"), skipped.len()))
}

fn finding_lines(finding: &RuleViolation, is_repeated: bool) -> String {
    let (name, requirement) = (finding.rule.name(), finding.rule.requirement());
    let sort = if finding.rule.is_advice() { " (advice)" } else { "" };
    if is_repeated {
        return format!("      {name}{sort}: as above\n");
    }
    let message = redact::terminal(&finding.message);
    format!("      {name}{sort}: {message}\n        required: {requirement}\n")
}

/// Options of navicert among the plugin's arguments, which may have been meant for navicert.
fn own_options(arguments: &[String]) -> Vec<String> {
    let pairs = arguments.iter().zip(arguments.iter().skip(1));
    let is_output =
        |option: &str, value: &str| matches!((option, value), ("-o" | "--output", "json" | "text"));
    let outputs = pairs
        .filter(|(option, value)| is_output(option, value))
        .map(|(option, value)| format!("{option} {value}"));
    let is_own = |argument: &&String| {
        let name = argument.split('=').next().unwrap_or_default();
        matches!(name, "--api-version" | "--limit") || matches!(argument.as_str(), "-ojson" | "--output=json")
    };
    outputs.chain(arguments.iter().filter(is_own).cloned()).collect()
}
