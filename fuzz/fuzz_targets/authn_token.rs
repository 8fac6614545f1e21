//! Any text as a token: authenticated, explained and logged like kube-apiserver, in both profiles.

#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use navicert_authn::explain::{UpstreamDecision, explain, upstream_decision};
use navicert_authn::{Authenticators, AuthnOutcome, AuthnProfile, AuthnRequest, batch};
use navicert_types::Timestamp;
use serde_json::json;

const CONFIG: &str = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt: [{issuer: {url: https://i, audiences: [a]}, claimMappings: {username: {claim: sub, prefix: ''}}}]\n";

fn authenticators() -> &'static [Authenticators; 2] {
    static READY: OnceLock<[Authenticators; 2]> = OnceLock::new();
    READY.get_or_init(|| {
        let line = json!({"config": CONFIG, "jwks": {"keys": []}});
        [AuthnProfile::KUBE, AuthnProfile::HARDENED]
            .map(|profile| batch::authenticators(&line, &profile).expect("the configuration is valid"))
    })
}

fuzz_target!(|text: &str| {
    let request = AuthnRequest::new(text, Timestamp::from_second(1_900_000_000).expect("a time"));
    let [kube, hardened] = authenticators();
    for authenticators in [kube, hardened] {
        let explanation = explain(authenticators, &request);
        assert!(!matches!(explanation.outcome, AuthnOutcome::Authenticated(_)));
    }
    match upstream_decision(kube, &request, |_| None) {
        UpstreamDecision::Rejects(line) => _ = line.map(|line| (line.shown(), line.masked())),
        other => panic!("no key, no user: {other:?}"),
    }
});
