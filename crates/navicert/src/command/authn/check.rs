//! `navicert authn check FILE`: errors of an authentication configuration with their source lines, lint warnings,
//! differences from kube-apiserver and, with `--online`, a probe of every issuer.

use navicert_authn::AuthnProfile;
use navicert_authn::config::lint::{Lint, lint};
use navicert_authn::config::{ConfigError, load_excluding_issuers};
use navicert_types::tree::{self, Node, Span, Syntax};
use serde_json::{Value, json};

use super::online::{self, IssuerReport};
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
    let name = path.display().to_string();
    let text = bytes(path)?;
    let findings = findings(&text, &settings);
    let lints = lints(&text, &settings);
    let is_valid = !findings.iter().any(|finding| finding.fatal);
    let probes = if args.online && is_valid {
        let compiled = settings.compile(&text, &settings.profile).map_err(Failure::bad_input)?;
        online::probe_issuers(&settings, &compiled, environment)?
    } else {
        Vec::new()
    };
    let all: Vec<&Finding> = findings.iter().chain(&lints).collect();
    if output.is_json() {
        let (problems, to_look_at): (Vec<&Finding>, Vec<&Finding>) =
            all.iter().partition(|finding| finding.fatal);
        output.json(&json!({
            "valid": is_valid,
            "findings": problems.into_iter().map(Finding::json).collect::<Vec<_>>(),
            "lints": to_look_at.into_iter().map(Finding::json).collect::<Vec<_>>(),
            "online": probes.iter().map(IssuerReport::json).collect::<Vec<_>>(),
        }))?;
    } else {
        let source = String::from_utf8_lossy(&text);
        for finding in &all {
            finding.print(&name, &source, output);
        }
        output.text(&format!("{name}: {}\n", verdict(&all)))?;
        for probe in &probes {
            output.text(&probe.text())?;
        }
    }
    let exits: Vec<Exit> = probes.iter().map(IssuerReport::exit).collect();
    let worst =
        [Exit::No, Exit::Unreachable].into_iter().find(|exit| exits.contains(exit)).unwrap_or(Exit::Done);
    Ok(match (is_valid, all.is_empty()) {
        (false, _) => Exit::No,
        (true, false) if args.deny_lints => Exit::No,
        _ => worst,
    })
}

fn verdict(findings: &[&Finding]) -> String {
    let fatal = findings.iter().filter(|finding| finding.fatal).count();
    let others = findings.len() - fatal;
    let mut verdict = match fatal {
        0 => "valid".to_owned(),
        1 => "invalid, 1 error".to_owned(),
        count => format!("invalid, {count} errors"),
    };
    if others > 0 {
        verdict += &match others {
            1 => ", 1 warning".to_owned(),
            count => format!(", {count} warnings"),
        };
    }
    verdict
}

/// An error or a lint warning.
#[derive(Clone, PartialEq)]
struct Finding {
    fatal: bool,
    code: &'static str,
    message: String,
    hint: Option<String>,
    location: Option<Span>,
}

impl Finding {
    fn print(&self, file: &str, text: &str, output: &mut Output) {
        let message = if self.code.is_empty() {
            self.message.clone()
        } else {
            format!("{} [{}]", self.message, self.code)
        };
        let Some(span) = self.location else {
            return if self.fatal { output.error(&message) } else { output.warning(&message) };
        };
        let hint = self.hint.clone();
        let problem = SnippetProblem { file, text, hidden: false, span, message, hint, fatal: self.fatal };
        snippet::print_open(&problem, output);
    }

    fn json(&self) -> Value {
        json!({
            "code": self.code,
            "message": self.message,
            "hint": self.hint,
            "line": self.location.map(|span| span.line),
            "column": self.location.map(|span| span.column),
        })
    }
}

/// Errors of the selected profile, marked where the other profile decides differently.
fn findings(text: &[u8], settings: &AuthnSettings) -> Vec<Finding> {
    let ours = problems(text, &settings.profile, settings);
    let is_kube = settings.profile == AuthnProfile::KUBE;
    let (other, takes, refuses) = if is_kube {
        (AuthnProfile::HARDENED, "profile `hardened` accepts this", "profile `hardened` rejects this")
    } else {
        (AuthnProfile::KUBE, "kube-apiserver accepts this", "kube-apiserver rejects this")
    };
    let theirs = problems(text, &other, settings);
    let same = |one: &Finding, list: &[Finding]| list.iter().any(|known| known.message == one.message);
    let mut found: Vec<Finding> = ours
        .iter()
        .cloned()
        .map(|mut finding| {
            if !same(&finding, &theirs) {
                finding.message += &format!(" ({takes})");
            }
            finding
        })
        .collect();
    found.extend(theirs.iter().filter(|finding| !same(finding, &ours)).cloned().map(|mut finding| {
        finding.fatal = false;
        finding.message = format!("{refuses}: {}", finding.message);
        finding
    }));
    if found.is_empty()
        && let Err(wrong) = settings.compile(text, &settings.profile)
    {
        found.push(Finding { fatal: true, code: "", message: wrong, hint: None, location: None });
    }
    found
}

fn problems(text: &[u8], profile: &AuthnProfile, settings: &AuthnSettings) -> Vec<Finding> {
    let fatal = |message, hint, location| Finding { fatal: true, code: "", message, hint, location };
    match load_excluding_issuers(text, profile, &settings.navicert_config.disallowed_issuers) {
        Ok(_) => Vec::new(),
        Err(ConfigError::Decode(diagnostics)) => diagnostics
            .into_iter()
            .map(|wrong| {
                let message = if wrong.path.is_root() {
                    wrong.message.clone()
                } else {
                    format!("{}: {}", wrong.path, wrong.message)
                };
                fatal(message, wrong.hint, Some(wrong.span))
            })
            .collect(),
        Err(ConfigError::Invalid { violations, tree }) => violations
            .iter()
            .map(|violation| {
                let location = violation.path.nearest(&tree).span;
                fatal(violation.to_string(), violation.hint.clone(), Some(location))
            })
            .collect(),
        Err(error) => vec![fatal(error.to_string(), None, None)],
    }
}

fn lints(text: &[u8], settings: &AuthnSettings) -> Vec<Finding> {
    let loaded =
        load_excluding_issuers(text, &settings.profile, &settings.navicert_config.disallowed_issuers);
    let (Ok(loaded), Ok(tree)) = (loaded, tree::parse(text, Syntax::JsonOrYaml)) else {
        return Vec::new();
    };
    lint(&loaded).into_iter().map(|lint| finding_from_lint(lint, text, &tree)).collect()
}

fn finding_from_lint(lint: Lint, text: &[u8], tree: &Node) -> Finding {
    let whole = lint.path.nearest(tree).span;
    let location = narrow_span(text, whole, &lint.part).unwrap_or(whole);
    let message = format!("{}: {}", lint.path, lint.message);
    Finding { fatal: false, code: lint.code, message, hint: Some(lint.hint), location: Some(location) }
}

/// The span of a subexpression in the file, if the file contains it literally.
fn narrow_span(text: &[u8], whole: Span, part: &str) -> Option<Span> {
    let written = std::str::from_utf8(text.get(whole.start..whole.end)?).ok()?;
    let part = part.lines().next().filter(|part| !part.is_empty())?;
    let offset = written.find(part)?;
    let before = written.get(..offset)?;
    let (line, column) = match before.rsplit_once('\n') {
        None => (whole.line, whole.column + before.chars().count()),
        Some((lines, last)) => (whole.line + lines.matches('\n').count() + 1, last.chars().count() + 1),
    };
    Some(Span { start: whole.start + offset, end: whole.start + offset + part.len(), line, column })
}
