//! `navicert image`: image pull credentials, as a kubelet uses them (docs/images.md).

mod api_server;
mod check;
mod explain;
mod lookup;
mod offline;
mod serve;

use std::path::Path;
use std::sync::Arc;

use navicert_image::default_paths::{CONFIG_VARIABLE, DefaultPaths};
use navicert_image::metrics::{MetricsRecorder, NoMetrics};
use navicert_image::provider::{ProviderSettings, Providers};
use navicert_image::reload::{LoadError, load};
use navicert_image::report::batch;
use navicert_image::service_account::{PodRef, PullIdentity, ServiceAccounts};
use navicert_image::{Profile, Repository};
use navicert_plugin::ProcessRunner;
use navicert_types::{Secret, SystemClock, error_chain};

use super::batch::process_lines;
use crate::args::image::{AccountArgs, ImageVerb, ProviderArgs};
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output};
use api_server::ApiServer;

/// Dispatches to the verb.
pub(crate) fn run(verb: ImageVerb, environment: &Environment, output: &mut Output) -> Result<Exit, Failure> {
    match verb {
        ImageVerb::Get(args) => lookup::get(&args, environment, output),
        ImageVerb::AuthFile(args) => lookup::auth_file(&args, environment, output),
        ImageVerb::Explain(args) => explain::run(&args, environment, output),
        ImageVerb::Check(args) if args.jsonl => {
            let profile = profile(args.providers.profile, Profile::Kube);
            process_lines(|line| batch::check_line(line, profile), output)
        }
        ImageVerb::Check(args) => check::run(&args, environment, output),
        ImageVerb::Match(args) if args.jsonl => {
            let profile = profile(args.profile, Profile::Kube);
            process_lines(|line| batch::match_line(line, profile), output)
        }
        ImageVerb::Match(args) => offline::matches(&args, output),
        ImageVerb::Keyring(args) if args.jsonl => {
            let profile = profile(args.profile, Profile::Kube);
            process_lines(|line| batch::keyring_line(line, profile), output)
        }
        ImageVerb::Keyring(args) => offline::keyring(&args, output),
        ImageVerb::Response(args) if args.jsonl => process_lines(batch::response_line, output),
        ImageVerb::Response(args) => offline::response(&args, output),
        ImageVerb::PluginCheck(args) => offline::plugin_check(args, environment, output),
        ImageVerb::Serve(args) => serve::serve(args, environment, output),
        ImageVerb::Metrics(args) => serve::metrics(&args, environment, output),
        ImageVerb::Invalidate(args) => serve::invalidate(&args, environment, output),
    }
}

fn profile(named: Option<crate::args::Profile>, default: Profile) -> Profile {
    match named {
        Some(crate::args::Profile::Kube) => Profile::Kube,
        Some(crate::args::Profile::Hardened) => Profile::Hardened,
        None => default,
    }
}

/// Paths of the configuration and executables: from the flags, else from the environment and default directories.
fn provider_paths(args: &ProviderArgs, environment: &Environment) -> Result<DefaultPaths, Failure> {
    let places = DefaultPaths::new(&|name| environment.variable(name));
    let places = places.map_err(|error| Failure::bad_input(error.to_string()))?;
    if args.config.is_none() && !places.config.exists() {
        return Err(Failure::bad_input(format!(
            "missing credential provider configuration: `{}` does not exist; set \
             `--image-credential-provider-config` or `{CONFIG_VARIABLE}`",
            places.config.display()
        )));
    }
    Ok(DefaultPaths {
        config: args.config.clone().unwrap_or(places.config),
        bin_dir: args.bin_dir.clone().unwrap_or(places.bin_dir),
        ..places
    })
}

fn settings(args: &ProviderArgs, bin_dir: &Path, environment: &Environment) -> ProviderSettings {
    let clock = Arc::new(SystemClock);
    let runner = Arc::new(ProcessRunner::new(Arc::clone(&clock) as _));
    let mut settings = ProviderSettings::new(bin_dir, environment.inherited.clone(), runner, clock);
    settings.profile = profile(args.profile, Profile::Hardened);
    settings
}

fn providers(
    args: &ProviderArgs,
    service_accounts: Option<Arc<dyn ServiceAccounts>>,
    environment: &Environment,
    output: &mut Output,
) -> Result<Providers, Failure> {
    let recorder = Arc::new(NoMetrics);
    recorded_providers(args, (service_accounts, recorder), environment, output)
}

/// Loads the providers with a metrics recorder.
fn recorded_providers(
    args: &ProviderArgs,
    (service_accounts, recorder): (Option<Arc<dyn ServiceAccounts>>, Arc<dyn MetricsRecorder>),
    environment: &Environment,
    output: &mut Output,
) -> Result<Providers, Failure> {
    let places = provider_paths(args, environment)?;
    let settings =
        ProviderSettings { service_accounts, recorder, ..settings(args, &places.bin_dir, environment) };
    let config = load(&places.config, settings.profile).map_err(|error| report_load_error(&error, output))?;
    Ok(Providers::new(&config, settings))
}

/// Prints every problem of an invalid configuration, one per line.
fn report_load_error(error: &LoadError, output: &mut Output) -> Failure {
    match error {
        LoadError::Config(errors) => {
            errors.problems().iter().for_each(|problem| output.listed_error(&problem.to_string()));
            Failure::AlreadyReported(Exit::BadInput)
        }
        error => Failure::bad_input(error_chain(error)),
    }
}

fn repository(image: &str) -> Result<Repository, Failure> {
    Repository::from_image(image).map_err(|error| {
        let text = error.to_string();
        let named = text.contains(&format!("`{image}`"));
        let text = if named { text } else { format!("invalid image name `{image}`: {text}") };
        Failure::Message { exit: Exit::Usage, text }
    })
}

/// The identity to pull as, and the API server that issues its tokens.
fn pull_identity(
    args: &AccountArgs,
    environment: &Environment,
) -> Result<(PullIdentity, Option<Arc<dyn ServiceAccounts>>), Failure> {
    if let Some(file) = &args.service_account_token_file {
        let token = std::fs::read_to_string(file)
            .map_err(|error| Failure::bad_input(format!("failed to read `{}`: {error}", file.display())))?;
        let annotations = args.service_account_annotation.iter().cloned().collect();
        return Ok((PullIdentity::Bearer { token: Secret::new(token.trim().to_owned()), annotations }, None));
    }
    if args.pod.is_none() && args.service_account.is_none() {
        return Ok((PullIdentity::None, None));
    }
    let api = ApiServer::connect(args, environment)?;
    let pod = match (&args.pod, &args.service_account) {
        (Some(pod), _) => api.pod(pod).map_err(|error| Failure::Message {
            exit: Exit::Unreachable,
            text: format!("failed to read pod `{}/{}`: {error}", pod.namespace, pod.name),
        })?,
        (None, account) => account.as_ref().map_or_else(PodRef::default, |account| PodRef {
            namespace: account.namespace.clone(),
            service_account_name: account.name.clone(),
            ..PodRef::default()
        }),
    };
    Ok((PullIdentity::Pod(pod), Some(Arc::new(api))))
}
