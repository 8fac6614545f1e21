//! Audiences of a review. The webhook answers only for the audiences it is configured for.
// S221

use std::borrow::Cow;

use navicert_authn::{AuthnDecision, AuthnOutcome};
use navicert_types::token_review::TokenReviewRequest;

use super::{AudienceMode, Route, WebhookSettings};

/// The requested audiences that the webhook is responsible for, in request order.
///
/// # Errors
/// None of the requested audiences is configured.
pub(super) fn requested<'q>(
    review: &'q TokenReviewRequest<'_>,
    settings: &'q WebhookSettings,
    route: Route,
) -> Result<Vec<Cow<'q, str>>, NoCommonAudience> {
    if review.audiences.is_empty() {
        // A webhook request without audiences means the API server itself. The TokenReview API returns its
        // configured audiences (S226).
        let own = if route == Route::Api { settings.server_audiences.as_slice() } else { &[] };
        return Ok(own.iter().map(|audience| Cow::Borrowed(audience.as_str())).collect());
    }
    let audiences = review.audiences.iter().map(|audience| Cow::Borrowed(&**audience));
    let accepted: Vec<_> = match settings.audience_mode {
        AudienceMode::Server => {
            audiences.filter(|audience| settings.server_audiences.iter().any(|own| own == audience)).collect()
        }
        AudienceMode::Token => audiences.collect(),
    };
    if accepted.is_empty() { Err(NoCommonAudience) } else { Ok(accepted) }
}

/// None of the requested audiences is configured.
#[derive(Debug)]
pub(super) struct NoCommonAudience;

/// The audiences to return; `None` if the token has none of the requested ones.
pub(super) fn granted<'q>(
    requested: Vec<Cow<'q, str>>,
    judgement: &AuthnDecision,
    settings: &WebhookSettings,
) -> Option<Vec<Cow<'q, str>>> {
    let is_asked = !requested.is_empty() && settings.audience_mode == AudienceMode::Token;
    if !is_asked || !matches!(judgement.outcome, AuthnOutcome::Authenticated(_)) {
        return Some(requested);
    }
    // Those that the verifier compared with the configuration.
    let own = judgement.audiences();
    let both: Vec<_> =
        requested.into_iter().filter(|audience| own.iter().any(|own| own == audience)).collect();
    (!both.is_empty()).then_some(both)
}
