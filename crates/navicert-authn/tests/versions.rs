//! Kubernetes versions that decide differently on the same token, and every place that names the version.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use navicert_authn::config::BaseProfile;
use navicert_authn::explain::diagnose;
use navicert_authn::outcome::RefusalClass;
use navicert_authn::report::{DiagnosisText, ExplainReport};
use navicert_authn::{Authenticator, AuthnOutcome, AuthnProfile, AuthnRequest, KubeVersion, batch};
use navicert_testkit::pki::jws::{Algorithm, SigningKey};
use navicert_types::Timestamp;
use navicert_types::clock::ManualClock;
use serde_json::{Value, json};

const NOW: i64 = 1_700_000_000;
const ISSUER: &str = "https://login.example.com";

fn config() -> Value {
    json!({
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",
        "jwt": [{
            "issuer": {"url": ISSUER, "audiences": ["a"]},
            "claimMappings": {"username": {"claim": "sub", "prefix": ""}},
        }],
    })
}

fn claims(more: &Value) -> Value {
    let mut claims = json!({"iss": ISSUER, "aud": "a", "sub": "ann", "exp": NOW + 600});
    claims.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    claims
}

fn line(keys: &Value, token: &str) -> Value {
    json!({"config": config().to_string(), "jwks": {"keys": keys}, "token": token, "now": NOW})
}

/// The class of a refusal, or `authenticated`.
fn decide(line: &Value, profile: &AuthnProfile) -> String {
    let decided = batch::eval(line, profile);
    decided.get("class").unwrap_or(&decided["outcome"]).as_str().unwrap().to_owned()
}

// V1
#[tokio::test]
async fn not_before_of_three_minutes_is_accepted_since_1_38() {
    let key = SigningKey::generate(Algorithm::Es256, "k");
    let token = key.token(&claims(&json!({"nbf": NOW + 180})));
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("keys.json"), json!({"keys": [key.jwk()]}).to_string()).unwrap();
    let own = json!({
        "apiVersion": "navicert/v1alpha1", "kind": "NavicertConfiguration",
        "issuers": [{"url": ISSUER, "jwksFile": "keys.json"}],
    });
    std::fs::write(at("navicert.yaml"), own.to_string()).unwrap();
    let mut own_version = own.clone();
    own_version["kubeVersion"] = json!("1.38");
    std::fs::write(at("navicert-1.38.yaml"), own_version.to_string()).unwrap();
    for (file, version, profile, accepted) in [
        ("navicert.yaml", None, BaseProfile::Kube, false),
        ("navicert.yaml", Some(KubeVersion::V1_34), BaseProfile::Kube, false),
        ("navicert.yaml", Some(KubeVersion::V1_37), BaseProfile::Kube, false),
        ("navicert.yaml", Some(KubeVersion::V1_38), BaseProfile::Kube, true),
        ("navicert-1.38.yaml", None, BaseProfile::Kube, true),
        ("navicert-1.38.yaml", Some(KubeVersion::V1_37), BaseProfile::Kube, false),
        // Hardened times keep the smallest leeway.
        ("navicert.yaml", Some(KubeVersion::V1_38), BaseProfile::Hardened, false),
    ] {
        let builder = Authenticator::builder().config_text(config().to_string()).profile(profile);
        let builder = builder.navicert_config(at(file)).clock(Arc::new(ManualClock::at(NOW)));
        let builder = match version {
            Some(version) => builder.kube_version(version),
            None => builder,
        };
        let outcome = builder.build().unwrap().authenticate(&token).await;
        match outcome {
            AuthnOutcome::Authenticated(_) => assert!(accepted, "{file} {version:?} {profile:?}"),
            AuthnOutcome::Rejected(why) => {
                assert!(!accepted, "{file} {version:?} {profile:?}");
                assert_eq!(why.refusal.class(), RefusalClass::NotYetValid);
                let by = match (profile, version) {
                    (BaseProfile::Hardened, _) => "rule H12",
                    (_, Some(version)) => version.title(),
                    (_, None) => "Kubernetes 1.37",
                };
                let text = why.to_string();
                assert!(text.ends_with(&format!("which {by} does not accept")), "{text}");
            }
            AuthnOutcome::NoOpinion(why) => panic!("{why}"),
        }
    }
}

// V1
#[test]
fn leeway_ends_at_its_last_second() {
    let key = SigningKey::generate(Algorithm::Es256, "k");
    for (ahead, before, since) in [
        (60, "authenticated", "authenticated"),
        (61, "not_yet_valid", "authenticated"),
        (300, "not_yet_valid", "authenticated"),
        (301, "not_yet_valid", "not_yet_valid"),
    ] {
        let line = line(&json!([key.jwk()]), &key.token(&claims(&json!({"nbf": NOW + ahead}))));
        for version in KubeVersion::ALL {
            let expected = if version == KubeVersion::V1_38 { since } else { before };
            assert_eq!(decide(&line, &AuthnProfile::kube(version)), expected, "{version}: +{ahead} s");
        }
    }
}

// V2
#[test]
fn key_of_an_unknown_type_spoils_a_key_set_until_1_37() {
    let key = SigningKey::generate(Algorithm::Es256, "k");
    let line = line(&json!([{"kty": "new"}, key.jwk()]), &key.token(&claims(&json!({}))));
    for version in KubeVersion::ALL {
        let expected = if version == KubeVersion::V1_38 { "authenticated" } else { "not_ready" };
        assert_eq!(decide(&line, &AuthnProfile::kube(version)), expected, "{version}");
        assert_eq!(decide(&line, &AuthnProfile::HARDENED.with_version(version)), "authenticated");
    }
}

/// The explanation of a token under profile `kube`, as text and as JSON.
fn explain(line: &Value, version: KubeVersion) -> (String, Value) {
    let profile = AuthnProfile::kube(version);
    let token = line["token"].as_str().unwrap();
    let request = AuthnRequest::new(token, Timestamp::from_second(NOW).unwrap());
    let authenticators = |profile: &AuthnProfile| batch::authenticators(line, profile);
    let key_set =
        |issuer: &navicert_authn::config::CompiledIssuer| batch::key_set(&line["jwks"], &issuer.url);
    let diagnosis = diagnose(authenticators, &profile, &request, key_set).unwrap();
    let text = DiagnosisText { diagnosis: &diagnosis, show_values: false }.to_string();
    (text, serde_json::to_value(ExplainReport::new(&diagnosis, false)).unwrap())
}

// V1
#[test]
fn explanation_names_the_versions_that_decide_otherwise() {
    let key = SigningKey::generate(Algorithm::Es256, "k");
    let line = line(&json!([key.jwk()]), &key.token(&claims(&json!({"nbf": NOW + 180}))));
    let (text, report) = explain(&line, KubeVersion::V1_37);
    assert!(text.contains("kube-apiserver 1.37 would log: oidc: verify token: oidc: current time"), "{text}");
    assert!(text.contains("Kubernetes 1.38 accepts this token, 1.37 rejects it\n"), "{text}");
    assert_eq!((&report["kubeVersion"], &report["otherKubeVersions"]), (&json!("1.37"), &json!(["1.38"])));
    let (text, report) = explain(&line, KubeVersion::V1_38);
    assert!(text.contains("authenticated as `ann`"), "{text}");
    let line = "Kubernetes 1.38 accepts this token, 1.34, 1.35, 1.36 and 1.37 reject it\n";
    assert!(text.contains(line), "{text}");
    assert_eq!(report["kubeVersion"], "1.38");
}

/// The line that kube-apiserver logs.
fn logged(line: &Value, version: KubeVersion) -> String {
    explain(line, version).1["kubeWouldLog"].as_str().unwrap().to_owned()
}

#[test]
fn log_lines_follow_the_version() {
    let (key, other) =
        (SigningKey::generate(Algorithm::Es256, "k"), SigningKey::generate(Algorithm::Es256, "k"));
    let expired_and_forged = line(&json!([key.jwk()]), &other.token(&claims(&json!({"exp": NOW - 60}))));
    for (version, start) in [
        (KubeVersion::V1_34, "oidc: verify token: oidc: token is expired"),
        (KubeVersion::V1_35, "oidc: verify token: oidc: token is expired"),
        (KubeVersion::V1_36, "oidc: verify token: failed to verify signature"),
        (KubeVersion::V1_38, "oidc: verify token: failed to verify signature"),
    ] {
        let line = logged(&expired_and_forged, version);
        assert!(line.starts_with(start), "{version}: {line}");
    }
    let header = json!({"alg": "HS256", "kid": "k"}).to_string();
    let claims = claims(&json!({})).to_string();
    let algorithm = line(&json!([key.jwk()]), &key.token_of_bytes(header.as_bytes(), claims.as_bytes()));
    for (version, start) in [
        (
            KubeVersion::V1_37,
            "oidc: verify token: oidc: id token signed with unsupported algorithm, expected [",
        ),
        (
            KubeVersion::V1_38,
            "oidc: verify token: oidc: malformed jwt: unexpected signature algorithm \"HS256\"",
        ),
    ] {
        let line = logged(&algorithm, version);
        assert!(line.starts_with(start), "{version}: {line}");
    }
}
