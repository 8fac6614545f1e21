//! KEP-3331 asks how expressions affect the time of authentication: this table answers.

use std::fmt::Write as _;
use std::time::Duration;

use navicert_authn::Profile;
use navicert_authn::jwks::{FixedKeys, KeySet};
use navicert_testkit::jws::{Algorithm, SigningKey};
use navicert_types::{Clock, SystemClock};
use serde_json::{Value, json};

use super::Whole;
use crate::frame::Fault;

/// How many turns each has; the best counts. They are short, so that on a busy machine some are undisturbed.
const TURNS: usize = 200;
/// How many tokens a turn has.
const TOKENS: u32 = 5;

/// One row: its name, the change to the configuration, the number of groups.
type Row = (&'static str, fn(&mut Value), usize);

const ROWS: [Row; 13] = [
    ("no expression", |_| {}, 10),
    ("username", |jwt| map(jwt, "username", json!({"expression": "'p:' + claims.sub"})), 10),
    ("groups", groups, 10),
    ("uid", |jwt| map(jwt, "uid", json!({"expression": "claims.uid"})), 10),
    (
        "extra",
        |jwt| map(jwt, "extra", json!([{"key": "example.com/t", "valueExpression": "claims.tenant"}])),
        10,
    ),
    ("1 claim rule", |jwt| claim_rules(jwt, 1), 10),
    ("8 claim rules", |jwt| claim_rules(jwt, 8), 10),
    ("32 claim rules", |jwt| claim_rules(jwt, 32), 10),
    ("1 user rule", |jwt| user_rules(jwt, 1), 10),
    ("8 user rules", |jwt| user_rules(jwt, 8), 10),
    ("32 user rules", |jwt| user_rules(jwt, 32), 10),
    ("no expression", |_| {}, 1_000),
    ("groups", groups, 1_000),
];

/// The table: what each kind of expression adds to the time of a token without any.
pub(crate) fn effect() -> Result<String, Fault> {
    let key = SigningKey::generate(Algorithm::Es256, "k");
    let contestants = ROWS.iter().map(|(_, change, groups)| contestant(&key, *change, *groups));
    let contestants = contestants.collect::<Result<Vec<Whole>, Fault>>()?;
    let mut best = vec![Duration::MAX; contestants.len()];
    for _ in 0..TURNS {
        for (whole, best) in contestants.iter().zip(&mut best) {
            let started = SystemClock.monotonic();
            for _ in 0..TOKENS {
                whole.run()?;
            }
            *best = (SystemClock.monotonic().saturating_sub(started) / TOKENS).min(*best);
        }
    }
    let mut table = String::from(
        "How expressions affect the time of authentication (ES256; best of 200 turns)\n\
         | expressions    | groups | time     | of none |\n| -------------- | ------ | -------- | ------- |\n",
    );
    for ((name, _, groups), time) in ROWS.iter().zip(&best) {
        let none =
            ROWS.iter().zip(&best).find(|((name, _, size), _)| *name == "no expression" && size == groups);
        let none = none.map_or(*time, |(_, time)| *time);
        let share = time.as_secs_f64() / none.as_secs_f64();
        writeln!(table, "| {name:<14} | {groups:>6} | {:>8} | {share:>7.2} |", format!("{time:.1?}"))?;
    }
    Ok(table)
}

fn groups(jwt: &mut Value) {
    map(jwt, "groups", json!({"expression": "dyn(claims.groups).map(g, 'p:' + g)"}));
}

fn map(jwt: &mut Value, name: &str, mapping: Value) {
    if let Some(mappings) = jwt.get_mut("claimMappings") {
        put(mappings, name, mapping);
    }
}

fn put(object: &mut Value, name: &str, value: Value) {
    if let Some(members) = object.as_object_mut() {
        members.insert(name.to_owned(), value);
    }
}

fn claim_rules(jwt: &mut Value, count: usize) {
    let rule = |number| json!({"expression": format!("claims.tenant != 'none-{number}'"), "message": "no"});
    put(jwt, "claimValidationRules", (0..count).map(rule).collect());
}

fn user_rules(jwt: &mut Value, count: usize) {
    let rule = |number| json!({"expression": format!("user.username != 'none-{number}'"), "message": "no"});
    put(jwt, "userValidationRules", (0..count).map(rule).collect());
}

fn contestant(key: &SigningKey, change: fn(&mut Value), groups: usize) -> Result<Whole, Fault> {
    let mut jwt = json!({
        "issuer": {"url": "https://issuer.example", "audiences": ["kubernetes"]},
        "claimMappings": {
            "username": {"claim": "sub", "prefix": "p:"}, "groups": {"claim": "groups", "prefix": "p:"},
        },
    });
    change(&mut jwt);
    let config = json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": [jwt]});
    let groups: Vec<String> = (0..groups).map(|number| format!("group-{number}")).collect();
    let token = key.token(&json!({
        "iss": "https://issuer.example", "aud": "kubernetes", "sub": "alice", "uid": "6f1c2b1e", "tenant": "acme",
        "exp": super::NOW + 300, "groups": groups,
    }));
    let keys = KeySet::parse(json!({"keys": [key.jwk()]}).to_string().as_bytes(), &Profile::HARDENED)?;
    Whole::new(&config.to_string(), FixedKeys::new(keys), token)
}
