//! `navicert authn check FILE`: everything that is wrong with an authentication configuration, each under its line.

use std::fs;

use navicert_authn::Profile;
use navicert_authn::config::{ConfigError, load};
use navicert_types::tree::Span;
use serde_json::{Value, json};

use super::profile;
use crate::args;
use crate::args::authn::CheckArgs;
use crate::exit::Exit;
use crate::output::snippet::{self, Problem};
use crate::output::{Failure, Output};

/// Checks one file.
pub(super) fn run(args: &CheckArgs, output: &mut Output) -> Result<Exit, Failure> {
    let path = args.file.as_deref().unwrap_or("".as_ref());
    let name = path.display().to_string();
    let bytes =
        fs::read(path).map_err(|error| Failure::bad_input(format!("cannot read `{name}`: {error}")))?;
    let findings = findings(&bytes, &profile(args.profile));
    let elsewhere = differs(&bytes, args.profile, findings.is_empty());
    if output.is_json() {
        output.json(&json!({
            "valid": findings.is_empty(),
            "findings": findings.iter().map(Finding::json).collect::<Vec<_>>(),
            "note": elsewhere,
        }))?;
    } else {
        let text = String::from_utf8_lossy(&bytes);
        for finding in &findings {
            finding.print(&name, &text, output);
        }
        if let Some(note) = elsewhere {
            output.warning(note);
        }
        let verdict = match findings.len() {
            0 => "valid".to_owned(),
            1 => "not valid, 1 problem".to_owned(),
            count => format!("not valid, {count} problems"),
        };
        output.text(&format!("{name}: {verdict}\n"))?;
    }
    Ok(if findings.is_empty() { Exit::Done } else { Exit::No })
}

struct Finding {
    message: String,
    hint: Option<String>,
    place: Option<Span>,
}

impl Finding {
    fn print(&self, file: &str, text: &str, output: &mut Output) {
        let Some(span) = self.place else { return output.error(&self.message) };
        let (message, hint) = (self.message.clone(), self.hint.clone());
        let problem = Problem { file, text, hidden: false, span, message, hint, fatal: true };
        output.note(&snippet::render_open(&problem));
    }

    fn json(&self) -> Value {
        json!({
            "message": self.message,
            "hint": self.hint,
            "line": self.place.map(|span| span.line),
            "column": self.place.map(|span| span.column),
        })
    }
}

fn findings(bytes: &[u8], profile: &Profile) -> Vec<Finding> {
    match load(bytes, profile) {
        Ok(_) => Vec::new(),
        Err(ConfigError::Decode(diagnostics)) => diagnostics
            .into_iter()
            .map(|wrong| {
                let message = if wrong.path.is_root() {
                    wrong.message.clone()
                } else {
                    format!("{}: {}", wrong.path, wrong.message)
                };
                Finding { message, hint: wrong.hint, place: Some(wrong.span) }
            })
            .collect(),
        Err(ConfigError::Invalid { violations, tree }) => violations
            .iter()
            .map(|violation| Finding {
                message: violation.to_string(),
                hint: violation.hint.clone(),
                place: Some(violation.path.nearest(&tree).span),
            })
            .collect(),
        Err(error @ ConfigError::Empty) => {
            vec![Finding { message: error.to_string(), hint: None, place: None }]
        }
    }
}

/// Whether the other profile says otherwise.
fn differs(bytes: &[u8], chosen: Option<args::Profile>, valid: bool) -> Option<&'static str> {
    let other = match chosen {
        Some(args::Profile::Kube) => Profile::HARDENED,
        _ => Profile::KUBE,
    };
    match (chosen, valid, load(bytes, &other).is_ok()) {
        (Some(args::Profile::Kube), true, false) => {
            Some("kube-apiserver takes this file, profile `hardened` does not (try `--profile hardened`)")
        }
        (Some(args::Profile::Kube), false, true) => {
            Some("kube-apiserver refuses this file, profile `hardened` takes it")
        }
        (_, false, true) => Some("profile `hardened` refuses this file, kube-apiserver takes it"),
        (_, true, false) => Some("profile `hardened` takes this file, kube-apiserver refuses it"),
        _ => None,
    }
}
