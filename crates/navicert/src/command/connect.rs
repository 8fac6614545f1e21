//! Resolves the configuration from the command line and the environment, for all verbs that need one.

use std::path::Path;

use navicert_client::kubeconfig::{KubeconfigSources, MergedKubeconfig};
use navicert_client::transport::BuildError;
use navicert_client::{Config, ConfigOptions};
use navicert_types::error_chain;

use crate::args::ConnectionArgs;
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Options from the command line and the environment. Plugins may run as the kuberc says: a given file, or the one that the
/// environment names.
pub(crate) fn options(
    connection: &ConnectionArgs,
    kuberc: Option<&Path>,
    environment: &Environment,
) -> ConfigOptions {
    let overrides = connection.overrides(&environment.current_dir);
    located(connection.kubeconfig.as_deref(), environment).overrides(overrides).kuberc_policy(kuberc)
}

/// Options that only say where the kubeconfig is.
pub(crate) fn located(kubeconfig: Option<&Path>, environment: &Environment) -> ConfigOptions {
    let options = ConfigOptions::new(environment.inherited.clone(), &environment.current_dir);
    match kubeconfig {
        Some(path) => options.kubeconfig(path),
        None => options,
    }
}

/// Resolves the configuration.
pub(crate) fn resolve(options: &ConfigOptions, output: &mut Output) -> Result<Config, Failure> {
    let merged = load_context(options, output)?;
    Ok(options.resolve_in(&merged)?)
}

/// Loads and merges the kubeconfig files, to show them.
pub(crate) fn load(options: &ConfigOptions, output: &mut Output) -> Result<MergedKubeconfig, Failure> {
    let merged = options.load()?;
    warn_if_missing(options, &merged, output);
    Ok(merged)
}

/// Loads and merges the kubeconfig files, to use the selected context.
pub(crate) fn load_context(
    options: &ConfigOptions,
    output: &mut Output,
) -> Result<MergedKubeconfig, Failure> {
    let merged = options.load_context()?;
    warn_if_missing(options, &merged, output);
    Ok(merged)
}

fn warn_if_missing(options: &ConfigOptions, merged: &MergedKubeconfig, output: &mut Output) {
    let sources = options.located();
    if merged.origins().is_empty()
        && matches!(sources, KubeconfigSources::List(_))
        && !sources.files().is_empty()
    {
        // C121
        let names: Vec<String> = sources.files().iter().map(|path| path.display().to_string()).collect();
        output.warning(&format!("Config not found: {}", names.join(", ")));
    }
}

/// A client that could not be built although its configuration was resolved: a file has changed meanwhile.
pub(crate) fn build_failure(error: &BuildError) -> Failure {
    Failure::bad_input(error_chain(error))
}

/// Runs a future to completion on a single-threaded runtime.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| {
        Failure::Message { exit: Exit::Bug, text: format!("failed to start the async runtime: {error}") }
    })?;
    Ok(runtime.block_on(future))
}
