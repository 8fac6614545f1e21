//! `navicert authn diff`: what changes between two configurations or two Kubernetes versions.

use std::fs;
use std::path::Path;

use navicert_authn::diff::{self, DEFAULT_NOW, DiffError, DiffSide};
use navicert_authn::report::Replay;
use navicert_types::Timestamp;

use super::settings::{AuthnSettings, bytes, key_sets};
use super::{eval, test};
use crate::args;
use crate::args::authn::DiffArgs;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Compares both sides. Exit codes: 0 no difference found, 1 something changes, 3 invalid input file.
pub(super) fn run(args: &DiffArgs, output: &mut Output) -> Result<Exit, Failure> {
    let settings = AuthnSettings::read_with_default(&args.settings, args::Profile::Kube, output)?;
    let new = args.new.as_deref().unwrap_or(&args.file);
    let (names, texts) = ([name(&args.file), name(new)], [bytes(&args.file)?, bytes(new)?]);
    let [from_name, to_name] = &names;
    let [from_text, to_text] = &texts;
    let side = |file, config, version: Option<navicert_authn::KubeVersion>| DiffSide {
        file,
        config,
        profile: settings.profile.with_version(version.unwrap_or(settings.profile.version)),
        navicert_config: &settings.navicert_config,
    };
    let (from, to) = (side(from_name, from_text, args.from), side(to_name, to_text, args.to));
    let now = Timestamp::from_second(DEFAULT_NOW).unwrap_or_default();
    let mut report = diff::diff(&from, &to, now).map_err(|error| failure(&error))?;
    if report.from.valid && report.to.valid {
        report.replayed = replayed(args, &from, &to, output)?;
        report.changed |= report.replayed.iter().any(|replay| !replay.summary.is_empty());
    }
    output.report(&report)?;
    Ok(if report.changed { Exit::No } else { Exit::Done })
}

/// The cases of the suite and the tokens of the folder, decided on both sides.
fn replayed(
    args: &DiffArgs,
    from: &DiffSide<'_>,
    to: &DiffSide<'_>,
    output: &mut Output,
) -> Result<Vec<Replay>, Failure> {
    let mut all = Vec::new();
    if let Some(path) = &args.suite {
        let suite = test::read(path, &args.settings, Some(&args.file), output)?;
        all.extend(diff::replay_suite(from, to, &suite).map_err(|error| failure(&error))?);
    }
    if let (Some(folder), Some(jwks)) = (&args.tokens, &args.jwks) {
        let tokens = tokens(folder)?;
        let (jwks, now) = (key_sets(jwks)?, eval::now(args.now)?);
        all.extend(diff::replay_tokens(from, to, &tokens, &jwks, now).map_err(|error| failure(&error))?);
    }
    Ok(all)
}

/// The token files of a folder, in the order of their names.
fn tokens(folder: &Path) -> Result<Vec<(String, String)>, Failure> {
    let unreadable =
        |error| Failure::bad_input(format!("failed to read folder `{}`: {error}", folder.display()));
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.is_file() {
            paths.push(path);
        }
    }
    paths.sort();
    let read = |path: &std::path::PathBuf| Ok((name(path), eval::token(Some(path))?.expose().clone()));
    paths.iter().map(read).collect()
}

fn name(path: &Path) -> String {
    path.display().to_string()
}

fn failure(error: &DiffError) -> Failure {
    Failure::bad_input(error.to_string())
}
