//! Any text as an expression: never panics, and a parsed expression round-trips.

#![no_main]

use libfuzzer_sys::fuzz_target;
use navicert_cel::kubernetes::claims_environment;
use navicert_cel::syntax::unparse::unparse;

fuzz_target!(|text: &str| {
    let environment = claims_environment();
    match environment.parse(text) {
        Err(error) => {
            assert!(!error.diagnostics.is_empty());
            let _ = error.to_string();
        }
        Ok(tree) => {
            let written = unparse(&tree);
            // Parentheses that keep the meaning may add to the depth of an expression at the limit.
            if let Ok(again) = environment.parse(&written) {
                assert_eq!(unparse(&again), written, "{text}");
            } else {
                assert!(written.len() > 200, "{text} -> {written}");
            }
        }
    }
});
