//! `image get` and `image auth-file`: run the providers and print or write the credentials.

use std::path::Path;
use std::sync::Arc;

use navicert_image::Profile;
use navicert_image::auth_file::{AuthFile, write_private};
use navicert_image::node_keyring::{NodeCredentials, NodeDirectories};
use navicert_image::provider::Lookup;
use navicert_image::report::{AuthFileReport, GetReport};
use navicert_types::{SystemClock, error_chain};

use super::{providers, pull_identity, repository};
use crate::args::image::{AuthFileArgs, GetArgs};
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Prints the credentials in the order they are tried.
pub(super) fn get(args: &GetArgs, environment: &Environment, output: &mut Output) -> Result<Exit, Failure> {
    let image = repository(&args.image)?;
    let (asker, service_accounts) = pull_identity(&args.account, environment)?;
    let providers = providers(&args.providers, service_accounts, environment, output)?;
    let lookup = providers.lookup(image.as_str(), &asker);
    let node = node_credentials(args.kubelet_root_dir.as_deref(), providers.profile(), environment);
    let attempts = node.attempts(&lookup);
    output.report(&GetReport::new(&lookup, &attempts, args.show_secrets))?;
    print_errors(&lookup, output);
    if !attempts.is_empty() {
        return Ok(Exit::Done);
    }
    if lookup.outcomes().next().is_none() {
        output.warning(&format!("no provider matches `{image}`; run `navicert image explain` for details"));
    }
    Ok(Exit::No)
}

/// Writes a containers auth.json.
pub(super) fn auth_file(
    args: &AuthFileArgs,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let images = args.images.iter().map(|image| repository(image)).collect::<Result<Vec<_>, _>>()?;
    let (asker, service_accounts) = pull_identity(&args.account, environment)?;
    let providers = providers(&args.providers, service_accounts, environment, output)?;
    let mut file = AuthFile::new();
    let mut missing = false;
    for image in &images {
        let lookup = providers.lookup(image.as_str(), &asker);
        print_errors(&lookup, output);
        if !file.add(&lookup) {
            missing = true;
            output.warning(&format!("no credentials for `{image}`"));
        }
    }
    write_private(&args.file, file.encode().expose())
        .map_err(|error| Failure::bad_input(format!("failed to write `{}`: {error}", args.file.display())))?;
    output.report(&AuthFileReport {
        file: args.file.to_string_lossy().into_owned(),
        keys: file.keys().map(ToOwned::to_owned).collect(),
    })?;
    Ok(if missing { Exit::No } else { Exit::Done })
}

/// The credentials in the node's docker configuration, if `--kubelet-root-dir` is set.
// I144
pub(super) fn node_credentials(
    root: Option<&Path>,
    profile: Profile,
    environment: &Environment,
) -> NodeCredentials {
    let Some(root) = root else { return NodeCredentials::default() };
    let folders = NodeDirectories {
        root: environment.current_dir.join(root),
        working: environment.current_dir.clone(),
        home: environment.home.clone(),
    };
    NodeCredentials::find(folders, profile, Arc::new(SystemClock))
}

/// Prints the errors of a lookup, with the plugins' standard error.
pub(super) fn print_errors(lookup: &Lookup, output: &mut Output) {
    for error in lookup.errors() {
        output.warning(&error_chain(error));
        error.stderr().lines().for_each(|line| output.note(&format!("  {line}")));
    }
}
