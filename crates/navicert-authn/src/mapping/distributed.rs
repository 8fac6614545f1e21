//! Distributed claims (S172–S180): groups that are not in the token but at an address that the token names. What comes
//! from there is a token of its own, and is verified like one.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use navicert_cel::ClaimSet;
use navicert_types::{Secret, Timestamp};
use tokio::sync::Notify;

use crate::authenticator::{Authenticator, Question, Verifier, refresh};
use crate::config::{CompiledAuthenticator, CompiledIssuer, Mapping, url_form};
use crate::json::{Kind, Raw};
use crate::jwks::{Around, FetchRequest, Keeper, Keys, Refreshed};
use crate::jwt::VerifiedClaims;
use crate::jwt::claims::UnverifiedClaims;
use crate::jwt::compact::RawToken;
use crate::jwt::registry::is_named;
use crate::outcome::Refusal;
use crate::profile::{Profile, Rule};

/// How many other issuers' keys are kept (H23).
const MOST_VERIFIERS: usize = 16;
/// How long the keys of another issuer may take, the first time (H23).
const FIRST_KEYS: Duration = Duration::from_secs(5);
/// How long the claim itself may take (H23).
const ANSWER: Duration = Duration::from_secs(10);
/// As many claims that are elsewhere are looked at.
const MOST_NAMES: usize = 16;
/// How long a resolved claim is kept (H23), and how many.
const KEPT: i64 = 60;
const MOST_KEPT: usize = 1_024;

/// Where a claim is, by the word of a verified token.
pub(crate) struct Elsewhere {
    claim: String,
    endpoint: String,
    access_token: Secret<String>,
    subject: Option<String>,
    /// When the token that says so expires.
    expires: i64,
    /// Fetched when an expression wants it, and not before (S181).
    pub(crate) is_lazy: bool,
    /// Why it could not be had.
    failed: Option<String>,
}

impl Elsewhere {
    /// The claim's name.
    pub(crate) fn claim(&self) -> &str {
        &self.claim
    }

    /// Puts it among the claims that expressions see.
    pub(super) fn show<'c>(&'c self, set: &mut ClaimSet<'c>) {
        match &self.failed {
            None => set.insert_elsewhere(self.claim.as_str(), self.reason()),
            Some(why) => set.insert(self.claim.as_str(), Err(why.clone())),
        }
    }

    fn reason(&self) -> String {
        format!("distributed claim {:?} has not been fetched", self.claim)
    }
}

/// The claim that an expression lacked, if that is why it failed. Where one failed that cannot be had, another one in the same
/// expression may still decide: `||` tells of its first error only.
pub(crate) fn wanted(elsewhere: Vec<Elsewhere>, refusal: &Refusal) -> Option<Elsewhere> {
    let Refusal::Evaluation { source, text, .. } = refusal else { return None };
    let why = source.to_string();
    let is_known = elsewhere.iter().any(|one| one.failed.as_ref() == Some(&why));
    let is_wanted = |one: &Elsewhere| {
        one.failed.is_none() && (why == one.reason() || (is_known && text.contains(&one.claim)))
    };
    elsewhere.into_iter().find(is_wanted)
}

/// What came of asking for a claim elsewhere: its value as JSON, or why there is none.
pub(crate) struct Asked {
    pub(crate) claim: String,
    pub(crate) value: Result<Vec<u8>, String>,
}

/// The claims that the token says are elsewhere and that nobody has asked for with success, where an issuer's settings let
/// expressions have them (S181).
pub(crate) fn lazy(
    configuration: &CompiledAuthenticator,
    claims: &VerifiedClaims<'_>,
    asked: &[Asked],
) -> Vec<Elsewhere> {
    if !configuration.settings.lazy_distributed_claims {
        return Vec::new();
    }
    let names = claims.claim("_claim_names").into_iter().flat_map(Raw::members);
    let is_reached = |name: &str| {
        configuration.reached.as_ref().is_none_or(|reached| reached.iter().any(|known| known == name))
    };
    let elsewhere = |name: &str| {
        let mut found = locate(claims, name).ok().flatten()?;
        let failed = asked.iter().find(|one| one.claim == name).and_then(|one| one.value.as_ref().err());
        (found.is_lazy, found.failed) = (true, failed.cloned());
        Some(found)
    };
    let wanted = names.filter(|(name, _)| is_reached(name) && claims.claim(name).is_none());
    wanted.take(MOST_NAMES).filter_map(|(name, _)| elsewhere(&name)).collect()
}

/// A claim that was elsewhere: its name, and its value as JSON.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Resolved {
    pub(crate) claim: String,
    pub(crate) value: Vec<u8>,
}

/// Resolves one authenticator's distributed claims, and keeps the keys of those who vouch for them.
pub(crate) struct Distributed {
    around: Around,
    /// Told when there is one more keeper.
    changed: Arc<Notify>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    verifiers: HashMap<String, Arc<Keeper>>,
    kept: HashMap<CacheKey, (Resolved, Timestamp)>,
}

/// Issuer, subject, endpoint with the claim's name, and a hash of the access token.
type CacheKey = (String, String, String, Vec<u8>);

/// Whether the groups are elsewhere, or the token's word about that cannot be read.
pub(crate) fn find(
    configuration: &CompiledAuthenticator,
    claims: &VerifiedClaims<'_>,
) -> Result<Option<Elsewhere>, Refusal> {
    let Some(Mapping::Claim { claim, .. }) = &configuration.groups else { return Ok(None) };
    if claims.claim(claim).is_some() {
        return Ok(None);
    }
    locate(claims, claim)
}

/// Where a claim is, if the token says so.
fn locate(claims: &VerifiedClaims<'_>, claim: &str) -> Result<Option<Elsewhere>, Refusal> {
    let Some(names) = claims.claim("_claim_names") else { return Ok(None) };
    if !matches!(names.kind(), Kind::Object | Kind::Null) {
        return Err(Refusal::Distributed("`_claim_names` is not an object"));
    }
    let sources = claims.claim("_claim_sources").ok_or(Refusal::Distributed("there are no claim sources"))?;
    let last = |raw: Raw<'_>, wanted: &str| {
        raw.members()
            .filter(|(name, _)| name == wanted)
            .last()
            .map(|(_, value)| value.string().map(String::from))
    };
    let Some(source) = last(names, claim).map(Option::unwrap_or_default) else { return Ok(None) };
    let found = sources.members().filter(|(name, _)| *name == source.as_str()).last();
    let (_, source) =
        found.ok_or(Refusal::Distributed("a distributed claim names a source that is not there"))?;
    let text = |wanted: &str| {
        let member = source.members().filter(|(name, _)| is_named(name, wanted)).last();
        member.and_then(|(_, value)| value.string().map(String::from)).unwrap_or_default()
    };
    let endpoint = text("endpoint");
    // An aggregated claim is passed over, as upstream does (S180).
    if endpoint.is_empty() {
        return Ok(None);
    }
    let access_token = Secret::new(text("access_token"));
    let subject = claims.claim("sub").and_then(Raw::string).map(String::from);
    Ok(Some(Elsewhere {
        claim: claim.to_owned(),
        endpoint,
        access_token,
        subject,
        expires: claims.expires(),
        is_lazy: false,
        failed: None,
    }))
}

impl Distributed {
    pub(crate) fn new(around: Around, changed: Arc<Notify>) -> Self {
        Distributed { around, changed, state: Mutex::default() }
    }

    /// The keepers of other issuers' keys; somebody has to tend them.
    pub(crate) fn keepers(&self) -> Vec<Arc<Keeper>> {
        self.lock().verifiers.values().cloned().collect()
    }

    /// Gets and verifies a claim.
    pub(crate) async fn resolve(
        &self,
        elsewhere: &Elsewhere,
        authenticator: &Authenticator,
        question: &Question<'_>,
        profile: &Profile,
    ) -> Result<Resolved, Refusal> {
        let guarded = profile.has(Rule::H23);
        let key = elsewhere.key(&authenticator.configuration.issuer.url);
        if guarded && let Some(kept) = self.kept(&key, question.now) {
            return Ok(kept);
        }
        let text = self.fetch(elsewhere, authenticator, profile).await?;
        let text = text.trim();
        let (resolved, expires) = self.verify(text, elsewhere, authenticator, question, profile).await?;
        if guarded {
            let until = expires.min(elsewhere.expires).min(question.now.as_second().saturating_add(KEPT));
            self.keep(key, &resolved, until, question.now);
        }
        Ok(resolved)
    }

    /// Gets the token that holds the claim (S174).
    async fn fetch(
        &self,
        elsewhere: &Elsewhere,
        authenticator: &Authenticator,
        profile: &Profile,
    ) -> Result<String, Refusal> {
        let issuer = &authenticator.configuration.issuer;
        let mut request = FetchRequest::to(issuer, &elsewhere.endpoint, profile);
        request.bearer = (!elsewhere.access_token.is_empty()).then_some(&elsewhere.access_token);
        if profile.has(Rule::H23) {
            let is_own = may_ask(&elsewhere.endpoint, authenticator)?;
            request.limits.time = ANSWER;
            request.limits.keeps_host = true;
            request.limits.keeps_scheme = true;
            request.limits.public_only = !is_own;
        }
        let answer = self.around.fetch.get(request).await;
        let answer = answer
            .map_err(|_| Refusal::Distributed("the source of a distributed claim cannot be reached"))?;
        if !(200..=226).contains(&answer.status) {
            return Err(Refusal::Distributed("the source of a distributed claim refuses to answer"));
        }
        String::from_utf8(answer.body).map_err(|_| {
            Refusal::Distributed("the source of a distributed claim does not answer with a token")
        })
    }

    /// Takes the claim out of a token that somebody who may has signed for us (S175, S176).
    async fn verify(
        &self,
        text: &str,
        elsewhere: &Elsewhere,
        authenticator: &Authenticator,
        question: &Question<'_>,
        profile: &Profile,
    ) -> Result<(Resolved, i64), Refusal> {
        const NO_TOKEN: Refusal =
            Refusal::Distributed("the source of a distributed claim does not answer with a token");
        // Nobody looks on: these are another token's steps.
        let inner = Question { token: text, observer: None, ..*question };
        let issuer = {
            let token = RawToken::new(text).map_err(|_| NO_TOKEN)?;
            let payload = token.payload().map_err(|_| NO_TOKEN)?;
            UnverifiedClaims::read(&payload.bytes).map_err(|_| NO_TOKEN)?.issuer().to_owned()
        };
        let keys = self.keys(&issuer, authenticator, profile).await?;
        let configured = other(&authenticator.configuration.issuer, &issuer);
        let by = Verifier { issuer: &configured, keys: &*keys, algorithms: authenticator.algorithms() };
        let tried = keys.version();
        let first = taken(&by, &inner, elsewhere, profile);
        let Err(refusal) = first else { return first };
        match refresh(&*keys, tried, text, &refusal).await {
            Refreshed::Newer | Refreshed::Meanwhile => {
                taken(&by, &inner, elsewhere, profile).map_err(about_the_source)
            }
            Refreshed::Same | Refreshed::Failed(_) => Err(about_the_source(refusal)),
        }
    }

    /// The keys of whoever vouches for a claim.
    async fn keys(
        &self,
        issuer: &str,
        authenticator: &Authenticator,
        profile: &Profile,
    ) -> Result<Arc<dyn Keys>, Refusal> {
        let own = &authenticator.configuration.issuer;
        let guarded = profile.has(Rule::H23);
        if guarded && issuer == own.url {
            return Ok(Arc::clone(&authenticator.keys));
        }
        let listed = &authenticator.configuration.settings.distributed_claim_issuers;
        if guarded && !listed.iter().any(|known| known == issuer) {
            return Err(Refusal::Distributed("a distributed claim is vouched for by an issuer that may not"));
        }
        let (keeper, is_new) = {
            let mut state = self.lock();
            let known = state.verifiers.get(issuer).cloned();
            match known {
                Some(keeper) => (keeper, false),
                None if guarded && state.verifiers.len() >= MOST_VERIFIERS => {
                    return Err(Refusal::Distributed("too many issuers vouch for distributed claims"));
                }
                None => {
                    let keeper = Keeper::new(other(own, issuer), *profile, self.around.clone());
                    let keeper = Arc::new(if guarded { keeper.with_time_limit(FIRST_KEYS) } else { keeper });
                    state.verifiers.insert(issuer.to_owned(), Arc::clone(&keeper));
                    (keeper, true)
                }
            }
        };
        if is_new {
            self.changed.notify_one();
        }
        // Upstream does not wait: the next token finds a verifier (GV1).
        if guarded && !keeper.health().is_ready {
            keeper.tend().await;
        }
        if !keeper.health().is_ready {
            return Err(Refusal::Distributed(
                "verifier not initialized for the issuer of a distributed claim",
            ));
        }
        Ok(keeper)
    }

    fn kept(&self, key: &CacheKey, now: Timestamp) -> Option<Resolved> {
        let state = self.lock();
        let (resolved, until) = state.kept.get(key)?;
        (*until > now).then(|| resolved.clone())
    }

    fn keep(&self, key: CacheKey, resolved: &Resolved, until: i64, now: Timestamp) {
        let Ok(until) = Timestamp::from_second(until) else { return };
        let mut state = self.lock();
        if state.kept.len() >= MOST_KEPT {
            state.kept.retain(|_, (_, until)| *until > now);
        }
        if state.kept.len() < MOST_KEPT {
            state.kept.insert(key, (resolved.clone(), until));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Distributed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Distributed").field("verifiers", &self.lock().verifiers.len()).finish_non_exhaustive()
    }
}

impl Elsewhere {
    fn key(&self, issuer: &str) -> CacheKey {
        let hash = digest(&SHA256, self.access_token.expose().as_bytes()).as_ref().to_vec();
        let source = format!("{} {}", self.claim, self.endpoint);
        (issuer.to_owned(), self.subject.clone().unwrap_or_default(), source, hash)
    }
}

/// Verifies, and takes the claim out.
fn taken(
    by: &Verifier<'_>,
    question: &Question<'_>,
    elsewhere: &Elsewhere,
    profile: &Profile,
) -> Result<(Resolved, i64), Refusal> {
    let token = RawToken::new(question.token).map_err(|_| Refusal::Malformed("not a token"))?;
    let payload = token.payload().map_err(|_| Refusal::Malformed("not a token"))?;
    let claims = UnverifiedClaims::read(&payload.bytes).map_err(|_| Refusal::Malformed("not a token"))?;
    let verified = by.verify((&token, &payload, claims), question, profile)?;
    let subject = verified.claim("sub").and_then(Raw::string);
    if profile.has(Rule::H23)
        && let (Some(theirs), Some(ours)) = (subject, &elsewhere.subject)
        && theirs != ours.as_str()
    {
        return Err(Refusal::Distributed("a distributed claim is about somebody else"));
    }
    let value = verified.claim(&elsewhere.claim);
    let value = value.ok_or(Refusal::Distributed("the source of a distributed claim does not have it"))?;
    let resolved = Resolved { claim: elsewhere.claim.clone(), value: value.bytes().to_vec() };
    Ok((resolved, verified.expires()))
}

/// What is wrong with the other token is not what is wrong with this one.
fn about_the_source(refusal: Refusal) -> Refusal {
    match refusal {
        known @ Refusal::Distributed(_) => known,
        Refusal::Expired => Refusal::Distributed("the token with a distributed claim has expired"),
        Refusal::Audience => Refusal::Distributed("the token with a distributed claim is not for us"),
        Refusal::Signature | Refusal::UnknownKey => {
            Refusal::Distributed("the signature of the token with a distributed claim does not hold")
        }
        _ => Refusal::Distributed("the token with a distributed claim is not sound"),
    }
}

/// Another issuer, reached the same way, whose tokens are for the same audiences (S175).
fn other(own: &CompiledIssuer, url: &str) -> CompiledIssuer {
    CompiledIssuer { url: url.to_owned(), discovery_url: None, ..own.clone() }
}

/// H23: over https, at a host that the configuration already leads to. Whether it is one that keys come from.
fn may_ask(endpoint: &str, authenticator: &Authenticator) -> Result<bool, Refusal> {
    let host = |url: &str| {
        let url = url_form::parse(url).ok()?;
        (url.scheme == "https" && !url.host.is_empty() && !url.has_user)
            .then(|| url.host.to_ascii_lowercase())
    };
    let asked = host(endpoint).ok_or(Refusal::Distributed("distributed claims come over https"))?;
    let configuration = &authenticator.configuration;
    let keys_from = authenticator.keys.address();
    let own = [
        Some(configuration.issuer.url.as_str()),
        configuration.issuer.discovery_url.as_deref(),
        keys_from.as_deref(),
    ];
    if own.into_iter().flatten().any(|url| host(url).as_ref() == Some(&asked)) {
        return Ok(true);
    }
    let listed = &configuration.settings.distributed_claim_issuers;
    if listed.iter().any(|url| host(url).as_ref() == Some(&asked)) {
        return Ok(false);
    }
    Err(Refusal::Distributed("a distributed claim is at a host that is not the issuer's"))
}
