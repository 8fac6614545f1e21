//! `navicert kubeconfig view`: the merged kubeconfig, secrets hidden unless asked for.

use navicert_client::kubeconfig::{Merged, Overrides};
use navicert_types::kubeconfig::Config;
use navicert_types::tree::Node;

use crate::args::{Profile, ViewArgs};
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Prints the configuration as YAML or JSON.
pub(super) fn run(args: &ViewArgs, environment: &Environment, output: &mut Output) -> Result<Exit, Failure> {
    let merged = super::merged(&args.connection, environment, output)?;
    let mut config = if args.resolve { merged.resolved() } else { merged.config.clone() };
    if args.minify {
        minify(&mut config, &merged, &args.connection.overrides(&environment.current_dir))?;
    }
    let tree = if args.raw { config.expose_tree() } else { redacted(&config, args.profile) };
    output.text(&if output.is_json() { tree.to_json_pretty() } else { tree.to_yaml() })?;
    Ok(Exit::Done)
}

/// The tree to show, as much hidden as the profile asks for.
pub(super) fn redacted(config: &Config, profile: Option<Profile>) -> Node {
    match profile {
        Some(Profile::Kube) => config.redacted_tree_as_kubectl(),
        Some(Profile::Hardened) | None => config.redacted_tree(),
    }
}

/// Keeps the selected context and the entries it names.
fn minify(config: &mut Config, merged: &Merged, overrides: &Overrides) -> Result<(), Failure> {
    let selection = merged.selection(overrides).map_err(|problem| {
        let way_out = problem.way_out().map(|hint| format!("; {hint}")).unwrap_or_default();
        Failure::Sentence { exit: Exit::No, text: format!("{problem}{way_out}") }
    })?;
    let Some(context) = selection.context.filter(|_| selection.context_exists) else {
        let text = "no context is selected; name one with --context".to_owned();
        return Err(Failure::Sentence { exit: Exit::No, text });
    };
    config.contexts.retain(|entry| entry.name == context);
    config.clusters.retain(|entry| entry.name == selection.cluster_name);
    config.users.retain(|entry| entry.name == selection.user_name);
    config.current_context = context;
    Ok(())
}
