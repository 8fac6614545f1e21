use super::*;
use crate::cost::Rule;
use crate::error::ClaimError;
use crate::kubernetes::{User, claims_environment, user_environment};
use crate::value::{ClaimSet, Claims};
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The same program without specialized steps and fast paths.
fn without_specialization(mut program: Program) -> Program {
    let steps = program.plan.steps.iter().map(|step| *program.plan.general(step).unwrap()).collect();
    program.plan.steps = steps;
    program.plan.loops.iter_mut().for_each(|fold| fold.fast_body = None);
    program
}

/// All observable effects of an evaluation with these limits and with an interrupt after `stop` polls.
fn observe(program: &Program, bindings: &Bindings<'_>, limit: u64, memory: usize, stop: usize) -> String {
    let polls = AtomicUsize::new(0);
    let interrupt = || polls.fetch_add(1, Ordering::Relaxed) >= stop;
    let interrupt: &(dyn Fn() -> bool + Sync) = &interrupt;
    let limits = EvalLimits { cost: limit, interrupt: (stop < usize::MAX).then_some(interrupt) };
    let arena = Arena::with_limit(memory);
    let outcome = program.evaluate_within(&arena, bindings, &limits);
    let observed = format!("{outcome:?} {} {polls:?}", arena.used());
    polls.store(0, Ordering::Relaxed);
    let arena = Arena::with_limit(memory);
    let (traced, parts) = program.trace(&arena, bindings, &limits);
    assert_eq!(format!("{traced:?} {} {polls:?}", arena.used()), observed);
    format!("{observed} {parts:?}")
}

/// Compares both programs at all limits that may differ; returns the cost.
fn compare(expression: &str, specialized: &Program, general: &Program, bindings: &Bindings<'_>) -> u64 {
    const MEMORY: usize = 1 << 20;
    let cost = match specialized.evaluate(&Arena::new(), bindings) {
        Ok(found) => found.cost,
        Err(error) => error.cost,
    };
    let same = |limit, memory, stop| {
        let (specialized, general) = (
            observe(specialized, bindings, limit, memory, stop),
            observe(general, bindings, limit, memory, stop),
        );
        assert_eq!(specialized, general, "{expression} with {limit}, {memory}, {stop}");
    };
    (0..=cost.min(150) + 1).for_each(|limit| same(limit, MEMORY, usize::MAX));
    (cost.saturating_sub(3)..=cost + 1).for_each(|limit| same(limit, MEMORY, usize::MAX));
    [0, 4, 40, 100, 200, 300, 400, 500, 600]
        .into_iter()
        .for_each(|memory| same(1_000_000, memory, usize::MAX));
    (0..8).for_each(|stop| same(1_000_000, MEMORY, stop));
    cost
}

const CLAIM_EXPRESSIONS: [&str; 41] = [
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
fn specialized_steps_over_claims_behave_like_general_steps() {
    let environment = claims_environment();
    let (mut specials, mut loops, mut costs) = (0, 0, 0);
    for expression in CLAIM_EXPRESSIONS {
        let specialized = environment.compile(expression).unwrap();
        let general = without_specialization(environment.compile(expression).unwrap());
        specials += specialized.plan.general_steps.len();
        loops += specialized.plan.loops.iter().filter(|fold| fold.fast_body.is_some()).count();
        for (at, value) in values().into_iter().enumerate() {
            let mut set = ClaimSet::new();
            let other = values().into_iter().cycle().nth(at + 5).flatten();
            value.into_iter().for_each(|value| set.insert("a", Ok(value)));
            other.into_iter().for_each(|other| set.insert("b", Ok(other)));
            let bindings = Bindings::new().with("claims", ValueRef::Claims(Claims::Set(&set)));
            costs += compare(expression, &specialized, &general, &bindings);
        }
        for broken in [true, false] {
            let mut set = ClaimSet::new();
            match broken {
                true => set.insert("a", Err(ClaimError::TooDeep)),
                false => set.insert("a", Err(ClaimError::Pending)),
            }
            let bindings = Bindings::new().with("claims", ValueRef::Claims(Claims::Set(&set)));
            compare(expression, &specialized, &general, &bindings);
        }
        // No binding, a binding of another type, and claims in another representation.
        let object = json!({"a": "system:x", "b": "y"});
        let object = ValueRef::Claims(Claims::Object(object.as_object().unwrap()));
        for bindings in [Bindings::new(), Bindings::new().with("claims", ValueRef::Int(1))] {
            compare(expression, &specialized, &general, &bindings);
        }
        compare(expression, &specialized, &general, &Bindings::new().with("claims", object));
    }
    assert!(specials > 50 && loops > 10 && costs > 5_000, "{specials} {loops} {costs}");
}

#[test]
fn specialized_steps_over_user_behave_like_general_steps() {
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
        let (specialized, general) = (environment.compile(expression), environment.compile(expression));
        let (specialized, general) = (specialized.unwrap(), without_specialization(general.unwrap()));
        assert!(!specialized.plan.general_steps.is_empty(), "{expression}");
        let arena = Arena::new();
        let bindings = Bindings::new().with("user", user.val(&arena).unwrap());
        assert!(compare(expression, &specialized, &general, &bindings) > 0);
    }
}

#[test]
fn fast_concatenation_and_equality_cost_the_same_as_their_rules() {
    let environment = Environment::kubernetes_version(crate::kubernetes::VERSION)
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

/// Expressions that together use every table of a plan. Each has a value.
const EVERY_TABLE: [&str; 14] = [
    "true",
    "claims.a == 'x' && claims.b != 'x'",
    "claims['a'] + 'y' in ['xy', 'z']",
    "claims.b.matches('^y$') && claims.a.startsWith('x')",
    "dyn(claims.l).all(g, g.startsWith('s')) ? 'all' : claims.a",
    "dyn(claims.l).map(g, 'oidc:' + g).exists(g, g == 'oidc:s')",
    "dyn(claims.l).exists_one(g, g.size() == 1)",
    "claims.?c.orValue('none') == 'none' && !has(claims.c)",
    "claims.?a.optMap(v, v + '!').orValue('') == 'x!'",
    "[claims.a, claims.b].filter(e, e != 'x').size() == 1",
    "{string(claims.a): 1, 'k': 2}['x'] == 1",
    "claims.o.p.q == 1.0 && claims.l[0] == 's'",
    "claims.a.find('x').lowerAscii().split(',').join('-') == 'x'",
    "google.protobuf.Int64Value{value: int(claims.n)} == 3",
];

#[test]
fn a_damaged_plan_fails_and_never_yields_another_value() {
    let claims = json!({"a": "x", "b": "y", "n": 3, "l": ["s", "st"], "o": {"p": {"q": 1}}});
    let bindings =
        Bindings::new().with("claims", ValueRef::Claims(Claims::Object(claims.as_object().unwrap())));
    let environment = claims_environment();
    let (mut faults, mut tables) = (std::collections::BTreeSet::new(), 0);
    for expression in EVERY_TABLE {
        // Logical operators must not absorb an internal fault, so the second form has no value either.
        for text in [expression.to_owned(), format!("dyn({expression}) == 'never' || true")] {
            let whole = environment.compile(&text).unwrap_or_else(|error| panic!("{error}"));
            let arena = Arena::new();
            let expected = format!("{:?}", whole.evaluate(&arena, &bindings).unwrap().value);
            let damages: [fn(&mut Plan, usize) -> bool; 11] = [
                |plan, at| remove(&mut plan.steps, at),
                |plan, at| remove(&mut plan.operands, at),
                |plan, at| remove(&mut plan.qualifiers, at),
                |plan, at| remove(&mut plan.constants, at),
                |plan, at| remove(&mut plan.texts, at),
                |plan, at| remove(&mut plan.patterns, at),
                |plan, at| remove(&mut plan.loops, at),
                |plan, at| remove(&mut plan.general_steps, at),
                |plan, at| remove(&mut plan.messages, at),
                |plan, at| remove(&mut plan.fields, at),
                |plan, at| at == 0 && std::mem::take(&mut plan.slots) > 0,
            ];
            for damage in damages {
                for at in 0.. {
                    let mut damaged = environment.compile(&text).unwrap();
                    if !damage(&mut damaged.plan, at) {
                        break;
                    }
                    tables += 1;
                    for traced in [false, true] {
                        let arena = Arena::new();
                        let outcome = match traced {
                            false => damaged.evaluate(&arena, &bindings),
                            true => damaged.trace(&arena, &bindings, &EvalLimits::KUBERNETES).0,
                        };
                        match outcome {
                            // The missing part was not needed.
                            Ok(found) => assert_eq!(format!("{:?}", found.value), expected, "{text}"),
                            Err(EvaluationError {
                                error: EvalError { kind: EvalErrorKind::Internal(fault), .. },
                                ..
                            }) => {
                                faults.insert(fault.to_string());
                            }
                            Err(error) => panic!("{text}: {error}"),
                        }
                    }
                }
            }
        }
    }
    assert!(tables > 300, "{tables}");
    let expected =
        ["constant", "comprehension", "message type", "operands", "pattern", "qualifiers", "step", "text"];
    for part in expected {
        assert!(faults.contains(&format!("missing {part}")), "{part}: {faults:?}");
    }
    assert!(faults.contains("unbound variable"), "{faults:?}");
}

/// Drops the entries from `at` on.
fn remove<T>(table: &mut Vec<T>, at: usize) -> bool {
    let exists = at < table.len();
    table.truncate(at);
    exists
}

#[test]
fn a_claim_equals_the_literal_with_the_same_digits() {
    for number in
        ["6.02e-23", "5e-324", "0.1", "1.7976931348623157e308", "2.2250738585072011e-308", "9007199254740993"]
    {
        let claims: serde_json::Value = serde_json::from_str(&format!("{{\"f\": {number}}}")).unwrap();
        let bindings =
            Bindings::new().with("claims", ValueRef::Claims(Claims::Object(claims.as_object().unwrap())));
        let rule = claims_environment().compile_rule(&format!("claims.f == double('{number}')")).unwrap();
        let arena = Arena::new();
        let found = rule.evaluate(&arena, &bindings).unwrap().value;
        assert!(matches!(found, ValueRef::Bool(true)), "{number}");
    }
}
