//! `image explain`: every step of a credential lookup, with the reason for each decision.
// I264

use std::sync::Arc;

use navicert_image::default_paths::DefaultPaths;
use navicert_image::report::{DaemonCacheLine, ExplainReport, RunTimes};
use navicert_image::socket::{DaemonVerb, call as ask_daemon};

use super::lookup::node_credentials;
use super::{provider_paths, pull_identity, recorded_providers, repository};
use crate::args::image::ExplainArgs;
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Prints what a kubelet does for an image and, without `--dry-run`, runs the providers.
pub(super) fn run(
    args: &ExplainArgs,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let image = repository(&args.image)?;
    let places = provider_paths(&args.providers, environment)?;
    let (identity, service_accounts) = pull_identity(&args.account, environment)?;
    let run_times = Arc::new(RunTimes::default());
    let with = (service_accounts, Arc::clone(&run_times) as _);
    let providers = recorded_providers(&args.providers, with, environment, output)?;
    let cached = cached_by_daemon(image.as_str(), environment);
    let mut report = ExplainReport::new(&args.image, &image, &providers, &places.bin_dir, &cached);
    if !args.dry_run {
        let node = node_credentials(args.kubelet_root_dir.as_deref(), providers.profile(), environment);
        let lookup = providers.lookup(image.as_str(), &identity);
        report = report.with_lookup(&providers, &lookup, &node, &run_times);
    }
    output.report(&report)?;
    let is_matched = !providers.matching_providers(image.as_str()).is_empty();
    Ok(if is_matched { Exit::Done } else { Exit::No })
}

/// Responses in the per-user daemon's cache; empty if no daemon is running.
fn cached_by_daemon(image: &str, environment: &Environment) -> Vec<DaemonCacheLine> {
    let socket = DefaultPaths::socket(&|name| environment.variable(name));
    let reply = socket.and_then(|socket| ask_daemon(&socket, DaemonVerb::Cached, image).ok()?);
    reply
        .map(|reply| DaemonCacheLine::parse_reply(&String::from_utf8_lossy(&reply.stdout)))
        .unwrap_or_default()
}
