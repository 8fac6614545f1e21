//! Signatures made by another library (pyca/cryptography), with parameters that kube-apiserver accepts and `hardened` rejects.

#![expect(clippy::string_slice, clippy::unwrap_used, reason = "a test's helpers fail by panicking")]

use navicert_authn::{AuthnProfile, Hardening, batch};
use serde_json::{Value, json};

const CONFIG: &str = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n\
    jwt: [{issuer: {url: https://issuer.example.com, audiences: [kube]}, \
    claimMappings: {username: {claim: sub, prefix: ''}}}]\n";

fn rare() -> Value {
    serde_json::from_str(include_str!("data/rare-signatures.json")).unwrap()
}

fn outcome(token: &Value, jwks: &Value, profile: &AuthnProfile) -> Value {
    let request = json!({"config": CONFIG, "jwks": jwks, "token": token, "now": 1_800_000_000});
    batch::eval(&request, profile)
}

// S118, H11, A4, A5, A6, A7, JV13, JV14, JV15
#[test]
fn legacy_signatures_verify_in_kube_only() {
    let rare = rare();
    let tokens = rare["tokens"].as_array().unwrap();
    assert!(tokens.len() > 40);
    for token in tokens {
        for (profile, word) in [(AuthnProfile::KUBE, "kube"), (AuthnProfile::HARDENED, "hardened")] {
            let answer = outcome(&token["token"], &rare["jwks"], &profile);
            let accepted = answer["outcome"] == "authenticated";
            assert_eq!(accepted, token[word] == true, "{} in {word}: {answer}", token["name"]);
        }
    }
}

// H11 is one switch.
#[test]
fn hardened_without_h11_accepts_legacy_signatures() {
    let rare = rare();
    let profile = AuthnProfile::HARDENED.with(Hardening::KeyStrength, false);
    for token in rare["tokens"].as_array().unwrap() {
        let accepted = outcome(&token["token"], &rare["jwks"], &profile)["outcome"] == "authenticated";
        assert_eq!(accepted, token["kube"] == true, "{}", token["name"]);
    }
}

// A30, TV34: a signature of another length, a changed bit, a changed message.
#[test]
fn modified_token_never_verifies() {
    let rare = rare();
    for token in rare["tokens"].as_array().unwrap().iter().filter(|token| token["kube"] == true) {
        let text = token["token"].as_str().unwrap();
        let (signed, signature) = text.rsplit_once('.').unwrap();
        let mut flipped = signature.to_owned();
        let first = if signature.starts_with('A') { "B" } else { "A" };
        flipped.replace_range(8..9, if &flipped[8..9] == first { "C" } else { first });
        for changed in [
            format!("{signed}."),
            format!("{signed}.{flipped}"),
            format!("{signed}.{signature}AAAA"),
            format!("{signed}.{}", &signature[4..]),
        ] {
            let answer = outcome(&json!(changed), &rare["jwks"], &AuthnProfile::KUBE);
            assert_eq!(answer["class"], "signature", "{}: {answer}", token["name"]);
        }
    }
}
