//! Prints how far the expression engine agrees with each set of recorded decisions, and every difference.

#![expect(clippy::print_stdout, reason = "a report for the person who runs it")]

use navicert_conformance::report::Report;
use navicert_conformance::{authn, cel_lines, generated, suite};
use navicert_testkit::k8s::vectors;

fn main() {
    if let Some(dir) = vectors::published_cel_suite() {
        print("cel-conformance", &suite::standard(&dir));
        print("cel-conformance-k8s", &suite::kubernetes(&dir));
    }
    print("authn-1.37", &authn::run(37));
    print("generated-1.37", &generated::run(37));
    print("cel", &cel_lines::run(37));
}

fn print(name: &str, report: &Report) {
    println!("== {name}\n{report}");
}
