//! For whom a token may be (S221). Callers name audiences; we answer for those that we speak for, and never for others.

use std::borrow::Cow;

use navicert_authn::{Judgement, Outcome, jwt};
use navicert_types::token_review::Question;

use super::{AudienceMode, Route, Settings};

/// The audiences that were asked for and are ours, in the order of the question.
///
/// # Errors
/// Some were asked for, and none of them is ours.
pub(super) fn wanted<'q>(
    question: &'q Question<'_>,
    settings: &'q Settings,
    route: Route,
) -> Result<Vec<Cow<'q, str>>, NotOurs> {
    if question.audiences.is_empty() {
        // A webhook says nothing, which means the API server itself. The API says which one that is (S226).
        let own = if route == Route::Api { settings.server_audiences.as_slice() } else { &[] };
        return Ok(own.iter().map(|audience| Cow::Borrowed(audience.as_str())).collect());
    }
    let asked = question.audiences.iter().map(|audience| Cow::Borrowed(&**audience));
    let ours: Vec<_> = match settings.audience_mode {
        AudienceMode::Server => {
            asked.filter(|audience| settings.server_audiences.iter().any(|own| own == audience)).collect()
        }
        AudienceMode::Token => asked.collect(),
    };
    if ours.is_empty() { Err(NotOurs) } else { Ok(ours) }
}

/// Nobody we speak for was asked about.
#[derive(Debug)]
pub(super) struct NotOurs;

/// The audiences to tell; `None` if the token is for none of those that were asked about.
pub(super) fn told<'q>(
    wanted: Vec<Cow<'q, str>>,
    token: &str,
    judgement: &Judgement,
    settings: &Settings,
) -> Option<Vec<Cow<'q, str>>> {
    let is_asked = !wanted.is_empty() && settings.audience_mode == AudienceMode::Token;
    if !is_asked || !matches!(judgement.outcome, Outcome::Authenticated(_)) {
        return Some(wanted);
    }
    // The signature has been verified: the token's own word counts.
    let own = jwt::audiences_of_verified(token);
    let both: Vec<_> = wanted.into_iter().filter(|audience| own.iter().any(|own| own == audience)).collect();
    (!both.is_empty()).then_some(both)
}
