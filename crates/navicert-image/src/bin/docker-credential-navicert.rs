//! `docker-credential-navicert`: docker's credential-helper protocol in front of the kubelet's image credential
//! providers. Queries the daemon (`navicert image serve`) if it is running, otherwise runs the provider itself.

use std::env;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::sync::Arc;

use navicert_image::default_paths::DefaultPaths;
use navicert_image::docker_helper::{self, HelperError, normalise_server};
use navicert_image::provider::{ProviderSettings, Providers};
use navicert_image::reload::load;
use navicert_image::socket::{DaemonReply, DaemonVerb, call};
use navicert_plugin::ProcessRunner;
use navicert_types::{SystemClock, error_chain};

/// Maximum length of a server name on standard input.
const MAX_INPUT_BYTES: u64 = 64 << 10;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    let reply = match arguments.as_slice() {
        [verb] => run(&verb.to_string_lossy()),
        _ => DaemonReply::failure("usage: docker-credential-navicert get|list|erase|store|version"),
    };
    // Secrets go to standard output only. A failed write cannot be reported anywhere.
    let _ = io::stdout().write_all(&reply.stdout);
    let _ = io::stderr().write_all(reply.stderr.as_bytes());
    ExitCode::from(reply.code)
}

fn run(verb: &str) -> DaemonReply {
    match verb {
        "get" => server().map_or_else(|error| error_reply(&error), |server| answer(DaemonVerb::Get, &server)),
        "erase" => {
            server().map_or_else(|error| error_reply(&error), |server| answer(DaemonVerb::Erase, &server))
        }
        "list" => answer(DaemonVerb::List, ""),
        "store" => error_reply(&HelperError::StoreNotSupported),
        "version" => DaemonReply::success(
            concat!("docker-credential-navicert ", env!("CARGO_PKG_VERSION"), "\n").as_bytes(),
        ),
        _ => DaemonReply::failure("usage: docker-credential-navicert get|list|erase|store|version"),
    }
}

/// Reads the server name from standard input and validates it.
fn server() -> Result<String, HelperError> {
    let mut text = String::new();
    if io::stdin().take(MAX_INPUT_BYTES).read_to_string(&mut text).is_err() {
        return Err(HelperError::BadServer("not UTF-8 text"));
    }
    normalise_server(&text)?;
    Ok(text.trim().to_owned())
}

fn answer(verb: DaemonVerb, text: &str) -> DaemonReply {
    let from_daemon = DefaultPaths::socket(&variable).map(|socket| call(&socket, verb, text));
    match from_daemon {
        Some(Ok(Some(reply))) => reply,
        Some(Err(error)) => DaemonReply::failure(&format!("failed to query the navicert daemon:  {error}")),
        Some(Ok(None)) | None => answer_without_daemon(verb, text),
    }
}

/// Answers without a daemon: runs the provider once and caches nothing.
fn answer_without_daemon(verb: DaemonVerb, text: &str) -> DaemonReply {
    if verb != DaemonVerb::Get {
        return DaemonReply::success(if verb == DaemonVerb::List { b"{}\n" } else { b"" });
    }
    let paths = match DefaultPaths::new(&variable) {
        Ok(paths) => paths,
        Err(error) => return DaemonReply::failure(&error_chain(&error)),
    };
    let clock = Arc::new(SystemClock);
    let runner = Arc::new(ProcessRunner::new(Arc::clone(&clock) as _));
    let settings = ProviderSettings::new(&paths.bin_dir, environment(), runner, clock);
    let config = match load(&paths.config, settings.profile) {
        Ok(config) => config,
        Err(error) => return DaemonReply::failure(&error_chain(&error)),
    };
    match docker_helper::get(&Providers::new(&config, settings), &paths.scopes, text) {
        Ok(answer) => DaemonReply::success(answer.encode().expose()),
        Err(error) => error_reply(&error),
    }
}

fn error_reply(error: &HelperError) -> DaemonReply {
    let stderr = error.hint().map(|hint| format!("navicert: {hint}\n")).unwrap_or_default();
    DaemonReply { stderr, ..DaemonReply::failure(&error_chain(error)) }
}

#[expect(clippy::disallowed_methods, reason = "the only place that reads the environment of this program")]
fn variable(name: &str) -> Option<OsString> {
    env::var_os(name)
}

#[expect(clippy::disallowed_methods, reason = "plugins inherit this program's environment (I92)")]
fn environment() -> navicert_plugin::Environment {
    env::vars_os().collect()
}
