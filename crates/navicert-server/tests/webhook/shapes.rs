//! Response shapes that kube-apiserver treats as errors or retries: never returned to a valid request (WV2, WV3, WV5,
//! WV8–WV10).

use navicert_server::webhook::{AudienceMode, WebhookSettings};
use navicert_testkit::pki::jws::{unsigned, with_payload, with_tampered_signature};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use super::{Fixture, Options, now, review};

fn tokens(fixture: &Fixture) -> impl Strategy<Value = String> + use<> {
    let good = fixture.ann();
    let second = now().as_second();
    let made: Vec<String> = vec![
        good.clone(),
        with_tampered_signature(&good),
        with_payload(&good, &json!({"iss": fixture.issuer.issuer_url()})),
        unsigned(&json!({"alg": "none"}), &json!({"iss": fixture.issuer.issuer_url(), "sub": "ann"})),
        fixture.token(json!({"exp": second - 60})),
        fixture.token(json!({"nbf": second + 600})),
        fixture.token(json!({"sub": 5, "groups": {"a": 1}})),
        fixture.token(json!({"sub": "\u{1b}[2J\"\\\n"})),
        fixture.token(json!({"evil": 1})),
        format!("{good}."),
        ".".repeat(5_000),
    ];
    let cut = (Just(good), any::<prop::sample::Index>()).prop_map(|(token, index)| {
        let end = index.index(token.len()).max(1);
        token.chars().take(end).collect()
    });
    prop_oneof![
        prop::sample::select(made),
        cut,
        "\\PC{1,60}",
        "[A-Za-z0-9_-]{1,20}\\.[A-Za-z0-9_-]{1,20}\\.[A-Za-z0-9_-]{0,9}"
    ]
}

#[test]
fn responses_always_have_a_shape_that_kube_apiserver_accepts() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let settings = |expose_errors, audience_mode| WebhookSettings {
        expose_errors,
        audience_mode,
        server_audiences: vec!["api".into()],
        ..WebhookSettings::default()
    };
    for settings in [settings(false, AudienceMode::Server), settings(true, AudienceMode::Token)] {
        let fixture = runtime.block_on(Fixture::start(Options { settings, ..Options::default() }));
        let audiences = prop::collection::vec(prop_oneof![Just("api".to_owned()), "\\PC{0,8}"], 0..4);
        let version = prop::sample::select(vec!["v1", "v1beta1"]);
        let mut runner = TestRunner::new(Config { cases: 150, ..Config::default() });
        let outcome = runner.run(&(tokens(&fixture), audiences, version), |(token, audiences, version)| {
            let audiences: Vec<&str> = audiences.iter().map(String::as_str).collect();
            let asked = review(version, &token, &audiences);
            let reply =
                runtime.block_on(fixture.client().post_json(&fixture.url("/authenticate"), &asked)).unwrap();
            // WV2, WV8–WV10
            prop_assert_eq!(reply.status.as_u16(), 200);
            prop_assert!(!reply.body.is_empty() && reply.header("retry-after").is_none());
            // WV3, WV5
            let answer: Value = reply.json();
            prop_assert_eq!(&answer["kind"], "TokenReview");
            prop_assert_eq!(&answer["apiVersion"], &asked["apiVersion"]);
            let status = answer["status"].as_object().unwrap();
            prop_assert!(status["authenticated"].is_boolean());
            let known = ["authenticated", "user", "error", "audiences"];
            prop_assert!(status.keys().all(|key| known.contains(&key.as_str())), "{:?}", status);
            if status["authenticated"] == true {
                prop_assert!(!status.contains_key("error") && status["user"]["username"] != "");
                let told = status.get("audiences").and_then(Value::as_array).cloned().unwrap_or_default();
                prop_assert!(told.iter().all(|told| audiences.contains(&told.as_str().unwrap())));
                prop_assert_eq!(told.is_empty(), audiences.is_empty(), "S221");
            } else {
                prop_assert!(!status.contains_key("user") && !status.contains_key("audiences"));
            }
            Ok(())
        });
        outcome.unwrap();
        runtime.block_on(async { drop(fixture) });
    }
}
