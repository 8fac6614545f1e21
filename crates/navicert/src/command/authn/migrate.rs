//! `navicert authn migrate`: kube-apiserver's `--oidc-*` flags as an AuthenticationConfiguration, with what changes.

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use navicert_authn::config::migrate::{Flags, MigrateError, Migration, Options, find, migrate};
use serde_json::json;

use crate::args::authn::{ApiVersion, MigrateArgs};
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Prints the configuration on standard output and what to know about it on standard error.
pub(super) fn run(args: &MigrateArgs, output: &mut Output) -> Result<Exit, Failure> {
    let flags = flags(args)?;
    let certificate_authority = certificate_authority(args, &flags)?;
    let options = Options {
        v1beta1: args.api_version == ApiVersion::V1beta1,
        anonymous: args.anonymous,
        certificate_authority: certificate_authority.as_deref(),
    };
    let migration = migrate(&flags, &options).map_err(|error| Failure::bad_input(error.to_string()))?;
    if let (Some(path), Some(side_car)) = (&args.write_navicert_config, &migration.side_car) {
        fs::write(path, side_car)
            .map_err(|error| Failure::bad_input(format!("cannot write `{}`: {error}", path.display())))?;
    }
    if output.is_json() {
        output.json(&json!({
            "configuration": migration.yaml,
            "navicertConfiguration": migration.side_car,
            "warnings": migration.warnings,
            "obsoleteFlags": migration.obsolete,
        }))?;
    } else {
        output.text(&migration.yaml)?;
        tell(&migration, args, output);
    }
    Ok(Exit::Done)
}

fn tell(migration: &Migration, args: &MigrateArgs, output: &mut Output) {
    for warning in &migration.warnings {
        output.warning(warning);
    }
    if migration.side_car.is_some() && args.write_navicert_config.is_none() {
        output.note("note: --write-navicert-config FILE writes the narrower list of algorithms for navicert");
    }
    let obsolete = migration.obsolete.join(" ");
    output.note(&format!("note: take away {obsolete} and add --authentication-config with the file's path"));
}

fn flags(args: &MigrateArgs) -> Result<Flags, Failure> {
    let Some(path) = &args.file else { return Ok(Flags::of_words(args.flags.iter().cloned())) };
    let text = if path == Path::new("-") {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        fs::read_to_string(path)
    };
    let name = path.display();
    let text = text.map_err(|error| Failure::bad_input(format!("cannot read `{name}`: {error}")))?;
    let (form, flags) = find(&text).map_err(|error| Failure::bad_input(format!("`{name}`: {error}")))?;
    if flags.given.is_empty() {
        return Err(Failure::bad_input(format!("`{name}` ({form}): {}", MigrateError::NoFlags)));
    }
    Ok(flags)
}

fn certificate_authority(args: &MigrateArgs, flags: &Flags) -> Result<Option<String>, Failure> {
    let named = flags.value("oidc-ca-file");
    if named.is_empty() {
        return Ok(None);
    }
    let path = args.ca_file.as_deref().unwrap_or(Path::new(named));
    fs::read_to_string(path).map(Some).map_err(|error| {
        let path = path.display();
        Failure::bad_input(format!(
            "cannot read `{path}` (--oidc-ca-file): {error}; a copy can be named with --ca-file"
        ))
    })
}
