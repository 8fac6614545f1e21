//! Any bytes as a plugin's output: never a panic, and an answer survives being written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use navicert_client::exec::response;
use navicert_types::exec_credential::{Version, decode};

fuzz_target!(|bytes: &[u8]| {
    for version in Version::ALL {
        if let Err(error) = response::read(bytes, *version) {
            let _ = (error.to_string(), format!("{error:?}"));
        }
    }
    if let Ok((version, credential)) = decode(bytes) {
        let _ = format!("{credential:?}");
        let question = credential.question(version);
        let (_, back) = decode(question.expose().as_bytes()).expect("what was written reads");
        assert!(back.question(version) == question);
        if let Some(status) = &credential.status {
            let (_, back) = decode(credential.answer(version).expose().as_bytes()).expect("what was written reads");
            assert!(back.status.expect("a status").token == status.token);
        }
    }
});
