//! Validation rules: required claims, rules over the claims, rules over the user.

use navicert_cel::{Bindings, ValueRef};

use super::Evaluator;
use crate::config::{RequiredClaim, ValidationRule};
use crate::jwt::VerifiedClaims;
use crate::model::outcome::{Purpose, Refusal};
use crate::model::{AuthenticatedUser, AuthnRequest, AuthnStep};

/// Checks required claims; null counts as empty.
// S139
pub(super) fn required_claims(
    required: &[RequiredClaim],
    claims: &VerifiedClaims<'_>,
    request: &AuthnRequest<'_>,
) -> Result<(), Refusal> {
    for rule in required {
        let value = claims
            .claim(&rule.claim)
            .and_then(|raw| if raw.is_null() { Some("".into()) } else { raw.string() });
        if value.is_none_or(|value| value != rule.value.as_str()) {
            return Err(Refusal::RequiredClaim { path: rule.path.clone(), claim: rule.claim.clone() });
        }
    }
    request.passed(AuthnStep::RequiredClaims);
    Ok(())
}

/// Evaluates claim validation rules.
pub(super) fn over_claims<'a>(
    rules: &'a [ValidationRule],
    evaluator: &Evaluator<'a, '_>,
) -> Result<(), Refusal> {
    match first_false(rules, evaluator, Purpose::ClaimRule)? {
        None => {
            evaluator.request.passed(AuthnStep::ClaimRules);
            Ok(())
        }
        Some(rule) => Err(Refusal::ClaimRule {
            path: rule.expression.path.clone(),
            text: rule.expression.text.clone(),
            message: rule.message.clone(),
        }),
    }
}

/// Evaluates user validation rules.
pub(super) fn over_user<'a>(
    rules: &'a [ValidationRule],
    user: &'a AuthenticatedUser,
    over_claims: &Evaluator<'a, '_>,
) -> Result<(), Refusal> {
    if rules.is_empty() {
        over_claims.request.passed(AuthnStep::UserRules);
        return Ok(());
    }
    let value = user.as_cel_user().val(over_claims.arena);
    let value = value.ok_or(Refusal::IdentityTooLarge)?;
    let bindings = Bindings::new().with("user", value);
    let evaluator = Evaluator { arena: over_claims.arena, bindings, request: over_claims.request };
    match first_false(rules, &evaluator, Purpose::UserRule)? {
        None => {
            evaluator.request.passed(AuthnStep::UserRules);
            Ok(())
        }
        Some(rule) => Err(Refusal::UserRule {
            path: rule.expression.path.clone(),
            text: rule.expression.text.clone(),
            message: rule.message.clone(),
        }),
    }
}

/// Evaluates every rule: any error takes precedence over any false.
// S91
fn first_false<'a>(
    rules: &'a [ValidationRule],
    evaluator: &Evaluator<'a, '_>,
    purpose: Purpose,
) -> Result<Option<&'a ValidationRule>, Refusal> {
    let mut first = None;
    for rule in rules {
        let value = evaluator.value(&rule.expression, purpose)?;
        if first.is_none() && !matches!(value, ValueRef::Bool(true)) {
            first = Some(rule);
        }
    }
    Ok(first)
}
