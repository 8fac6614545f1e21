//! The contract of profile `hardened`: it never accepts a token that `kube` rejects, except for the listed rules
//! (H21: more keys usable; H20 and H22: fresher keys; S94 and S311: more expressions usable).

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test's helpers fail by panicking")]

use std::sync::OnceLock;

use navicert_authn::{Profile, Rule, batch};
use navicert_testkit::vectors::{self, Vector};
use proptest::prelude::*;
use serde_json::Value;

/// Every question of the token vectors.
fn material() -> &'static [Value] {
    static MATERIAL: OnceLock<Vec<Value>> = OnceLock::new();
    MATERIAL.get_or_init(|| {
        let (configs, key_sets) = (vectors::json("authn-configs.json"), vectors::json("authn-jwks.json"));
        let question = |vector: &Vector| {
            let mut question = vector.input.clone();
            question["config"] = configs[vector.input["config_ref"].as_str().unwrap()].clone();
            question["jwks"] = key_sets[vector.input["jwks_ref"].as_str().unwrap()].clone();
            question
        };
        vectors::vectors("authn-token.jsonl").iter().map(question).collect()
    })
}

/// Hardened without the one exception that this material can show.
fn hardened() -> Profile {
    Profile::HARDENED.with(Rule::H21, false)
}

/// What is accepted must be accepted by `kube`, with the same user but for groups that H15 drops.
fn holds(question: &Value, profile: &Profile) -> Result<bool, String> {
    let ours = batch::eval(question, profile);
    if ours["outcome"] != "authenticated" {
        return Ok(false);
    }
    let theirs = batch::eval(question, &Profile::KUBE);
    let user = |answer: &Value| {
        let mut user = answer["user"].clone();
        if let Some(groups) = user["groups"].as_array_mut() {
            // `g:` is the prefix that some of the configurations put before a group.
            groups.retain(|group| group != "" && group != "g:");
        }
        user
    };
    if user(&ours) == user(&theirs) { Ok(true) } else { Err(format!("{ours} but kube says {theirs}")) }
}

// §13
#[test]
fn hardened_accepts_nothing_that_kube_rejects() {
    let accepted = material().iter().filter(|question| holds(question, &hardened()).unwrap()).count();
    assert!(accepted > 100, "only {accepted} were accepted: that proves little");
}

// Every rule is a switch of its own: alone, none of them widens what is accepted, H21 excepted.
#[test]
fn no_rule_alone_accepts_more() {
    for rule in Rule::ALL.into_iter().filter(|rule| *rule != Rule::H21) {
        for question in material().iter().step_by(3) {
            holds(question, &Profile::KUBE.with(rule, true)).unwrap_or_else(|why| panic!("{rule}: {why}"));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    /// Tokens and key sets crossed over, clocks moved, texts damaged: still nothing more is accepted, and nothing panics.
    #[test]
    fn damage_does_not_open_a_door(
        token in any::<prop::sample::Index>(),
        keys in any::<prop::sample::Index>(),
        config in any::<prop::sample::Index>(),
        clock in -1_000_000_i64..1_000_000,
        damage in proptest::option::of((any::<prop::sample::Index>(), any::<char>())),
    ) {
        let mut question = token.get(material()).clone();
        question["jwks"] = keys.get(material())["jwks"].clone();
        question["config"] = config.get(material())["config"].clone();
        question["now"] = Value::from(question["now"].as_i64().unwrap() + clock);
        if let Some((place, symbol)) = damage {
            let mut text: Vec<char> = question["token"].as_str().unwrap().chars().collect();
            if !text.is_empty() {
                let place = place.index(text.len());
                text[place] = symbol;
            }
            question["token"] = Value::from(text.into_iter().collect::<String>());
        }
        prop_assert!(holds(&question, &hardened()).is_ok());
    }

    // S280
    #[test]
    fn any_text_has_an_outcome(token in "[A-Za-z0-9_.=-]{0,80}|\\PC{0,40}") {
        let mut question = material()[0].clone();
        question["token"] = Value::from(token);
        prop_assert!(batch::eval(&question, &Profile::KUBE).get("fault").is_none());
    }
}
