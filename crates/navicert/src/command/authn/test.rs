//! `navicert authn test SUITE…`: runs unit tests of an authentication configuration and reports untested rules.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use navicert_authn::config::load_excluding_issuers;
use navicert_authn::suite::{CaseReport, Suite, SuiteReport};
use navicert_types::authentication_test::{AuthenticationTest, TestInput, TestProfile};
use navicert_types::redact::terminal;
use serde_json::{Value, json};

use super::eval;
use super::settings::{AuthnSettings, bytes, key_sets, report_diagnostics};
use super::verdict;
use crate::args;
use crate::args::authn::TestArgs;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Runs the suites. Exit codes: 0 all cases pass, 1 a case fails, 3 invalid input file.
pub(super) fn run(args: &TestArgs, output: &mut Output) -> Result<Exit, Failure> {
    let mut passes = true;
    let mut results = Vec::new();
    for path in &args.suites {
        let suite = read(path, args, output)?;
        let name = path.display().to_string();
        let report = suite.run().map_err(|error| Failure::bad_input(format!("{name}: {error}")))?;
        let has_gaps = report.coverage.as_ref().is_some_and(|coverage| !coverage.gaps.is_empty());
        passes &= report.passes() && !(args.require_coverage && has_gaps);
        if output.is_json() {
            results.push(as_json(&name, &report));
        } else {
            output.text(&as_text(&name, &report))?;
        }
    }
    if output.is_json() {
        output.json(&json!({"passes": passes, "suites": results}))?;
    }
    Ok(if passes { Exit::Done } else { Exit::No })
}

fn as_text(name: &str, report: &SuiteReport) -> String {
    let mut text: String = report.cases.iter().map(case).collect();
    let failed = report.cases.iter().filter(|case| !case.differences.is_empty()).count();
    let count = report.cases.len();
    let mut verdict = format!("{name}: {}", counted(count, "case"));
    verdict += &if failed == 0 { ", all pass".to_owned() } else { format!(", {failed} failed") };
    match &report.coverage {
        None => verdict += "; coverage is only measured if all cases pass\n",
        Some(coverage) if coverage.gaps.is_empty() => {
            verdict += &format!("; {} covered\n", counted(coverage.covered, "rule and mapping"));
        }
        Some(coverage) => {
            verdict += &format!("; {} not covered by any case:\n", coverage.gaps.len());
            for gap in &coverage.gaps {
                verdict += &format!("  {}: {}\n", gap.path, gap.missing);
            }
        }
    }
    text += &verdict;
    text
}

fn counted(count: usize, what: &str) -> String {
    let what = if count == 1 {
        what.to_owned()
    } else {
        what.split(' ')
            .map(|word| if word == "and" { word.to_owned() } else { format!("{word}s") })
            .collect::<Vec<_>>()
            .join(" ")
    };
    format!("{count} {what}")
}

fn case(case: &CaseReport) -> String {
    let name = terminal(&case.name);
    if case.differences.is_empty() {
        return format!("{}  {name}\n", verdict::pass());
    }
    let mut text = format!("{}  {name}\n", verdict::fail());
    for difference in &case.differences {
        let blank = " ".repeat(difference.field.chars().count());
        text +=
            &format!("      {}  expected  {}\n", terminal(&difference.field), terminal(&difference.expected));
        text += &format!("      {blank}  got       {}\n", terminal(&difference.got));
    }
    text
}

fn as_json(name: &str, report: &SuiteReport) -> Value {
    let cases = report.cases.iter().map(|case| {
        let differences = case.differences.iter().map(
            |difference| json!({"field": difference.field, "expected": difference.expected, "got": difference.got}),
        );
        json!({
            "name": case.name,
            "passes": case.differences.is_empty(),
            "differences": differences.collect::<Vec<_>>(),
        })
    });
    let coverage = report.coverage.as_ref().map(|coverage| {
        let gaps =
            coverage.gaps.iter().map(|gap| json!({"path": gap.path.to_string(), "missing": gap.missing}));
        json!({"covered": coverage.covered, "gaps": gaps.collect::<Vec<_>>()})
    });
    json!({"suite": name, "passes": report.passes(), "cases": cases.collect::<Vec<_>>(), "coverage": coverage})
}

/// Reads a suite and the files it references.
fn read(path: &Path, args: &TestArgs, output: &mut Output) -> Result<Suite, Failure> {
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
        AuthnSettings::read_with_default(&args.settings, otherwise, output)?;
    let configuration = beside(&test.configuration);
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
