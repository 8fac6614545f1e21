use super::*;
use crate::cost::Rule;
use crate::kubernetes::{User, claims_environment, user_environment};
use crate::value::{ClaimSet, Claims};
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The same program without special steps.
fn plainly(mut program: Program) -> Program {
    let steps = program.plan.steps.iter().map(|step| *program.plan.general(step)).collect();
    program.plan.steps = steps;
    program.plan.loops.iter_mut().for_each(|fold| fold.quick = None);
    program
}

/// Everything that an evaluation lets one see, with these limits, and with a host that stops it at some moment.
fn seen(program: &Program, bindings: &Bindings<'_>, limit: u64, memory: usize, stop: usize) -> String {
    let asked = AtomicUsize::new(0);
    let interrupt = || asked.fetch_add(1, Ordering::Relaxed) >= stop;
    let interrupt: &(dyn Fn() -> bool + Sync) = &interrupt;
    let limits = EvalLimits { cost: limit, interrupt: (stop < usize::MAX).then_some(interrupt) };
    let arena = Arena::with_limit(memory);
    let outcome = program.evaluate_within(&arena, bindings, &limits);
    let shown = format!("{outcome:?} {} {asked:?}", arena.used());
    asked.store(0, Ordering::Relaxed);
    let arena = Arena::with_limit(memory);
    let (traced, parts) = program.trace(&arena, bindings, &limits);
    assert_eq!(format!("{traced:?} {} {asked:?}", arena.used()), shown);
    format!("{shown} {parts:?}")
}

/// Compares both ways at every limit that could make a difference; gives what it costs.
fn compare(expression: &str, quick: &Program, plain: &Program, bindings: &Bindings<'_>) -> u64 {
    const MEMORY: usize = 1 << 20;
    let cost = match quick.evaluate(&Arena::new(), bindings) {
        Ok(found) => found.cost,
        Err(error) => error.cost,
    };
    let same = |limit, memory, stop| {
        let (ours, theirs) =
            (seen(quick, bindings, limit, memory, stop), seen(plain, bindings, limit, memory, stop));
        assert_eq!(ours, theirs, "{expression} with {limit}, {memory}, {stop}");
    };
    (0..=cost.min(150) + 1).for_each(|limit| same(limit, MEMORY, usize::MAX));
    (cost.saturating_sub(3)..=cost + 1).for_each(|limit| same(limit, MEMORY, usize::MAX));
    [0, 4, 40, 100, 200, 300, 400, 500, 600]
        .into_iter()
        .for_each(|memory| same(1_000_000, memory, usize::MAX));
    (0..8).for_each(|stop| same(1_000_000, MEMORY, stop));
    cost
}

const OVER_CLAIMS: [&str; 41] = [
    "claims.a",
    "claims['a']",
    "claims.a == 'x'",
    "claims.a != claims.b",
    "claims.a.b.startsWith('c')",
    "claims.a.startsWith('')",
    "claims.a.startsWith('system:')",
    "!claims.a.startsWith('system:')",
    "!claims.a.endsWith('é')",
    "claims.a.contains('stem')",
    "claims.a.contains('a part of more than ten characters: ö')",
    "claims.a.endsWith('an end of more than ten characters, seventy even, all of them ASCII 70')",
    "claims.b.contains(claims.a)",
    "claims.a.startsWith('x') || claims.b.startsWith('y')",
    "claims.a.startsWith('x') && claims.b.startsWith('y')",
    "claims.a.startsWith('x') ? claims.a : claims.b",
    "has(claims.a) ? claims.a.contains('s') : claims.b",
    "has(claims.a.b)",
    "(has(claims.a) ? claims.a : claims.b).startsWith('x')",
    "claims.?a.orValue('x').startsWith('x')",
    "claims.?a.hasValue()",
    "optional.of(claims.a).orValue('').contains('s')",
    "[claims.a, claims.b].all(g, !g.startsWith('system:'))",
    "dyn(claims.a).all(g, !g.startsWith('system:'))",
    "dyn(claims.a).exists(g, g.contains('ö'))",
    "dyn(claims.a).exists_one(g, g.endsWith('x'))",
    "dyn(claims.a).filter(g, g.startsWith('x')).map(g, 'oidc:' + g)",
    "claims.a.split(',').map(g, 'oidc:' + g)",
    "claims.a.split(',').map(g, g + '@é')",
    "claims.a.split(',').map(g, g + g)",
    "claims.a.split(',').map(g, !g.startsWith('t'))",
    "claims.a.split(',').map(g, [g].map(h, g + 'x'))",
    "claims.a.split(',').map(g, g == 'two' ? claims.missing : g).map(g, 'x' + g)",
    "claims.a.split(',').all(g, !g.contains('e'))",
    "claims.a.split(',').exists(g, !g.endsWith('e'))",
    "claims.a.split(',').all(g, g.endsWith('e') || g.startsWith('t'))",
    "dyn(claims.a).map(g, 'a constant of more than ten characters' + g)",
    "[dyn(1), dyn(claims.a), dyn(claims.b), dyn('x')].map(g, 'x' + g)",
    "[dyn(claims.a), dyn(claims.b), dyn('x'), dyn('system:')].all(g, !g.contains('syst'))",
    "[dyn(claims.a)].map(x, x.startsWith('s') || x.endsWith('n') || claims.b.contains(x))",
    "'oidc:' + claims.a + '/' + claims.b",
];

fn values() -> Vec<Option<serde_json::Value>> {
    let long = "a text of more than ten characters, seventy even, and all of it ASCII ";
    vec![
        None,
        Some(json!("")),
        Some(json!("x")),
        Some(json!("system:admin")),
        Some(json!("système,é")),
        Some(json!(long)),
        Some(json!(long.replace('a', "ä"))),
        Some(json!("one,two,three,four,five,six")),
        Some(json!(true)),
        Some(json!(1.5)),
        Some(json!(null)),
        Some(json!(["x", "system:admin", "ö"])),
        Some(json!(["x", 1, "system:admin"])),
        Some(json!({"b": "cde"})),
    ]
}

#[test]
fn a_special_step_cannot_be_told_from_the_one_it_stands_for() {
    let environment = claims_environment();
    let (mut specials, mut loops, mut costs) = (0, 0, 0);
    for expression in OVER_CLAIMS {
        let quick = environment.compile(expression).unwrap();
        let plain = plainly(environment.compile(expression).unwrap());
        specials += quick.plan.generals.len();
        loops += quick.plan.loops.iter().filter(|fold| fold.quick.is_some()).count();
        for (at, value) in values().into_iter().enumerate() {
            let mut set = ClaimSet::new();
            let other = values().into_iter().cycle().nth(at + 5).flatten();
            value.into_iter().for_each(|value| set.insert("a", Ok(value)));
            other.into_iter().for_each(|other| set.insert("b", Ok(other)));
            let bindings = Bindings::new().with("claims", ValueRef::Claims(Claims::Set(&set)));
            costs += compare(expression, &quick, &plain, &bindings);
        }
        for broken in [true, false] {
            let mut set = ClaimSet::new();
            match broken {
                true => set.insert("a", Err("broken".to_owned())),
                false => set.insert_elsewhere("a", "elsewhere".to_owned()),
            }
            let bindings = Bindings::new().with("claims", ValueRef::Claims(Claims::Set(&set)));
            compare(expression, &quick, &plain, &bindings);
        }
        // No value, one of another sort, and claims of another form.
        let object = json!({"a": "system:x", "b": "y"});
        let object = ValueRef::Claims(Claims::Object(object.as_object().unwrap()));
        for bindings in [Bindings::new(), Bindings::new().with("claims", ValueRef::Int(1))] {
            compare(expression, &quick, &plain, &bindings);
        }
        compare(expression, &quick, &plain, &Bindings::new().with("claims", object));
    }
    assert!(specials > 50 && loops > 10 && costs > 5_000, "{specials} {loops} {costs}");
}

#[test]
fn special_steps_over_a_user_are_no_different_either() {
    let environment = user_environment();
    let user = User::from_json(&json!({
        "username": "system:admin", "groups": ["dev", "ops", "système", ""], "extra": {"a": ["x", "yz"]},
    }));
    for expression in [
        "!user.username.startsWith('system:')",
        "user.uid.endsWith('x')",
        "user.groups.all(g, !g.startsWith('system:'))",
        "user.groups.exists(g, g.contains('è'))",
        "user.extra['a'].exists(v, v.endsWith('z'))",
        "user.extra.a.map(v, 'oidc:' + v)",
        "user.extra.missing.all(v, v.endsWith('z'))",
        "user.username.contains('min') && user.uid == ''",
    ] {
        let (quick, plain) = (environment.compile(expression), environment.compile(expression));
        let (quick, plain) = (quick.unwrap(), plainly(plain.unwrap()));
        assert!(!quick.plan.generals.is_empty(), "{expression}");
        let arena = Arena::new();
        let bindings = Bindings::new().with("user", user.val(&arena).unwrap());
        assert!(compare(expression, &quick, &plain, &bindings) > 0);
    }
}

#[test]
fn what_is_quickly_joined_and_compared_costs_what_the_rules_say() {
    let environment = Environment::kubernetes(crate::kubernetes::VERSION)
        .variable("a", "string")
        .variable("b", "string")
        .variable("c", "bool")
        .variable("d", "bool")
        .build()
        .unwrap();
    let (joined, same) = (environment.compile("a + b").unwrap(), environment.compile("c == d").unwrap());
    let other = environment.compile("c != d").unwrap();
    for left in 0..80 {
        for (right, is) in [(0, true), (1, false), (9, true), (70 - left % 71, false)] {
            let (a, b) = ("x".repeat(left), "ü".repeat(right));
            let arena = Arena::new();
            let bindings = Bindings::new().with("a", ValueRef::Str(&a)).with("b", ValueRef::Str(&b));
            let bindings = bindings.with("c", ValueRef::Bool(left % 2 == 0)).with("d", ValueRef::Bool(is));
            let found = joined.evaluate(&arena, &bindings).unwrap();
            assert!(matches!(found.value, ValueRef::Str(text) if text == format!("{a}{b}")));
            let size = 2 + Rule::Concatenate.charge(&[ValueRef::Str(&a), ValueRef::Str(&b)], None);
            assert_eq!(found.cost, size, "{left} {right}");
            let bools = [ValueRef::Bool(left % 2 == 0), ValueRef::Bool(is)];
            for (program, rule, negated) in [(&same, Rule::Equality, false), (&other, Rule::Smaller, true)] {
                let found = program.evaluate(&arena, &bindings).unwrap();
                assert!(
                    matches!(found.value, ValueRef::Bool(it) if it == (((left % 2 == 0) == is) != negated))
                );
                assert_eq!(found.cost, 2 + rule.charge(&bools, None));
            }
        }
    }
}
