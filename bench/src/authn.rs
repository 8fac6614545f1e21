//! Tokens: what an authenticator adds to the verification that no authenticator can do without, what remembering saves,
//! and what a configuration costs.

mod expressions;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use aws_lc_rs::hmac;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ParsedPublicKey, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use navicert_authn::config::{AuthnReloader, ConfigSources, load};
use navicert_authn::jwks::{
    BoxFuture, Fetch, FetchError, FetchRequest, FetchResponse, FetchStage, JwksContext, KeySet,
    KeysUnavailable, StaticKeys,
};
use navicert_authn::metrics::AuthnMetrics;
use navicert_authn::{Authenticators, AuthnOutcome, AuthnProfile, AuthnRequest};
use navicert_testkit::k8s::vectors;
use navicert_types::clock::Timestamp;
use navicert_types::{Clock, SystemClock};
use serde_json::Value;

use crate::allocations;
use crate::race::{BothSides, Contest, Fault, Race, Shared, Unit};
use crate::statistics::Round;

pub(crate) use expressions::effect;

/// Between every token's `nbf` and `exp`.
const NOW: i64 = 1_900_000_000;
/// Heap that one authenticator may take.
const MAX_HEAP_BYTES: u64 = 128 << 10;
/// Tokens that a thread verifies per turn.
const BATCH: usize = 64;
/// How often the turns of a round on one thread and on two are repeated.
const REPETITIONS: usize = 8;

pub(crate) fn races() -> Vec<Race> {
    let input = Shared::new(Input::read);
    let race = |what, limit, contest: fn(&Input) -> Result<Contest, Fault>| {
        let input = input.clone();
        Race::new(what, limit, move || contest(&*input.get()?))
    };
    vec![
        race("authn: RS256 with CEL / bare verification", 1.3, |input| input.verification("rs256.jwt"))
            .allocations_at_most(40),
        race("authn: ES256 with CEL / bare verification", 1.15, |input| input.verification("es256.jwt"))
            .allocations_at_most(40),
        race("authn: token cache hit / one HMAC", 2.0, cache_hit).allocations_at_most(0),
        race("authn: load 64 authenticators / 1, 64 times", 1.1, |input| {
            Ok(Contest::time(loading(input, 64, 1)?, loading(input, 1, 64)?))
        }),
        race("authn: slowdown of RS256 on two threads / of bare verification", 1.0 / 0.9, |input| {
            let both = two_threads(input.authenticator("rs256.jwt")?, input.bare("rs256.jwt")?);
            Ok(Contest::Together { unit: Unit::Times, both })
        }),
        race("authn: heap of an authenticator / 128 KiB", 1.0, |input| {
            let text = issuers(&input.cel, 64)?;
            Ok(Contest::sizes(move || heap_of_authenticator(&text), || Ok(MAX_HEAP_BYTES)))
        })
        .with_few_rounds(),
    ]
}

/// Tokens, keys and configurations of the race.
pub(crate) struct Input {
    jwks: String,
    cel: String,
    tokens: [(&'static str, String); 2],
}

impl Input {
    pub(crate) fn read() -> Result<Self, Fault> {
        let dir = vectors::dir().join("bench");
        let read =
            |name: &str| std::fs::read_to_string(dir.join(name)).map_err(|why| format!("{name}: {why}"));
        let token = |name: &'static str| read(name).map(|text| (name, text.trim().to_owned()));
        Ok(Input {
            jwks: read("jwks.json")?,
            cel: read("config-cel.yaml")?,
            tokens: [token("rs256.jwt")?, token("es256.jwt")?],
        })
    }

    fn token(&self, name: &str) -> Result<String, Fault> {
        let found = self.tokens.iter().find(|(known, _)| *known == name);
        Ok(found.ok_or("no such token")?.1.clone())
    }

    fn keys(&self, profile: &AuthnProfile) -> Result<StaticKeys, Fault> {
        Ok(StaticKeys::new(KeySet::parse(self.jwks.as_bytes(), profile)?))
    }

    /// One token through everything against its signature alone.
    fn verification(&self, token: &str) -> Result<Contest, Fault> {
        Ok(Contest::time(self.authenticator(token)?.once(), self.bare(token)?.once()))
    }

    /// The whole authenticator for one token, nothing remembered.
    fn authenticator(&self, token: &str) -> Result<Whole, Fault> {
        Whole::new(&self.cel, self.keys(&AuthnProfile::HARDENED)?, self.token(token)?)
    }

    /// The signature of one token and the key that made it.
    fn bare(&self, token: &str) -> Result<Bare, Fault> {
        let token = self.token(token)?;
        let (signed, signature) = token.rsplit_once('.').ok_or("not a token")?;
        let header: Value = serde_json::from_slice(&decoded(token.split('.').next())?)?;
        let jwks: Value = serde_json::from_str(&self.jwks)?;
        let keys = jwks.get("keys").and_then(Value::as_array).ok_or("no keys")?;
        let jwk = keys.iter().find(|jwk| jwk.get("kid") == header.get("kid")).ok_or("no such key")?;
        let member = |name: &str| decoded(jwk.get(name).and_then(Value::as_str));
        let key = if header.get("alg").is_some_and(|alg| alg == "RS256") {
            RsaPublicKeyComponents { n: member("n")?, e: member("e")? }
                .to_parsed_public_key(&RSA_PKCS1_2048_8192_SHA256)?
        } else {
            let point = [vec![4], member("x")?, member("y")?].concat();
            ParsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)?
        };
        let (message, signature) = (signed.as_bytes().to_vec(), decoded(Some(signature))?);
        Ok(Bare(Arc::new((key, message, signature))))
    }
}

fn decoded(text: Option<&str>) -> Result<Vec<u8>, Fault> {
    Ok(URL_SAFE_NO_PAD.decode(text.ok_or("a part is missing")?)?)
}

/// A whole authenticator and a token for it.
#[derive(Clone)]
pub(crate) struct Whole(Arc<(Authenticators, String)>);

impl Whole {
    pub(crate) fn new(config: &str, keys: StaticKeys, token: String) -> Result<Self, Fault> {
        let compiled = load(config.as_bytes(), &AuthnProfile::HARDENED)?.compiled;
        let whole = Whole(Arc::new((Authenticators::new(compiled, |_| Arc::new(keys.clone())), token)));
        whole.run()?;
        Ok(whole)
    }

    pub(crate) fn run(&self) -> Result<(), Fault> {
        let (authenticators, token) = &*self.0;
        let request = AuthnRequest::new(std::hint::black_box(token), Timestamp::from_second(NOW)?);
        accepted(&authenticators.authenticate(&request))
    }

    pub(crate) fn once(&self) -> impl FnMut() -> Result<(), Fault> + 'static {
        let whole = self.clone();
        move || whole.run()
    }
}

fn accepted(outcome: &AuthnOutcome) -> Result<(), Fault> {
    match outcome {
        AuthnOutcome::Authenticated(_) => Ok(()),
        AuthnOutcome::NoOpinion(why) => Err(why.to_string().into()),
        AuthnOutcome::Rejected(why) => Err(why.to_string().into()),
    }
}

/// A bare verification of the same bytes.
#[derive(Clone)]
struct Bare(Arc<(ParsedPublicKey, Vec<u8>, Vec<u8>)>);

impl Bare {
    fn run(&self) -> Result<(), Fault> {
        let (key, message, signature) = &*self.0;
        Ok(key.verify_sig(std::hint::black_box(message), signature)?)
    }

    fn once(&self) -> impl FnMut() -> Result<(), Fault> + 'static {
        let bare = self.clone();
        move || bare.run()
    }
}

/// A token that was just accepted, with everything counted, against one HMAC of its text.
fn cache_hit(input: &Input) -> Result<Contest, Fault> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, &[7; 32]);
    let text = input.token("rs256.jwt")?;
    let reference = move || {
        std::hint::black_box(hmac::sign(&key, std::hint::black_box(text.as_bytes())));
        Ok(())
    };
    Ok(Contest::time(remembered(input)?, reference))
}

/// What a server does with a token that it has just accepted.
pub(crate) fn remembered(input: &Input) -> Result<impl FnMut() -> Result<(), Fault> + use<>, Fault> {
    let dir = tempfile::tempdir()?;
    let at = |name: &str| dir.path().join(name);
    std::fs::write(at("config.yaml"), &input.cel)?;
    std::fs::write(at("keys.json"), &input.jwks)?;
    let navicert_config = serde_json::json!({
        "apiVersion": "navicert/v1alpha1", "kind": "NavicertConfiguration",
        "issuers": [{"url": "https://127.0.0.1:24443", "jwksFile": at("keys.json")}],
    });
    std::fs::write(at("navicert.yaml"), navicert_config.to_string())?;
    let clock: Arc<dyn Clock> = Arc::new(At(Timestamp::from_second(NOW)?));
    let around = JwksContext {
        fetch: Arc::new(NoFetch),
        recorder: Arc::new(AuthnMetrics::new("bench", Arc::clone(&clock))),
        clock,
        random: Arc::new(|| 0.5),
    };
    let sources = ConfigSources {
        config: at("config.yaml").into(),
        navicert_config: Some(at("navicert.yaml")),
        profile: None,
        kube_version: None,
    };
    let live = Arc::clone(AuthnReloader::open(sources, around)?.authenticator());
    let token = input.token("rs256.jwt")?;
    let ours = move || accepted(&ready(live.authenticate(std::hint::black_box(&token)))?);
    ours()?;
    Ok(ours)
}

/// The output of a future that is ready at the first poll.
fn ready<F: Future>(future: F) -> Result<F::Output, Fault> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Ok(output),
        Poll::Pending => Err("it waits".into()),
    }
}

/// A clock with a fixed wall time, so that nothing expires, and the system's monotonic time.
#[derive(Debug)]
struct At(Timestamp);

impl Clock for At {
    fn now(&self) -> Timestamp {
        self.0
    }

    fn monotonic(&self) -> std::time::Duration {
        SystemClock.monotonic()
    }
}

/// Fails every fetch: keys come from a file.
#[derive(Debug)]
struct NoFetch;

impl Fetch for NoFetch {
    fn get<'f>(&'f self, _: FetchRequest<'f>) -> BoxFuture<'f, Result<FetchResponse, FetchError>> {
        Box::pin(std::future::ready(Err(FetchError::new(FetchStage::Connect, "connection refused"))))
    }
}

/// The configuration with so many issuers.
fn issuers(text: &str, count: usize) -> Result<String, Fault> {
    let (head, issuer) = text.split_once("jwt:\n").ok_or("the configuration has no `jwt`")?;
    let one = |number| issuer.replacen("127.0.0.1:24443", &format!("127.0.0.1:24443/{number}"), 1);
    Ok(format!("{head}jwt:\n{}", (0..count).map(one).collect::<String>()))
}

fn built(text: &str) -> Result<Authenticators, Fault> {
    let loaded = load(std::hint::black_box(text.as_bytes()), &AuthnProfile::HARDENED)?;
    let undiscovered = |_: &_| Arc::new(StaticKeys::unavailable(KeysUnavailable::NotReady)) as _;
    Ok(Authenticators::new(loaded.compiled, undiscovered))
}

fn loading(
    input: &Input,
    count: usize,
    times: usize,
) -> Result<impl FnMut() -> Result<(), Fault> + use<>, Fault> {
    let text = issuers(&input.cel, count)?;
    Ok(move || {
        for _ in 0..times {
            std::hint::black_box(built(&text)?);
        }
        Ok(())
    })
}

/// Heap bytes of each of 64 authenticators.
fn heap_of_authenticator(text: &str) -> Result<u64, Fault> {
    // The first one also makes what all share.
    drop(built(text)?);
    let before = allocations::live();
    let authenticators = built(text)?;
    let each = allocations::live().saturating_sub(before) / 64;
    drop(authenticators);
    Ok(each)
}

/// The slowdown per token with two threads compared to one, for the whole authenticator and for bare signature verification.
/// The authenticator must keep nine tenths of the speed-up that a second thread gives bare verification.
fn two_threads(whole: Whole, bare: Bare) -> BothSides {
    Box::new(move || {
        let turns: [&dyn Fn() -> Result<(), Fault>; 4] = [
            &|| (0..BATCH).try_for_each(|_| whole.run()),
            &|| (0..BATCH).try_for_each(|_| bare.run()),
            &|| together(|| whole.run().map_err(|why| why.to_string())),
            &|| together(|| bare.run().map_err(|why| why.to_string())),
        ];
        let mut times = [0.0; 4];
        for repetition in 0..REPETITIONS {
            let mut order: Vec<_> = turns.iter().zip(&mut times).collect();
            if repetition % 2 == 1 {
                order.reverse();
            }
            for (turn, time) in order {
                let started = SystemClock.monotonic();
                turn()?;
                *time += SystemClock.monotonic().saturating_sub(started).as_secs_f64();
            }
        }
        let [whole, bare, both_whole, both_bare] = times;
        Ok(Round { ours: both_whole / whole, reference: both_bare / bare })
    })
}

fn together(work: impl Fn() -> Result<(), String> + Sync) -> Result<(), Fault> {
    let batch = || (0..BATCH).try_for_each(|_| work());
    std::thread::scope(|scope| {
        let other = scope.spawn(batch);
        batch()?;
        other.join().map_err(|_| "a thread has panicked".to_owned())?
    })
    .map_err(Into::into)
}
