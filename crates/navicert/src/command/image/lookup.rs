//! `image get` and `image auth-file`: run the providers and print or write the credentials.

use std::path::Path;
use std::sync::Arc;

use navicert_image::auth_file::{AuthFile, write_private};
use navicert_image::node_keyring::{NodeDirectories, NodeKeyring};
use navicert_image::provider::{Attempt, Lookup};
use navicert_image::{Keyring, Profile, lookup_all};
use navicert_types::redact::{self, REDACTED};
use navicert_types::{SystemClock, error_chain};
use serde_json::{Value, json};

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
    let node = NodeCredentials::read(args.kubelet_root_dir.as_deref(), providers.profile(), environment);
    let attempts = node.attempts(&lookup);
    if output.is_json() {
        let attempts = attempts_json(&attempts, args.show_secrets);
        let errors: Vec<String> = lookup.errors().map(|error| error_chain(error)).collect();
        output.json(&json!({"image": image.as_str(), "credentials": attempts, "errors": errors}))?;
    } else {
        let lines = attempts.iter().map(|attempt| {
            let username = redact::terminal(&attempt.credential.username).into_owned();
            let password = if args.show_secrets { attempt.credential.password.expose() } else { REDACTED };
            format!(
                "{username}\t{password}\t{} ({})\n",
                String::from_utf8_lossy(attempt.key),
                attempt.provider
            )
        });
        output.text(&lines.collect::<String>())?;
    }
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
    let keys: Vec<&str> = file.keys().collect();
    if output.is_json() {
        output.json(&json!({"file": args.file.to_string_lossy(), "keys": keys}))?;
    } else {
        output.text(&keys.iter().map(|key| format!("{key}\n")).collect::<String>())?;
    }
    Ok(if missing { Exit::No } else { Exit::Done })
}

/// The node's Docker configuration, if `--kubelet-root-dir` is set.
pub(super) struct NodeCredentials(Option<(String, Arc<Keyring>)>);

impl NodeCredentials {
    /// Searches a kubelet's root directory.
    // I144
    pub(super) fn read(root: Option<&Path>, profile: Profile, environment: &Environment) -> Self {
        let found = root.and_then(|root| {
            let folders = NodeDirectories {
                root: environment.current_dir.join(root),
                working: environment.current_dir.clone(),
                home: environment.home.clone(),
            };
            let found = NodeKeyring::new(folders, profile, Arc::new(SystemClock)).current();
            Some((found.file?.to_string_lossy().into_owned(), found.keyring))
        });
        NodeCredentials(found)
    }

    /// Path of the configuration file.
    pub(super) fn file(&self) -> Option<&str> {
        self.0.as_ref().map(|(file, _)| file.as_str())
    }

    /// The credentials to try, in order: the node's, then the providers'.
    // I142
    pub(super) fn attempts<'a>(&'a self, lookup: &'a Lookup) -> Vec<Attempt<'a>> {
        let mut attempts = Vec::new();
        if let Some((file, keyring)) = &self.0 {
            for found in lookup_all(&[keyring], lookup.image()) {
                let attempt =
                    |credential| Attempt { provider: file, key: found.key, credential, source: None };
                attempts.extend(found.credentials.iter().map(attempt));
            }
        }
        attempts.extend(lookup.attempts());
        attempts
    }
}

/// Prints the errors of a lookup, with the plugins' standard error.
pub(super) fn print_errors(lookup: &Lookup, output: &mut Output) {
    for error in lookup.errors() {
        output.warning(&error_chain(error));
        error.stderr().lines().for_each(|line| output.note(&format!("  {line}")));
    }
}

/// The credentials as JSON, in the order they are tried. A credential that occurs again names the attempt it repeats: an
/// unsalted hash, even a few digits of it, would let a reader test guesses of a short password.
pub(super) fn attempts_json(attempts: &[Attempt<'_>], show_secrets: bool) -> Vec<Value> {
    let json = |(number, attempt): (usize, &Attempt<'_>)| {
        let mut earlier = attempts.iter().take(number);
        let first = earlier.position(|other| other.credential == attempt.credential);
        let password = if show_secrets { attempt.credential.password.expose() } else { REDACTED };
        json!({
            "key": String::from_utf8_lossy(attempt.key),
            "provider": attempt.provider,
            "username": attempt.credential.username,
            "password": password,
            "sameAsAttempt": first.map(|at| at + 1),
            "serviceAccount": attempt.source.map(|source| format!("{}/{}", source.namespace, source.name)),
        })
    };
    attempts.iter().enumerate().map(json).collect()
}
