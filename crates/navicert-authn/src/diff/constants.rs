//! The constants and boundaries of a configuration: which claims it reads, and which values of them it names.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::places::{Assignment, Place};
use super::solve::{Solver, others};
use crate::config::{AttributeMapping, CompiledAuthenticator, CompiledExpression};

/// Maximum number of values that are tried for one claim.
const MAX_VALUES: usize = 40;

/// Values for every claim that the authenticators of an issuer read, on both sides.
#[derive(Debug, Default)]
pub(super) struct Domain {
    claims: BTreeMap<Vec<String>, Vec<Value>>,
}

impl Domain {
    /// Adds what one authenticator reads.
    pub(super) fn add(&mut self, authenticator: &CompiledAuthenticator) {
        for (name, prefix) in mapped_claims(authenticator) {
            let prefixes = [prefix.clone(), format!("{prefix}x")];
            let values = prefixes.into_iter().filter(|text| !text.is_empty()).map(|text| json!(text));
            self.insert(&[name], values.collect());
        }
        for required in &authenticator.required_claims {
            let value = json!(required.value);
            let near = others(&value);
            self.insert(std::slice::from_ref(&required.claim), [vec![value], near].concat());
        }
        for expression in expressions(authenticator) {
            let solver = Solver { tree: expression.program.tree() };
            let literals: Vec<Value> = solver.literals().iter().flat_map(near).collect();
            for place in solver.places("claims") {
                self.insert(&place.fields, literals.clone());
            }
        }
        self.insert(&["email_verified".to_owned()], vec![json!(true), json!(false)]);
    }

    fn insert(&mut self, fields: &[String], values: Vec<Value>) {
        let known = self.claims.entry(fields.to_vec()).or_default();
        for value in values {
            if known.len() < MAX_VALUES && !known.contains(&value) {
                known.push(value);
            }
        }
    }

    /// One change of one claim each: every known value, the usual types, and its absence.
    pub(super) fn changes(&self) -> Vec<Assignment> {
        let usual = [
            json!("x"),
            json!(""),
            json!(["x"]),
            json!([]),
            json!(true),
            json!(false),
            json!(1),
            json!({"x": "y"}),
            Value::Null,
        ];
        let mut changes = Vec::new();
        for (fields, values) in &self.claims {
            let place = Place { variable: "claims".to_owned(), fields: fields.clone() };
            let all = values.iter().chain(&usual).cloned().map(Some).chain([None]);
            changes.extend(all.map(|value| Assignment::one(place.clone(), value)));
        }
        changes
    }
}

/// All expressions of an authenticator.
pub(super) fn expressions(
    authenticator: &CompiledAuthenticator,
) -> impl Iterator<Item = &CompiledExpression> {
    let mappings = [Some(&authenticator.username), authenticator.groups.as_ref(), authenticator.uid.as_ref()];
    let mapped = mappings.into_iter().flatten().filter_map(|mapping| match mapping {
        AttributeMapping::Expression(expression) => Some(&**expression),
        AttributeMapping::Claim { .. } => None,
    });
    let extra = authenticator.extra.iter().map(|extra| &extra.value);
    let rules = authenticator.claim_rules.iter().chain(&authenticator.user_rules);
    mapped.chain(extra).chain(rules.map(|rule| &rule.expression))
}

/// The claims that are mapped by name, with their prefixes.
pub(super) fn mapped_claims(authenticator: &CompiledAuthenticator) -> Vec<(String, String)> {
    let mappings = [Some(&authenticator.username), authenticator.groups.as_ref(), authenticator.uid.as_ref()];
    let claim = |mapping: &AttributeMapping| match mapping {
        AttributeMapping::Claim { claim, prefix } => Some((claim.clone(), prefix.clone())),
        AttributeMapping::Expression(_) => None,
    };
    mappings.into_iter().flatten().filter_map(claim).collect()
}

/// A literal, its neighbours, and a list with it.
fn near(value: &Value) -> Vec<Value> {
    let mut found = vec![value.clone()];
    found.extend(others(value));
    if let Value::String(text) = value {
        found.push(json!([text]));
        found.push(json!([text, "x"]));
        found.push(json!(format!("x{text}")));
        found.push(json!(text.to_uppercase()));
    }
    found
}
