//! From verified claims to a user: `distributed` (before the rest, may take a request) → `user` (name, groups, UID, extra) → `rules` (claims, then the user).
//! Mappings run before rules, as in kube-apiserver; it decides which error is seen (S131).

pub(crate) mod claims_value;
pub(crate) mod distributed;
mod identity;
mod rules;
mod user;

use std::cell::Cell;

use navicert_cel::{Arena, Bindings, ClaimSet, Claims, EvaluationError, Limits, Val};

use crate::authenticator::Question;
use crate::config::{CompiledAuthenticator, Expression};
use crate::explain::Step;
use crate::jwt::VerifiedClaims;
use crate::outcome::{Purpose, Refusal};
use crate::profile::{Profile, Rule};

use distributed::Elsewhere;
pub use user::CREDENTIAL_ID;

pub use user::User;

/// Asked now and then while an expression runs: `true` stops it.
pub type Interrupt<'i> = Option<&'i (dyn Fn() -> bool + Sync)>;

/// The user that verified claims stand for, if every rule holds. Of what is `elsewhere`, expressions see that it is there.
pub(crate) fn user(
    configuration: &CompiledAuthenticator,
    claims: &VerifiedClaims<'_>,
    elsewhere: &[Elsewhere],
    question: &Question<'_>,
    profile: &Profile,
) -> Result<User, Refusal> {
    let mut set = claims_value::convert(claims, configuration.reached.as_deref(), profile)?;
    elsewhere.iter().for_each(|one| one.show(&mut set));
    // An arena's memory is taken once for each thread; a larger one than usual is given back.
    let arena = ARENA.take().unwrap_or_default().with_longest_pattern(profile.limits.pattern);
    let user = mapped(configuration, claims, (&set, &arena), question, profile);
    if arena.used() <= KEPT_ARENA {
        let mut arena = arena;
        arena.reset();
        ARENA.set(Some(arena));
    }
    user
}

thread_local! {
    /// Where the next token's expressions are evaluated: empty, with its memory.
    static ARENA: Cell<Option<Arena>> = const { Cell::new(None) };
}

/// An arena that held more bytes is not kept.
const KEPT_ARENA: usize = 64 << 10;

fn mapped(
    configuration: &CompiledAuthenticator,
    claims: &VerifiedClaims<'_>,
    (set, arena): (&ClaimSet<'_>, &Arena),
    question: &Question<'_>,
    profile: &Profile,
) -> Result<User, Refusal> {
    let over_claims = Evaluator {
        arena,
        bindings: Bindings::new().with("claims", Val::Claims(Claims::Set(set))),
        question,
    };
    let user = user::map(configuration, claims, &over_claims, profile)?;
    rules::required_claims(&configuration.required_claims, claims, question)?;
    rules::over_claims(&configuration.claim_rules, &over_claims)?;
    rules::over_user(&configuration.user_rules, &user, &over_claims)?;
    identity::check(&user, claims, configuration.settings.allow_system_prefix, profile)?;
    question.passed(Step::Identity);
    Ok(if profile.has(Rule::H15) { user.without_empty_groups(configuration.groups.as_ref()) } else { user })
}

/// What an expression is evaluated with.
pub(crate) struct Evaluator<'a, 'q> {
    arena: &'a Arena,
    bindings: Bindings<'a>,
    question: &'q Question<'q>,
}

impl<'a> Evaluator<'a, '_> {
    /// The value of an expression.
    #[inline]
    fn value(&self, expression: &'a Expression, purpose: Purpose) -> Result<Val<'a>, Refusal> {
        let limits = Limits { interrupt: self.question.interrupt, ..Limits::KUBERNETES };
        let outcome = match self.question.observer {
            None => expression.program.evaluate_within(self.arena, &self.bindings, &limits),
            Some(observer) => {
                let (outcome, parts) = expression.program.trace(self.arena, &self.bindings, &limits);
                observer.evaluated(expression, &parts);
                outcome
            }
        };
        match outcome {
            Ok(evaluation) => Ok(evaluation.value),
            Err(source) => Err(failed(expression, purpose, source)),
        }
    }
}

#[cold]
fn failed(expression: &Expression, purpose: Purpose, source: EvaluationError) -> Refusal {
    Refusal::Evaluation {
        path: expression.path.clone(),
        text: expression.text.clone(),
        purpose,
        source: Box::new(source),
    }
}
