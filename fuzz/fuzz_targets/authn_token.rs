//! Any text as a token: judged, explained, and put into kube-apiserver's words, in both profiles.

#![no_main]

use libfuzzer_sys::fuzz_target;
use navicert_authn::explain::{explain, log_line};
use navicert_authn::{Outcome, Profile, Question, batch};
use navicert_types::Timestamp;
use serde_json::json;

const CONFIG: &str = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt: [{issuer: {url: https://i, audiences: [a]}, claimMappings: {username: {claim: sub, prefix: ''}}}]\n";

fuzz_target!(|text: &str| {
    for profile in [Profile::KUBE, Profile::HARDENED] {
        let question = json!({"config": CONFIG, "jwks": {"keys": []}});
        let authenticators = batch::authenticators(&question, &profile).expect("the configuration is valid");
        let now = Timestamp::from_second(1_900_000_000).expect("a time");
        let asked = Question::new(text, now);
        let explanation = explain(&authenticators, &asked);
        assert!(!matches!(explanation.outcome, Outcome::Authenticated(_)));
        if profile == Profile::KUBE {
            let line = log_line(&authenticators, &asked, |_| None).expect("no key, no user");
            let _ = (line.shown(), line.masked());
        }
    }
});
