//! Prints how far the expression engine agrees with each set of recorded decisions, and every difference.

#![expect(clippy::print_stdout, reason = "a report for the person who runs it")]

use navicert_conformance::{authn, cel_lines, generated, shared, suite};

fn main() {
    let Some(folder) = shared::folder() else { return };
    for (name, report) in [
        ("standard", suite::standard(&folder)),
        ("kubernetes", suite::kubernetes(&folder)),
        ("authn", authn::run(&folder)),
        ("generated", generated::run(&folder)),
        ("cel.jsonl", cel_lines::run(&folder)),
    ] {
        println!("== {name}\n{report}");
    }
}
