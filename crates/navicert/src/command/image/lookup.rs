//! `image get` and `image auth-file`: ask the providers, and print or write what they answer.

use navicert_image::auth_file::{AuthFile, write_private};
use navicert_image::provider::{Attempt, Lookup};
use navicert_types::redact::{self, REDACTED};
use serde_json::{Value, json};

use super::{asker, providers, repository};
use crate::args::image::{AuthFileArgs, GetArgs};
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Prints the credentials in the order they are tried.
pub(super) fn get(args: &GetArgs, environment: &Environment, output: &mut Output) -> Result<Exit, Failure> {
    let image = repository(&args.image)?;
    let (asker, service_accounts) = asker(&args.account, environment)?;
    let providers = providers(&args.providers, service_accounts, environment, output)?;
    let lookup = providers.lookup(image.as_str(), &asker);
    let attempts = lookup.attempts();
    if output.is_json() {
        let attempts: Vec<Value> = attempts.iter().map(|attempt| shown(attempt, args.show_secrets)).collect();
        let errors: Vec<String> = lookup.errors().map(ToString::to_string).collect();
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
    complain(&lookup, output);
    if !attempts.is_empty() {
        return Ok(Exit::Done);
    }
    if lookup.outcomes().next().is_none() {
        output.warning(&format!("no provider matches `{image}`; `navicert image explain` says why"));
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
    let (asker, service_accounts) = asker(&args.account, environment)?;
    let providers = providers(&args.providers, service_accounts, environment, output)?;
    let mut file = AuthFile::new();
    let mut missing = false;
    for image in &images {
        let lookup = providers.lookup(image.as_str(), &asker);
        complain(&lookup, output);
        if !file.add(&lookup) {
            missing = true;
            output.warning(&format!("there are no credentials for `{image}`"));
        }
    }
    write_private(&args.file, file.encode().expose())
        .map_err(|error| Failure::bad_input(format!("cannot write `{}`: {error}", args.file.display())))?;
    let keys: Vec<&str> = file.keys().collect();
    if output.is_json() {
        output.json(&json!({"file": args.file.to_string_lossy(), "keys": keys}))?;
    } else {
        output.text(&keys.iter().map(|key| format!("{key}\n")).collect::<String>())?;
    }
    Ok(if missing { Exit::No } else { Exit::Done })
}

/// What went wrong, with what the plugin said.
pub(super) fn complain(lookup: &Lookup, output: &mut Output) {
    for error in lookup.errors() {
        output.warning(&error.to_string());
        error.stderr().lines().for_each(|line| output.note(&format!("  {line}")));
    }
}

/// One credential for a machine.
pub(super) fn shown(attempt: &Attempt<'_>, show_secrets: bool) -> Value {
    let password = if show_secrets { attempt.credential.password.expose() } else { REDACTED };
    json!({
        "key": String::from_utf8_lossy(attempt.key),
        "provider": attempt.provider,
        "username": attempt.credential.username,
        "password": password,
        "hash": attempt.credential.hash(),
        "serviceAccount": attempt.source.map(|source| format!("{}/{}", source.namespace, source.name)),
    })
}
