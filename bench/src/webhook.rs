//! The webhook over keep-alive HTTP/1.1 on loopback, without TLS on either side, against a bare hyper server that answers
//! everything with the same body; where every token has to be verified, against that and bare verification; and as
//! `navicert serve webhook`, against itself without confinement.

mod tower;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use aws_lc_rs::signature::{ParsedPublicKey, RSA_PKCS1_2048_8192_SHA256};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use navicert_authn::ReloadableAuthenticator;
use navicert_authn::config::{AuthnReloader, ConfigSources};
use navicert_authn::jwks::{
    BoxFuture, Fetch, FetchError, FetchRequest, FetchResponse, FetchStage, JwksContext,
};
use navicert_authn::metrics::AuthnMetrics;
use navicert_authn::revocation::RevocationList;
use navicert_server::ServerLimits;
use navicert_server::audit::AuditLog;
use navicert_server::client_auth::ClientAuth;
use navicert_server::listener::{self, Security, Socket};
use navicert_server::metrics::ListenerMetrics;
use navicert_server::serving::BoundListener;
use navicert_server::webhook::{Webhook, WebhookSettings};
use navicert_testkit::net::bare_server::BareServer;
use navicert_testkit::{Algorithm, Program, SigningKey, wait};
use navicert_types::{Clock, SystemClock};
use serde_json::json;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

use crate::gateway::on_processor;
use crate::needs::{self, Need};
use crate::race::{Contest, Fault, Meter, Race, Shared};

/// Threads of each server, and of those who ask.
const THREADS: usize = 2;
/// Connections of each asking thread.
const CONNECTIONS: usize = 8;
/// Requests on each connection, per turn.
const REQUESTS: usize = 25;
/// Tokens that have to be verified, per turn: one for each request.
const TOKENS: usize = THREADS * CONNECTIONS * REQUESTS;

pub(crate) fn races() -> Vec<Race> {
    let cached = "webhook: cached tokens / bare hyper, constant body";
    let uncached = "webhook: uncached RS256 / bare hyper and bare verification";
    let setup = Shared::new(Setup::new);
    let race = |what, limit, contest: fn(Rc<Setup>) -> Contest| {
        let setup = setup.clone();
        Race::new(what, limit, move || Ok(contest(setup.get()?)))
    };
    let layer = "tower: cached tokens through the layer, in axum / the webhook's handler";
    let of_layer = {
        let setup = setup.clone();
        move || tower::contest(setup.get()?)
    };
    let confined = "webhook: CPU time of a cached token / without confinement";
    let confinement = || Ok(Contest::Cost { ours: cpu_time("")?, reference: cpu_time(UNCONFINED)? });
    vec![
        race(cached, 1.3, cached_tokens).with_long_rounds(),
        race(uncached, 1.0 / 0.85, uncached_tokens),
        Race::new(layer, 1.0 / 0.9, of_layer).with_long_rounds(),
        Race::new(confined, 1.1, confinement).needs(&[Need::Built("navicert")]).on_one_processor(),
    ]
}

/// What makes a webhook's `NavicertConfiguration` one without confinement.
const UNCONFINED: &str =
    r#", "servers": {"confinement": {"noNewPrivileges": "off", "landlock": "off", "seccomp": "off"}}"#;

/// The time that the threads of `navicert serve webhook` spend on a processor, per review.
fn cpu_time(settings: &str) -> Result<Meter, Fault> {
    let (key, dir) = (SigningKey::generate(Algorithm::Rs256, "k"), tempfile::tempdir()?);
    write_configuration(dir.path(), &key)?;
    let path = dir.path().join("navicert.yaml");
    let text = std::fs::read_to_string(&path)?;
    let text = text.strip_suffix('}').ok_or("the configuration is no object")?;
    std::fs::write(&path, format!("{text}{settings}}}"))?;
    let program = Program::new(needs::built("navicert")?)
        .arguments(["serve", "webhook", "--authentication-config", "config.yaml"])
        .arguments(["--navicert-config", "navicert.yaml", "--plain-http", "--allow-any-caller"])
        .arguments(["--listen", "127.0.0.1:0", "--log-level", "error"])
        .own_environment()
        .variable("PATH", "/usr/bin:/bin")
        .variable("HOME", dir.path())
        .directory(dir.path())
        .start_running()?;
    let told = wait::blocking(program.wait_for_output("listening on "));
    let address = told.split([' ', ',', '\n']).find_map(|word| word.trim_end_matches('.').parse().ok());
    let now = SystemClock.now().as_second();
    let request = request(&key.token(&json!({
        "iss": "https://issuer.example", "aud": "kubernetes", "sub": "ann", "exp": now + 86_400, "iat": now, "nbf": now,
        "groups": ["developers", "platform"],
    })));
    let (load, _) = Load::open(address.ok_or("no address")?, &request)?;
    let requests = vec![request; TOKENS];
    Ok(Box::new(move || {
        let _kept = &dir;
        let before = on_processor(program.pid())?;
        load.ask(&requests)?;
        Ok(on_processor(program.pid())?.saturating_sub(before) / u32::try_from(TOKENS)?)
    }))
}

fn cached_tokens(setup: Rc<Setup>) -> Contest {
    let reference = Rc::clone(&setup);
    Contest::time(move || setup.webhook.ask(&setup.cached), move || reference.bare.ask(&reference.cached))
}

fn uncached_tokens(setup: Rc<Setup>) -> Contest {
    let ours: Meter = {
        let setup = Rc::clone(&setup);
        Box::new(move || {
            // Every earlier decision is made again.
            setup.live.revocations().replace(RevocationList::default());
            setup.timed(|setup| setup.webhook.ask(&setup.uncached))
        })
    };
    let reference: Meter = Box::new(move || {
        let asking = setup.timed(|setup| setup.bare.ask(&setup.cached))?;
        Ok(asking + setup.timed(Setup::verify)?)
    });
    Contest::Cost { ours, reference }
}

struct Setup {
    webhook: Load,
    bare: Load,
    live: Arc<ReloadableAuthenticator>,
    /// The token of the requests below.
    token: String,
    /// The same request for every connection.
    cached: Vec<Vec<u8>>,
    uncached: Vec<Vec<u8>>,
    key: ParsedPublicKey,
    /// Message and signature of every token.
    signed: Vec<(Vec<u8>, Vec<u8>)>,
    _server: (Runtime, watch::Sender<bool>),
    _bare: BareServer,
    folder: tempfile::TempDir,
}

impl Setup {
    fn new() -> Result<Self, Fault> {
        let key = SigningKey::generate(Algorithm::Rs256, "k");
        let now = SystemClock.now().as_second();
        let token = |number: usize| {
            key.token(&json!({
                "iss": "https://issuer.example", "aud": "kubernetes", "sub": "0f8a2b31-5a3e-4c1f-9f0d-ann", "jti": number.to_string(),
                "exp": now + 86_400, "iat": now, "nbf": now, "email": "ann@example.com", "email_verified": true, "name": "Ann Example",
                "groups": ["developers", "platform", "on-call", "everybody"],
            }))
        };
        let tokens: Vec<String> = (0..TOKENS).map(token).collect();
        let dir = tempfile::tempdir()?;
        let live = live(dir.path(), &key)?;
        let (server, stop, address) = serve(&live)?;
        let token = tokens.first().ok_or("no token")?.clone();
        let cached = request(&token);
        let (webhook, response) = Load::open(address, &cached)?;
        let bare = BareServer::start(response, THREADS);
        let (load, _) = Load::open(bare.address(), &cached)?;
        let signed: Option<Vec<_>> = tokens.iter().map(|token| signed(token)).collect();
        Ok(Setup {
            webhook,
            bare: load,
            live,
            token,
            cached: vec![cached; TOKENS],
            uncached: tokens.iter().map(|token| request(token)).collect(),
            key: ParsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key.public_key_der())?,
            signed: signed.ok_or("a token without a signature")?,
            _server: (server, stop),
            _bare: bare,
            folder: dir,
        })
    }

    /// How long one request's share takes.
    fn timed(&self, work: impl FnOnce(&Self) -> Result<(), Fault>) -> Result<Duration, Fault> {
        let before = SystemClock.monotonic();
        work(self)?;
        Ok(SystemClock.monotonic().saturating_sub(before) / u32::try_from(TOKENS)?)
    }

    /// Every token's signature once, on as many threads as the servers have.
    fn verify(&self) -> Result<(), Fault> {
        let share = self.signed.len().div_ceil(THREADS);
        thread::scope(|scope| {
            let threads: Vec<_> = self
                .signed
                .chunks(share)
                .map(|signed| {
                    scope.spawn(|| {
                        signed
                            .iter()
                            .all(|(message, signature)| self.key.verify_sig(message, signature).is_ok())
                    })
                })
                .collect();
            let all = threads.into_iter().all(|thread| thread.join().unwrap_or(false));
            if all { Ok(()) } else { Err("a signature does not verify".into()) }
        })
    }
}

/// `config.yaml`, `navicert.yaml` and the keys.
fn write_configuration(dir: &Path, key: &SigningKey) -> Result<(), Fault> {
    let at = |name: &str| dir.join(name);
    let config = json!({
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",
        "jwt": [{
            "issuer": {"url": "https://issuer.example", "audiences": ["kubernetes"]},
            "claimMappings": {
                "username": {"claim": "sub", "prefix": "oidc:"}, "groups": {"claim": "groups", "prefix": "oidc:"},
            },
        }],
    });
    std::fs::write(at("config.yaml"), config.to_string())?;
    std::fs::write(at("keys.json"), json!({"keys": [key.jwk()]}).to_string())?;
    let navicert_config = json!({
        "apiVersion": "navicert/v1alpha1", "kind": "NavicertConfiguration",
        "issuers": [{"url": "https://issuer.example", "jwksFile": at("keys.json")}],
    });
    std::fs::write(at("navicert.yaml"), navicert_config.to_string())?;
    Ok(())
}

fn live(dir: &Path, key: &SigningKey) -> Result<Arc<ReloadableAuthenticator>, Fault> {
    write_configuration(dir, key)?;
    let at = |name: &str| dir.join(name);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
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
    Ok(Arc::clone(AuthnReloader::open(sources, around)?.authenticator()))
}

/// The webhook as `navicert serve webhook --plain-http --allow-any-caller` has it, figures included.
fn serve(live: &Arc<ReloadableAuthenticator>) -> Result<(Runtime, watch::Sender<bool>, SocketAddr), Fault> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let handler = Webhook::new(
        Arc::clone(live),
        ClientAuth::allow_all(),
        WebhookSettings::default(),
        AuditLog::disabled(),
        Arc::clone(&clock),
    );
    let runtime = Builder::new_multi_thread().worker_threads(THREADS).enable_all().build()?;
    let bound = BoundListener::bind(([127, 0, 0, 1], 0).into())?;
    let address = bound.address();
    let socket = Socket {
        listener: bound.into_listener(),
        security: Security::Plain,
        limits: ServerLimits::default(),
        metrics: ListenerMetrics::new("webhook", clock),
    };
    let (stop, stopped) = watch::channel(false);
    runtime.spawn(listener::serve(socket, Arc::new(handler), stopped));
    Ok((runtime, stop, address))
}

/// As kube-apiserver sends it (S208, S209).
fn request(token: &str) -> Vec<u8> {
    let body = format!(
        "{{\"kind\":\"TokenReview\",\"apiVersion\":\"authentication.k8s.io/v1\",\"metadata\":{{}},\"spec\":{{\"token\":\"{token}\"}},\
         \"status\":{{\"user\":{{}}}}}}"
    );
    format!(
        "POST /authenticate?timeout=30s HTTP/1.1\r\nHost: 127.0.0.1:8443\r\nUser-Agent: Go-http-client/1.1\r\n\
         Content-Length: {}\r\nAccept: application/json, */*\r\nContent-Type: application/json\r\nAccept-Encoding: gzip\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

fn signed(token: &str) -> Option<(Vec<u8>, Vec<u8>)> {
    let (message, signature) = token.rsplit_once('.')?;
    Some((message.as_bytes().to_vec(), URL_SAFE_NO_PAD.decode(signature).ok()?))
}

/// Connections that stay open, to a server whose answers are all of one length.
struct Load {
    lines: Vec<Vec<TcpStream>>,
    length: usize,
}

impl Load {
    /// Also gives the body of the answer to this request.
    fn open(address: SocketAddr, request: &[u8]) -> Result<(Self, Vec<u8>), Fault> {
        let line = |_| -> Result<TcpStream, Fault> {
            let stream = TcpStream::connect(address)?;
            stream.set_nodelay(true)?;
            Ok(stream)
        };
        let lines: Result<Vec<Vec<_>>, Fault> =
            (0..THREADS).map(|_| (0..CONNECTIONS).map(line).collect()).collect();
        let mut first = line(0)?;
        first.write_all(request)?;
        let mut response = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            let read = first.read(&mut buffer)?;
            response.extend_from_slice(buffer.get(..read).unwrap_or_default());
            let text = String::from_utf8_lossy(&response);
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            let length = head.to_ascii_lowercase();
            let length = length.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
            let length: usize = length.ok_or("an answer without a length")?.parse()?;
            if body.len() >= length {
                if !head.starts_with("HTTP/1.1 200") || !body.contains("\"authenticated\":true") {
                    return Err(format!("not the answer that was expected: {text}").into());
                }
                let body = body.as_bytes().to_vec();
                return Ok((Load { lines: lines?, length: response.len() }, body));
            }
            if read == 0 {
                return Err("no answer".into());
            }
        }
    }

    /// Sends every request once: one on each connection at a time, all answers read before the next.
    fn ask(&self, requests: &[Vec<u8>]) -> Result<(), Fault> {
        let share = requests.len().div_ceil(THREADS);
        thread::scope(|scope| {
            let threads: Vec<_> = self
                .lines
                .iter()
                .zip(requests.chunks(share))
                .map(|(lines, requests)| {
                    scope.spawn(|| self.ask_on(lines, requests).map_err(|fault| fault.to_string()))
                })
                .collect();
            for thread in threads {
                thread.join().map_err(|_| "a thread has panicked")??;
            }
            Ok(())
        })
    }

    fn ask_on(&self, lines: &[TcpStream], requests: &[Vec<u8>]) -> std::io::Result<()> {
        let mut response = vec![0; self.length];
        for batch in requests.chunks(lines.len()) {
            for (mut line, request) in lines.iter().zip(batch) {
                line.write_all(request)?;
            }
            for (mut line, _) in lines.iter().zip(batch) {
                line.read_exact(&mut response)?;
            }
        }
        Ok(())
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
