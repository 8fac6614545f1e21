//! `navicert authn test SUITE…`: runs unit tests of an authentication configuration and reports untested rules.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use navicert_authn::config::load_excluding_issuers;
use navicert_authn::report::{SuiteResult, TestReport};
use navicert_authn::suite::Suite;
use navicert_types::authentication_test::{AuthenticationTest, TestInput, TestProfile};
use serde_json::Value;

use super::eval;
use super::settings::{AuthnSettings, bytes, key_sets, report_diagnostics};
use crate::args;
use crate::args::authn::{SettingsArgs, TestArgs};
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Runs the suites. Exit codes: 0 all cases pass, 1 a case fails, 3 invalid input file.
pub(super) fn run(args: &TestArgs, output: &mut Output) -> Result<Exit, Failure> {
    let mut results = Vec::new();
    for path in &args.suites {
        let suite = read(path, &args.settings, None, output)?;
        let name = path.display().to_string();
        let report = suite.run().map_err(|error| Failure::bad_input(format!("{name}: {error}")))?;
        let result = SuiteResult::new(name, report);
        if !output.is_json() {
            output.report(&result)?;
        }
        results.push(result);
    }
    let report = TestReport::new(results, args.require_coverage);
    if output.is_json() {
        output.json(&report)?;
    }
    Ok(if report.passes { Exit::Done } else { Exit::No })
}

/// Reads a suite and the files it references; `configuration` replaces the one that it names.
pub(super) fn read(
    path: &Path,
    settings: &SettingsArgs,
    configuration: Option<&Path>,
    output: &mut Output,
) -> Result<Suite, Failure> {
    let name = path.display().to_string();
    let text = bytes(path)?;
    let test =
        AuthenticationTest::parse(&text).map_err(|wrong| report_diagnostics(&wrong, &name, &text, output))?;
    let beside = |file: &str| path.parent().unwrap_or(Path::new("")).join(file);
    let otherwise = match test.profile.unwrap_or_default() {
        TestProfile::Kube => args::Profile::Kube,
        TestProfile::Hardened => args::Profile::Hardened,
    };
    let AuthnSettings { profile, navicert_config, .. } =
        AuthnSettings::read_with_default(settings, otherwise, output)?;
    let configuration = configuration.map_or_else(|| beside(&test.configuration), Path::to_owned);
    let text = bytes(&configuration)?;
    let loaded =
        load_excluding_issuers(&text, &profile, &navicert_config.disallowed_issuers).map_err(|error| {
            let file = configuration.display();
            Failure::bad_input(format!(
                "invalid configuration `{file}` (run `navicert authn check {file}` for details): {error}"
            ))
        })?;
    let jwks = if test.jwks.is_empty() { Value::Null } else { key_sets(&beside(&test.jwks))? };
    let tokens = tokens(&test, beside)?;
    Ok(Suite { test, configuration: loaded.configuration, jwks, tokens, navicert_config, profile })
}

fn tokens(
    test: &AuthenticationTest,
    beside: impl Fn(&str) -> PathBuf,
) -> Result<HashMap<String, String>, Failure> {
    let mut tokens = HashMap::new();
    for case in &test.cases {
        if let TestInput::TokenFile(file) = &case.input {
            tokens.insert(file.clone(), eval::token(Some(&beside(file)))?.expose().clone());
        }
    }
    Ok(tokens)
}
