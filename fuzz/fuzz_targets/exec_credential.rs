//! Any bytes as plugin output: never panics, and a response round-trips.
#![no_main]

use libfuzzer_sys::fuzz_target;
use navicert_client::exec::response;
use navicert_types::exec_credential::{ExecVersion, decode};

fuzz_target!(|bytes: &[u8]| {
    for version in ExecVersion::ALL {
        if let Err(error) = response::read(bytes, *version) {
            let _ = (error.to_string(), format!("{error:?}"));
        }
    }
    if let Ok((version, credential)) = decode(bytes) {
        let _ = format!("{credential:?}");
        let request = credential.to_request_json(version);
        let (_, back) = decode(request.expose().as_bytes()).expect("encoded credential decodes");
        assert!(back.to_request_json(version) == request);
        if let Some(status) = &credential.status {
            let (_, back) = decode(credential.to_response_json(version).expose().as_bytes())
                .expect("encoded credential decodes");
            assert!(back.status.expect("a status").token == status.token);
        }
    }
});
