//! Maps verified claims to a user: `distributed` (may need a request) → `user` (username, groups, UID, extra) → `rules` (claims, then
//! the user).
//! Mappings run before rules, as in kube-apiserver, which determines the error that is reported.
// S131

pub(crate) mod claims_value;
pub(crate) mod distributed;
mod identity;
mod rules;
mod user;

use std::cell::Cell;

use navicert_cel::{Arena, Bindings, ClaimSet, Claims, EvalLimits, EvaluationError, ValueRef};

use crate::config::{CompiledAuthenticator, CompiledExpression};
use crate::jwt::VerifiedClaims;
use crate::model::outcome::{Purpose, Refusal};
use crate::model::{AuthenticatedUser, AuthnRequest, AuthnStep};
use crate::profile::{AuthnProfile, Hardening};

use distributed::DistributedClaimRef;

/// Maps claims to a user and checks every rule. Expressions see `claim_refs` claims as present but not fetched.
pub(crate) fn user(
    configuration: &CompiledAuthenticator,
    claims: &VerifiedClaims<'_>,
    claim_refs: &[DistributedClaimRef],
    request: &AuthnRequest<'_>,
    profile: &AuthnProfile,
) -> Result<AuthenticatedUser, Refusal> {
    let mut set = claims_value::convert(claims, configuration.accessed_claims.as_deref(), profile)?;
    claim_refs.iter().for_each(|one| one.insert_into(&mut set));
    // Each thread reuses one arena; an unusually large one is freed.
    let arena = ARENA.take().unwrap_or_default().with_max_pattern_bytes(profile.limits.pattern);
    let user = mapped(configuration, claims, (&set, &arena), request, profile);
    if arena.used() <= MAX_RETAINED_ARENA_BYTES {
        let mut arena = arena;
        arena.reset();
        ARENA.set(Some(arena));
    }
    user
}

thread_local! {
    /// The arena for the next token's expressions: empty, with its memory.
    static ARENA: Cell<Option<Arena>> = const { Cell::new(None) };
}

/// Larger arenas are freed instead of reused.
const MAX_RETAINED_ARENA_BYTES: usize = 64 << 10;

fn mapped(
    configuration: &CompiledAuthenticator,
    claims: &VerifiedClaims<'_>,
    (set, arena): (&ClaimSet<'_>, &Arena),
    request: &AuthnRequest<'_>,
    profile: &AuthnProfile,
) -> Result<AuthenticatedUser, Refusal> {
    let over_claims = Evaluator {
        arena,
        bindings: Bindings::new().with("claims", ValueRef::Claims(Claims::Set(set))),
        request,
    };
    let user = user::map(configuration, claims, &over_claims, profile)?;
    rules::required_claims(&configuration.required_claims, claims, request)?;
    rules::over_claims(&configuration.claim_rules, &over_claims)?;
    rules::over_user(&configuration.user_rules, &user, &over_claims)?;
    identity::check(&user, claims, &configuration.settings, profile)?;
    request.passed(AuthnStep::Identity);
    Ok(if profile.has(Hardening::DropEmptyGroups) {
        user::without_empty_groups(user, configuration.groups.as_ref())
    } else {
        user
    })
}

/// What an expression is evaluated with.
pub(crate) struct Evaluator<'a, 'q> {
    arena: &'a Arena,
    bindings: Bindings<'a>,
    request: &'q AuthnRequest<'q>,
}

impl<'a> Evaluator<'a, '_> {
    /// Evaluates an expression.
    #[inline]
    fn value(&self, expression: &'a CompiledExpression, purpose: Purpose) -> Result<ValueRef<'a>, Refusal> {
        let limits = EvalLimits { interrupt: self.request.interrupt, ..EvalLimits::KUBERNETES };
        let outcome = match self.request.observer {
            None => expression.program.evaluate_within(self.arena, &self.bindings, &limits),
            Some(observer) => {
                let (outcome, parts) = expression.program.trace(self.arena, &self.bindings, &limits);
                observer.evaluated(&expression.path, &expression.text, &parts);
                outcome
            }
        };
        match outcome {
            Ok(evaluation) => Ok(evaluation.value),
            Err(error) => Err(failed(expression, purpose, error)),
        }
    }
}

#[cold]
fn failed(expression: &CompiledExpression, purpose: Purpose, error: EvaluationError) -> Refusal {
    Refusal::Evaluation {
        path: expression.path.clone(),
        text: expression.text.clone(),
        purpose,
        error: Box::new(error),
    }
}
