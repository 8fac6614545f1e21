//! `image check`: errors and lint warnings of a credential provider configuration.
// I265

use navicert_image::config::{ConfigFile, LintFinding, LintSeverity, lint, read_files};
use navicert_image::report::CheckReport;
use navicert_plugin::{Command, Policy};
use navicert_types::error_chain;

use super::provider_paths;
use crate::args::image::CheckArgs;
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::snippet::{self, SnippetProblem};
use crate::output::{Failure, Output};

/// Prints every finding; fails if one is an error.
pub(super) fn run(args: &CheckArgs, environment: &Environment, output: &mut Output) -> Result<Exit, Failure> {
    let places = provider_paths(&args.providers, environment)?;
    let files = read_files(&places.config).map_err(|error| Failure::bad_input(error_chain(&error)))?;
    let bin_dir = places.bin_dir.clone();
    let inherited = environment.inherited.clone();
    let executable = |name: &str| {
        let command = Command::new(bin_dir.join(name), inherited.clone());
        Policy::AllowAll.permit(command).map(drop).map_err(|error| error_chain(&error))
    };
    let knows_programs = args.providers.bin_dir.is_some() || bin_dir.is_dir();
    let findings = lint(&files, knows_programs.then_some(&executable as &dyn Fn(&str) -> Result<(), String>));
    let report = CheckReport::new(&files, &findings);
    if output.is_json() {
        output.json(&report)?;
    } else {
        findings.iter().for_each(|finding| print(finding, &files, output));
        if report.valid {
            let count = match findings.len() {
                0 => "no warnings".to_owned(),
                1 => "1 warning".to_owned(),
                several => format!("{several} warnings"),
            };
            output.text(&format!("{}: valid, {count}\n", places.config.display()))?;
        }
    }
    Ok(if report.valid { Exit::Done } else { Exit::No })
}

fn print(finding: &LintFinding, files: &[ConfigFile], output: &mut Output) {
    let note = match (finding.severity, finding.kubelet_accepts) {
        (LintSeverity::Error, true) => " (the kubelet accepts this)",
        _ => "",
    };
    let message = format!("{}: {}{note} [{}]", finding.path, finding.message, finding.rule);
    let message = message.trim_start_matches(": ").to_owned();
    let file = files.iter().find(|file| file.path == finding.file);
    let text = file.and_then(|file| str::from_utf8(&file.text).ok());
    let fatal = finding.severity == LintSeverity::Error;
    let (Some(span), Some(text)) = (finding.span, text) else {
        let text = finding.to_string();
        return if fatal { output.error(&text) } else { output.warning(&text) };
    };
    let problem = SnippetProblem {
        hidden: false,
        file: &finding.file.to_string_lossy(),
        text,
        span,
        message,
        hint: finding.hint.clone(),
        fatal,
    };
    snippet::print(&problem, output);
}
