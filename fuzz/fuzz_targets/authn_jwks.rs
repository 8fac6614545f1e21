//! Any bytes as a key set that verifies a token.

#![no_main]

use libfuzzer_sys::fuzz_target;
use navicert_authn::jwks::KeySet;
use navicert_authn::{AuthnProfile, batch};
use serde_json::json;

const CONFIG: &str = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt: [{issuer: {url: https://i, audiences: [a]}, claimMappings: {username: {claim: sub, prefix: ''}}}]\n";
/// `{"alg":"RS256"}.{"iss":"https://i","aud":"a","exp":2000000000,"sub":"u"}`
const TOKEN: &str =
    "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJodHRwczovL2kiLCJhdWQiOiJhIiwiZXhwIjoyMDAwMDAwMDAwLCJzdWIiOiJ1In0.AAAA";

fuzz_target!(|bytes: &[u8]| {
    let kube = KeySet::parse(bytes, &AuthnProfile::KUBE);
    let hardened = KeySet::parse(bytes, &AuthnProfile::HARDENED);
    if let (Ok(kube), Ok(hardened)) = (&kube, &hardened) {
        // H21 only removes keys.
        assert!(hardened.keys().len() <= kube.keys().len());
    }
    let text = String::from_utf8_lossy(bytes);
    for profile in [AuthnProfile::KUBE, AuthnProfile::HARDENED] {
        let line = json!({"config": CONFIG, "jwks": text, "token": TOKEN, "now": 1_900_000_000});
        assert_ne!(batch::eval(&line, &profile)["outcome"], "authenticated");
    }
});
