//! `navicert doctor`: every step from the kubeconfig to the server's answer, one line each, and the one thing to do.

use navicert_client::doctor::{self, Conclusion, Finding, Report, Step, Verdict};
use serde_json::{Value, json};

use super::connect;
use crate::args::client::DoctorArgs;
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output, style};

/// Walks and tells.
pub(crate) fn run(
    args: &DoctorArgs,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let mut patient = connect::patient(&args.connection, &args.plugins, environment);
    if let Some(context) = &args.examined {
        patient.overrides.context.clone_from(context);
    }
    let mut lines = Lines { output, skipped: Vec::new(), failure: None };
    let report = connect::block_on(doctor::examine(&patient, &mut |finding| lines.tell(finding)))?;
    lines.end(&report)?;
    Ok(match report.conclusion() {
        Conclusion::Healthy => Exit::Done,
        Conclusion::Rejected => Exit::No,
        Conclusion::BadInput => Exit::BadInput,
        Conclusion::Unreachable => Exit::Unreachable,
        Conclusion::Denied => Exit::Denied,
    })
}

/// Prints findings as they come; neighbours that were skipped for the same reason share a line.
struct Lines<'a> {
    output: &'a mut Output,
    skipped: Vec<Finding>,
    failure: Option<Failure>,
}

impl Lines<'_> {
    fn tell(&mut self, finding: &Finding) {
        if self.output.is_json() {
            return;
        }
        let same = |last: &Finding| finding.verdict == Verdict::Skip && last.text == finding.text;
        if !self.skipped.last().is_some_and(same) {
            self.tell_skipped();
        }
        match finding.verdict {
            Verdict::Skip => self.skipped.push(finding.clone()),
            _ => self.line(finding.verdict, finding.step.name(), &finding.text),
        }
    }

    fn tell_skipped(&mut self) {
        let skipped = std::mem::take(&mut self.skipped);
        let Some(first) = skipped.first() else { return };
        let names: Vec<&str> = skipped.iter().map(|finding| finding.step.name()).collect();
        match names.as_slice() {
            [name] => self.line(Verdict::Skip, name, &first.text),
            _ => self.line(Verdict::Skip, "…", &format!("{}: {}", names.join(", "), first.text)),
        }
    }

    fn line(&mut self, verdict: Verdict, name: &str, text: &str) {
        let colour = match verdict {
            Verdict::Pass => style::GOOD,
            Verdict::Warn => style::WARNING,
            Verdict::Fail => style::ERROR,
            Verdict::Skip => style::FAINT,
        };
        let text = text.replace('\n', "\n                ");
        let line = format!("{colour}{verdict}{}  {name:<9}  {text}\n", style::END);
        if let Err(failure) = self.output.text(&line) {
            self.failure.get_or_insert(failure);
        }
    }

    fn end(mut self, report: &Report) -> Result<(), Failure> {
        self.tell_skipped();
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

/// The one thing to do.
fn last_line(report: &Report) -> String {
    match (report.failure(), report.to_do()) {
        (Some(_), Some(to_do)) => format!("\nto do: {to_do}\n"),
        (Some(failure), None) => format!("\nto do: mend `{}`\n", failure.step.name()),
        (None, Some(to_do)) => format!("\nit works; still worth doing: {to_do}\n"),
        (None, None) => "\nnothing to do: it works\n".to_owned(),
    }
}

fn as_json(report: &Report) -> Value {
    let step = |finding: &Finding| {
        json!({
            "step": Step::name(finding.step),
            "verdict": finding.verdict.to_string(),
            "text": finding.text,
            "toDo": finding.to_do,
        })
    };
    json!({
        "healthy": report.failure().is_none(),
        "steps": report.findings.iter().map(step).collect::<Vec<_>>(),
        "toDo": report.to_do(),
        "username": report.user.as_ref().map(|user| &user.username),
    })
}
