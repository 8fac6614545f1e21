//! The expression engine agrees with every recorded decision, or the reason why not is in `skips.toml`.

use navicert_conformance::report::Report;
use navicert_conformance::{authn, cel_lines, generated, suite};
use navicert_testkit::k8s::vectors;
use navicert_testkit::report;

/// The minor versions of Kubernetes whose answers are recorded.
const VERSIONS: std::ops::RangeInclusive<u16> = 34..=38;

fn holds(suite: &str, outcome: &Report, at_least: usize) {
    assert!(outcome.failed.is_empty(), "{outcome}");
    assert!(outcome.passed >= at_least, "{suite}: only {} cases were found", outcome.passed);
    report::checked(suite, outcome.passed);
}

#[test]
fn the_standard_environment_passes_the_language_suite() {
    let Some(dir) = vectors::published_cel_suite() else { return };
    holds("cel-conformance", &suite::standard(&dir), 1717);
}

#[test]
fn the_kubernetes_environment_gives_the_recorded_value_phase_type_and_cost() {
    let Some(dir) = vectors::published_cel_suite() else { return };
    holds("cel-conformance-k8s", &suite::kubernetes(&dir), 1742);
}

// S61–S96
#[test]
fn authentication_rules_give_the_recorded_value_type_and_cost() {
    for minor in VERSIONS {
        holds(&format!("authn-1.{minor}"), &authn::run(minor), 66);
    }
}

#[test]
fn generated_expressions_give_the_recorded_value_phase_type_and_cost() {
    for minor in VERSIONS {
        // Two questions about huge lists cannot be answered by the code of older versions, which have no limit.
        let asked = if minor < 37 { 3623 } else { 3625 };
        holds(&format!("generated-1.{minor}"), &generated::run(minor), asked);
    }
}

// S61–S96
#[test]
fn every_line_of_cel_jsonl_agrees() {
    for minor in VERSIONS {
        holds(&format!("cel (1.{minor}, library)"), &cel_lines::run(minor), 1176);
    }
}
