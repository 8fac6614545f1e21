//! `navicert authn check FILE`: errors of an authentication configuration with their source lines, lint warnings,
//! differences from kube-apiserver and, with `--online`, a probe of every issuer.

use std::fs;

use navicert_authn::report::{CheckFinding, CheckReport, IssuerVerdict, check_config};

use super::online;
use super::settings::{AuthnSettings, bytes};
use crate::args::authn::CheckArgs;
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::snippet::{self, SnippetProblem};
use crate::output::{Failure, Output};

/// Checks one file.
pub(super) fn run(args: &CheckArgs, environment: &Environment, output: &mut Output) -> Result<Exit, Failure> {
    let settings = AuthnSettings::read(&args.settings, output)?;
    let path = args.file.as_deref().unwrap_or("".as_ref());
    let text = bytes(path)?;
    let mut report = check_config(&text, &settings.profile, &settings.navicert_config, |path| fs::read(path));
    if args.online && report.valid {
        let compiled = settings.compile(&text, &settings.profile).map_err(Failure::bad_input)?;
        report.online = online::probe_issuers(&settings, &compiled, environment)?;
    }
    if output.is_json() {
        output.json(&report)?;
    } else {
        print(&report, &path.display().to_string(), &String::from_utf8_lossy(&text), output)?;
    }
    let has_verdict = |verdict| report.online.iter().any(|issuer| issuer.verdict == verdict);
    Ok(match &report {
        report if !report.valid => Exit::No,
        report if args.deny_lints && !report.lints.is_empty() => Exit::No,
        _ if has_verdict(IssuerVerdict::Failed) => Exit::No,
        _ if has_verdict(IssuerVerdict::Unreachable) => Exit::Unreachable,
        _ => Exit::Done,
    })
}

fn print(report: &CheckReport, name: &str, source: &str, output: &mut Output) -> Result<(), Failure> {
    for (findings, fatal) in [(&report.findings, true), (&report.lints, false)] {
        findings.iter().for_each(|finding| print_finding(finding, fatal, name, source, output));
    }
    output.text(&format!("{name}: {}\n", report.verdict()))?;
    report.online.iter().try_for_each(|issuer| output.report(issuer))
}

fn print_finding(finding: &CheckFinding, fatal: bool, file: &str, text: &str, output: &mut Output) {
    let CheckFinding { code, message, hint, .. } = finding;
    let message = if code.is_empty() { message.clone() } else { format!("{message} [{code}]") };
    let Some(span) = finding.span else {
        return if fatal { output.error(&message) } else { output.warning(&message) };
    };
    let problem = SnippetProblem { file, text, hidden: false, span, message, hint: hint.clone(), fatal };
    snippet::print_open(&problem, output);
}
