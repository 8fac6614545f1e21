//! The contract of profile `hardened`: it never accepts a token that `kube` rejects, except for the listed rules
//! (H21: more keys usable; H20 and H22: fresher keys; S94 and S311: more expressions usable).

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test's helpers fail by panicking")]

use std::sync::OnceLock;

use navicert_authn::{AuthnProfile, Hardening, batch};
use navicert_testkit::k8s::vectors::{self, Vector};
use proptest::prelude::*;
use serde_json::Value;

/// Every token vector as a batch line.
fn material() -> &'static [Value] {
    static MATERIAL: OnceLock<Vec<Value>> = OnceLock::new();
    MATERIAL.get_or_init(|| {
        let (configs, key_sets) = (vectors::json("authn-configs.json"), vectors::json("authn-jwks.json"));
        let request = |vector: &Vector| {
            let mut request = vector.input.clone();
            request["config"] = configs[vector.input["config_ref"].as_str().unwrap()].clone();
            request["jwks"] = key_sets[vector.input["jwks_ref"].as_str().unwrap()].clone();
            request
        };
        vectors::vectors("authn-token.jsonl").iter().map(request).collect()
    })
}

/// Hardened without the one exception that these vectors can show.
fn hardened() -> AuthnProfile {
    AuthnProfile::HARDENED.with(Hardening::SkipUnusableKeys, false)
}

/// What is accepted must be accepted by `kube`, with the same user except for groups that H15 drops.
fn holds(request: &Value, profile: &AuthnProfile) -> Result<bool, String> {
    let ours = batch::eval(request, profile);
    if ours["outcome"] != "authenticated" {
        return Ok(false);
    }
    let theirs = batch::eval(request, &AuthnProfile::KUBE);
    let user = |answer: &Value| {
        let mut user = answer["user"].clone();
        if let Some(groups) = user["groups"].as_array_mut() {
            // `g:` is the groups prefix of some of the configurations.
            groups.retain(|group| group != "" && group != "g:");
        }
        user
    };
    if user(&ours) == user(&theirs) { Ok(true) } else { Err(format!("{ours} but kube says {theirs}")) }
}

// §13
#[test]
fn hardened_accepts_nothing_that_kube_rejects() {
    let accepted = material().iter().filter(|request| holds(request, &hardened()).unwrap()).count();
    assert!(accepted > 100, "only {accepted} were accepted: that proves little");
}

// Each rule on its own accepts no more than `kube`, H21 excepted.
#[test]
fn no_single_rule_accepts_more() {
    for rule in Hardening::ALL.into_iter().filter(|rule| *rule != Hardening::SkipUnusableKeys) {
        for request in material().iter().step_by(3) {
            holds(request, &AuthnProfile::KUBE.with(rule, true))
                .unwrap_or_else(|why| panic!("{rule}: {why}"));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    /// Swapped tokens and key sets, shifted clocks, damaged tokens: nothing more is accepted, and nothing panics.
    #[test]
    fn damage_never_leads_to_acceptance(
        token in any::<prop::sample::Index>(),
        keys in any::<prop::sample::Index>(),
        config in any::<prop::sample::Index>(),
        clock in -1_000_000_i64..1_000_000,
        damage in proptest::option::of((any::<prop::sample::Index>(), any::<char>())),
    ) {
        let mut request = token.get(material()).clone();
        request["jwks"] = keys.get(material())["jwks"].clone();
        request["config"] = config.get(material())["config"].clone();
        request["now"] = Value::from(request["now"].as_i64().unwrap() + clock);
        if let Some((index, symbol)) = damage {
            let mut text: Vec<char> = request["token"].as_str().unwrap().chars().collect();
            if !text.is_empty() {
                let index = index.index(text.len());
                text[index] = symbol;
            }
            request["token"] = Value::from(text.into_iter().collect::<String>());
        }
        prop_assert!(holds(&request, &hardened()).is_ok());
    }

    // S280
    #[test]
    fn every_text_has_an_outcome(token in "[A-Za-z0-9_.=-]{0,80}|\\PC{0,40}") {
        let mut request = material()[0].clone();
        request["token"] = Value::from(token);
        prop_assert!(batch::eval(&request, &AuthnProfile::KUBE).get("fault").is_none());
    }
}
