//! Tokens of other implementations: PyJWT, joserfc and José (Debian's `jose`), with every algorithm that each supports.
//! `scripts/install-tools` installs them; a missing one is reported as skipped.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test's helpers fail by panicking")]

use std::path::PathBuf;

use navicert_authn::{AuthnProfile, batch};
use navicert_testkit::Program;
use navicert_testkit::cli::tools;
use serde_json::{Value, json};

const CONFIG: &str = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n\
    jwt: [{issuer: {url: https://issuer.example.com, audiences: [kube]}, \
    claimMappings: {username: {claim: sub, prefix: ''}}}]\n";

/// Checks one token in both profiles, and again with a changed letter.
fn check_token(what: &str, token: &str, jwks: &Value) {
    for profile in [AuthnProfile::KUBE, AuthnProfile::HARDENED] {
        let request = json!({"config": CONFIG, "jwks": jwks, "token": token, "now": 1_800_000_000});
        let answer = batch::eval(&request, &profile);
        assert_eq!(answer["user"]["username"], "ann", "{what}: {answer}");
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let letter = if signature.starts_with('A') { 'B' } else { 'A' };
        let changed = format!("{signed}.{letter}{}", signature.chars().skip(1).collect::<String>());
        let request = json!({"config": CONFIG, "jwks": jwks, "token": changed, "now": 1_800_000_000});
        assert_eq!(batch::eval(&request, &profile)["outcome"], "rejected", "{what}");
    }
}

// S59, S60
#[test]
fn tokens_of_pyjwt_and_joserfc_verify() {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let Some(python) = tools::unpacked("pyjwt", "jwt/bin/python") else { return };
    let outcome = Program::new(python).arguments([here.join("tests/data/tokens.py")]).run().unwrap();
    assert_eq!(outcome.code(), Some(0), "{}", String::from_utf8_lossy(&outcome.stderr));
    let made: Value = serde_json::from_slice(&outcome.stdout).unwrap();
    for library in ["PyJWT", "joserfc"] {
        let tokens = made[library]["tokens"].as_object().unwrap();
        assert_eq!(tokens.len(), 9, "{library} has all nine algorithms");
        for (algorithm, token) in tokens {
            check_token(&format!("{library} {algorithm}"), token.as_str().unwrap(), &made[library]["jwks"]);
        }
    }
}

// S59, S60
#[test]
fn tokens_of_jose_verify() {
    let Some(program) = tools::installed("jose", "jose") else { return };
    let jose = |arguments: &[&str], stdin: &str| {
        let outcome = Program::new(&program).arguments(arguments).stdin(stdin).run().unwrap();
        assert_eq!(outcome.code(), Some(0), "{arguments:?}: {}", String::from_utf8_lossy(&outcome.stderr));
        String::from_utf8(outcome.stdout).expect("text")
    };
    let dir = tempfile::tempdir().unwrap();
    let claims =
        json!({"iss": "https://issuer.example.com", "aud": "kube", "sub": "ann", "exp": 1_900_000_000});
    for algorithm in ["ES256", "ES384", "ES512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512"] {
        let key = jose(&["jwk", "gen", "-i", &json!({"alg": algorithm, "kid": "k"}).to_string()], "");
        let private = dir.path().join(algorithm);
        std::fs::write(&private, &key).unwrap();
        let public: Value = serde_json::from_str(&jose(&["jwk", "pub", "-i", "-"], &key)).unwrap();
        let header = json!({"protected": {"alg": algorithm, "kid": "k"}}).to_string();
        let private = private.to_str().unwrap();
        let token = jose(
            &["jws", "sig", "-I", "-", "-k", private, "-s", &header, "-c", "-o", "-"],
            &claims.to_string(),
        );
        check_token(&format!("jose {algorithm}"), token.trim(), &json!({"keys": [public]}));
    }
}
