//! `navicert authn check FILE`: everything that is wrong with an authentication configuration, each under its line;
//! what is legal and still goes wrong; where kube-apiserver says otherwise; and, if asked, a look at every issuer.

use navicert_authn::Profile;
use navicert_authn::config::lint::{Lint, lint};
use navicert_authn::config::{ConfigError, load_beside};
use navicert_types::tree::{self, Node, Span, Syntax};
use serde_json::{Value, json};

use super::online::{self, Sight};
use super::settings::{Settings, bytes};
use crate::args::authn::CheckArgs;
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::snippet::{self, Problem};
use crate::output::{Failure, Output};

/// Checks one file.
pub(super) fn run(args: &CheckArgs, environment: &Environment, output: &mut Output) -> Result<Exit, Failure> {
    let settings = Settings::read(&args.settings, output)?;
    let path = args.file.as_deref().unwrap_or("".as_ref());
    let name = path.display().to_string();
    let text = bytes(path)?;
    let findings = findings(&text, &settings);
    let lints = lints(&text, &settings);
    let is_valid = !findings.iter().any(|finding| finding.fatal);
    let sights = if args.online && is_valid {
        let compiled = settings.compile(&text, &settings.profile).map_err(Failure::bad_input)?;
        online::sights(&settings, &compiled, environment)?
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
            "online": sights.iter().map(Sight::json).collect::<Vec<_>>(),
        }))?;
    } else {
        let source = String::from_utf8_lossy(&text);
        for finding in &all {
            finding.print(&name, &source, output);
        }
        output.text(&format!("{name}: {}\n", verdict(&all)))?;
        for sight in &sights {
            output.text(&sight.text())?;
        }
    }
    let exits: Vec<Exit> = sights.iter().map(Sight::exit).collect();
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
        1 => "not valid, 1 problem".to_owned(),
        count => format!("not valid, {count} problems"),
    };
    if others > 0 {
        verdict += &format!(", {others} to look at");
    }
    verdict
}

/// A problem, or something to look at.
#[derive(Clone, PartialEq)]
struct Finding {
    fatal: bool,
    code: &'static str,
    message: String,
    hint: Option<String>,
    place: Option<Span>,
}

impl Finding {
    fn print(&self, file: &str, text: &str, output: &mut Output) {
        let message = if self.code.is_empty() {
            self.message.clone()
        } else {
            format!("{} [{}]", self.message, self.code)
        };
        let Some(span) = self.place else {
            return if self.fatal { output.error(&message) } else { output.warning(&message) };
        };
        let hint = self.hint.clone();
        let problem = Problem { file, text, hidden: false, span, message, hint, fatal: self.fatal };
        output.note(&snippet::render_open(&problem));
    }

    fn json(&self) -> Value {
        json!({
            "code": self.code,
            "message": self.message,
            "hint": self.hint,
            "line": self.place.map(|span| span.line),
            "column": self.place.map(|span| span.column),
        })
    }
}

/// What the chosen profile refuses, and where the other one says otherwise.
fn findings(text: &[u8], settings: &Settings) -> Vec<Finding> {
    let ours = problems(text, &settings.profile, settings);
    let is_kube = settings.profile == Profile::KUBE;
    let (other, takes, refuses) = if is_kube {
        (Profile::HARDENED, "profile `hardened` takes this", "profile `hardened` refuses this")
    } else {
        (Profile::KUBE, "kube-apiserver takes this", "kube-apiserver refuses this")
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
        found.push(Finding { fatal: true, code: "", message: wrong, hint: None, place: None });
    }
    found
}

fn problems(text: &[u8], profile: &Profile, settings: &Settings) -> Vec<Finding> {
    let fatal = |message, hint, place| Finding { fatal: true, code: "", message, hint, place };
    match load_beside(text, profile, &settings.side_car.disallowed_issuers) {
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
                let place = violation.path.nearest(&tree).span;
                fatal(violation.to_string(), violation.hint.clone(), Some(place))
            })
            .collect(),
        Err(error @ ConfigError::Empty) => vec![fatal(error.to_string(), None, None)],
    }
}

fn lints(text: &[u8], settings: &Settings) -> Vec<Finding> {
    let loaded = load_beside(text, &settings.profile, &settings.side_car.disallowed_issuers);
    let (Ok(loaded), Ok(tree)) = (loaded, tree::parse(text, Syntax::JsonOrYaml)) else {
        return Vec::new();
    };
    lint(&loaded).into_iter().map(|lint| noticed(lint, text, &tree)).collect()
}

fn noticed(lint: Lint, text: &[u8], tree: &Node) -> Finding {
    let whole = lint.path.nearest(tree).span;
    let place = narrowed(text, whole, &lint.part).unwrap_or(whole);
    let message = format!("{}: {}", lint.path, lint.message);
    Finding { fatal: false, code: lint.code, message, hint: Some(lint.hint), place: Some(place) }
}

/// The place of a part of an expression in the file, if it is written there as it is in the expression.
fn narrowed(text: &[u8], whole: Span, part: &str) -> Option<Span> {
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
