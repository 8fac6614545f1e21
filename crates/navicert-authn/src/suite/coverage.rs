//! Mutation coverage: removes every rule and mapping in turn; if all cases still pass, no case tests it. This is stricter than
//! checking whether it was evaluated.

use navicert_types::FieldPath;
use navicert_types::authentication_config::{
    AuthenticationConfiguration, ClaimOrExpression, JwtAuthenticator, PrefixedClaimOrExpression,
};

/// How much of a configuration a suite tests.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Coverage {
    /// Rules and mappings whose removal fails a case.
    pub covered: usize,
    /// Rules and mappings whose removal fails no case.
    pub gaps: Vec<Gap>,
}

/// A rule or mapping that no case tests.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Gap {
    /// Its field path.
    pub path: FieldPath,
    /// What a case for it has to show.
    pub missing: &'static str,
}

impl Coverage {
    /// Removes each rule and mapping in turn. `notices` returns whether a case fails under the changed configuration.
    pub(super) fn measure(
        configuration: &AuthenticationConfiguration,
        notices: impl Fn(&AuthenticationConfiguration) -> bool,
    ) -> Self {
        let mut coverage = Coverage { covered: 0, gaps: Vec::new() };
        for (gap, mutant) in mutants(configuration) {
            if notices(&mutant) {
                coverage.covered += 1;
            } else {
                coverage.gaps.push(gap);
            }
        }
        coverage
    }
}

/// Every rule and mapping, with the configuration without it.
pub(super) fn mutants(
    configuration: &AuthenticationConfiguration,
) -> Vec<(Gap, AuthenticationConfiguration)> {
    let mut found = Vec::new();
    for (index, authenticator) in configuration.jwt.iter().enumerate() {
        let path = FieldPath::root().field("jwt").index(index);
        let mut add = |path: FieldPath, missing: &'static str, change: &dyn Fn(&mut JwtAuthenticator)| {
            let mut mutant = configuration.clone();
            if let Some(authenticator) = mutant.jwt.get_mut(index) {
                change(authenticator);
            }
            found.push((Gap { path, missing }, mutant));
        };
        mappings(authenticator, &path, &mut add);
        rules(authenticator, &path, &mut add);
    }
    found
}

type Add<'a> = dyn FnMut(FieldPath, &'static str, &dyn Fn(&mut JwtAuthenticator)) + 'a;

fn mappings(authenticator: &JwtAuthenticator, path: &FieldPath, add: &mut Add<'_>) {
    let mappings = &authenticator.claim_mappings;
    let path = path.field("claimMappings");
    add(path.field("username"), "no case expects a user", &|one| {
        let username = &mut one.claim_mappings.username;
        if username.expression.is_empty() {
            username.prefix.get_or_insert_default().push_str("mutant:");
        } else {
            username.expression = format!("'mutant:' + string({})", username.expression);
        }
    });
    if mappings.groups != PrefixedClaimOrExpression::default() {
        add(path.field("groups"), "no case expects a user with groups", &|one| {
            one.claim_mappings.groups = PrefixedClaimOrExpression::default();
        });
    }
    if mappings.uid != ClaimOrExpression::default() {
        add(path.field("uid"), "no case expects a user with a UID", &|one| {
            one.claim_mappings.uid = ClaimOrExpression::default();
        });
    }
    for index in 0..mappings.extra.len() {
        add(path.field("extra").index(index), "no case expects a user with this attribute", &|one| {
            one.claim_mappings.extra.remove(index);
        });
    }
}

fn rules(authenticator: &JwtAuthenticator, path: &FieldPath, add: &mut Add<'_>) {
    let missing = "no case is refused because of it alone";
    for (index, rule) in authenticator.claim_validation_rules.iter().enumerate() {
        add(path.field("claimValidationRules").index(index), missing, &|one| {
            if rule.expression.is_empty() {
                one.claim_validation_rules.remove(index);
            } else if let Some(rule) = one.claim_validation_rules.get_mut(index) {
                rule.expression = always_true(&rule.expression);
            }
        });
    }
    for index in 0..authenticator.user_validation_rules.len() {
        add(path.field("userValidationRules").index(index), missing, &|one| {
            if let Some(rule) = one.user_validation_rules.get_mut(index) {
                rule.expression = always_true(&rule.expression);
            }
        });
    }
}

/// An expression that is always true, also if the original fails. The original stays in the text: the e-mail rule may need it.
fn always_true(expression: &str) -> String {
    format!("({expression}) || true")
}
