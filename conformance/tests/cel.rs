//! The expression engine agrees with every recorded decision, or the reason why not is in `skips.toml`.

use navicert_conformance::report::Report;
use navicert_conformance::{authn, cel_lines, generated, shared, suite};
use std::path::Path;

fn holds(run: impl Fn(&Path) -> Report, at_least: usize) {
    let Some(folder) = shared::folder() else { return };
    let report = run(&folder);
    assert!(report.failed.is_empty(), "{report}");
    assert!(report.passed >= at_least, "only {} cases were found", report.passed);
}

#[test]
fn the_standard_environment_passes_the_language_suite() {
    holds(suite::standard, 1717);
}

#[test]
fn the_kubernetes_environment_gives_the_recorded_value_phase_type_and_cost() {
    holds(suite::kubernetes, 1742);
}

// S61–S96
#[test]
fn authentication_rules_give_the_recorded_value_type_and_cost() {
    holds(authn::run, 66);
}

#[test]
fn generated_expressions_give_the_recorded_value_phase_type_and_cost() {
    holds(generated::run, 3625);
}

// S61–S96
#[test]
fn every_line_of_cel_jsonl_agrees() {
    holds(cel_lines::run, 1173);
}
