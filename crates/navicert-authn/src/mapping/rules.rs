//! What has to hold: required claims, rules over the claims, rules over the user.

use navicert_cel::{Bindings, Val};

use super::{Evaluator, User};
use crate::authenticator::Question;
use crate::config::{RequiredClaim, Rule};
use crate::explain::Step;
use crate::jwt::VerifiedClaims;
use crate::outcome::{Purpose, Refusal};

/// S139; null counts as empty.
pub(super) fn required_claims(
    required: &[RequiredClaim],
    claims: &VerifiedClaims<'_>,
    question: &Question<'_>,
) -> Result<(), Refusal> {
    for rule in required {
        let value = claims
            .claim(&rule.claim)
            .and_then(|raw| if raw.is_null() { Some("".into()) } else { raw.string() });
        if value.is_none_or(|value| value != rule.value.as_str()) {
            return Err(Refusal::RequiredClaim { path: rule.path.clone(), claim: rule.claim.clone() });
        }
    }
    question.passed(Step::RequiredClaims);
    Ok(())
}

/// Rules over `claims`.
pub(super) fn over_claims<'a>(rules: &'a [Rule], evaluator: &Evaluator<'a, '_>) -> Result<(), Refusal> {
    match first_false(rules, evaluator, Purpose::ClaimRule)? {
        None => {
            evaluator.question.passed(Step::ClaimRules);
            Ok(())
        }
        Some(rule) => Err(Refusal::ClaimRule {
            path: rule.expression.path.clone(),
            text: rule.expression.text.clone(),
            message: rule.message.clone(),
        }),
    }
}

/// Rules over `user`.
pub(super) fn over_user<'a>(
    rules: &'a [Rule],
    user: &'a User,
    over_claims: &Evaluator<'a, '_>,
) -> Result<(), Refusal> {
    if rules.is_empty() {
        over_claims.question.passed(Step::UserRules);
        return Ok(());
    }
    let value = user.as_rules_see_it().val(over_claims.arena);
    let value = value.ok_or(Refusal::TooLarge("the user is larger than it may be"))?;
    let bindings = Bindings::new().with("user", value);
    let evaluator = Evaluator { arena: over_claims.arena, bindings, question: over_claims.question };
    match first_false(rules, &evaluator, Purpose::UserRule)? {
        None => {
            evaluator.question.passed(Step::UserRules);
            Ok(())
        }
        Some(rule) => Err(Refusal::UserRule {
            path: rule.expression.path.clone(),
            text: rule.expression.text.clone(),
            message: rule.message.clone(),
        }),
    }
}

/// Every rule is evaluated: an error anywhere comes before any false (S91).
fn first_false<'a>(
    rules: &'a [Rule],
    evaluator: &Evaluator<'a, '_>,
    purpose: Purpose,
) -> Result<Option<&'a Rule>, Refusal> {
    let mut first = None;
    for rule in rules {
        let value = evaluator.value(&rule.expression, purpose)?;
        if first.is_none() && !matches!(value, Val::Bool(true)) {
            first = Some(rule);
        }
    }
    Ok(first)
}
