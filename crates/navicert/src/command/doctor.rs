//! `navicert doctor`: checks every step from the kubeconfig to the server's response and prints what to fix first.

use std::io::IsTerminal as _;
use std::time::Duration;

use navicert_client::doctor::{
    self, Conclusion, DoctorEvent, DoctorReport, DoctorSettings, StepResult, StepStatus,
};
use navicert_client::report::DoctorSummary;

use super::{connect, login};
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
    let mut options = connect::options(&args.connection, args.plugins.kuberc.as_deref(), environment);
    if let Some(context) = &args.examined {
        options = options.context(context);
    }
    let progress = Progress { is_terminal: std::io::stderr().is_terminal(), is_shown: false };
    let mut lines = ReportPrinter { output, skipped: Vec::new(), failure: None, progress };
    let report = connect::block_on(async {
        let on_event = &mut |event: DoctorEvent<'_>| lines.on_event(event);
        let inspector = login::inspector(environment);
        let mut settings = DoctorSettings::default().login(inspector);
        if let Some(header) = &args.front_proxy {
            settings = settings.front_proxy(header.clone());
        }
        doctor::diagnose_with(&options, settings, on_event).await
    })?;
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
    progress: Progress,
}

impl ReportPrinter<'_> {
    fn on_event(&mut self, event: DoctorEvent<'_>) {
        match event {
            DoctorEvent::Result(finding) => {
                self.progress.clear(self.output);
                self.print(finding);
            }
            DoctorEvent::PluginRunning { command, elapsed, interactive } => {
                self.progress.show(command, elapsed, interactive, self.output);
            }
            _ => {}
        }
    }

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
        let text = text.replace('\n', "\n                ");
        let line = format!("{}  {name:<9}  {text}\n", style::verdict(verdict));
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
            self.output.json(&DoctorSummary::from(report))
        } else {
            self.output.text(&format!("\n{report}\n"))
        }
    }
}

/// How often a plugin that may prompt is announced: a prompt must stay readable.
const INTERACTIVE_INTERVAL: Duration = Duration::from_secs(5);

/// The line on a terminal that says which plugin is running, and for how long.
struct Progress {
    is_terminal: bool,
    is_shown: bool,
}

impl Progress {
    fn show(&mut self, command: &str, elapsed: Duration, interactive: bool, output: &mut Output) {
        if !self.is_terminal {
            return;
        }
        let text = format!("running `{command}`… {} s", elapsed.as_secs());
        if !interactive {
            output.progress(&text);
            self.is_shown = true;
        } else if elapsed == INTERACTIVE_INTERVAL || elapsed.as_secs().is_multiple_of(30) {
            output.note(&text);
        }
    }

    fn clear(&mut self, output: &mut Output) {
        if std::mem::take(&mut self.is_shown) {
            output.progress("");
        }
    }
}
