//! `image check`: everything that is wrong with a configuration, and everything that is odd (I265).

use navicert_image::config::{ConfigFile, Finding, Severity, lint, read_files};
use navicert_plugin::{Command, Policy};
use serde_json::{Value, json};

use super::places;
use crate::args::image::CheckArgs;
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output, snippet, with_sources};

/// Prints every finding; errors make it a no.
pub(super) fn run(args: &CheckArgs, environment: &Environment, output: &mut Output) -> Result<Exit, Failure> {
    let places = places(&args.providers, environment)?;
    let files = read_files(&places.config).map_err(|error| Failure::bad_input(with_sources(&error)))?;
    let bin_dir = places.bin_dir.clone();
    let inherited = environment.inherited.clone();
    let executable = |name: &str| {
        let command = Command::new(bin_dir.join(name), inherited.clone());
        Policy::AllowAll.permit(command).map(drop).map_err(|error| with_sources(&error))
    };
    let knows_programs = args.providers.bin_dir.is_some() || bin_dir.is_dir();
    let findings = lint(&files, knows_programs.then_some(&executable as &dyn Fn(&str) -> Result<(), String>));
    let broken = findings.iter().any(|finding| finding.severity == Severity::Error);
    if output.is_json() {
        let shown: Vec<Value> = findings.iter().map(for_machines).collect();
        output.json(
            &json!({"valid": !broken, "hash": navicert_image::config::hash(&files), "findings": shown}),
        )?;
    } else {
        findings.iter().for_each(|finding| output.note(&for_people(finding, &files)));
        if !broken {
            let count = match findings.len() {
                0 => "nothing".to_owned(),
                1 => "one thing".to_owned(),
                several => format!("{several} things"),
            };
            output.text(&format!("{}: usable, {count} to look at\n", places.config.display()))?;
        }
    }
    Ok(if broken { Exit::No } else { Exit::Done })
}

fn for_people(finding: &Finding, files: &[ConfigFile]) -> String {
    let note = match (finding.severity, finding.kubelet_accepts) {
        (Severity::Error, true) => " (a kubelet would start with it)",
        _ => "",
    };
    let message = format!("{}: {}{note} [{}]", finding.path, finding.message, finding.rule);
    let message = message.trim_start_matches(": ").to_owned();
    let file = files.iter().find(|file| file.path == finding.file);
    let text = file.and_then(|file| str::from_utf8(&file.text).ok());
    match (finding.span, text) {
        (Some(span), Some(text)) => snippet::render(&snippet::Problem {
            hidden: false,
            file: &finding.file.to_string_lossy(),
            text,
            span,
            message,
            hint: finding.hint.clone(),
            fatal: finding.severity == Severity::Error,
        }),
        _ => finding.to_string(),
    }
}

fn for_machines(finding: &Finding) -> Value {
    json!({
        "severity": if finding.severity == Severity::Error { "error" } else { "warning" },
        "rule": finding.rule,
        "kubeletAccepts": finding.kubelet_accepts,
        "file": finding.file.to_string_lossy(),
        "path": finding.path,
        "line": finding.span.map(|span| span.line),
        "column": finding.span.map(|span| span.column),
        "message": finding.message,
        "hint": finding.hint,
    })
}
