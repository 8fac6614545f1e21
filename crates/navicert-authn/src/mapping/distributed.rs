//! Distributed claims: groups that are not in the token but at a URL that the token names. The response is a token of its
//! own, and is verified as one.
// S172–S180

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use navicert_cel::{ClaimError, ClaimSet, EvalErrorKind};
use navicert_go::json::{Kind, Raw};
use navicert_go::url::Url;
use navicert_types::{Secret, Timestamp};
use tokio::sync::Notify;

use crate::config::{AttributeMapping, CompiledAuthenticator, CompiledIssuer};
use crate::jwks::{FetchRequest, JwksContext, JwksRefresher, KeySource, RefreshReason, RefreshResult};
use crate::jwt::VerifiedClaims;
use crate::jwt::claims::UnverifiedClaims;
use crate::jwt::compact::RawToken;
use crate::jwt::registered_claim::go_name_matches;
use crate::model::AuthnRequest;
use crate::model::outcome::Refusal;
use crate::profile::{AuthnProfile, Hardening};
use crate::verifier::{VerifyToken, refresh};

/// Maximum number of other issuers whose keys are kept.
// H23
const MAX_CLAIM_ISSUERS: usize = 16;
/// Time limit for fetching another issuer's keys the first time.
// H23
const FIRST_KEYS_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit for fetching the claim itself.
// H23
const CLAIM_FETCH_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of distributed claims per token that are considered.
const MAX_CLAIM_REFS: usize = 16;
/// How long a resolved claim is cached in seconds, and the maximum number of cached claims.
// H23
const CLAIM_CACHE_SECONDS: i64 = 60;
const MAX_CACHED_CLAIMS: usize = 1_024;

/// Reference to a distributed claim in a verified token.
pub(crate) struct DistributedClaimRef {
    claim: String,
    endpoint: String,
    access_token: Secret<String>,
    subject: Option<String>,
    /// Expiry of the token with the reference.
    expires: i64,
    /// Fetched only when an expression uses it.
    // S181
    pub(crate) is_lazy: bool,
    /// Why fetching it failed.
    failed: Option<Unavailable>,
}

impl DistributedClaimRef {
    /// The claim's name.
    pub(crate) fn claim(&self) -> &str {
        &self.claim
    }

    /// Adds the claim to those that expressions see, as not fetched or failed.
    pub(super) fn insert_into<'c>(&'c self, set: &mut ClaimSet<'c>) {
        let error = self.failed.map_or(ClaimError::Pending, ClaimError::Unavailable);
        set.insert(self.claim.as_str(), Err(error));
    }
}

/// The claim that made an expression fail because it was not fetched. If a claim that could not be fetched made it fail, another
/// one in the same expression may still decide: `||` reports only its first error.
pub(crate) fn missing_claim(
    configuration: &CompiledAuthenticator,
    claim_refs: Vec<DistributedClaimRef>,
    refusal: &Refusal,
) -> Option<DistributedClaimRef> {
    let Refusal::Evaluation { error, path, .. } = refusal else { return None };
    let EvalErrorKind::Claim { claim, error } = &error.error.kind else { return None };
    let mut pending = claim_refs.into_iter().filter(|one| one.failed.is_none());
    match error {
        ClaimError::Pending => pending.find(|one| one.claim == *claim),
        ClaimError::Unavailable(_) => {
            let accessed = configuration.accessed_by(path)?;
            pending.find(|one| accessed.as_ref().is_none_or(|names| names.contains(&one.claim)))
        }
        ClaimError::OutOfRange(_) | ClaimError::TooDeep => None,
    }
}

/// Why a distributed claim could not be fetched: a fixed text, without values of a token.
pub(crate) type Unavailable = &'static str;

/// The result of fetching a distributed claim: its value as JSON, or the error.
pub(crate) struct FetchedClaim {
    pub(crate) claim: String,
    pub(crate) value: Result<Vec<u8>, Unavailable>,
}

/// The distributed claims that expressions may use, if the issuer's settings allow it, and that have not been fetched
/// successfully.
// S181
pub(crate) fn lazy_claim_refs(
    configuration: &CompiledAuthenticator,
    claims: &VerifiedClaims<'_>,
    fetched: &[FetchedClaim],
) -> Vec<DistributedClaimRef> {
    if !configuration.settings.lazy_distributed_claims {
        return Vec::new();
    }
    let names = claims.claim("_claim_names").into_iter().flat_map(Raw::members);
    let is_reached = |name: &str| {
        configuration.accessed_claims.as_ref().is_none_or(|reached| reached.iter().any(|known| known == name))
    };
    let claim_ref = |name: &str| {
        let mut found = locate(claims, name).ok().flatten()?;
        let failed = fetched.iter().find(|one| one.claim == name).and_then(|one| one.value.as_ref().err());
        (found.is_lazy, found.failed) = (true, failed.copied());
        Some(found)
    };
    let wanted = names.filter(|(name, _)| is_reached(name) && claims.claim(name).is_none());
    wanted.take(MAX_CLAIM_REFS).filter_map(|(name, _)| claim_ref(&name)).collect()
}

/// A resolved distributed claim: its name, and its value as JSON.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ResolvedClaim {
    pub(crate) claim: String,
    pub(crate) value: Vec<u8>,
}

/// Resolves the distributed claims of one authenticator, and keeps the keys of the issuers that sign them.
pub(crate) struct DistributedClaimResolver {
    context: JwksContext,
    /// Notified when a refresher is added.
    changed: Arc<Notify>,
    state: Mutex<ResolverState>,
}

#[derive(Default)]
struct ResolverState {
    verifiers: HashMap<String, Arc<JwksRefresher>>,
    cached: HashMap<CacheKey, (ResolvedClaim, Timestamp)>,
}

/// Issuer, subject, endpoint with the claim's name, and a hash of the access token.
type CacheKey = (String, String, String, Vec<u8>);

/// The reference to the groups claim, if it is distributed.
pub(crate) fn find_groups_ref(
    configuration: &CompiledAuthenticator,
    claims: &VerifiedClaims<'_>,
) -> Result<Option<DistributedClaimRef>, Refusal> {
    let Some(AttributeMapping::Claim { claim, .. }) = &configuration.groups else { return Ok(None) };
    if claims.claim(claim).is_some() {
        return Ok(None);
    }
    locate(claims, claim)
}

/// The reference to a claim, if the token has one.
fn locate(claims: &VerifiedClaims<'_>, claim: &str) -> Result<Option<DistributedClaimRef>, Refusal> {
    let Some(names) = claims.claim("_claim_names") else { return Ok(None) };
    if !matches!(names.kind(), Kind::Object | Kind::Null) {
        return Err(Refusal::Distributed("`_claim_names` is not an object"));
    }
    let sources = claims.claim("_claim_sources").ok_or(Refusal::Distributed("missing `_claim_sources`"))?;
    let last = |raw: Raw<'_>, wanted: &str| {
        raw.members()
            .filter(|(name, _)| name == wanted)
            .last()
            .map(|(_, value)| value.string().map(String::from))
    };
    let Some(source) = last(names, claim).map(Option::unwrap_or_default) else { return Ok(None) };
    let found = sources.members().filter(|(name, _)| *name == source.as_str()).last();
    let (_, source) = found.ok_or(Refusal::Distributed("a distributed claim names a missing source"))?;
    let text = |wanted: &str| {
        let member = source.members().filter(|(name, _)| go_name_matches(name, wanted)).last();
        member.and_then(|(_, value)| value.string().map(String::from)).unwrap_or_default()
    };
    let endpoint = text("endpoint");
    // Aggregated claims are ignored, as upstream does (S180).
    if endpoint.is_empty() {
        return Ok(None);
    }
    let access_token = Secret::new(text("access_token"));
    let subject = claims.claim("sub").and_then(Raw::string).map(String::from);
    Ok(Some(DistributedClaimRef {
        claim: claim.to_owned(),
        endpoint,
        access_token,
        subject,
        expires: claims.expires(),
        is_lazy: false,
        failed: None,
    }))
}

impl DistributedClaimResolver {
    pub(crate) fn new(context: JwksContext, changed: Arc<Notify>) -> Self {
        DistributedClaimResolver { context, changed, state: Mutex::default() }
    }

    /// Refreshers of other issuers' keys. The caller has to drive them.
    pub(crate) fn refreshers(&self) -> Vec<Arc<JwksRefresher>> {
        self.lock().verifiers.values().cloned().collect()
    }

    /// Fetches and verifies a claim.
    pub(crate) async fn resolve(
        &self,
        claim_ref: &DistributedClaimRef,
        verifier: &dyn VerifyToken,
        request: &AuthnRequest<'_>,
        profile: &AuthnProfile,
    ) -> Result<ResolvedClaim, Unavailable> {
        let guarded = profile.has(Hardening::DistributedClaimSources);
        let key = claim_ref.key(&verifier.configuration().issuer.url);
        if guarded && let Some(kept) = self.cached(&key, request.now) {
            return Ok(kept);
        }
        let text = self.fetch(claim_ref, verifier, profile).await?;
        let text = text.trim();
        let (resolved, expires) = self.verify(text, claim_ref, verifier, request, profile).await?;
        if guarded {
            let until = expires
                .min(claim_ref.expires)
                .min(request.now.as_second().saturating_add(CLAIM_CACHE_SECONDS));
            self.cache(key, &resolved, until, request.now);
        }
        Ok(resolved)
    }

    /// Fetches the token that contains the claim.
    // S174
    async fn fetch(
        &self,
        claim_ref: &DistributedClaimRef,
        verifier: &dyn VerifyToken,
        profile: &AuthnProfile,
    ) -> Result<String, Unavailable> {
        let issuer = &verifier.configuration().issuer;
        let mut request = FetchRequest::for_issuer(issuer, &claim_ref.endpoint, profile);
        request.bearer = (!claim_ref.access_token.is_empty()).then_some(&claim_ref.access_token);
        if profile.has(Hardening::DistributedClaimSources) {
            let is_own = check_endpoint(&claim_ref.endpoint, verifier)?;
            request.limits.time = CLAIM_FETCH_TIMEOUT;
            request.limits.keeps_host = true;
            request.limits.keeps_scheme = true;
            request.limits.public_only = !is_own;
        }
        let answer = self.context.fetch.get(request).await;
        let answer = answer.map_err(|_| "failed to reach the source of a distributed claim")?;
        if !(200..=226).contains(&answer.status) {
            return Err("the source of a distributed claim returned an error status");
        }
        String::from_utf8(answer.body).map_err(|_| "the source of a distributed claim did not return a token")
    }

    /// Verifies a token with the claim, signed by a trusted issuer for a configured audience.
    // S175, S176
    async fn verify(
        &self,
        text: &str,
        claim_ref: &DistributedClaimRef,
        verifier: &dyn VerifyToken,
        request: &AuthnRequest<'_>,
        profile: &AuthnProfile,
    ) -> Result<(ResolvedClaim, i64), Unavailable> {
        const NO_TOKEN: Unavailable = "the source of a distributed claim did not return a token";
        // Without an observer: these are the steps of another token.
        let inner = AuthnRequest { token: text, observer: None, ..*request };
        let issuer = {
            let token = RawToken::new(text).map_err(|_| NO_TOKEN)?;
            let payload = token.payload().map_err(|_| NO_TOKEN)?;
            UnverifiedClaims::read(&payload.bytes).map_err(|_| NO_TOKEN)?.issuer().to_owned()
        };
        let keys = self.keys(&issuer, verifier, profile).await?;
        let configured = claim_issuer(&verifier.configuration().issuer, &issuer);
        let by = ClaimVerifier { verifier, issuer: &configured, keys: &*keys };
        let tried = keys.version();
        let refusal = match verify_and_extract(&by, &inner, claim_ref, profile) {
            Ok(extracted) => return Ok(extracted),
            Err(refusal) => refusal,
        };
        match refresh(&*keys, tried, text, &refusal).await {
            RefreshResult::Newer | RefreshResult::AlreadyNewer => {
                verify_and_extract(&by, &inner, claim_ref, profile).map_err(|refusal| unavailable(&refusal))
            }
            RefreshResult::Unchanged | RefreshResult::Failed(_) => Err(unavailable(&refusal)),
        }
    }

    /// The keys of the issuer that signed the claim.
    async fn keys(
        &self,
        issuer: &str,
        verifier: &dyn VerifyToken,
        profile: &AuthnProfile,
    ) -> Result<Arc<dyn KeySource>, Unavailable> {
        let own = &verifier.configuration().issuer;
        let guarded = profile.has(Hardening::DistributedClaimSources);
        if guarded && issuer == own.url {
            return Ok(Arc::clone(verifier.key_source()));
        }
        let listed = &verifier.configuration().settings.distributed_claim_issuers;
        if guarded && !listed.iter().any(|known| known == issuer) {
            return Err("a distributed claim is signed by an issuer that is not trusted for it");
        }
        let (refresher, is_new) = {
            let mut state = self.lock();
            let known = state.verifiers.get(issuer).cloned();
            match known {
                Some(refresher) => (refresher, false),
                None if guarded && state.verifiers.len() >= MAX_CLAIM_ISSUERS => {
                    return Err("too many issuers sign distributed claims");
                }
                None => {
                    let refresher =
                        JwksRefresher::new(claim_issuer(own, issuer), *profile, self.context.clone());
                    let refresher = Arc::new(if guarded {
                        refresher.with_time_limit(FIRST_KEYS_TIMEOUT)
                    } else {
                        refresher
                    });
                    state.verifiers.insert(issuer.to_owned(), Arc::clone(&refresher));
                    (refresher, true)
                }
            }
        };
        if is_new {
            self.changed.notify_one();
        }
        // Upstream does not wait: the next token finds the verifier (GV1).
        if guarded && !refresher.health().is_ready {
            refresher.refresh(RefreshReason::NoKeys, refresher.version()).await;
        }
        if !refresher.health().is_ready {
            return Err("verifier not initialized for the issuer of a distributed claim");
        }
        Ok(refresher)
    }

    fn cached(&self, key: &CacheKey, now: Timestamp) -> Option<ResolvedClaim> {
        let state = self.lock();
        let (resolved, until) = state.cached.get(key)?;
        (*until > now).then(|| resolved.clone())
    }

    fn cache(&self, key: CacheKey, resolved: &ResolvedClaim, until: i64, now: Timestamp) {
        let Ok(until) = Timestamp::from_second(until) else { return };
        let mut state = self.lock();
        if state.cached.len() >= MAX_CACHED_CLAIMS {
            state.cached.retain(|_, (_, until)| *until > now);
        }
        if state.cached.len() < MAX_CACHED_CLAIMS {
            state.cached.insert(key, (resolved.clone(), until));
        }
    }

    fn lock(&self) -> MutexGuard<'_, ResolverState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for DistributedClaimResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DistributedClaimResolver")
            .field("verifiers", &self.lock().verifiers.len())
            .finish_non_exhaustive()
    }
}

impl DistributedClaimRef {
    fn key(&self, issuer: &str) -> CacheKey {
        let hash = digest(&SHA256, self.access_token.expose().as_bytes()).as_ref().to_vec();
        let source = format!("{} {}", self.claim, self.endpoint);
        (issuer.to_owned(), self.subject.clone().unwrap_or_default(), source, hash)
    }
}

/// What the token with a claim is verified with.
struct ClaimVerifier<'v> {
    verifier: &'v dyn VerifyToken,
    issuer: &'v CompiledIssuer,
    keys: &'v dyn KeySource,
}

/// Verifies the token and extracts the claim.
fn verify_and_extract(
    by: &ClaimVerifier<'_>,
    request: &AuthnRequest<'_>,
    claim_ref: &DistributedClaimRef,
    profile: &AuthnProfile,
) -> Result<(ResolvedClaim, i64), Refusal> {
    let token = RawToken::new(request.token).map_err(|_| Refusal::Malformed("not a token"))?;
    let payload = token.payload().map_err(|_| Refusal::Malformed("not a token"))?;
    let claims = UnverifiedClaims::read(&payload.bytes).map_err(|_| Refusal::Malformed("not a token"))?;
    let verified =
        by.verifier.verify_token((by.issuer, by.keys), (&token, &payload, claims), request, profile)?;
    let subject = verified.claim("sub").and_then(Raw::string);
    if profile.has(Hardening::DistributedClaimSources)
        && let (Some(theirs), Some(ours)) = (subject, &claim_ref.subject)
        && theirs != ours.as_str()
    {
        return Err(Refusal::Distributed("a distributed claim has another subject"));
    }
    let value = verified.claim(&claim_ref.claim);
    let value =
        value.ok_or(Refusal::Distributed("the source of a distributed claim did not return the claim"))?;
    let resolved = ResolvedClaim { claim: claim_ref.claim.clone(), value: value.bytes().to_vec() };
    Ok((resolved, verified.expires()))
}

/// Why the token with a claim is refused.
fn unavailable(refusal: &Refusal) -> Unavailable {
    match refusal {
        Refusal::Distributed(why) => why,
        Refusal::Expired => "the token with a distributed claim has expired",
        Refusal::Audience => "the token with a distributed claim has another audience",
        Refusal::Signature | Refusal::UnknownKey => {
            "the token with a distributed claim has an invalid signature"
        }
        _ => "the token with a distributed claim is invalid",
    }
}

/// The claim's issuer, with the trust roots, egress and audiences of the token's own issuer.
// S175
fn claim_issuer(own: &CompiledIssuer, url: &str) -> CompiledIssuer {
    CompiledIssuer { url: url.to_owned(), discovery_url: None, ..own.clone() }
}

/// Checks that the endpoint is HTTPS at a host that the configuration trusts. Returns whether it is the issuer's own host.
// H23
fn check_endpoint(endpoint: &str, verifier: &dyn VerifyToken) -> Result<bool, Unavailable> {
    let host = |url: &str| {
        let url = Url::parse(url).ok()?;
        (url.scheme == "https" && !url.host.is_empty() && url.user_info.is_none())
            .then(|| url.host.to_ascii_lowercase())
    };
    let fetched = host(endpoint).ok_or("the source of a distributed claim is not an https URL")?;
    let configuration = verifier.configuration();
    let keys_from = verifier.key_source().address();
    let own = [
        Some(configuration.issuer.url.as_str()),
        configuration.issuer.discovery_url.as_deref(),
        keys_from.as_deref(),
    ];
    if own.into_iter().flatten().any(|url| host(url).as_ref() == Some(&fetched)) {
        return Ok(true);
    }
    let listed = &configuration.settings.distributed_claim_issuers;
    if listed.iter().any(|url| host(url).as_ref() == Some(&fetched)) {
        return Ok(false);
    }
    Err("the source of a distributed claim is not a trusted host")
}
