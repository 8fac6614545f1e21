//! The authenticating proxy: whoever shows a good token goes on to the API server, named exactly; nobody else does.
//!
//! ```text
//! listener ──▶ forward ──check──▶ bearer ──▶ navicert-authn ──▶ (nested) ──▶ identity_headers ──▶ forward ──▶ API server
//!              one meaning only   the token  whose it is        --as          or refused           headers last
//! ```
//!
//! `Asked::identify` is the spine. Only it makes an [`Identity`], and the forwarder sends nothing without one: a request
//! that was not authenticated has no way to the API server.

pub mod bearer;
pub mod client_address;
pub mod identity_headers;
pub mod nested;
pub mod reviews;
pub mod self_check;
pub mod service_accounts;
pub mod settings;
pub mod standing;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::header::HeaderValue;
use http::{Method, Request, Response, Uri, request};
use hyper::body::Incoming;
use navicert_authn::metrics::hashed;
use navicert_authn::{Judgement, Live, NoOpinion, Outcome, User};
use navicert_client::transport::{Timer, Transport};
use navicert_types::Clock;
use navicert_types::authentication_config::AnonymousAuthConfig;
use navicert_types::token_review::UserInfo;

use crate::audit::{Audit, Decision, Entry};
use crate::forward::{
    ClientImpersonation, Forwarder, Identify, Identity, Inbound, ReplyBody, Rules, Unauthorized,
};
use crate::listener::{Handler, Peer};
use crate::problem::Problem;
use crate::who::{self, Told};
use bearer::Token;
use client_address::FORWARDED_FOR;
use identity_headers::{Allowed, HeaderNames, Unfit};
use nested::{Denied, Wish};
use service_accounts::{Accounts, ReviewToken};
use settings::{MaxStreamAge, Mode, Nested, ServiceAccountTokens};

pub use settings::Settings;
pub use standing::Standing;

/// What a proxy is made of.
#[derive(Debug)]
pub struct Parts {
    /// Who tokens stand for.
    pub live: Arc<Live>,
    /// The way to the API server, with the proxy's own credential. It should not ask for compression of its own.
    pub upstream: Transport,
    /// The same without any credential, for tokens that are passed on (S277).
    pub bare: Option<Transport>,
    /// Who knows service accounts' tokens.
    pub reviewer: Option<Arc<dyn ReviewToken>>,
    /// Who is told what was decided.
    pub witness: Arc<dyn Witness>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Waits.
    pub timer: Arc<dyn Timer>,
}

/// Whoever is told what was decided: an audit log.
pub trait Witness: fmt::Debug + Send + Sync {
    /// Whether anybody listens.
    fn is_there(&self) -> bool {
        true
    }

    /// This was decided.
    fn saw(&self, seen: &Seen<'_>);
}

impl Witness for Audit {
    fn is_there(&self) -> bool {
        self.is_on()
    }

    fn saw(&self, seen: &Seen<'_>) {
        let decision = match (seen.reason, seen.code) {
            (_, 500..) => Decision::Error,
            (Some(_), _) | (None, 400) => Decision::Deny,
            (None, _) if seen.who.is_none() => Decision::Deny,
            _ => Decision::Allow,
        };
        self.record(&Entry {
            event: "request",
            decision,
            reason: seen.reason,
            user: seen.who,
            acting_as: seen.acting_as,
            issuer_hash: seen.issuer.map(|url| hashed(url.as_bytes())).as_deref(),
            jti_hash: seen.jti_hash,
            source: seen.source,
            caller: None,
            audit_id: seen.audit_id,
            method: Some(seen.method.as_str()),
            path: Some(seen.uri.path()),
            code: seen.code,
            took_micros: u64::try_from(seen.took.as_micros()).unwrap_or(u64::MAX),
        });
    }
}

/// One request, and what was decided about it.
#[derive(Debug)]
pub struct Seen<'s> {
    /// Who it was, if that is known; of a nested request the user behind it.
    pub who: Option<Told<'s>>,
    /// Whom that user acts as, if as somebody else.
    pub acting_as: Option<&'s str>,
    /// The URL of the token's issuer, if it is one of ours.
    pub issuer: Option<&'s str>,
    /// The hash of the token's `jti`, if it has one and is of an issuer of ours or was reviewed (S224).
    pub jti_hash: Option<&'s str>,
    /// Why it was refused, from a closed set.
    pub reason: Option<&'static str>,
    /// Where it comes from.
    pub source: Option<IpAddr>,
    /// What was to be done.
    pub method: &'s Method,
    /// Where.
    pub uri: &'s Uri,
    /// The API server's name for the request, if it got that far.
    pub audit_id: Option<&'s str>,
    /// The code it was answered with.
    pub code: u16,
    /// Until the answer began.
    pub took: Duration,
}

/// The proxy.
#[derive(Debug)]
pub struct Proxy {
    live: Arc<Live>,
    forwarder: Forwarder,
    accounts: Option<Accounts>,
    witness: Arc<dyn Witness>,
    clock: Arc<dyn Clock>,
    settings: Settings,
    names: HeaderNames,
    anonymous: Option<AnonymousAuthConfig>,
    standing: Arc<Standing>,
}

impl Proxy {
    /// A proxy that behaves so.
    pub fn new(settings: Settings, parts: Parts) -> Self {
        let Parts { live, upstream, bare, reviewer, witness, clock, timer } = parts;
        let names = settings.mode.names();
        let rules = Rules {
            impersonation: match (settings.client_impersonation, &settings.mode) {
                (Nested::Refuse, _) => ClientImpersonation::Refused,
                // The API server knows who asks, and judges by itself.
                (Nested::Allow, Mode::RequestHeader(_)) => ClientImpersonation::Forwarded,
                (Nested::Allow, Mode::Impersonation) => ClientImpersonation::Judged,
            },
            identity_headers: names.canonical(),
            unauthorized: Unauthorized::BadGateway,
            with_details: false,
            cookies: settings.forward_cookies,
        };
        let forwarder = Forwarder::new(upstream, rules).with_bare(bare).with_timer(Arc::clone(&timer));
        let accounts = reviewer.map(|reviewer| Accounts::new(reviewer, Arc::clone(&clock)));
        let anonymous = live.anonymous().filter(|anonymous| anonymous.enabled);
        let standing = Arc::new(Standing::new(&forwarder, &live, &settings, anonymous.is_some(), timer));
        Proxy { live, forwarder, accounts, witness, clock, settings, names, anonymous, standing }
    }

    /// How it stands with the API server.
    pub fn standing(&self) -> &Arc<Standing> {
        &self.standing
    }

    /// Whoever this is, if anybody.
    async fn authenticate(&self, head: &request::Parts, shown: &Shown) -> Result<Authenticated, Refused> {
        let Some(token) = bearer::read(&head.headers).map_err(|_| Refused::Unknown("malformed"))? else {
            return self.nobody(head);
        };
        let judgement = self.live.judge(token.expose()).await;
        if self.witness.is_there() {
            shown.note(&judgement, token.expose());
        }
        match judgement.outcome {
            Outcome::Authenticated(user) => {
                Ok(Authenticated { who: Who::User(user), token: Some(token), by: By::Token })
            }
            Outcome::Rejected(rejection) => Err(Refused::Unknown(rejection.refusal.class().name())),
            Outcome::NoOpinion(NoOpinion::UnknownIssuer) => self.account(token, shown).await,
            Outcome::NoOpinion(_) => Err(Refused::Unknown("malformed")),
        }
    }

    /// Without a credential (S272). A bad one never gets here (S58).
    fn nobody(&self, head: &request::Parts) -> Result<Authenticated, Refused> {
        let is_open = self.anonymous.as_ref().is_some_and(|anonymous| {
            let mut conditions = anonymous.conditions.iter();
            anonymous.conditions.is_empty() || conditions.any(|condition| condition.path == head.uri.path())
        });
        if !is_open {
            return Err(Refused::Unknown("no_credentials"));
        }
        Ok(Authenticated { who: Who::Person(Arc::new(who::anonymous())), token: None, by: By::Nobody })
    }

    /// A token that no issuer claims (S276).
    async fn account(&self, token: Token, shown: &Shown) -> Result<Authenticated, Refused> {
        let Some(accounts) = &self.accounts else { return Err(Refused::Unknown("unknown_issuer")) };
        match accounts.review(token.expose()).await {
            Ok(Some(person)) if person.username.starts_with("system:serviceaccount:") => {
                if let Some(jti) = Told::from(&*person).token_identifier().filter(|_| self.witness.is_there())
                {
                    let _ = shown.jti_hash.set(hashed(jti.as_bytes()));
                }
                Ok(Authenticated { who: Who::Person(person), token: Some(token), by: By::Review })
            }
            Ok(_) => Err(Refused::Unknown("unknown_issuer")),
            Err(_) => Err(Refused::Unreviewed),
        }
    }

    /// How somebody is told to the API server.
    async fn identity(
        &self,
        head: &request::Parts,
        somebody: &Authenticated,
        acting_as: &OnceLock<UserInfo>,
    ) -> Result<Identity, Refused> {
        let told = somebody.who.told();
        let is_passed_on = somebody.by == By::Review
            && self.settings.service_account_tokens == ServiceAccountTokens::PassThrough;
        if is_passed_on {
            let authorization = somebody.token.as_ref().and_then(Token::authorization);
            return authorization.map(Identity::of_client).ok_or(Refused::Unknown("malformed"));
        }
        let is_judged = (self.settings.client_impersonation, &self.settings.mode)
            == (Nested::Allow, &Mode::Impersonation);
        if is_judged && let Some(wish) = Wish::read(&head.headers)? {
            if somebody.by == By::Nobody {
                return Err(Refused::Denied(Denied::Malformed("nobody acts as somebody")));
            }
            let person = wish.grant(told, self.forwarder.upstream()).await?;
            // The API server has been asked about every part of it.
            let headers = identity_headers::encode(Told::from(&person), &self.names, Allowed::ALL)?;
            let _ = acting_as.set(person);
            return Ok(Identity::with_headers(headers));
        }
        let allowed = match somebody.by {
            By::Token => self.settings.allowed_names,
            By::Review | By::Nobody => Allowed::ALL,
        };
        Ok(Identity::with_headers(identity_headers::encode(told, &self.names, allowed)?))
    }

    /// How long an answer to somebody may last (S255).
    fn longest(&self, somebody: &Authenticated) -> Option<Duration> {
        match self.settings.max_stream_age {
            MaxStreamAge::Off => None,
            MaxStreamAge::After(longest) => Some(longest),
            MaxStreamAge::TokenExpiry => {
                let left = somebody.token.as_ref()?.expires()?.saturating_sub(self.clock.now().as_second());
                Some(Duration::from_secs(u64::try_from(left).unwrap_or(0)))
            }
        }
    }
}

/// Somebody whose credential has been checked. Only [`Proxy::authenticate`] makes one.
#[derive(Debug)]
struct Authenticated {
    who: Who,
    token: Option<Token>,
    by: By,
}

#[derive(Debug)]
enum Who {
    User(Arc<User>),
    Person(Arc<UserInfo>),
}

impl Who {
    fn told(&self) -> Told<'_> {
        match self {
            Who::User(user) => Told::from(&**user),
            Who::Person(person) => Told::from(&**person),
        }
    }
}

/// Whose word it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// An issuer's.
    Token,
    /// The API server's.
    Review,
    /// Nobody's: anonymous.
    Nobody,
}

/// Why somebody does not get through.
#[derive(Debug)]
enum Refused {
    /// Not known here; why is for the log alone (S271).
    Unknown(&'static str),
    /// Known, but not to be told.
    Unfit(Unfit),
    /// May not act as somebody else.
    Denied(Denied),
    /// The API server did not say whose token it is.
    Unreviewed,
}

impl From<Unfit> for Refused {
    fn from(unfit: Unfit) -> Self {
        Refused::Unfit(unfit)
    }
}

impl From<Denied> for Refused {
    fn from(denied: Denied) -> Self {
        Refused::Denied(denied)
    }
}

impl Refused {
    fn class(&self) -> &'static str {
        match self {
            Refused::Unknown(class) => class,
            Refused::Unfit(unfit) => unfit.class(),
            Refused::Denied(_) => "impersonation",
            Refused::Unreviewed => "not_reviewed",
        }
    }

    fn problem(self) -> Problem {
        match self {
            Refused::Unknown(_) => Problem::Unauthorized,
            Refused::Unfit(unfit) => {
                tracing::warn!(reason = unfit.class(), "a good token is refused: {unfit}");
                Problem::Unauthorized
            }
            Refused::Denied(Denied::Unanswered(error)) => {
                tracing::warn!(%error, "impersonation cannot be judged");
                Problem::Unreachable(None)
            }
            Refused::Denied(denied) => Problem::Forbidden(denied.to_string()),
            Refused::Unreviewed => Problem::Unreachable(None),
        }
    }
}

/// One request's identity step, and what it found out.
struct Asked<'p> {
    proxy: &'p Proxy,
    peer: IpAddr,
    who: OnceLock<Who>,
    acting_as: OnceLock<UserInfo>,
    refused: OnceLock<&'static str>,
    source: OnceLock<IpAddr>,
    shown: Shown,
}

/// What a log says about the token.
#[derive(Default)]
struct Shown {
    issuer: OnceLock<String>,
    jti_hash: OnceLock<String>,
}

impl Shown {
    fn note(&self, judgement: &Judgement, token: &str) {
        if let Some(url) = judgement.issuer() {
            let _ = self.issuer.set(url.to_owned());
        }
        if let Some(hash) = who::jti_hash(judgement, token) {
            let _ = self.jti_hash.set(hash);
        }
    }
}

impl Identify for Asked<'_> {
    /// Who is it, how is that told, for how long, and from where.
    async fn identify(&self, head: &request::Parts) -> Result<Identity, Problem> {
        let settings = &self.proxy.settings;
        let source = client_address::client(self.peer, &head.headers, &settings.trusted_proxies);
        let _ = self.source.set(source);
        // On the heap: it is large, and gone before the answer comes.
        let told = Box::pin(self.told(head)).await.map_err(|refused| {
            let _ = self.refused.set(refused.class());
            refused.problem()
        })?;
        if !settings.forward_client_address {
            return Ok(told);
        }
        Ok(match HeaderValue::try_from(source.to_string()) {
            Ok(source) => told.and(FORWARDED_FOR, source),
            Err(_) => told,
        })
    }
}

impl Asked<'_> {
    async fn told(&self, head: &request::Parts) -> Result<Identity, Refused> {
        let somebody = self.proxy.authenticate(head, &self.shown).await?;
        let identity = self.proxy.identity(head, &somebody, &self.acting_as).await;
        let longest = self.proxy.longest(&somebody);
        let _ = self.who.set(somebody.who);
        Ok(identity?.lasting(longest))
    }
}

impl Handler for Proxy {
    /// With the PROXY protocol, only whoever is trusted to speak it.
    fn admits(&self, peer: SocketAddr, _: SocketAddr) -> bool {
        let is_trusted = || self.settings.trusted_proxies.iter().any(|network| network.contains(peer.ip()));
        !self.settings.proxy_protocol || is_trusted()
    }

    fn has_proxy_protocol(&self) -> bool {
        self.settings.proxy_protocol
    }

    fn handle(
        &self,
        request: Request<Incoming>,
        peer: &Peer,
    ) -> impl Future<Output = Response<ReplyBody>> + Send {
        self.answer(request.into(), peer.address.ip())
    }
}

impl Proxy {
    async fn answer(&self, inbound: Inbound, peer: IpAddr) -> Response<ReplyBody> {
        let asked = Asked {
            proxy: self,
            peer,
            who: OnceLock::new(),
            acting_as: OnceLock::new(),
            refused: OnceLock::new(),
            source: OnceLock::new(),
            shown: Shown::default(),
        };
        if !self.witness.is_there() {
            return *self.forwarder.forward(inbound, &asked).await;
        }
        let started = self.clock.monotonic();
        let (method, uri) = (inbound.head().method.clone(), inbound.head().uri.clone());
        let reply = self.forwarder.forward(inbound, &asked).await;
        self.witness.saw(&Seen {
            who: asked.who.get().map(Who::told),
            acting_as: asked.acting_as.get().map(|person| person.username.as_str()),
            issuer: asked.shown.issuer.get().map(String::as_str),
            jti_hash: asked.shown.jti_hash.get().map(String::as_str),
            reason: asked.refused.get().copied(),
            source: asked.source.get().copied(),
            method: &method,
            uri: &uri,
            audit_id: reply.headers().get("audit-id").and_then(|id| id.to_str().ok()),
            code: reply.status().as_u16(),
            took: self.clock.monotonic().saturating_sub(started),
        });
        *reply
    }
}
