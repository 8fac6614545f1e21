//! `image serve`, `image invalidate` and `image metrics`: the per-user daemon, its cache invalidation and its metrics.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use navicert_image::daemon::{Daemon, DaemonService};
use navicert_image::default_paths::{DefaultPaths, SOCKET_VARIABLE};
use navicert_image::docker_helper::{parse_mirrors, parse_scopes};
use navicert_image::metrics::TextMetrics;
use navicert_image::reload::Reloader;
use navicert_image::report::InvalidateReport;
use navicert_image::socket::{DaemonReply, DaemonVerb, call};
use navicert_io::process_memory::forbid_core_dumps;
use navicert_types::error_chain;

use super::{provider_paths, report_load_error, repository, settings};
use crate::args::image::{InvalidateArgs, MetricsArgs, ServeArgs};
use crate::command::stop::StopSignals;
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Serves until SIGTERM or SIGINT.
pub(super) fn serve(
    args: ServeArgs,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let places = provider_paths(&args.providers, environment)?;
    let socket = new_socket(args.socket, environment)?;
    let mut scopes = places.scopes.clone();
    for more in [parse_scopes(&args.scope.join(",")), parse_mirrors(&args.mirror.join(","))] {
        let usage = |text| Failure::Message { exit: Exit::Usage, text };
        scopes.extend(more.map_err(|error| usage(error.to_string()))?);
    }
    if let Err(error) = forbid_core_dumps() {
        output.warning(&format!("failed to disable core dumps: {error}"));
    }
    let metrics = Arc::new(TextMetrics::new());
    let mut settings = settings(&args.providers, &places.bin_dir, environment);
    settings.recorder = Arc::clone(&metrics) as _;
    settings.refresh_ahead = true;
    let clock = Arc::clone(&settings.clock);
    let reloader =
        Reloader::open(&places.config, settings).map_err(|error| report_load_error(&error, output))?;
    if let Err(error) = reloader.providers().check_executables() {
        output.warning(&error_chain(&error));
    }
    let service = DaemonService::new(reloader, scopes, metrics, clock);
    let daemon = Daemon::bind(&socket, service)
        .map_err(|error| Failure::Message { exit: Exit::No, text: error_chain(&error) })?;
    let stop = StopSignals::new()
        .map_err(|error| Failure::bad_input(format!("failed to install signal handlers: {error}")))?;
    let socket_file = daemon.socket_file();
    output.text(&format!("listening on {}\n", socket.display()))?;
    thread::Builder::new().name("daemon".to_owned()).spawn(move || daemon.run())?;
    stop.wait();
    socket_file.remove();
    Ok(Exit::Done)
}

/// Removes an image from the daemon's cache.
pub(super) fn invalidate(
    args: &InvalidateArgs,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let image = repository(&args.image)?;
    let reply = call_daemon(args.socket.clone(), DaemonVerb::Invalidate, image.as_str(), environment)?;
    let removed = String::from_utf8_lossy(&reply.stdout).trim().parse().unwrap_or_default();
    output.report(&InvalidateReport { image: image.as_str().to_owned(), removed })?;
    Ok(Exit::Done)
}

/// Prints the daemon's metrics in the Prometheus text format.
pub(super) fn metrics(
    args: &MetricsArgs,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let reply = call_daemon(args.socket.clone(), DaemonVerb::Metrics, "", environment)?;
    output.text(&String::from_utf8_lossy(&reply.stdout))?;
    Ok(Exit::Done)
}

fn call_daemon(
    named: Option<PathBuf>,
    verb: DaemonVerb,
    text: &str,
    environment: &Environment,
) -> Result<DaemonReply, Failure> {
    let socket = socket(named, environment)?;
    let unreachable = |text: String| Failure::Message { exit: Exit::Unreachable, text };
    let reply = call(&socket, verb, text).map_err(|error| {
        unreachable(format!("failed to query the daemon on `{}`: {error}", socket.display()))
    })?;
    let no_daemon = || {
        unreachable(format!(
            "no daemon is listening on `{}`; start one with `navicert image serve`",
            socket.display()
        ))
    };
    reply.ok_or_else(no_daemon)
}

/// The path of a running daemon's socket.
fn socket(named: Option<PathBuf>, environment: &Environment) -> Result<PathBuf, Failure> {
    let found = named.or_else(|| DefaultPaths::socket(&|name| environment.variable(name)));
    found.ok_or_else(|| no_directory("no private runtime directory"))
}

/// The path at which a daemon creates its socket.
fn new_socket(named: Option<PathBuf>, environment: &Environment) -> Result<PathBuf, Failure> {
    let created = named.map_or_else(|| DefaultPaths::new_socket(&|name| environment.variable(name)), Ok);
    created.map_err(|error| no_directory(&error.to_string()))
}

fn no_directory(cause: &str) -> Failure {
    Failure::Message {
        exit: Exit::Usage,
        text: format!("no directory for the socket: {cause}; or set `--socket` or `{SOCKET_VARIABLE}`"),
    }
}
