//! `navicert doctor`: checks every step from the kubeconfig to the server's response and prints what to fix first.

use navicert_client::doctor::{self, Conclusion, DoctorReport, DoctorStep, StepResult, StepStatus};
use serde_json::{Value, json};

use super::connect;
use crate::args::client::DoctorArgs;
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output, style};

/// Runs the diagnosis and prints each step.
pub(crate) fn run(
    args: &DoctorArgs,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let mut patient = connect::patient(&args.connection, &args.plugins, environment);
    if let Some(context) = &args.examined {
        patient.overrides.context.clone_from(context);
    }
    let mut lines = ReportPrinter { output, skipped: Vec::new(), failure: None };
    let report = connect::block_on(doctor::diagnose(&patient, &mut |finding| lines.print(finding)))?;
    lines.end(&report)?;
    Ok(match report.conclusion() {
        Conclusion::Healthy => Exit::Done,
        Conclusion::Rejected => Exit::No,
        Conclusion::BadInput => Exit::BadInput,
        Conclusion::Unreachable => Exit::Unreachable,
        Conclusion::Denied => Exit::Denied,
    })
}

/// Prints results as they arrive; consecutive steps skipped for the same reason share a line.
struct ReportPrinter<'a> {
    output: &'a mut Output,
    skipped: Vec<StepResult>,
    failure: Option<Failure>,
}

impl ReportPrinter<'_> {
    fn print(&mut self, finding: &StepResult) {
        if self.output.is_json() {
            return;
        }
        let same = |last: &StepResult| finding.status == StepStatus::Skip && last.text == finding.text;
        if !self.skipped.last().is_some_and(same) {
            self.print_skipped();
        }
        match finding.status {
            StepStatus::Skip => self.skipped.push(finding.clone()),
            _ => self.line(finding.status, finding.step.name(), &finding.text),
        }
    }

    fn print_skipped(&mut self) {
        let skipped = std::mem::take(&mut self.skipped);
        let Some(first) = skipped.first() else { return };
        let names: Vec<&str> = skipped.iter().map(|finding| finding.step.name()).collect();
        match names.as_slice() {
            [name] => self.line(StepStatus::Skip, name, &first.text),
            _ => self.line(StepStatus::Skip, "…", &format!("{}: {}", names.join(", "), first.text)),
        }
    }

    fn line(&mut self, verdict: StepStatus, name: &str, text: &str) {
        let colour = match verdict {
            StepStatus::Pass => style::GOOD,
            StepStatus::Warn => style::WARNING,
            StepStatus::Fail => style::ERROR,
            StepStatus::Skip => style::FAINT,
        };
        let text = text.replace('\n', "\n                ");
        let line = format!("{colour}{verdict}{}  {name:<9}  {text}\n", style::END);
        if let Err(failure) = self.output.text(&line) {
            self.failure.get_or_insert(failure);
        }
    }

    fn end(mut self, report: &DoctorReport) -> Result<(), Failure> {
        self.print_skipped();
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        if self.output.is_json() {
            self.output.json(&as_json(report))
        } else {
            self.output.text(&last_line(report))
        }
    }
}

/// The last line: what to fix.
fn last_line(report: &DoctorReport) -> String {
    match (report.failure(), report.to_do()) {
        (Some(_), Some(to_do)) => format!("\nto do: {to_do}\n"),
        (Some(failure), None) => format!("\nto do: fix `{}`\n", failure.step.name()),
        (None, Some(to_do)) => format!("\nno errors; recommended: {to_do}\n"),
        (None, None) => "\nno problems found\n".to_owned(),
    }
}

fn as_json(report: &DoctorReport) -> Value {
    let step = |finding: &StepResult| {
        json!({
            "step": DoctorStep::name(finding.step),
            "verdict": finding.status.to_string(),
            "text": finding.text,
            "toDo": finding.to_do,
        })
    };
    json!({
        "healthy": report.failure().is_none(),
        "steps": report.results.iter().map(step).collect::<Vec<_>>(),
        "toDo": report.to_do(),
        "username": report.user.as_ref().map(|user| &user.username),
    })
}
