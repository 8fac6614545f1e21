//! `navicert authn migrate`: converts kube-apiserver's `--oidc-*` flags to an AuthenticationConfiguration.

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use navicert_authn::config::migrate::{
    MigrateError, MigrateOptions, Migration, OidcFlags, find_flags, migrate,
};
use navicert_authn::report::MigrateReport;

use crate::args::authn::{ApiVersion, MigrateArgs};
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Prints the configuration on standard output, warnings and notes on standard error.
pub(super) fn run(args: &MigrateArgs, output: &mut Output) -> Result<Exit, Failure> {
    let flags = flags(args)?;
    let certificate_authority = certificate_authority(args, &flags)?;
    let options = MigrateOptions {
        v1beta1: args.api_version == ApiVersion::V1beta1,
        anonymous: args.anonymous,
        certificate_authority: certificate_authority.as_deref(),
        boolean_rules: true,
    };
    let migration = migrate(&flags, &options).map_err(|error| Failure::bad_input(error.to_string()))?;
    if let (Some(path), Some(navicert_config)) = (&args.write_navicert_config, &migration.navicert_config) {
        fs::write(path, navicert_config)
            .map_err(|error| Failure::bad_input(format!("failed to write `{}`: {error}", path.display())))?;
    }
    if output.is_json() {
        output.json(&MigrateReport::from(migration))?;
    } else {
        output.text(&migration.yaml)?;
        print_notes(&migration, args, output);
    }
    Ok(Exit::Done)
}

fn print_notes(migration: &Migration, args: &MigrateArgs, output: &mut Output) {
    for warning in &migration.warnings {
        output.warning(&warning.text);
    }
    if migration.navicert_config.is_some() && args.write_navicert_config.is_none() {
        output.note(
            "note: use --write-navicert-config FILE to keep the list of signature algorithms for navicert",
        );
    }
    let obsolete = migration.obsolete.join(" ");
    output
        .note(&format!("note: remove {obsolete} and add --authentication-config with the path of this file"));
}

fn flags(args: &MigrateArgs) -> Result<OidcFlags, Failure> {
    let Some(path) = &args.file else { return Ok(OidcFlags::from_words(args.flags.iter().cloned())) };
    let text = if path == Path::new("-") {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        fs::read_to_string(path)
    };
    let name = path.display();
    let text = text.map_err(|error| Failure::bad_input(format!("failed to read `{name}`: {error}")))?;
    let (form, flags) =
        find_flags(&text).map_err(|error| Failure::bad_input(format!("`{name}`: {error}")))?;
    if flags.given.is_empty() {
        return Err(Failure::bad_input(format!("`{name}` ({form}): {}", MigrateError::NoFlags)));
    }
    Ok(flags)
}

fn certificate_authority(args: &MigrateArgs, flags: &OidcFlags) -> Result<Option<String>, Failure> {
    let named = flags.value("oidc-ca-file");
    if named.is_empty() {
        return Ok(None);
    }
    let path = args.ca_file.as_deref().unwrap_or(Path::new(named));
    fs::read_to_string(path).map(Some).map_err(|error| {
        let path = path.display();
        Failure::bad_input(format!(
            "failed to read `{path}` (--oidc-ca-file): {error}; use --ca-file to read a local copy"
        ))
    })
}
