//! The decision on one request: token, configured issuers, the cluster's service accounts, TokenReview.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use navicert_authn::config::AuthnReloader;
use navicert_authn::jwks::IssuerHealth;
use navicert_authn::outcome::RefusalClass;
use navicert_authn::{AuthenticatedUser, AuthnDecision, AuthnOutcome, ReloadableAuthenticator};
use navicert_client::transport::Timer;
use navicert_server::background_tasks::BackgroundTasks;
use navicert_server::bearer;
use navicert_server::proxy::service_accounts::ServiceAccountReviews;
use navicert_server::with_timeout;
use navicert_types::token_review::UserInfo;

/// What happens to a request without a bearer token. A request with an invalid token is always rejected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MissingToken {
    /// It is answered with 401.
    #[default]
    Reject,
    /// It is passed on without an [`AuthenticatedUser`].
    Anonymous,
}

/// What happens to a request.
#[derive(Debug)]
pub(crate) enum RequestDecision {
    /// Passed on with this user.
    Authenticated(AuthenticatedUser),
    /// Passed on without a user.
    Anonymous,
    /// Answered with 401, for this reason, which names no part of the token.
    Rejected(&'static str),
}

/// A configuration in service, with its background tasks.
#[derive(Debug)]
pub(crate) struct RunningAuthenticator {
    authenticator: Arc<ReloadableAuthenticator>,
    /// Refresh keys and reload files until the last clone of the layer is dropped.
    _tasks: BackgroundTasks,
}

impl RunningAuthenticator {
    /// Starts the background tasks on the current runtime.
    pub(crate) fn start(reloader: AuthnReloader, timer: Arc<dyn Timer>) -> Self {
        let reloader = Arc::new(reloader);
        let authenticator = Arc::clone(reloader.authenticator());
        RunningAuthenticator { authenticator, _tasks: BackgroundTasks::start(reloader, timer) }
    }
}

/// Authenticates requests.
pub(crate) struct RequestAuthenticator {
    /// The configured issuers.
    pub(crate) configured: Option<RunningAuthenticator>,
    /// The cluster as an issuer of service account tokens.
    pub(crate) cluster: Option<RunningAuthenticator>,
    pub(crate) reviews: Option<ServiceAccountReviews>,
    /// The token must be for one of these; empty: for those of its issuer's configuration.
    pub(crate) audiences: Vec<String>,
    pub(crate) missing_token: MissingToken,
    pub(crate) timeout: Duration,
}

impl RequestAuthenticator {
    /// Decides on a request by its headers.
    pub(crate) async fn authenticate(&self, headers: &HeaderMap) -> RequestDecision {
        match bearer::token(headers) {
            Ok(Some(token)) => {
                let decided = with_timeout(self.timeout, self.decide(token)).await;
                decided.unwrap_or(RequestDecision::Rejected("timeout"))
            }
            Ok(None) => match self.missing_token {
                MissingToken::Anonymous => RequestDecision::Anonymous,
                MissingToken::Reject => RequestDecision::Rejected("no_token"),
            },
            // Several Authorization headers: another server might use the other one (S244).
            Err(_) => RequestDecision::Rejected("request"),
        }
    }

    /// The first source that knows the token's issuer decides.
    async fn decide(&self, token: &str) -> RequestDecision {
        if let Some(configured) = &self.configured {
            let decision = configured.authenticator.decide(token).await;
            if !matches!(decision.outcome, AuthnOutcome::NoOpinion(_)) {
                return self.request_decision(decision);
            }
        }
        if let Some(cluster) = &self.cluster {
            let decision = cluster.authenticator.decide(token).await;
            let is_open = match &decision.outcome {
                AuthnOutcome::NoOpinion(_) => true,
                // The keys at hand do not suffice: the API server decides on its own tokens.
                AuthnOutcome::Rejected(why) => why.refusal.is_transient() && self.reviews.is_some(),
                AuthnOutcome::Authenticated(_) => false,
            };
            if !is_open {
                return self.request_decision(decision);
            }
        }
        match &self.reviews {
            Some(reviews) => review_decision(reviews, token).await,
            None => RequestDecision::Rejected("unknown_issuer"),
        }
    }

    fn request_decision(&self, decision: AuthnDecision) -> RequestDecision {
        // As they were verified: the token is not parsed a second time.
        let is_for = |audience: &String| decision.audiences().contains(audience);
        let has_audience = self.audiences.is_empty() || self.audiences.iter().any(is_for);
        match decision.outcome {
            AuthnOutcome::Authenticated(user) if has_audience => RequestDecision::Authenticated(user),
            AuthnOutcome::Authenticated(_) => RequestDecision::Rejected(RefusalClass::Audience.name()),
            AuthnOutcome::Rejected(rejection) => RequestDecision::Rejected(rejection.refusal.class().name()),
            AuthnOutcome::NoOpinion(_) => RequestDecision::Rejected("unknown_issuer"),
        }
    }

    pub(crate) fn health(&self) -> Vec<(String, IssuerHealth)> {
        let running = [&self.configured, &self.cluster].into_iter().flatten();
        running.flat_map(|running| running.authenticator.health()).collect()
    }
}

async fn review_decision(reviews: &ServiceAccountReviews, token: &str) -> RequestDecision {
    match reviews.review(token).await {
        Ok(Some(user)) => {
            let user = UserInfo::clone(&user);
            RequestDecision::Authenticated(AuthenticatedUser::from_token_review(user))
        }
        Ok(None) => RequestDecision::Rejected("unknown_token"),
        Err(_) => RequestDecision::Rejected("not_reviewed"),
    }
}

impl fmt::Debug for RequestAuthenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestAuthenticator")
            .field("issuers", &self.health().iter().map(|(issuer, _)| issuer).collect::<Vec<_>>())
            .field("audiences", &self.audiences)
            .field("missing_token", &self.missing_token)
            .field("reviews", &self.reviews.is_some())
            .finish_non_exhaustive()
    }
}
