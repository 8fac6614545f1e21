//! `image serve`, `image invalidate` and `image metrics`: the per-user daemon, the word that makes it forget, and what
//! it has counted.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use navicert_image::daemon::{Daemon, Service, forbid_core_dumps};
use navicert_image::docker_helper::{parse_mirrors, parse_scopes};
use navicert_image::metrics::TextMetrics;
use navicert_image::places::{Places, SOCKET_VARIABLE};
use navicert_image::reload::Reloader;
use navicert_image::socket::{Reply, Verb, ask};
use serde_json::json;

use super::{places, repository, settings, told};
use crate::args::image::{InvalidateArgs, MetricsArgs, ServeArgs};
use crate::command::stop::Stop;
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output, with_sources};

/// Listens until it is stopped.
pub(super) fn serve(
    args: ServeArgs,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let places = places(&args.providers, environment)?;
    let socket = socket(args.socket, environment)?;
    let mut scopes = places.scopes.clone();
    for more in [parse_scopes(&args.scope.join(",")), parse_mirrors(&args.mirror.join(","))] {
        let usage = |text| Failure::Sentence { exit: Exit::Usage, text };
        scopes.extend(more.map_err(|error| usage(error.to_string()))?);
    }
    if let Err(error) = forbid_core_dumps() {
        output.warning(&format!("core dumps of this process cannot be forbidden: {error}"));
    }
    let metrics = Arc::new(TextMetrics::new());
    let mut settings = settings(&args.providers, &places.bin_dir, environment);
    settings.recorder = Arc::clone(&metrics) as _;
    settings.refresh_ahead = true;
    let clock = Arc::clone(&settings.clock);
    let reloader = Reloader::open(&places.config, settings).map_err(|error| told(&error, output))?;
    if let Err(error) = reloader.providers().check_executables() {
        output.warning(&with_sources(&error));
    }
    let service = Service::new(reloader, scopes, metrics, clock);
    let daemon = Daemon::bind(&socket, service).map_err(|error| Failure::bad_input(with_sources(&error)))?;
    let stop =
        Stop::new().map_err(|error| Failure::bad_input(format!("cannot wait for signals: {error}")))?;
    let place = daemon.place();
    output.text(&format!("listening on {}\n", socket.display()))?;
    thread::Builder::new().name("daemon".to_owned()).spawn(move || daemon.run())?;
    stop.wait();
    place.clear();
    Ok(Exit::Done)
}

/// Makes the daemon forget.
pub(super) fn invalidate(
    args: &InvalidateArgs,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let image = repository(&args.image)?;
    let reply = ask_daemon(args.socket.clone(), Verb::Invalidate, image.as_str(), environment)?;
    let count: u64 = String::from_utf8_lossy(&reply.stdout).trim().parse().unwrap_or_default();
    if output.is_json() {
        output.json(&json!({"image": image.as_str(), "forgotten": count}))?;
    } else {
        let answers = if count == 1 { "answer" } else { "answers" };
        output.text(&format!("{image}: {count} {answers} forgotten\n"))?;
    }
    Ok(Exit::Done)
}

/// Prints the daemon's counters, in Prometheus' text format.
pub(super) fn metrics(
    args: &MetricsArgs,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let reply = ask_daemon(args.socket.clone(), Verb::Metrics, "", environment)?;
    output.text(&String::from_utf8_lossy(&reply.stdout))?;
    Ok(Exit::Done)
}

fn ask_daemon(
    named: Option<PathBuf>,
    verb: Verb,
    text: &str,
    environment: &Environment,
) -> Result<Reply, Failure> {
    let socket = socket(named, environment)?;
    let unreachable = |text: String| Failure::Sentence { exit: Exit::Unreachable, text };
    let reply = ask(&socket, verb, text)
        .map_err(|error| unreachable(format!("cannot ask the daemon on `{}`: {error}", socket.display())))?;
    let no_daemon = || {
        unreachable(format!(
            "no daemon is listening on `{}`; `navicert image serve` starts one, and without one nothing is remembered",
            socket.display()
        ))
    };
    reply.ok_or_else(no_daemon)
}

fn socket(named: Option<PathBuf>, environment: &Environment) -> Result<PathBuf, Failure> {
    let found = named.or_else(|| Places::socket(&|name| environment.variable(name)));
    found.ok_or_else(|| Failure::Sentence {
        exit: Exit::Usage,
        text: format!(
            "there is no runtime folder for the socket: name one with `--socket` or `{SOCKET_VARIABLE}`"
        ),
    })
}
