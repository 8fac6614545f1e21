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
use navicert_authn::config::{Reloader, Sources, load};
use navicert_authn::jwks::{
    Around, BoxFuture, Fetch, FetchError, FetchRequest, Fetched, FixedKeys, KeySet, KeysUnavailable, Stage,
};
use navicert_authn::metrics::Metrics;
use navicert_authn::{Authenticators, Outcome, Profile, Question};
use navicert_testkit::shared;
use navicert_types::clock::Timestamp;
use navicert_types::{Clock, SystemClock};
use serde_json::Value;

use crate::allocations;
use crate::frame::{Fault, Race};

pub(crate) use expressions::effect;

/// Between every token's `nbf` and `exp`.
const NOW: i64 = 1_900_000_000;
/// Heap that one authenticator may take.
const MOST_HEAP: u64 = 128 << 10;
/// How many tokens a thread takes in one turn.
const BATCH: usize = 64;

pub(crate) fn races() -> Result<Vec<Race>, Fault> {
    let input = Input::read()?;
    heap_of_authenticators(&input)?;
    let (rsa, ec) = (input.authenticator("rs256.jwt")?, input.authenticator("es256.jwt")?);
    let (bare_rsa, bare_ec) = (input.bare("rs256.jwt")?, input.bare("es256.jwt")?);
    let both = two_threads(&rsa, &bare_rsa)?;
    Ok(vec![
        Race::new("authn: RS256 with CEL / bare verification", 1.3, rsa.once(), bare_rsa.once())
            .allocations_at_most(40),
        Race::new("authn: ES256 with CEL / bare verification", 1.15, ec.once(), bare_ec.once())
            .allocations_at_most(40),
        cache_hit(&input)?,
        Race::new(
            "authn: load 64 authenticators / 1, 64 times",
            1.1,
            loading(&input, 64, 1)?,
            loading(&input, 1, 64)?,
        ),
        both,
    ])
}

/// Tokens, keys and configurations of the race; made here in the same shape if there are none.
pub(crate) struct Input {
    jwks: String,
    cel: String,
    tokens: [(&'static str, String); 2],
}

impl Input {
    pub(crate) fn read() -> Result<Self, Fault> {
        let Some(folder) = shared::root().map(|root| root.join("vectors/bench")) else {
            return Ok(Input::made());
        };
        let read =
            |name: &str| std::fs::read_to_string(folder.join(name)).map_err(|why| format!("{name}: {why}"));
        let token = |name: &'static str| read(name).map(|text| (name, text.trim().to_owned()));
        Ok(Input {
            jwks: read("jwks.json")?,
            cel: read("config-cel.yaml")?,
            tokens: [token("rs256.jwt")?, token("es256.jwt")?],
        })
    }

    /// Keys and tokens of our own.
    fn made() -> Self {
        use navicert_testkit::jws::{Algorithm, SigningKey};
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), "no vectors: tokens of the same shape are made");
        let keys =
            [SigningKey::generate(Algorithm::Rs256, "rsa-1"), SigningKey::generate(Algorithm::Es256, "ec-1")];
        let claims = serde_json::json!({
            "iss": "https://127.0.0.1:24443", "aud": "bench", "exp": NOW + 1_000, "iat": NOW - 1_000,
            "sub": "a-subject-of-usual-length", "jti": "an-identifier-as-long-as-a-uuid-would-be", "active": true,
            "login": "ann@bench.example", "teams": "red,green,blue,black,white", "site": "north", "floor": "seventh",
            "name": "Ann of the Seventh Floor", "padding": "so that it is as long as a token usually is, more or less",
        });
        let [rsa, ec] = &keys;
        Input {
            jwks: serde_json::json!({"keys": [rsa.jwk(), ec.jwk()]}).to_string(),
            cel: include_str!("authn/config-cel.yaml").to_owned(),
            tokens: [("rs256.jwt", rsa.token(&claims)), ("es256.jwt", ec.token(&claims))],
        }
    }

    fn token(&self, name: &str) -> Result<String, Fault> {
        let found = self.tokens.iter().find(|(known, _)| *known == name);
        Ok(found.ok_or("no such token")?.1.clone())
    }

    fn keys(&self, profile: &Profile) -> Result<FixedKeys, Fault> {
        Ok(FixedKeys::new(KeySet::parse(self.jwks.as_bytes(), profile)?))
    }

    /// The whole authenticator for one token, nothing remembered.
    fn authenticator(&self, token: &str) -> Result<Whole, Fault> {
        Whole::new(&self.cel, self.keys(&Profile::HARDENED)?, self.token(token)?)
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
    pub(crate) fn new(config: &str, keys: FixedKeys, token: String) -> Result<Self, Fault> {
        let compiled = load(config.as_bytes(), &Profile::HARDENED)?.compiled;
        let whole = Whole(Arc::new((Authenticators::new(compiled, |_| Arc::new(keys.clone())), token)));
        whole.run()?;
        Ok(whole)
    }

    pub(crate) fn run(&self) -> Result<(), Fault> {
        let (authenticators, token) = &*self.0;
        let question = Question::new(std::hint::black_box(token), Timestamp::from_second(NOW)?);
        accepted(&authenticators.authenticate(&question))
    }

    pub(crate) fn once(&self) -> impl FnMut() -> Result<(), Fault> + 'static {
        let whole = self.clone();
        move || whole.run()
    }
}

fn accepted(outcome: &Outcome) -> Result<(), Fault> {
    match outcome {
        Outcome::Authenticated(_) => Ok(()),
        Outcome::NoOpinion(why) => Err(why.to_string().into()),
        Outcome::Rejected(why) => Err(why.to_string().into()),
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
fn cache_hit(input: &Input) -> Result<Race, Fault> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, &[7; 32]);
    let text = input.token("rs256.jwt")?;
    let reference = move || {
        std::hint::black_box(hmac::sign(&key, std::hint::black_box(text.as_bytes())));
        Ok(())
    };
    let ours = remembered(input)?;
    Ok(Race::new("authn: token cache hit / one HMAC", 2.0, ours, reference).allocations_at_most(0))
}

/// What a server does with a token that it has just accepted.
pub(crate) fn remembered(input: &Input) -> Result<impl FnMut() -> Result<(), Fault> + use<>, Fault> {
    let folder = tempfile::tempdir()?;
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("config.yaml"), &input.cel)?;
    std::fs::write(at("keys.json"), &input.jwks)?;
    let side_car = serde_json::json!({
        "apiVersion": "navicert/v1alpha1", "kind": "NavicertConfiguration",
        "issuers": [{"url": "https://127.0.0.1:24443", "jwksFile": at("keys.json")}],
    });
    std::fs::write(at("navicert.yaml"), side_car.to_string())?;
    let clock: Arc<dyn Clock> = Arc::new(At(Timestamp::from_second(NOW)?));
    let around = Around {
        fetch: Arc::new(Nobody),
        recorder: Arc::new(Metrics::new("bench", Arc::clone(&clock))),
        clock,
        random: Arc::new(|| 0.5),
    };
    let sources =
        Sources { config: at("config.yaml").into(), side_car: Some(at("navicert.yaml")), profile: None };
    let live = Arc::clone(Reloader::open(sources, around)?.live());
    let token = input.token("rs256.jwt")?;
    let ours = move || accepted(&ready(live.authenticate(std::hint::black_box(&token)))?);
    ours()?;
    Ok(ours)
}

/// What a future that never waits gives.
fn ready<F: Future>(future: F) -> Result<F::Output, Fault> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Ok(output),
        Poll::Pending => Err("it waits".into()),
    }
}

/// A wall clock that stands, so that nothing expires; the monotonic one is the machine's.
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

/// Keys come from a file: nobody is asked for anything.
#[derive(Debug)]
struct Nobody;

impl Fetch for Nobody {
    fn get<'f>(&'f self, _: FetchRequest<'f>) -> BoxFuture<'f, Result<Fetched, FetchError>> {
        Box::pin(std::future::ready(Err(FetchError::new(Stage::Connect, "nobody is there"))))
    }
}

/// The configuration with so many issuers.
fn issuers(text: &str, count: usize) -> Result<String, Fault> {
    let (head, issuer) = text.split_once("jwt:\n").ok_or("the configuration has no `jwt`")?;
    let one = |number| issuer.replacen("127.0.0.1:24443", &format!("127.0.0.1:24443/{number}"), 1);
    Ok(format!("{head}jwt:\n{}", (0..count).map(one).collect::<String>()))
}

fn built(text: &str) -> Result<Authenticators, Fault> {
    let loaded = load(std::hint::black_box(text.as_bytes()), &Profile::HARDENED)?;
    let undiscovered = |_: &_| Arc::new(FixedKeys::unavailable(KeysUnavailable::NotReady)) as _;
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

/// Fails if authenticators take more memory than they may.
fn heap_of_authenticators(input: &Input) -> Result<(), Fault> {
    let text = issuers(&input.cel, 64)?;
    // The first one also makes what all share.
    drop(built(&text)?);
    let before = allocations::live();
    let authenticators = built(&text)?;
    let each = allocations::live().saturating_sub(before) / 64;
    drop(authenticators);
    if each <= MOST_HEAP {
        Ok(())
    } else {
        Err(format!("an authenticator takes {each} bytes of heap").into())
    }
}

/// Two threads at once. Alone, ours takes so many times what bare verification takes; together it may take little more
/// than that many times: nine tenths of what the second thread gives bare verification, it gives us too.
fn two_threads(whole: &Whole, bare: &Bare) -> Result<Race, Fault> {
    let alone = Race::new("authn: alone", f64::MAX, whole.once(), bare.once()).ratio()?;
    let (whole, bare) = (whole.clone(), bare.clone());
    let ours = move || together(|| whole.run().map_err(|why| why.to_string()));
    let reference = move || together(|| bare.run().map_err(|why| why.to_string()));
    Ok(Race::new("authn: RS256 on two threads / bare, on two", alone / 0.9, ours, reference))
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
