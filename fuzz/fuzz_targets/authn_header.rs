//! Any bytes as the JOSE header of a token with a valid signature.

#![no_main]

mod stage;

use libfuzzer_sys::fuzz_target;

const PAYLOAD: &str = r#"{"iss":"https://i","aud":"a","exp":2000000000,"sub":"u"}"#;

fuzz_target!(|bytes: &[u8]| stage::judge(bytes, PAYLOAD.as_bytes()));
