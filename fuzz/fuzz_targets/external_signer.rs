//! Any bytes as a message of the external signer protocol, both versions, both directions: never panics, and
//! decoded messages round-trip.

#![no_main]

use libfuzzer_sys::fuzz_target;
use navicert_types::external_signer::{v1, v1alpha1};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(request) = v1alpha1::Request::from_json(bytes) {
        assert_eq!(v1alpha1::Request::from_json(request.to_json().as_bytes()).as_ref(), Ok(&request));
    }
    if let Ok(request) = v1::Request::from_json(bytes) {
        assert_eq!(v1::Request::from_json(request.to_json().as_bytes()).as_ref(), Ok(&request));
    }
    if let Ok(message) = v1::Message::from_json(bytes) {
        assert_eq!(v1::Message::from_json(message.to_json().as_bytes()).as_ref(), Ok(&message));
    }
    for kinds in [v1alpha1::Kinds::Kep, v1alpha1::Kinds::Prototype] {
        let _ = (v1alpha1::read_certificate(bytes, kinds), v1alpha1::read_signature(bytes, kinds));
    }
});
