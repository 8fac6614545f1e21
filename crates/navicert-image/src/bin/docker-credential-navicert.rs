//! `docker-credential-navicert`: docker's credential-helper protocol in front of the kubelet's image credential
//! providers. Asks the daemon if there is one (`navicert image serve`), and runs the provider itself if not.

use std::env;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::sync::Arc;

use navicert_image::docker_helper::{self, HelperError, normalise_server};
use navicert_image::places::Places;
use navicert_image::provider::{Providers, Settings};
use navicert_image::reload::load;
use navicert_image::socket::{Reply, Verb, ask};
use navicert_plugin::ProcessRunner;
use navicert_types::SystemClock;

/// No server's name is longer.
const LONGEST_INPUT: u64 = 64 << 10;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    let reply = match arguments.as_slice() {
        [verb] => run(&verb.to_string_lossy()),
        _ => Reply::failed("usage: docker-credential-navicert get|list|erase|store|version"),
    };
    // Secrets go to standard output only; if nobody reads it there is nobody to tell.
    let _ = io::stdout().write_all(&reply.stdout);
    let _ = io::stderr().write_all(reply.stderr.as_bytes());
    ExitCode::from(reply.code)
}

fn run(verb: &str) -> Reply {
    match verb {
        "get" => server().map_or_else(|error| refused(&error), |server| answer(Verb::Get, &server)),
        "erase" => server().map_or_else(|error| refused(&error), |server| answer(Verb::Erase, &server)),
        "list" => answer(Verb::List, ""),
        "store" => refused(&HelperError::StoreRefused),
        "version" => {
            Reply::done(concat!("docker-credential-navicert ", env!("CARGO_PKG_VERSION"), "\n").as_bytes())
        }
        _ => Reply::failed("usage: docker-credential-navicert get|list|erase|store|version"),
    }
}

/// The server's name from standard input, checked before anybody else sees it.
fn server() -> Result<String, HelperError> {
    let mut text = String::new();
    if io::stdin().take(LONGEST_INPUT).read_to_string(&mut text).is_err() {
        return Err(HelperError::BadServer("is not text"));
    }
    normalise_server(&text)?;
    Ok(text.trim().to_owned())
}

fn answer(verb: Verb, text: &str) -> Reply {
    let from_daemon = Places::socket(&variable).map(|socket| ask(&socket, verb, text));
    match from_daemon {
        Some(Ok(Some(reply))) => reply,
        Some(Err(error)) => Reply::failed(&format!("cannot ask the navicert daemon: {error}")),
        Some(Ok(None)) | None => answer_alone(verb, text),
    }
}

/// Without a daemon: one provider run, and nothing is remembered.
fn answer_alone(verb: Verb, text: &str) -> Reply {
    if verb != Verb::Get {
        return Reply::done(if verb == Verb::List { b"{}\n" } else { b"" });
    }
    let places = match Places::new(&variable) {
        Ok(places) => places,
        Err(error) => return Reply::failed(&error.to_string()),
    };
    let clock = Arc::new(SystemClock);
    let runner = Arc::new(ProcessRunner::new(Arc::clone(&clock) as _));
    let settings = Settings::new(&places.bin_dir, environment(), runner, clock);
    let config = match load(&places.config, settings.profile) {
        Ok(config) => config,
        Err(error) => return Reply::failed(&error.to_string()),
    };
    match docker_helper::get(&Providers::new(&config, settings), &places.scopes, text) {
        Ok(answer) => Reply::done(answer.encode().expose()),
        Err(error) => refused(&error),
    }
}

fn refused(error: &HelperError) -> Reply {
    let stderr = error.hint().map(|hint| format!("navicert: {hint}\n")).unwrap_or_default();
    Reply { stderr, ..Reply::failed(&error.to_string()) }
}

#[expect(clippy::disallowed_methods, reason = "this program's one look at a variable of its environment")]
fn variable(name: &str) -> Option<OsString> {
    env::var_os(name)
}

#[expect(clippy::disallowed_methods, reason = "plugins inherit this program's environment (I92)")]
fn environment() -> navicert_plugin::Environment {
    env::vars_os().collect()
}
