//! Plugins that break one rule each.

use std::sync::Arc;

use navicert_plugin::{Environment, Script, ScriptedRunner};
use navicert_types::clock::ManualClock;

use super::*;
use crate::exec::interactive::FixedTerminal;

const V1: ConformanceCase = ConformanceCase { version: ExecVersion::V1, cluster: false, terminal: false };

fn client_context(script: Script) -> ClientContext {
    ClientContext {
        clock: Arc::new(ManualClock::at(1_900_000_000)),
        runner: Arc::new(ScriptedRunner::new([script])),
        terminal: Arc::new(FixedTerminal::default()),
        ..ClientContext::new(Environment::empty())
    }
}

fn broken(script: Script) -> Vec<&'static str> {
    let subject = PluginUnderTest::new("/bin/sh", Vec::new(), Duration::from_secs(10));
    subject.run(V1, &client_context(script)).iter().map(|finding| finding.rule.name()).collect()
}

fn json(rest: &str) -> Script {
    Script::prints(format!(
        "{{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\"{rest}}}"
    ))
}

fn status(fields: &str) -> Script {
    json(&format!(",\"status\":{{{fields}}}"))
}

// C607
#[test]
fn every_violation_is_reported_with_its_rule() {
    let rows = [
        (Script::never_ends(), "ends-in-time"),
        (Script::prints(vec![b' '; 2 << 20]), "fits-the-limit"),
        (Script::exits(1), "exits-zero"),
        (Script::dies_by(9), "exits-zero"),
        (Script::prints("logging in\n{}"), "one-document"),
        (Script::prints("{} {}"), "one-document"),
        (Script::prints(""), "has-version"),
        (Script::prints("{\"apiVersion\":\"client.authentication.k8s.io/v1alpha9\"}"), "known-version"),
        (Script::prints("{\"apiVersion\":\"client.authentication.k8s.io/v1beta1\"}"), "asked-version"),
        (status("\"token\":5"), "field-types"),
        (status("\"token\":\"t\",\"expirationTimestamp\":\"tomorrow\""), "field-types"),
        (json(""), "has-status"),
        (status(""), "has-credential"),
        (status("\"clientKeyData\":\"k\""), "whole-pair"),
        (status("\"clientCertificateData\":\"c\",\"clientKeyData\":\"k\""), "pair-matches"),
        (status("\"token\":\"t\\n\""), "token-fits-header"),
        (status("\"token\":\"t\",\"expirationTimestamp\":\"1999-01-01T00:00:00Z\""), "not-expired"),
        (status("\"token\":\"t0ken\"").stderr("got t0ken"), "keeps-secrets"),
        (
            Script::prints(
                "apiVersion: client.authentication.k8s.io/v1\nkind: ExecCredential\nstatus: {token: t}",
            ),
            "prints-json",
        ),
        (
            Script::prints(
                "{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"status\":{\"token\":\"t\"}}",
            ),
            "names-its-kind",
        ),
    ];
    for (script, rule) in rows {
        assert_eq!(broken(script.clone()), [rule], "{script:?}");
    }
    assert!(broken(status("\"token\":\"t\"")).is_empty());
    let missing = PluginUnderTest::new("no-such-plugin", Vec::new(), Duration::from_secs(1));
    assert_eq!(missing.run(V1, &client_context(Script::exits(0)))[0].rule, PluginRule::Starts);
}

// C607
#[test]
fn every_version_is_run_with_and_without_cluster_and_terminal() {
    let cases = ConformanceCase::all(None);
    assert_eq!(cases.iter().filter(|case| case.version == ExecVersion::V1).count(), 4);
    assert_eq!(cases.iter().filter(|case| case.version == ExecVersion::V1Beta1).count(), 4);
    assert_eq!(ConformanceCase::all(Some(ExecVersion::V1)).len(), 4);
    assert_eq!(cases[1].to_string(), "v1, with cluster info, without a terminal");
}

// C607, C195
#[test]
fn violations_never_contain_plugin_output() {
    for script in [
        Script::prints("c4nary"),
        status("\"token\":\"c4nary\\n\""),
        Script::exits(1).stdout("c4nary").stderr("c4nary"),
    ] {
        let subject = PluginUnderTest::new("/bin/sh", Vec::new(), Duration::from_secs(10));
        let findings = subject.run(V1, &client_context(script));
        assert!(!findings.is_empty() && !format!("{findings:?}").contains("c4nary"), "{findings:?}");
    }
}

#[test]
fn rule_names_are_unique() {
    let mut names: Vec<&str> = PluginRule::ALL.iter().map(|rule| rule.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), PluginRule::ALL.len());
}

#[test]
fn documentation_lists_every_rule_with_its_requirement() {
    let page = include_str!("../../../../../docs/exec-plugins.md");
    let (_, table) = page.split_once("| rule | requirement |\n| --- | --- |\n").unwrap();
    let documented: Vec<&str> = table.lines().take_while(|line| line.starts_with('|')).collect();
    let expected: Vec<String> = PluginRule::ALL
        .iter()
        .map(|rule| {
            let advice = if rule.is_advice() { "advice: " } else { "" };
            format!("| {} | {advice}{} |", rule.name(), rule.requirement())
        })
        .collect();
    assert_eq!(documented, expected);
}
