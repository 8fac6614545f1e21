//! `navicert kubeconfig view`: prints the merged kubeconfig, redacted unless `--raw`.

use navicert_client::kubeconfig::{MergedKubeconfig, Overrides};
use navicert_types::kubeconfig::Kubeconfig;
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

/// The tree to print, redacted by the rules of the profile.
pub(super) fn redacted(config: &Kubeconfig, profile: Option<Profile>) -> Node {
    match profile {
        Some(Profile::Kube) => config.redacted_tree_as_kubectl(),
        Some(Profile::Hardened) | None => config.redacted_tree(),
    }
}

/// Keeps the selected context and the entries it names.
fn minify(config: &mut Kubeconfig, merged: &MergedKubeconfig, overrides: &Overrides) -> Result<(), Failure> {
    let selection = merged.selection(overrides).map_err(|problem| {
        let way_out = problem.way_out().map(|hint| format!("; {hint}")).unwrap_or_default();
        Failure::Message { exit: Exit::No, text: format!("{problem}{way_out}") }
    })?;
    let Some(context) = selection.context.filter(|_| selection.context_exists) else {
        let text = "no context selected; set one with --context".to_owned();
        return Err(Failure::Message { exit: Exit::No, text });
    };
    config.contexts.retain(|entry| entry.name == context);
    config.clusters.retain(|entry| entry.name == selection.cluster_name);
    config.users.retain(|entry| entry.name == selection.user_name);
    config.current_context = context;
    Ok(())
}
