//! `navicert kubeconfig view`: prints the merged kubeconfig, redacted unless `--raw`.

use navicert_client::kubeconfig::SelectedNames;
use navicert_types::kubeconfig::Kubeconfig;
use navicert_types::tree::Node;

use crate::args::{Profile, ViewArgs};
use crate::command::connect;
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Prints the configuration as YAML or JSON.
pub(super) fn run(args: &ViewArgs, environment: &Environment, output: &mut Output) -> Result<Exit, Failure> {
    let options = connect::located(args.connection.kubeconfig.as_deref(), environment);
    let mut merged = connect::load(&options, output)?;
    let overrides = args.connection.overrides(&environment.current_dir);
    let selection = if args.minify { Some(merged.selected_names(&overrides)?) } else { None };
    let mut config = if args.resolve { merged.resolved() } else { std::mem::take(&mut merged.config) };
    if let Some(selection) = selection {
        minify(selection, &mut config);
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
fn minify(selected: SelectedNames, config: &mut Kubeconfig) {
    config.contexts.retain(|entry| entry.name == selected.context);
    config.clusters.retain(|entry| entry.name == selected.cluster);
    config.users.retain(|entry| entry.name == selected.user);
    config.current_context = selected.context;
}
