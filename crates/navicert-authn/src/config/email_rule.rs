//! The e-mail rule: a configuration that takes the username from `claims.email` must also use `claims.email_verified`.
//! Decided on the checked syntax tree, so it does not depend on how the expression is written.
// S48–S54

use navicert_cel::Program;
use navicert_cel::syntax::query;

use crate::profile::{AuthnProfile, Hardening};

/// Whether an expression uses a claim, by the rules of the profile.
///
/// kube-apiserver counts selections by name only; [`Hardening::StrictEmailRule`] also counts index expressions and
/// `dyn(claims)`, both for `email` and for `email_verified`.
pub(super) fn uses(program: &Program, claim: &str, profile: &AuthnProfile) -> bool {
    if profile.has(Hardening::StrictEmailRule) {
        query::mentioned_fields(program.tree(), "claims").contains(&claim)
    } else {
        query::selects(program.tree(), "claims", claim)
    }
}

/// The violation's detail, in kube-apiserver's words.
pub(super) const DETAIL: &str = "claims.email_verified must be used in claimMappings.username.expression or \
    claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is used in \
    claimMappings.username.expression";
