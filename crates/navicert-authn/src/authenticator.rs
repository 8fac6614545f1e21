//! The spine: one short function that leads a token through all checks, in order.

use std::sync::Arc;

use navicert_types::Timestamp;

use crate::config::{Compiled, CompiledAuthenticator, CompiledIssuer};
use crate::explain::{Observer, Step};
use crate::issuers::Issuers;
use crate::jwks::{Keys, KeysUnavailable, Refreshed, Wanted};
use crate::jwt::claims::UnverifiedClaims;
use crate::jwt::compact::{Part, RawToken};
use crate::jwt::header::{self, Header};
use crate::jwt::{Algorithms, VerifiedClaims, signature};
use crate::mapping::distributed::{self, Asked, Distributed, Elsewhere};
use crate::mapping::{self, Interrupt, User};
use crate::outcome::{NoOpinion, Outcome, Refusal, Rejection};
use crate::profile::{Profile, Rule};
use crate::revocation::Revocations;
use crate::token_cache::Evidence;

/// All authenticators of a configuration, each with its issuer's keys.
#[derive(Debug)]
pub struct Authenticators {
    issuers: Issuers,
    profile: Profile,
    revocations: Arc<Revocations>,
}

/// One issuer's authenticator.
#[derive(Debug)]
pub(crate) struct Authenticator {
    pub(crate) configuration: CompiledAuthenticator,
    pub(crate) keys: Arc<dyn Keys>,
    algorithms: Algorithms,
    /// `None`: nobody is there to fetch distributed claims.
    distributed: Option<Arc<Distributed>>,
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

/// How often a token may find that its keys were replaced while they were tried.
const OVERTAKEN: u32 = 4;

/// How it ended, and what that rests on.
#[derive(Debug)]
pub(crate) struct Decision {
    pub(crate) outcome: Outcome,
    /// Of an accepted token.
    pub(crate) evidence: Option<Evidence>,
    /// Whose authenticator it was.
    pub(crate) authenticator: Option<Arc<Authenticator>>,
}

/// An attempt ends with a user, or short of one.
struct Attempt<'s> {
    authenticator: &'s Arc<Authenticator>,
    /// Of its keys, read before any of them was tried.
    version: u64,
    /// The user, and when the token expires.
    result: Result<(User, i64), Stop>,
}

/// Why an attempt ended short of a user.
enum Stop {
    Refused(Refusal),
    /// Some claim is elsewhere; with it, the attempt can be made again.
    Elsewhere(Box<Elsewhere>),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Stop::Refused(refusal)
    }
}

impl From<Stop> for Refusal {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Refused(refusal) => refusal,
            Stop::Elsewhere(_) => {
                Refusal::Distributed("the groups are distributed, and nothing is set up to fetch them")
            }
        }
    }
}

impl Authenticators {
    /// Puts a configuration to work. `keys` says where each issuer's keys come from.
    pub fn new(compiled: Compiled, keys: impl Fn(&CompiledIssuer) -> Arc<dyn Keys>) -> Self {
        Authenticators::with_distributed(compiled, |configuration| (keys(&configuration.issuer), None))
    }

    /// The authenticator of an issuer, by its exact URL.
    pub(crate) fn find(&self, issuer: &str) -> Option<&Authenticator> {
        self.issuers.find(issuer).map(|found| &**found)
    }

    /// The same with a way to distributed claims, where there is one.
    pub(crate) fn with_distributed(
        compiled: Compiled,
        around: impl Fn(&CompiledAuthenticator) -> (Arc<dyn Keys>, Option<Arc<Distributed>>),
    ) -> Self {
        let profile = compiled.profile;
        let authenticators = compiled.authenticators.into_iter().map(|configuration| {
            let (keys, distributed) = around(&configuration);
            let narrowed = configuration.settings.allowed_algorithms.filter(|_| profile.has(Rule::H25));
            let algorithms = narrowed.unwrap_or(Algorithms::ALL);
            Authenticator { configuration, keys, algorithms, distributed }
        });
        Authenticators { issuers: Issuers::new(authenticators), profile, revocations: Arc::default() }
    }

    /// Refuses what this list revokes.
    #[must_use]
    pub fn with_revocations(mut self, revocations: Arc<Revocations>) -> Self {
        self.revocations = revocations;
        self
    }

    /// Whose token is this, as far as it can be said from what is here?
    pub fn authenticate(&self, question: &Question<'_>) -> Outcome {
        match self.attempt(question, &[]) {
            Ok(Attempt { result: Ok((user, _)), .. }) => Outcome::Authenticated(Arc::new(user)),
            Ok(Attempt { result: Err(stop), authenticator, .. }) => rejected(authenticator, stop.into()),
            Err(nobodys) => Outcome::NoOpinion(nobodys),
        }
    }

    /// Whose token is this? Gets newer keys and distributed claims where they are needed.
    pub async fn authenticate_and_fetch(&self, question: &Question<'_>) -> Outcome {
        self.decide(question).await.outcome
    }

    /// Attempts, and after a request that may have helped, attempts once more.
    pub(crate) async fn decide(&self, question: &Question<'_>) -> Decision {
        let (mut asked, mut has_asked, mut overtaken) = (Vec::new(), false, 0);
        loop {
            let attempt = match self.attempt(question, &asked) {
                Ok(attempt) => attempt,
                Err(nobodys) => {
                    let outcome = Outcome::NoOpinion(nobodys);
                    return Decision { outcome, evidence: None, authenticator: None };
                }
            };
            let authenticator = attempt.authenticator;
            let ours = Some(Arc::clone(authenticator));
            let refused = |refusal| Decision {
                outcome: rejected(authenticator, refusal),
                evidence: None,
                authenticator: Some(Arc::clone(authenticator)),
            };
            let stop = match attempt.result {
                Ok((user, expires)) => {
                    let keys = Arc::clone(&authenticator.keys);
                    let evidence = Evidence { expires, keys, version: attempt.version };
                    let outcome = Outcome::Authenticated(Arc::new(user));
                    return Decision { outcome, evidence: Some(evidence), authenticator: ours };
                }
                Err(stop) => stop,
            };
            let refusal = match (stop, &authenticator.distributed) {
                (Stop::Refused(refusal), _) if !has_asked => {
                    match refresh(&*authenticator.keys, attempt.version, question.token, &refusal).await {
                        Refreshed::Meanwhile if overtaken < OVERTAKEN => {
                            overtaken += 1;
                            continue;
                        }
                        Refreshed::Newer => {
                            has_asked = true;
                            continue;
                        }
                        Refreshed::Same | Refreshed::Meanwhile => refusal,
                        Refreshed::Failed(why) => Refusal::Keys(why),
                    }
                }
                (Stop::Elsewhere(elsewhere), Some(distributed)) if !is_asked(&asked, &elsewhere) => {
                    let found = distributed.resolve(&elsewhere, authenticator, question, &self.profile).await;
                    let value = match found {
                        Ok(found) => Ok(found.value),
                        // The expression that wants it fails, and perhaps another one does not need it (S181).
                        Err(refusal) if elsewhere.is_lazy => Err(refusal.to_string()),
                        Err(refusal) => return refused(refusal),
                    };
                    asked.push(Asked { claim: elsewhere.claim().to_owned(), value });
                    continue;
                }
                (stop, _) => stop.into(),
            };
            return refused(refusal);
        }
    }

    /// Reads what a token says it is, and hands it to the one authenticator that may judge it.
    fn attempt<'s>(&'s self, question: &Question<'_>, asked: &[Asked]) -> Result<Attempt<'s>, NoOpinion> {
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
        let version = authenticator.keys.version();
        let result = self.judge(authenticator, (&token, &payload, claims), question, asked);
        Ok(Attempt { authenticator, version, result })
    }

    /// The order of the checks is kube-apiserver's (S123, S131).
    fn judge<'p>(
        &self,
        authenticator: &Authenticator,
        (token, payload, claims): (&RawToken<'_>, &'p Part, UnverifiedClaims<'p>),
        question: &Question<'_>,
        asked: &'p [Asked],
    ) -> Result<(User, i64), Stop> {
        let (configuration, profile) = (&authenticator.configuration, &self.profile);
        let mut verified = authenticator.verify(token, payload, claims, question, profile)?;
        if !self.revocations.is_empty() {
            if self.revocations.revokes(&configuration.issuer.url, &verified.subject().borrowed()) {
                return Err(Refusal::Revoked.into());
            }
            question.passed(Step::Revocation);
        }
        for one in asked {
            if let Ok(value) = &one.value {
                verified.insert(&one.claim, value);
            }
        }
        if let Some(elsewhere) = distributed::find(configuration, &verified)? {
            return Err(Stop::Elsewhere(Box::new(elsewhere)));
        }
        question.passed(Step::Distributed);
        let elsewhere = distributed::lazy(configuration, &verified, asked);
        match mapping::user(configuration, &verified, &elsewhere, question, profile) {
            Ok(user) => Ok((user, verified.expires())),
            Err(refusal) => match distributed::wanted(elsewhere, &refusal) {
                Some(wanted) => Err(Stop::Elsewhere(Box::new(wanted))),
                None => Err(refusal.into()),
            },
        }
    }

    /// Every authenticator.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Authenticator>> {
        self.issuers.iter()
    }
}

impl Authenticator {
    /// Where its issuer's keys come from.
    pub(crate) fn keys(&self) -> &dyn Keys {
        self.keys.as_ref()
    }

    fn verify<'p>(
        &self,
        token: &RawToken<'_>,
        payload: &'p Part,
        claims: UnverifiedClaims<'p>,
        question: &Question<'_>,
        profile: &Profile,
    ) -> Result<VerifiedClaims<'p>, Refusal> {
        let by =
            Verifier { issuer: &self.configuration.issuer, keys: &*self.keys, algorithms: self.algorithms };
        by.verify((token, payload, claims), question, profile)
    }

    pub(crate) fn algorithms(&self) -> Algorithms {
        self.algorithms
    }

    pub(crate) fn distributed(&self) -> Option<&Arc<Distributed>> {
        self.distributed.as_ref()
    }
}

/// Whose signature is looked for.
#[derive(Clone, Copy)]
pub(crate) struct Verifier<'v> {
    pub(crate) issuer: &'v CompiledIssuer,
    pub(crate) keys: &'v dyn Keys,
    pub(crate) algorithms: Algorithms,
}

impl Verifier<'_> {
    /// From what a token says to what its issuer has signed.
    pub(crate) fn verify<'p>(
        &self,
        (token, payload, claims): (&RawToken<'_>, &'p Part, UnverifiedClaims<'p>),
        question: &Question<'_>,
        profile: &Profile,
    ) -> Result<VerifiedClaims<'p>, Refusal> {
        within_limits(token, profile)?;
        let keys = self.keys.current();
        if keys.as_ref().is_err_and(|why| *why == KeysUnavailable::NotReady) {
            return Err(Refusal::NotReady);
        }
        question.passed(Step::Readiness);
        let checked = claims.check(&self.issuer.url, &self.issuer.audiences, question, profile)?;
        let mut header_part = Part::CANONICAL;
        let remembered = keys.as_ref().ok().and_then(|keys| keys.remembered(token.header_text()));
        let header = match remembered.filter(|header| self.algorithms.contains(header.algorithm)) {
            Some(header) => header,
            None => {
                header_part = token.header().ok_or(Refusal::Malformed("the header is not base64url"))?;
                Header::read(&header_part.bytes, self.algorithms, profile)?
            }
        };
        question.passed(Step::Header);
        let keys = keys.as_ref().map_err(|why| Refusal::Keys(why.to_string()))?;
        let verified =
            signature::verify(token, (&header, &header_part), payload, (claims, &checked), keys, profile)?;
        question.passed(Step::Signature);
        if !checked.for_us {
            return Err(Refusal::Audience);
        }
        if self.issuer.audiences.len() > 1 {
            question.passed(Step::Audience);
        }
        Ok(verified)
    }
}

/// Asks for newer keys if that may turn the refusal.
pub(crate) async fn refresh(keys: &dyn Keys, tried: u64, token: &str, refusal: &Refusal) -> Refreshed {
    match refusal {
        Refusal::UnknownKey => match header::kid(token) {
            Some(kid) => keys.refresh(Wanted::Kid(&kid), tried).await,
            None => Refreshed::Same,
        },
        Refusal::Signature => keys.refresh(Wanted::Signature, tried).await,
        _ => Refreshed::Same,
    }
}

fn is_asked(asked: &[Asked], elsewhere: &Elsewhere) -> bool {
    asked.iter().any(|one| one.claim == elsewhere.claim())
}

fn rejected(authenticator: &Authenticator, refusal: Refusal) -> Outcome {
    let authenticator = authenticator.configuration.path.clone();
    Outcome::Rejected(Box::new(Rejection { authenticator, refusal }))
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
