//! The request path of a token: one short function per stage, in kube-apiserver's order.

use std::fmt;
use std::sync::Arc;

use tokio::sync::Notify;

use crate::config::{CompiledAuthenticator, CompiledConfig, CompiledIssuer};
use crate::decision::{self, AuthnDecision, TokenDetails};
use crate::issuers::Issuers;
use crate::jwks::{JwksContext, KeySource, RefreshResult};
use crate::jwt::claims::UnverifiedClaims;
use crate::jwt::compact::{RawToken, TokenPart};
use crate::jwt::{JwsAlgorithmSet, VerifiedClaims};
use crate::mapping;
use crate::mapping::distributed::{self, DistributedClaimRef, DistributedClaimResolver, FetchedClaim};
use crate::model::outcome::{AuthnOutcome, NoOpinion, Refusal, Rejection};
use crate::model::{AuthenticatedUser, AuthnRequest, AuthnStep};
use crate::profile::{AuthnProfile, Hardening};
use crate::revocation::Revocations;
use crate::token_cache::CacheValidity;
use crate::verifier::{TokenParts, TokenVerifier, VerifyToken, refresh};

/// All authenticators of a configuration, each with its issuer's keys.
#[derive(Debug)]
pub struct Authenticators {
    issuers: Issuers,
    profile: AuthnProfile,
    revocations: Arc<Revocations>,
    prefetched: PrefetchedClaims,
}

/// One issuer's authenticator.
#[derive(Debug)]
pub(crate) struct IssuerAuthenticator {
    pub(crate) configuration: CompiledAuthenticator,
    pub(crate) keys: Arc<dyn KeySource>,
    algorithms: JwsAlgorithmSet,
    /// `None`: distributed claims are not fetched.
    distributed: Option<Arc<DistributedClaimResolver>>,
}

/// How often an attempt may be repeated because the keys were replaced while it ran.
const MAX_GENERATION_RETRIES: u32 = 4;

/// A decision that was not taken from the cache.
#[derive(Debug)]
pub(crate) struct FreshDecision {
    pub(crate) decision: AuthnDecision,
    /// How long an accepted token may be cached.
    pub(crate) validity: Option<CacheValidity>,
}

/// The result of one attempt with the keys and claims at hand.
struct Attempt<'s, T> {
    authenticator: &'s Arc<IssuerAuthenticator>,
    /// Version of the keys, read before any of them was tried.
    version: u64,
    /// The user, and what the caller reads from the verified claims.
    result: Result<(AuthenticatedUser, T), AttemptError>,
    /// The `jti` of a token that is not accepted.
    jti: Option<String>,
}

/// Why an attempt did not produce a user.
enum AttemptError {
    Refused(Refusal),
    /// A claim has to be fetched first; the attempt is then repeated.
    NeedsDistributedClaim(Box<DistributedClaimRef>),
}

impl From<Refusal> for AttemptError {
    fn from(refusal: Refusal) -> Self {
        AttemptError::Refused(refusal)
    }
}

impl From<AttemptError> for Refusal {
    fn from(stop: AttemptError) -> Self {
        match stop {
            AttemptError::Refused(refusal) => refusal,
            AttemptError::NeedsDistributedClaim(_) => {
                Refusal::Distributed("the groups are a distributed claim, and no fetcher is configured")
            }
        }
    }
}

/// Distributed claims that were fetched before a token is evaluated.
#[derive(Default)]
struct PrefetchedClaims {
    claims: Vec<FetchedClaim>,
    /// Why a claim could not be fetched.
    failure: Option<Refusal>,
}

impl PrefetchedClaims {
    fn refusal(&self, stop: AttemptError) -> Refusal {
        match (stop, &self.failure) {
            (AttemptError::NeedsDistributedClaim(_), Some(failure)) => failure.clone(),
            (stop, _) => stop.into(),
        }
    }
}

/// Without values: they are claims.
impl fmt::Debug for PrefetchedClaims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrefetchedClaims").field("claims", &self.claims.len()).finish_non_exhaustive()
    }
}

impl Authenticators {
    /// Creates authenticators for a configuration; `keys` returns the key source of each issuer.
    pub fn new(compiled: CompiledConfig, keys: impl Fn(&CompiledIssuer) -> Arc<dyn KeySource>) -> Self {
        Authenticators::with_distributed(compiled, |configuration| (keys(&configuration.issuer), None))
    }

    /// The authenticator of an issuer, by its exact URL.
    pub(crate) fn find(&self, issuer: &str) -> Option<&IssuerAuthenticator> {
        self.issuers.find(issuer).map(|found| &**found)
    }

    /// Creates authenticators that can also fetch distributed claims.
    pub(crate) fn with_distributed(
        compiled: CompiledConfig,
        context: impl Fn(&CompiledAuthenticator) -> (Arc<dyn KeySource>, Option<Arc<DistributedClaimResolver>>),
    ) -> Self {
        let profile = compiled.profile;
        let authenticators = compiled.authenticators.into_iter().map(|configuration| {
            let (keys, distributed) = context(&configuration);
            let narrowed = configuration
                .settings
                .allowed_algorithms
                .filter(|_| profile.has(Hardening::AlgorithmAllowlist));
            let algorithms = narrowed.unwrap_or(JwsAlgorithmSet::ALL);
            IssuerAuthenticator { configuration, keys, algorithms, distributed }
        });
        Authenticators {
            issuers: Issuers::new(authenticators),
            profile,
            revocations: Arc::default(),
            prefetched: PrefetchedClaims::default(),
        }
    }

    /// Creates authenticators that can also fetch distributed claims, with the HTTP client of `context`.
    pub fn with_fetch(
        compiled: CompiledConfig,
        keys: impl Fn(&CompiledIssuer) -> Arc<dyn KeySource>,
        context: &JwksContext,
    ) -> Self {
        let changed = Arc::new(Notify::new());
        Authenticators::with_distributed(compiled, |configuration| {
            let resolver = DistributedClaimResolver::new(context.clone(), Arc::clone(&changed));
            (keys(&configuration.issuer), Some(Arc::new(resolver)))
        })
    }

    /// Rejects tokens that this list revokes.
    #[must_use]
    pub fn with_revocations(mut self, revocations: Arc<Revocations>) -> Self {
        self.revocations = revocations;
        self
    }

    /// Authenticates a token with the keys and claims at hand, without any request.
    pub fn authenticate(&self, request: &AuthnRequest<'_>) -> AuthnOutcome {
        match self.attempt(request, &self.prefetched.claims, |_| ()) {
            Ok(Attempt { result: Ok((user, ())), .. }) => AuthnOutcome::Authenticated(user),
            Ok(Attempt { result: Err(stop), authenticator, .. }) => {
                rejected(authenticator, self.prefetched.refusal(stop))
            }
            Err(no_opinion) => AuthnOutcome::NoOpinion(no_opinion),
        }
    }

    /// Authenticates a token; fetches newer keys and distributed claims where needed.
    pub async fn authenticate_and_fetch(&self, request: &AuthnRequest<'_>) -> AuthnOutcome {
        self.decide(request).await.decision.outcome
    }

    /// Fetches the distributed claims that a token needs, so that [`Authenticators::authenticate`] decides on it as a server
    /// that has been running for a while.
    pub async fn prefetch(&mut self, request: &AuthnRequest<'_>) {
        let request = AuthnRequest { observer: None, ..*request };
        let mut claims = Vec::new();
        let mut decided = self.decide_with(&request, &mut claims).await;
        // Servers discover the issuer of a claim in the background, and accept the next token with such a claim.
        let sources = self.iter().filter_map(|one| one.distributed()).flat_map(|one| one.refreshers());
        let undiscovered: Vec<_> = sources.filter(|refresher| !refresher.health().is_ready).collect();
        if !undiscovered.is_empty() {
            for refresher in undiscovered {
                refresher.run_due().await;
            }
            claims.clear();
            decided = self.decide_with(&request, &mut claims).await;
        }
        let failure = match decided.decision.outcome {
            AuthnOutcome::Rejected(rejection) if matches!(rejection.refusal, Refusal::Distributed(_)) => {
                Some(rejection.refusal)
            }
            _ => None,
        };
        self.prefetched = PrefetchedClaims { claims, failure };
    }

    /// Attempts to authenticate, and repeats the attempt after newer keys or a missing claim have been fetched.
    pub(crate) async fn decide(&self, request: &AuthnRequest<'_>) -> FreshDecision {
        self.decide_with(request, &mut Vec::new()).await
    }

    async fn decide_with(
        &self,
        request: &AuthnRequest<'_>,
        fetched: &mut Vec<FetchedClaim>,
    ) -> FreshDecision {
        let (mut has_refreshed, mut generation_retries) = (false, 0);
        loop {
            let attempt = match self.attempt(request, fetched, TokenDetails::from_verified) {
                Ok(attempt) => attempt,
                Err(no_opinion) => {
                    let decision = AuthnDecision::without_issuer(AuthnOutcome::NoOpinion(no_opinion));
                    return FreshDecision { decision, validity: None };
                }
            };
            let authenticator = attempt.authenticator;
            let stop = match attempt.result {
                Ok((user, token)) => {
                    let keys = Arc::clone(&authenticator.keys);
                    let validity = CacheValidity { keys, version: attempt.version };
                    let outcome = AuthnOutcome::Authenticated(user);
                    let decision = AuthnDecision::new(outcome, authenticator, token);
                    return FreshDecision { decision, validity: Some(validity) };
                }
                Err(stop) => stop,
            };
            let jti = attempt.jti;
            let refused = |refusal| {
                let token = TokenDetails::from_rejected(jti);
                let decision = AuthnDecision::new(rejected(authenticator, refusal), authenticator, token);
                FreshDecision { decision, validity: None }
            };
            let refusal = match (stop, &authenticator.distributed) {
                (AttemptError::Refused(refusal), _) if !has_refreshed => {
                    match refresh(&*authenticator.keys, attempt.version, request.token, &refusal).await {
                        RefreshResult::AlreadyNewer if generation_retries < MAX_GENERATION_RETRIES => {
                            generation_retries += 1;
                            continue;
                        }
                        RefreshResult::Newer => {
                            has_refreshed = true;
                            continue;
                        }
                        RefreshResult::Unchanged | RefreshResult::AlreadyNewer => refusal,
                        RefreshResult::Failed(why) => Refusal::Keys(why),
                    }
                }
                (AttemptError::NeedsDistributedClaim(claim_ref), Some(distributed))
                    if !is_fetched(fetched, &claim_ref) =>
                {
                    let found =
                        distributed.resolve(&claim_ref, &**authenticator, request, &self.profile).await;
                    let value = match found {
                        Ok(found) => Ok(found.value),
                        // Only expressions that use the claim fail; another operand may not need it (S181).
                        Err(why) if claim_ref.is_lazy => Err(why),
                        Err(why) => return refused(Refusal::Distributed(why)),
                    };
                    fetched.push(FetchedClaim { claim: claim_ref.claim().to_owned(), value });
                    continue;
                }
                (stop, _) => stop.into(),
            };
            return refused(refusal);
        }
    }

    /// Decides with the keys at hand. A refusal that a fetch could change is transient.
    pub(crate) fn decide_without_fetch(&self, request: &AuthnRequest<'_>) -> AuthnDecision {
        let attempt = match self.attempt(request, &[], TokenDetails::from_verified) {
            Ok(attempt) => attempt,
            Err(no_opinion) => return AuthnDecision::without_issuer(AuthnOutcome::NoOpinion(no_opinion)),
        };
        let authenticator = attempt.authenticator;
        let refusal = match attempt.result {
            Ok((user, token)) => {
                let outcome = AuthnOutcome::Authenticated(user);
                return AuthnDecision::new(outcome, authenticator, token);
            }
            Err(AttemptError::Refused(Refusal::UnknownKey | Refusal::Signature)) => {
                Refusal::Keys("the issuer has not answered yet, try again".to_owned())
            }
            Err(AttemptError::NeedsDistributedClaim(_)) => {
                Refusal::Distributed("the source of a distributed claim has not answered yet, try again")
            }
            Err(AttemptError::Refused(refusal)) => refusal,
        };
        let token = TokenDetails::from_rejected(attempt.jti);
        AuthnDecision::new(rejected(authenticator, refusal), authenticator, token)
    }

    /// Parses the token, finds the authenticator of its issuer and runs it.
    fn attempt<'s, T>(
        &'s self,
        request: &AuthnRequest<'_>,
        fetched: &[FetchedClaim],
        read: fn(&VerifiedClaims<'_>) -> T,
    ) -> Result<Attempt<'s, T>, NoOpinion> {
        let token = RawToken::new(request.token)?;
        request.passed(AuthnStep::Compact);
        let payload = token.payload()?;
        let claims = UnverifiedClaims::read(&payload.bytes)?;
        request.passed(AuthnStep::Payload);
        let authenticator = self.issuers.find(claims.issuer()).ok_or(NoOpinion::UnknownIssuer)?;
        if let Some(observer) = request.observer {
            let several_audiences = authenticator.configuration.issuer.audiences.len() > 1;
            observer.routed(&authenticator.configuration.path, several_audiences);
        }
        request.passed(AuthnStep::Routing);
        let version = authenticator.keys.version();
        let jti = claims.claim("jti");
        let result = self.verify_and_map(authenticator, (&token, &payload, claims), request, fetched, read);
        let jti = if result.is_err() { decision::jti(jti) } else { None };
        Ok(Attempt { authenticator, version, result, jti })
    }

    /// Verifies and maps in kube-apiserver's order.
    // S123, S131
    fn verify_and_map<'p, T>(
        &self,
        authenticator: &IssuerAuthenticator,
        (token, payload, claims): (&RawToken<'_>, &'p TokenPart, UnverifiedClaims<'p>),
        request: &AuthnRequest<'_>,
        fetched: &'p [FetchedClaim],
        read: fn(&VerifiedClaims<'_>) -> T,
    ) -> Result<(AuthenticatedUser, T), AttemptError> {
        let (configuration, profile) = (&authenticator.configuration, &self.profile);
        let mut verified = authenticator.verify(token, payload, claims, request, profile)?;
        if !self.revocations.is_empty() {
            if self.revocations.revokes(&configuration.issuer.url, &verified.subject().borrowed()) {
                return Err(Refusal::Revoked.into());
            }
            request.passed(AuthnStep::Revocation);
        }
        for one in fetched {
            if let Ok(value) = &one.value {
                verified.insert(&one.claim, value);
            }
        }
        if let Some(claim_ref) = distributed::find_groups_ref(configuration, &verified)? {
            return Err(AttemptError::NeedsDistributedClaim(Box::new(claim_ref)));
        }
        request.passed(AuthnStep::Distributed);
        let claim_refs = distributed::lazy_claim_refs(configuration, &verified, fetched);
        match mapping::user(configuration, &verified, &claim_refs, request, profile) {
            Ok(user) => Ok((user, read(&verified))),
            Err(refusal) => match distributed::missing_claim(configuration, claim_refs, &refusal) {
                Some(wanted) => Err(AttemptError::NeedsDistributedClaim(Box::new(wanted))),
                None => Err(refusal.into()),
            },
        }
    }

    /// The rules that apply.
    pub(crate) fn profile(&self) -> &AuthnProfile {
        &self.profile
    }

    /// Every authenticator.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<IssuerAuthenticator>> {
        self.issuers.iter()
    }
}

impl IssuerAuthenticator {
    /// The source of the issuer's keys.
    pub(crate) fn keys(&self) -> &dyn KeySource {
        self.keys.as_ref()
    }

    fn verify<'p>(
        &self,
        token: &RawToken<'_>,
        payload: &'p TokenPart,
        claims: UnverifiedClaims<'p>,
        request: &AuthnRequest<'_>,
        profile: &AuthnProfile,
    ) -> Result<VerifiedClaims<'p>, Refusal> {
        let by = TokenVerifier {
            issuer: &self.configuration.issuer,
            keys: &*self.keys,
            algorithms: self.algorithms,
        };
        by.verify((token, payload, claims), request, profile)
    }

    pub(crate) fn algorithms(&self) -> JwsAlgorithmSet {
        self.algorithms
    }

    pub(crate) fn distributed(&self) -> Option<&Arc<DistributedClaimResolver>> {
        self.distributed.as_ref()
    }
}

impl VerifyToken for IssuerAuthenticator {
    fn configuration(&self) -> &CompiledAuthenticator {
        &self.configuration
    }

    fn key_source(&self) -> &Arc<dyn KeySource> {
        &self.keys
    }

    fn verify_token<'p>(
        &self,
        (issuer, keys): (&CompiledIssuer, &dyn KeySource),
        token: TokenParts<'_, 'p>,
        request: &AuthnRequest<'_>,
        profile: &AuthnProfile,
    ) -> Result<VerifiedClaims<'p>, Refusal> {
        TokenVerifier { issuer, keys, algorithms: self.algorithms }.verify(token, request, profile)
    }
}

fn is_fetched(fetched: &[FetchedClaim], claim_ref: &DistributedClaimRef) -> bool {
    fetched.iter().any(|one| one.claim == claim_ref.claim())
}

fn rejected(authenticator: &IssuerAuthenticator, refusal: Refusal) -> AuthnOutcome {
    let authenticator = authenticator.configuration.path.clone();
    AuthnOutcome::Rejected(Box::new(Rejection { authenticator, refusal }))
}

const _: () = {
    // One configuration serves all threads (S283).
    const fn shared<T: Send + Sync>() {}
    shared::<Authenticators>();
};
