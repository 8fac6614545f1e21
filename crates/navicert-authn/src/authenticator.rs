//! The spine: one short function that leads a token through all checks, in order.

use std::sync::Arc;

use navicert_types::Timestamp;

use crate::config::{Compiled, CompiledAuthenticator, CompiledIssuer};
use crate::explain::{Observer, Step};
use crate::issuers::Issuers;
use crate::jwks::{Keys, KeysUnavailable};
use crate::jwt::claims::UnverifiedClaims;
use crate::jwt::compact::{Part, RawToken};
use crate::jwt::header::Header;
use crate::jwt::{Algorithms, VerifiedClaims, signature};
use crate::mapping::{self, Interrupt, User};
use crate::outcome::{NoOpinion, Outcome, Refusal, Rejection};
use crate::profile::Profile;

/// All authenticators of a configuration, each with its issuer's keys.
#[derive(Debug)]
pub struct Authenticators {
    issuers: Issuers,
    profile: Profile,
}

/// One issuer's authenticator.
#[derive(Debug)]
pub(crate) struct Authenticator {
    pub(crate) configuration: CompiledAuthenticator,
    keys: Arc<dyn Keys>,
    algorithms: Algorithms,
}

/// A question: whose token is this, now?
#[derive(Clone, Copy)]
pub struct Question<'q> {
    /// The token's text.
    pub token: &'q str,
    /// What time it is.
    pub now: Timestamp,
    /// Asked now and then while an expression runs; `true` stops it (H6).
    pub interrupt: Interrupt<'q>,
    /// Told of every step on the way, for explanations.
    pub observer: Option<&'q dyn Observer>,
}

impl<'q> Question<'q> {
    /// The usual question: nobody looks on, nothing interrupts.
    pub fn new(token: &'q str, now: Timestamp) -> Self {
        Question { token, now, interrupt: None, observer: None }
    }

    /// Tells whoever looks on that a step went well.
    pub(crate) fn passed(&self, step: Step) {
        if let Some(observer) = self.observer {
            observer.passed(step);
        }
    }
}

impl Authenticators {
    /// Puts a configuration to work. `keys` says where each issuer's keys come from.
    pub fn new(compiled: Compiled, keys: impl Fn(&CompiledIssuer) -> Arc<dyn Keys>) -> Self {
        let profile = compiled.profile;
        let authenticators = compiled.authenticators.into_iter().map(|configuration| Authenticator {
            keys: keys(&configuration.issuer),
            configuration,
            algorithms: Algorithms::ALL,
        });
        Authenticators { issuers: Issuers::new(authenticators), profile }
    }

    /// The authenticator of an issuer, by its exact URL.
    pub(crate) fn find(&self, issuer: &str) -> Option<&Authenticator> {
        self.issuers.find(issuer)
    }

    /// Every authenticator, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Authenticator> {
        self.issuers.iter()
    }

    /// Whose token is this?
    pub fn authenticate(&self, question: &Question<'_>) -> Outcome {
        self.route(question).unwrap_or_else(Outcome::NoOpinion)
    }

    /// Reads what a token says it is, and hands it to the one authenticator that may judge it.
    fn route(&self, question: &Question<'_>) -> Result<Outcome, NoOpinion> {
        let token = RawToken::new(question.token)?;
        question.passed(Step::Compact);
        let payload = token.payload()?;
        let claims = UnverifiedClaims::read(&payload.bytes)?;
        question.passed(Step::Payload);
        let authenticator = self.issuers.find(claims.issuer()).ok_or(NoOpinion::UnknownIssuer)?;
        if let Some(observer) = question.observer {
            observer.routed(&authenticator.configuration);
        }
        question.passed(Step::Routing);
        let judged = authenticator.judge(&token, &payload, claims, question, &self.profile);
        Ok(match judged {
            Ok(user) => Outcome::Authenticated(Box::new(user)),
            Err(refusal) => {
                let authenticator = authenticator.configuration.path.clone();
                Outcome::Rejected(Box::new(Rejection { authenticator, refusal }))
            }
        })
    }
}

impl Authenticator {
    /// Where its issuer's keys come from.
    pub(crate) fn keys(&self) -> &dyn Keys {
        self.keys.as_ref()
    }

    /// The algorithms that its tokens may be signed with.
    pub(crate) fn algorithms(&self) -> Algorithms {
        self.algorithms
    }

    /// The order of the checks is kube-apiserver's (S123, S131).
    fn judge(
        &self,
        token: &RawToken<'_>,
        payload: &Part,
        claims: UnverifiedClaims<'_>,
        question: &Question<'_>,
        profile: &Profile,
    ) -> Result<User, Refusal> {
        within_limits(token, profile)?;
        let verified = self.verify(token, payload, claims, question, profile)?;
        mapping::user(&self.configuration, &verified, question, profile)
    }

    fn verify<'p>(
        &self,
        token: &RawToken<'_>,
        payload: &Part,
        claims: UnverifiedClaims<'p>,
        question: &Question<'_>,
        profile: &Profile,
    ) -> Result<VerifiedClaims<'p>, Refusal> {
        let issuer = &self.configuration.issuer;
        let keys = self.keys.current();
        if keys.as_ref().is_err_and(|why| *why == KeysUnavailable::NotReady) {
            return Err(Refusal::NotReady);
        }
        question.passed(Step::Readiness);
        let checked = claims.check(&issuer.url, &issuer.audiences, question, profile)?;
        let header_part = token.header().ok_or(Refusal::Malformed("the header is not base64url"))?;
        let header = Header::read(&header_part.bytes, self.algorithms, profile)?;
        question.passed(Step::Header);
        let keys = keys.map_err(|why| Refusal::Keys(why.to_string()))?;
        let verified =
            signature::verify(token, (&header, &header_part), payload, (claims, &checked), &keys, profile)?;
        question.passed(Step::Signature);
        if !checked.for_us {
            return Err(Refusal::Audience);
        }
        if issuer.audiences.len() > 1 {
            question.passed(Step::Audience);
        }
        Ok(verified)
    }
}

fn within_limits(token: &RawToken<'_>, profile: &Profile) -> Result<(), Refusal> {
    let (text, header) = token.lengths();
    if text > profile.limits.token || header > profile.limits.header {
        return Err(Refusal::TooLarge("the token is longer than it may be"));
    }
    Ok(())
}

const _: () = {
    // One configuration serves all threads (S283).
    const fn shared<T: Send + Sync>() {}
    shared::<Authenticators>();
};
