//! Measures how expressions affect the time of authentication, as KEP-3331 requires.

use std::fmt::Write as _;
use std::time::Duration;

use navicert_authn::AuthnProfile;
use navicert_authn::jwks::{KeySet, StaticKeys};
use navicert_testkit::pki::jws::{Algorithm, SigningKey};
use navicert_types::{Clock, SystemClock};
use serde_json::{Value, json};

use super::Whole;
use crate::race::Fault;
use crate::statistics::{Round, median};

/// Rounds in which each row has a turn; medians count. Odd, as in every race.
const ROUNDS: usize = 101;
/// How many tokens a turn has.
const TOKENS: u32 = 10;

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
    let mut times = vec![Vec::with_capacity(ROUNDS); contestants.len()];
    for round in 0..=ROUNDS {
        let mut turns: Vec<_> = contestants.iter().zip(&mut times).collect();
        if round % 2 == 1 {
            turns.reverse();
        }
        for (whole, times) in turns {
            let started = SystemClock.monotonic();
            for _ in 0..TOKENS {
                whole.run()?;
            }
            let taken = SystemClock.monotonic().saturating_sub(started).as_secs_f64();
            // The first round warms up.
            if round > 0 {
                times.push(taken / f64::from(TOKENS));
            }
        }
    }
    let mut table = format!(
        "How expressions affect the time of authentication (ES256; medians of {ROUNDS} rounds)\n\
         | expressions    | groups | time     | of none |\n| -------------- | ------ | -------- | ------- |\n",
    );
    for ((name, _, groups), taken) in ROWS.iter().zip(&times) {
        let none =
            ROWS.iter().zip(&times).find(|((name, _, size), _)| *name == "no expression" && size == groups);
        let none = none.map_or(taken, |(_, none)| none);
        let share =
            median(taken.iter().zip(none).map(|(&ours, &reference)| Round { ours, reference }.ratio()));
        let time = Duration::try_from_secs_f64(median(taken.iter().copied()))?;
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
    let keys = KeySet::parse(json!({"keys": [key.jwk()]}).to_string().as_bytes(), &AuthnProfile::HARDENED)?;
    Whole::new(&config.to_string(), StaticKeys::new(keys), token)
}
