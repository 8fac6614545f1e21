//! Any bytes as the payload of a token with a valid signature.

#![no_main]

mod stage;

use libfuzzer_sys::fuzz_target;

const HEADER: &str = r#"{"alg":"ES256","kid":"k"}"#;

fuzz_target!(|bytes: &[u8]| stage::judge(HEADER.as_bytes(), bytes));
