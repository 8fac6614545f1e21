//! Certificates that Go's verifier accepts and refuses, as recorded.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test's helpers fail by panicking")]

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use navicert_testkit::k8s::vectors::{self, Vector};
use navicert_tls::{RootProblem, ServerVerifier, TrustedRoots};
use rustls::crypto::aws_lc_rs;
use rustls::{CertificateError, OtherError};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use serde_json::Value;

// C185 to C187
#[test]
fn accepts_and_refuses_what_go_does() {
    let (strict, usual) = recorded();
    vectors::check("tls-verify (library)", &usual, |vector| {
        let (ours, theirs) = (verify(&vector.input), vector.expect["ok"] == true);
        if ours.is_ok() == theirs { Ok(()) } else { Err(format!("{ours:?}, Go accepts: {theirs}")) }
    });
    // C188
    vectors::check("tls-verify-stricter (library)", &strict, |vector| {
        assert_eq!(vector.expect["ok"], true, "{} is stricter than nothing", vector.id);
        if verify(&vector.input).is_err() { Ok(()) } else { Err("accepted".to_owned()) }
    });
}

// C187
#[test]
fn expired_root_is_told_apart_from_an_expired_server() {
    let error = |note: &str| {
        let vectors = vectors::vectors("tls-verify.jsonl");
        verify(&vectors.iter().find(|vector| vector.note == note).unwrap().input).unwrap_err()
    };
    for (note, expected) in
        [("root expired", RootProblem::Expired), ("root not yet valid", RootProblem::NotValidYet)]
    {
        let CertificateError::Other(OtherError(problem)) = error(note) else {
            panic!("{note}: {:?}", error(note))
        };
        assert_eq!(problem.downcast_ref(), Some(&expected), "{note}");
    }
    for note in ["expired", "intermediate expired", "self-signed and trusted itself, expired"] {
        assert!(matches!(error(note), CertificateError::ExpiredContext { .. }), "{note}: {:?}", error(note));
    }
}

/// The lines on which navicert is stricter on purpose, and the others.
fn recorded() -> (Vec<Vector>, Vec<Vector>) {
    let stricter: Vec<Value> = vectors::lines("tls-verify.jsonl")
        .into_iter()
        .filter(|line| line["stricter"] == true)
        .map(|line| line["id"].clone())
        .collect();
    let is_stricter = |vector: &Vector| stricter.iter().any(|id| *id == vector.id);
    vectors::vectors("tls-verify.jsonl").into_iter().partition(is_stricter)
}

fn verify(input: &Value) -> Result<(), CertificateError> {
    let certificates = |member: &str| -> Vec<CertificateDer<'static>> {
        let list = input[member].as_array().unwrap().iter();
        list.map(|text| STANDARD.decode(text.as_str().unwrap()).unwrap().into()).collect()
    };
    let chain = certificates("chain");
    let (certificate, intermediates) = chain.split_first().unwrap();
    let roots = Arc::new(TrustedRoots::from_iter(certificates("roots")));
    let name = ServerName::try_from(input["name"].as_str().unwrap()).unwrap();
    let now = UnixTime::since_unix_epoch(Duration::from_secs(input["now"].as_u64().unwrap()));
    ServerVerifier::new(roots, &aws_lc_rs::default_provider()).verify(certificate, intermediates, &name, now)
}
