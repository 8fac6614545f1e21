//! `image serve` and `image invalidate`: the per-user daemon, and the word that makes it forget.

use std::path::PathBuf;
use std::sync::Arc;

use navicert_image::daemon::{Daemon, Service};
use navicert_image::docker_helper::parse_scopes;
use navicert_image::metrics::TextMetrics;
use navicert_image::places::{Places, SOCKET_VARIABLE};
use navicert_image::reload::Reloader;
use navicert_image::socket::{Verb, ask};

use super::{places, repository, settings, told, with_sources};
use crate::args::image::{InvalidateArgs, ServeArgs};
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Listens until it is stopped.
pub(super) fn serve(
    args: ServeArgs,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let places = places(&args.providers, environment)?;
    let socket = socket(args.socket, environment)?;
    let mut scopes = places.scopes.clone();
    let more = parse_scopes(&args.scope.join(","));
    scopes.extend(more.map_err(|error| Failure::Sentence { exit: Exit::Usage, text: error.to_string() })?);
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
    output.text(&format!("listening on {}\n", socket.display()))?;
    daemon.run();
    Ok(Exit::Done)
}

/// Makes the daemon forget.
pub(super) fn invalidate(
    args: &InvalidateArgs,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let image = repository(&args.image)?;
    let socket = socket(args.socket.clone(), environment)?;
    let reply = ask(&socket, Verb::Invalidate, image.as_str()).map_err(|error| Failure::Sentence {
        exit: Exit::Unreachable,
        text: format!("cannot ask the daemon: {error}"),
    })?;
    let Some(reply) = reply else {
        let text =
            format!("no daemon is listening on `{}`; without one nothing is remembered", socket.display());
        return Err(Failure::Sentence { exit: Exit::Unreachable, text });
    };
    let count = String::from_utf8_lossy(&reply.stdout).trim().to_owned();
    output.text(&format!("{image}: {count} forgotten\n"))?;
    Ok(Exit::Done)
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
