//! Expressions against the crate `cel` 0.15: the eight that rules are made of, compiling them, and growth with the data.
//!
//! The claims for `cel` are converted to its values in advance; navicert borrows them. Data used during the whole run is leaked.

use std::hint::black_box;
use std::sync::Arc;

use navicert_cel::kubernetes::{User, claims_environment, user_environment};
use navicert_cel::{Arena, Bindings, ClaimSet, Claims, Environment, Program, ValueRef};
use serde_json::{Map, Value, json};

use crate::race::{Contest, Contestant, Fault, Race, Shared};
use crate::rows::Row;

/// Row names of evaluation and compilation, expression for navicert, and expression for `cel`, which has no `any`.
const EXPRESSIONS: [(&str, &str, &str, &str); 8] = [
    ("cel eval: one claim", "cel compile: one claim / cel parse", "claims.sub", "claims.sub"),
    (
        "cel eval: == and endsWith",
        "cel compile: == and endsWith / cel parse",
        "claims.email_verified == true && claims.email.endsWith('@example.com')",
        "claims.email_verified == true && claims.email.endsWith('@example.com')",
    ),
    (
        "cel eval: split, exists",
        "cel compile: split, exists / cel parse",
        "claims.roles.split(',').exists(r, r == 'admin')",
        "claims.roles.split(',').exists(r, r == 'admin')",
    ),
    (
        "cel eval: map with prefix",
        "cel compile: map with prefix / cel parse",
        "dyn(claims.groups).map(g, 'oidc:' + g)",
        "claims.groups.map(g, 'oidc:' + g)",
    ),
    (
        "cel eval: user.groups.all",
        "cel compile: user.groups.all / cel parse",
        "user.groups.all(g, !g.startsWith('system:'))",
        "user.groups.all(g, !g.startsWith('system:'))",
    ),
    (
        "cel eval: difference, has",
        "cel compile: difference, has / cel parse",
        "claims.exp - claims.nbf <= 86400.0 && has(claims.a.b)",
        "claims.exp - claims.nbf <= 86400.0 && has(claims.a.b)",
    ),
    (
        "cel eval: matches",
        "cel compile: matches / cel parse",
        "claims.email.matches('^[a-z]+@example[.]com$')",
        "claims.email.matches('^[a-z]+@example[.]com$')",
    ),
    (
        "cel eval: optional",
        "cel compile: optional / cel parse",
        "claims.?missing.orValue('dflt') == 'dflt'",
        "claims.?missing.orValue('dflt') == 'dflt'",
    ),
];

/// The same eight for the race against cel-go, which has the same claims (peers/bench/cel_test.go).
pub(crate) const ROWS: [Row; 8] = [
    ("cel-claim", || row(0)),
    ("cel-and", || row(1)),
    ("cel-exists", || row(2)),
    ("cel-map", || row(3)),
    ("cel-all", || row(4)),
    ("cel-has", || row(5)),
    ("cel-matches", || row(6)),
    ("cel-optional", || row(7)),
];

/// Every evaluation is at least this much faster, and their geometric mean at least three times.
const EVERY: f64 = 1.0 / 1.5;
const MEAN: f64 = 1.0 / 3.0;

/// As an authenticator has them: claims are decoded one by one, as in the API server's lazy map.
fn row(number: usize) -> Result<Contestant, Fault> {
    let (_, _, text, _) = *EXPRESSIONS.get(number).ok_or("no such expression")?;
    let (claims, user) = inputs()?;
    let mut set = ClaimSet::new();
    for (name, value) in claims {
        set.insert(name, Ok(value.clone()));
    }
    let claims = Claims::Set(Box::leak(Box::new(set)));
    Ok(Box::new(evaluate(environment(text).compile(text)?, claims, user)))
}

fn inputs() -> Result<(&'static Map<String, Value>, &'static User), Fault> {
    Ok((Box::leak(Box::new(object(claims())?)), Box::leak(Box::new(User::from_json(&user())))))
}

fn environment(text: &str) -> Environment {
    if text.contains("user.") { user_environment() } else { claims_environment() }
}

pub(crate) fn races() -> Vec<Race> {
    let setup = Shared::new(Setup::new);
    let mut races = Vec::new();
    for (evaluation, compilation, ours, theirs) in EXPRESSIONS {
        let (evaluating, compiling) = (setup.clone(), setup.clone());
        let race = Race::new(evaluation, EVERY, move || evaluations(&*evaluating.get()?, ours, theirs));
        races.push(race.allocations_at_most(0).in_group("cel eval: geometric mean of the eight", MEAN));
        races.push(Race::new(compilation, 1.0, move || {
            let library = Arc::clone(&compiling.get()?.library);
            Ok(Contest::time(compile(environment(ours), ours), move || {
                black_box(library.compile(black_box(theirs))?);
                Ok(())
            }))
        }));
    }
    races.extend(growth());
    races
}

/// Data, and the other engine's functions.
struct Setup {
    claims: &'static Map<String, Value>,
    user: &'static User,
    library: Arc<cel::Env>,
}

impl Setup {
    fn new() -> Result<Self, Fault> {
        let (claims, user) = inputs()?;
        let mut library = cel::Env::stdlib().with_optional_support(true);
        library.add_extension(cel::extensions::strings)?;
        Ok(Setup { claims, user, library: Arc::new(library) })
    }
}

fn evaluations(setup: &Setup, ours: &str, theirs: &str) -> Result<Contest, Fault> {
    let opponent = setup.library.compile(theirs)?;
    let mut context = cel::Context::with_env(Arc::clone(&setup.library));
    context.add_variable("claims", Value::Object(setup.claims.clone()))?;
    context.add_variable("user", json!({"groups": setup.user.groups, "username": setup.user.username}))?;
    let reference = move || {
        black_box(opponent.execute(&context)?);
        Ok(())
    };
    let program = environment(ours).compile(ours)?;
    Ok(Contest::time(evaluate(program, Claims::Object(setup.claims), setup.user), reference))
}

fn compile(environment: Environment, text: &'static str) -> impl FnMut() -> Result<(), Fault> {
    move || {
        black_box(environment.compile(black_box(text))?);
        Ok(())
    }
}

/// Evaluates over borrowed data; the arena's memory is taken back each time, as a server does. What the expression looks
/// at, claims or user, is there beforehand.
fn evaluate(
    program: Program,
    claims: Claims<'static>,
    user: &'static User,
) -> impl FnMut() -> Result<(), Fault> {
    let mut arena = Arena::new();
    let users: &'static Arena = Box::leak(Box::new(Arena::new()));
    let over_user = program.tree().source().text().contains("user.");
    let bound = if over_user {
        user.val(users).map(|user| ("user", user))
    } else {
        Some(("claims", ValueRef::Claims(claims)))
    };
    move || {
        let (name, value) = bound.ok_or("the user does not fit")?;
        arena.reset();
        let bindings = Bindings::new().with(name, value);
        black_box(program.evaluate(&arena, &bindings)?.value);
        Ok(())
    }
}

/// Cost is linear in the data: 10 000 elements once against 100 elements a hundred times.
fn growth() -> Vec<Race> {
    let rows = [
        ("cel growth: all over 10 000 / 100 × over 100", "dyn(claims.groups).all(g, g != 'x')"),
        ("cel growth: map over 10 000 / 100 × over 100", "dyn(claims.groups).map(g, g)"),
        ("cel growth: exists over 10 000 / 100 × over 100", "dyn(claims.groups).exists(g, g == 'x')"),
    ];
    let race = |(what, text): (&'static str, &'static str)| {
        Race::new(what, 1.3, move || {
            let over = |count| -> Result<_, Fault> {
                let user: &'static User = Box::leak(Box::new(User::default()));
                let program = claims_environment().compile(text)?;
                Ok(evaluate(program, Claims::Object(groups(count)?), user))
            };
            let mut small = over(100)?;
            Ok(Contest::time(over(10_000)?, move || (0..100).try_for_each(|_| small())))
        })
    };
    rows.into_iter().map(race).collect()
}

fn groups(count: usize) -> Result<&'static Map<String, Value>, Fault> {
    let groups: Vec<String> = (0..count).map(|index| format!("group-{index}")).collect();
    Ok(Box::leak(Box::new(object(json!({ "groups": groups }))?)))
}

fn object(value: Value) -> Result<Map<String, Value>, Fault> {
    match value {
        Value::Object(members) => Ok(members),
        _ => Err("not an object".into()),
    }
}

fn claims() -> Value {
    json!({
        "iss": "https://issuer.example.com", "sub": "1234567890", "aud": ["foo", "bar"], "azp": "foo",
        "email": "alice@example.com", "email_verified": true, "name": "Alice Liddell",
        "preferred_username": "alice", "roles": "admin,dev,ops",
        "groups": ["team-a", "team-b", "platform"], "exp": 1_800_086_400.0, "nbf": 1_800_000_000.0,
        "iat": 1_800_000_000.0, "level": 3.0, "foo.bar": "dotted", "a": {"b": {"c": "deep"}, "n": null},
        "realm_access": {"roles": ["offline_access", "uma_authorization", "admin"]},
        "ip": "10.20.30.40", "ver": "1.24.3", "mem": "1.5Gi"
    })
}

fn user() -> Value {
    json!({
        "username": "oidc:alice", "uid": "u-1", "groups": ["oidc:team-a", "oidc:team-b"],
        "extra": {"example.com/tenant": ["t1"]}
    })
}
