//! `navicert kubeconfig check`: checks whether a context is usable and reports every problem.

use std::path::Path;

use navicert_client::config::ConfigReport;
use navicert_client::kubeconfig::MergedKubeconfig;
use navicert_client::report::{ContextSummary, KubeconfigSummary};
use navicert_client::{ConfigError, ConfigErrors, ConfigOptions};
use navicert_types::kubeconfig;

use crate::args::CheckArgs;
use crate::command::connect;
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::config_report::{Finding, Place};
use crate::output::{Failure, Output};

/// Checks the selected context, or all of them.
pub(super) fn run(args: &CheckArgs, environment: &Environment, output: &mut Output) -> Result<Exit, Failure> {
    let options = connect::options(&args.connection, None, environment);
    let merged = connect::load_context(&options, output).inspect_err(|failure| {
        if let (Failure::Config(errors), false) = (failure, output.is_json()) {
            unknown_fields_of_broken_files(errors).iter().for_each(|finding| finding.print(output));
        }
    })?;
    let requested = args.connection.context.clone().filter(|name| !name.is_empty());
    let verdicts: Vec<ContextReport> = if args.all_contexts {
        let names = merged.config.contexts.iter().map(|entry| entry.name.clone());
        names.map(|name| ContextReport::check(&options.clone().context(&name), Some(name), &merged)).collect()
    } else {
        let current = Some(merged.config.current_context.clone()).filter(|name| !name.is_empty());
        vec![ContextReport::check(&options, requested.or(current), &merged)]
    };
    let unknown = unknown_fields(&merged);
    if output.is_json() {
        let findings = unknown.iter().map(Finding::report).collect();
        let contexts = verdicts.iter().map(ContextReport::summary).collect();
        output.json(&KubeconfigSummary::new(findings, contexts))?;
    } else {
        for finding in &unknown {
            finding.print(output);
        }
        for verdict in &verdicts {
            verdict.print(output)?;
        }
    }
    let first = verdicts.iter().find_map(|verdict| verdict.report.errors().first());
    Ok(first.map_or(Exit::Done, |error| Exit::from(error.class())))
}

/// Unknown fields in any file: kubectl ignores them, but they are usually typos.
fn unknown_fields(merged: &MergedKubeconfig) -> Vec<Finding<'_>> {
    let origins = merged.origins().iter();
    origins.flat_map(|origin| unknown_fields_in(&origin.path, origin.text.expose())).collect()
}

/// The same for files that cannot be decoded.
fn unknown_fields_of_broken_files(errors: &ConfigErrors) -> Vec<Finding<'_>> {
    let mut files: Vec<_> = errors.iter().filter_map(ConfigError::location).collect();
    files.dedup_by_key(|location| location.path());
    files.into_iter().flat_map(|file| unknown_fields_in(file.path(), file.text().expose())).collect()
}

fn unknown_fields_in<'a>(path: &Path, text: &'a [u8]) -> impl Iterator<Item = Finding<'a>> {
    let file = path.display().to_string();
    kubeconfig::unknown_fields(text).into_iter().map(move |diagnostic| Finding {
        fatal: false,
        message: format!("{}: unknown field, ignored", diagnostic.path),
        location: Some(Place { file: file.clone(), text, span: diagnostic.span, hidden: false }),
        hint: diagnostic.hint,
    })
}

struct ContextReport {
    context: Option<String>,
    report: ConfigReport,
}

impl ContextReport {
    fn check(options: &ConfigOptions, context: Option<String>, merged: &MergedKubeconfig) -> Self {
        ContextReport { context, report: options.report(merged) }
    }

    fn findings(&self) -> Vec<Finding<'_>> {
        let errors = self.report.errors().iter().map(Finding::from);
        // Warnings about a context that is not valid would only distract.
        let is_valid = self.report.is_valid();
        errors.chain(self.report.warnings().iter().filter(|_| is_valid).map(Finding::from)).collect()
    }

    fn name(&self) -> String {
        match &self.context {
            Some(name) => format!("context `{name}`"),
            None if self.report.is_in_cluster() => "service account of this pod".to_owned(),
            None => "no context".to_owned(),
        }
    }

    fn print(&self, output: &mut Output) -> Result<(), Failure> {
        for finding in self.findings() {
            finding.print(output);
        }
        let Some(server) = self.report.server().filter(|_| self.report.is_usable()) else {
            return output.text(&format!("{}: not usable\n", self.name()));
        };
        let kinds = self.report.credential_kinds();
        let credential = if kinds.is_empty() { "anonymous".to_owned() } else { kinds.join(", ") };
        output
            .text(&format!("{}: usable\n  server      {server}\n  credential  {credential}\n", self.name(),))
    }

    fn summary(&self) -> ContextSummary {
        let findings = self.findings().iter().map(Finding::report).collect();
        ContextSummary::new(self.context.clone(), &self.report, findings)
    }
}
