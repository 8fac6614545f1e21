//! Tokens to try: for every authenticator of either side, claims that it accepts, changed in one or two ways.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Map, Value, json};

use super::constants::{Domain, expressions, mapped_claims};
use super::places::{Assignment, Place};
use super::solve::Solver;
use super::tokens::{HeaderVariant, KeyVariant};
use crate::config::{AttributeMapping, CompiledAuthenticator, CompiledConfig, CompiledExpression};
use crate::profile::KubeVersion;

/// A token to try: its claims, how it is signed, and the issuer's keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Candidate {
    pub(super) claims: Map<String, Value>,
    pub(super) header: HeaderVariant,
    pub(super) keys: KeyVariant,
}

/// Maximum number of bases per authenticator and kind.
const MAX_BASES: usize = 4;
/// Number of changes of two claims at once.
const PAIRS: usize = 1_000;
/// Where the sequence of these changes starts.
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
/// Lifetime of tokens, in seconds.
const LIFETIME: i64 = 600;

/// What is tried for the tokens of one issuer.
pub(super) struct IssuerSearch {
    bases: Vec<Candidate>,
    /// Changes of one claim, or of those that a condition needs.
    changes: Vec<Assignment>,
    /// Changes for which a token is rejected before it is mapped.
    faults: Vec<Assignment>,
}

/// A search for every issuer of either side, in a fixed order.
pub(super) fn searches(from: &CompiledConfig, to: &CompiledConfig, now: i64) -> Vec<IssuerSearch> {
    let mut by_issuer: BTreeMap<&str, Vec<&CompiledAuthenticator>> = BTreeMap::new();
    for authenticator in from.authenticators.iter().chain(&to.authenticators) {
        by_issuer.entry(&authenticator.issuer.url).or_default().push(authenticator);
    }
    by_issuer.values().map(|authenticators| IssuerSearch::new(authenticators, now)).collect()
}

impl IssuerSearch {
    fn new(authenticators: &[&CompiledAuthenticator], now: i64) -> Self {
        let bases = distinct(authenticators.iter().flat_map(|one| bases(one, now)).collect());
        let mut domain = Domain::default();
        authenticators.iter().for_each(|one| domain.add(one));
        let mut changes: Vec<Assignment> = authenticators.iter().flat_map(|one| solutions(one)).collect();
        changes.extend(audiences(authenticators));
        changes.extend(times(now));
        changes.extend(domain.changes());
        let faults = [("exp", json!(now - 1)), ("aud", json!("x")), ("nbf", json!(now + 100_000))];
        let faults = faults.map(|(name, value)| Assignment::one(Place::claim(name), Some(value)));
        IssuerSearch { bases, changes, faults: faults.into() }
    }

    /// Tokens that one side probably accepts, and others with one or two changes.
    pub(super) fn first(&self) -> Vec<Candidate> {
        let mut found = self.bases.clone();
        for base in &self.bases {
            found.extend(self.changes.iter().map(|change| base.changed(change)));
        }
        let mut random = Random(SEED);
        for _ in 0..PAIRS {
            if let (Some(base), Some(one), Some(two)) =
                (random.pick(&self.bases), random.pick(&self.changes), random.pick(&self.changes))
            {
                found.push(base.changed(one).changed(two));
            }
        }
        distinct(found)
    }

    /// Changes of a token that a side accepts: its claims, its header, the keys of its issuer.
    pub(super) fn around(&self, accepted: &Candidate) -> Vec<Candidate> {
        let mut found: Vec<Candidate> =
            KeyVariant::all().map(|keys| Candidate { keys, ..accepted.clone() }).collect();
        for header in HeaderVariant::ALL {
            found.push(Candidate { header, ..accepted.clone() });
        }
        // A token with two faults shows which one is found first.
        let forged = Candidate { header: HeaderVariant::Forged, ..accepted.clone() };
        found.extend(self.faults.iter().map(|fault| forged.changed(fault)));
        found.extend(self.changes.iter().map(|change| accepted.changed(change)));
        distinct(found)
    }
}

/// The same tokens in the same order, each once.
fn distinct(candidates: Vec<Candidate>) -> Vec<Candidate> {
    let mut seen = HashSet::new();
    let key = |one: &Candidate| (Value::Object(one.claims.clone()).to_string(), one.header, one.keys);
    candidates.into_iter().filter(|one| seen.insert(key(one))).collect()
}

impl Candidate {
    fn changed(&self, change: &Assignment) -> Candidate {
        let mut changed = self.clone();
        change.apply(&mut changed.claims);
        changed
    }
}

/// Claims that an authenticator probably accepts: everything that it maps and requires, and solutions of all its rules.
fn bases(authenticator: &CompiledAuthenticator, now: i64) -> Vec<Candidate> {
    let mut claims = Map::new();
    claims.insert("iss".to_owned(), json!(authenticator.issuer.url));
    claims.insert("aud".to_owned(), json!(authenticator.issuer.audiences.first()));
    claims.insert("exp".to_owned(), json!(now + LIFETIME));
    let mut mapped = Candidate { claims: claims.clone(), ..Candidate::default() };
    for solution in mapping_solutions(authenticator) {
        solution.apply(&mut mapped.claims);
    }
    for place in read_claims(authenticator) {
        Assignment::one(place, Some(json!("x"))).apply(&mut claims);
    }
    let bases = [mapped.claims, claims].map(|claims| with_named_claims(claims, authenticator));
    bases.into_iter().flat_map(|base| with_rules(base, authenticator)).collect()
}

/// Claims for which every mapping by expression gives a value.
fn mapping_solutions(authenticator: &CompiledAuthenticator) -> Vec<Assignment> {
    let solve = |expression: &CompiledExpression, value: Value| {
        Solver { tree: expression.program.tree() }.value(&value).into_iter().next()
    };
    let mut found = Vec::new();
    for (mapping, value) in [
        (Some(&authenticator.username), json!("ann")),
        (authenticator.groups.as_ref(), json!(["dev"])),
        (authenticator.uid.as_ref(), json!("u-1")),
    ] {
        if let Some(AttributeMapping::Expression(expression)) = mapping {
            found.extend(solve(expression, value));
        }
    }
    found.extend(authenticator.extra.iter().filter_map(|extra| solve(&extra.value, json!("x"))));
    found
}

/// Adds the claims that are mapped or required by name.
fn with_named_claims(mut claims: Map<String, Value>, authenticator: &CompiledAuthenticator) -> Candidate {
    for (name, _) in mapped_claims(authenticator) {
        claims.insert(name, json!("ann"));
    }
    if let Some(AttributeMapping::Claim { claim, .. }) = &authenticator.groups {
        claims.insert(claim.clone(), json!(["dev"]));
    }
    if claims.contains_key("email") {
        claims.insert("email_verified".to_owned(), json!(true));
    }
    for required in &authenticator.required_claims {
        claims.insert(required.claim.clone(), json!(required.value));
    }
    Candidate { claims, ..Candidate::default() }
}

/// Changes a base so that every rule holds, in up to so many ways.
fn with_rules(base: Candidate, authenticator: &CompiledAuthenticator) -> Vec<Candidate> {
    let mut bases = vec![base];
    let rules = authenticator.claim_rules.iter().map(|rule| (rule, false));
    let user_rules = authenticator.user_rules.iter().map(|rule| (rule, true));
    for (rule, is_of_user) in rules.chain(user_rules) {
        let solver = Solver { tree: rule.expression.program.tree() };
        let mut solutions = solver.truth(true);
        if is_of_user {
            solutions = solutions.iter().map(|one| by_mapping(one, authenticator)).collect();
        }
        if solutions.is_empty() {
            continue;
        }
        let all = solutions.iter().flat_map(|solution| bases.iter().map(|base| base.changed(solution)));
        bases = all.take(MAX_BASES).collect();
    }
    bases
}

/// Solutions of every rule and condition, true and false, and of every mapping for every value that it names.
fn solutions(authenticator: &CompiledAuthenticator) -> Vec<Assignment> {
    let mut found = Vec::new();
    for expression in expressions(authenticator) {
        let solver = Solver { tree: expression.program.tree() };
        for wanted in [true, false] {
            found.extend(solver.truth(wanted));
        }
        found.extend(solver.conditions());
        for literal in solver.literals() {
            found.extend(solver.value(&literal));
        }
    }
    found.iter().map(|solution| by_mapping(solution, authenticator)).collect()
}

/// Turns what a user rule wants of the user into claims that are mapped to it.
fn by_mapping(solution: &Assignment, authenticator: &CompiledAuthenticator) -> Assignment {
    let mut claims = Assignment::default();
    for (place, value) in solution.iter() {
        if place.variable != "user" {
            claims = claims.with(&Assignment::one(place.clone(), value.cloned()));
            continue;
        }
        let name = place.fields.first().map_or("", String::as_str);
        let mapping = match name {
            "username" => Some(&authenticator.username),
            "groups" => authenticator.groups.as_ref(),
            "uid" => authenticator.uid.as_ref(),
            _ => None,
        };
        let value = value.cloned().unwrap_or_else(|| json!(""));
        let solutions = match mapping {
            Some(AttributeMapping::Claim { claim, prefix }) => {
                let value = without_prefix(&value, prefix);
                vec![Assignment::one(Place::claim(claim), Some(value))]
            }
            Some(AttributeMapping::Expression(expression)) => {
                Solver { tree: expression.program.tree() }.value(&value)
            }
            None => extra_solutions(place, &value, authenticator),
        };
        if let Some(solution) = solutions.first() {
            claims = claims.with(solution);
        }
    }
    claims
}

fn extra_solutions(place: &Place, value: &Value, authenticator: &CompiledAuthenticator) -> Vec<Assignment> {
    let key = place.fields.get(1);
    let extra = authenticator.extra.iter().find(|extra| Some(&extra.key) == key);
    extra.map(|extra| Solver { tree: extra.value.program.tree() }.value(value)).unwrap_or_default()
}

fn without_prefix(value: &Value, prefix: &str) -> Value {
    match value {
        Value::String(text) => json!(text.strip_prefix(prefix).unwrap_or(text)),
        Value::Array(list) => list.iter().map(|value| without_prefix(value, prefix)).collect(),
        other => other.clone(),
    }
}

/// The claims that expressions read.
fn read_claims(authenticator: &CompiledAuthenticator) -> Vec<Place> {
    let places =
        |expression: &CompiledExpression| Solver { tree: expression.program.tree() }.places("claims");
    expressions(authenticator).flat_map(places).collect()
}

/// Audiences alone, in lists, missing, and of neither side.
fn audiences(authenticators: &[&CompiledAuthenticator]) -> Vec<Assignment> {
    let mut known: Vec<&String> = authenticators.iter().flat_map(|one| &one.issuer.audiences).collect();
    known.sort();
    known.dedup();
    let mut values = vec![Some(json!("x")), Some(json!([])), Some(json!("")), None];
    for audience in &known {
        values.extend([
            Some(json!(audience)),
            Some(json!([audience])),
            Some(json!([audience, "x"])),
            Some(json!(audience.to_uppercase())),
        ]);
    }
    values.push(Some(json!(known)));
    values.into_iter().map(|value| Assignment::one(Place::claim("aud"), value)).collect()
}

/// Times around every leeway, and of other types.
fn times(now: i64) -> Vec<Assignment> {
    let mut leeways: Vec<i64> =
        KubeVersion::ALL.iter().map(|version| version.facts().not_before_leeway).collect();
    leeways.sort_unstable();
    leeways.dedup();
    let mut changes = Vec::new();
    for name in ["nbf", "exp", "iat"] {
        let steps = leeways.iter().chain(&[0]).flat_map(|leeway| [leeway - 1, *leeway, leeway + 1]);
        let times = steps.map(|step| json!(now + step));
        let odd = [json!(null), json!("x"), json!(now.to_string()), json!(i64::MAX)];
        let all = times.chain(odd).map(Some).chain([None]);
        changes.extend(all.map(|value| Assignment::one(Place::claim(name), value)));
    }
    changes
}

/// A deterministic source of numbers (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn pick<'l, T>(&mut self, list: &'l [T]) -> Option<&'l T> {
        let count = u64::try_from(list.len()).ok().filter(|count| *count > 0)?;
        list.get(usize::try_from(self.next() % count).ok()?)
    }
}
