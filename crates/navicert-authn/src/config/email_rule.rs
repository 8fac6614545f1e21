//! The e-mail rule: whoever takes a user's name from `claims.email` must look at `claims.email_verified` too
//! (S48–S54). Decided on the checked tree, so no spelling of the text escapes it by accident.

use navicert_cel::Program;
use navicert_cel::syntax::query;

use crate::profile::{Profile, Rule};

/// Whether an expression uses a claim, as the profile counts it.
///
/// kube-apiserver counts selections by name only; with H3 brackets and `dyn(claims)` count in both directions.
pub(super) fn uses(program: &Program, claim: &str, profile: &Profile) -> bool {
    if profile.has(Rule::H3) {
        query::mentioned_fields(program.tree(), "claims").contains(&claim)
    } else {
        query::selects(program.tree(), "claims", claim)
    }
}

/// What is said when the rule is broken.
pub(super) const DETAIL: &str = "claims.email_verified must be used in claimMappings.username.expression or \
    claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is used in \
    claimMappings.username.expression";
