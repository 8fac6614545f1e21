//! An OpenID provider on loopback with everything that a login needs: tokens, rotation with reuse detection, devices,
//! revocation. Tests read its counters and change its answers.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use navicert_types::{Clock as _, SystemClock, Timestamp};
use serde_json::{Map, Value, json};

use crate::net::answer::Answer;
use crate::pki::ca::Ca;
use crate::pki::jws::SigningKey;
use crate::services::issuer::{Issuer, IssuerBuilder};

/// The client id.
pub const CLIENT: &str = "kubernetes";
const TOKEN: &str = "/token";
const DEVICE: &str = "/device";
const REVOKE: &str = "/revoke";

/// The provider.
#[derive(Debug)]
pub struct LoginProvider {
    /// The server, with its log and its rules.
    pub issuer: Issuer,
    /// The certificate of its CA.
    pub ca_file: PathBuf,
    state: Arc<Mutex<LoginProviderState>>,
}

/// What the provider does.
#[derive(Debug)]
pub struct LoginProviderState {
    /// Lifetime of tokens in seconds.
    pub lifetime: i64,
    /// Added to the provider's clock, also in its `Date` header.
    pub clock_offset: i64,
    /// Claims that replace the usual ones; null removes one.
    pub claims: Map<String, Value>,
    /// Members that replace those of token answers; null removes one.
    pub answer: Map<String, Value>,
    /// Refresh tokens are used once, and a second use ends the session.
    pub rotates: bool,
    /// The refresh token before the valid one brings the valid one again, until that has been used: an answer may have been lost.
    pub forgives_lost_answers: bool,
    /// Answers to device polls before the token: `error` codes.
    pub device_answers: Vec<&'static str>,
    /// The device endpoint rejects PKCE.
    pub device_without_pkce: bool,
    /// The nonce that each code belongs to.
    pub codes: HashMap<String, String>,
    /// The refresh token that is valid.
    pub refresh_token: Option<String>,
    /// The one before it.
    previous_refresh_token: Option<String>,
    /// The session has been ended.
    pub is_over: bool,
    /// Forms that the token endpoint received.
    pub forms: Vec<HashMap<String, String>>,
    /// Every token that was sent, for tests that look for them.
    pub sent: Vec<String>,
    serial: u64,
}

impl LoginProvider {
    /// Starts it, with the certificate of its CA in `dir`.
    pub fn start(dir: &Path) -> Self {
        Self::start_with(dir, &Ca::new("login provider"), Issuer::builder())
    }

    /// The same with settings of the server.
    ///
    /// # Panics
    /// If the file cannot be written.
    pub fn start_with(dir: &Path, ca: &Ca, issuer: IssuerBuilder) -> Self {
        let issuer = issuer.start(ca);
        let ca_file = dir.join("ca.pem");
        std::fs::write(&ca_file, ca.pem()).expect("a file of the provider");
        let state = Arc::new(Mutex::new(LoginProviderState {
            lifetime: 3600,
            clock_offset: 0,
            claims: Map::new(),
            answer: Map::new(),
            rotates: true,
            forgives_lost_answers: false,
            device_answers: Vec::new(),
            device_without_pkce: false,
            codes: HashMap::new(),
            refresh_token: None,
            previous_refresh_token: None,
            is_over: false,
            forms: Vec::new(),
            sent: Vec::new(),
            serial: 0,
        }));
        for (member, path) in [
            ("device_authorization_endpoint", DEVICE),
            ("revocation_endpoint", REVOKE),
            ("end_session_endpoint", "/end"),
        ] {
            issuer.set_discovery(member, json!(issuer.issuer_url() + path));
        }
        issuer.set_discovery("scopes_supported", json!(["openid", "offline_access"]));
        let provider = LoginProvider { issuer, ca_file, state };
        provider.serve_honestly();
        provider
    }

    /// Answers as a provider should, again.
    pub fn serve_honestly(&self) {
        let (state, key, url) = (Arc::clone(&self.state), self.issuer.key(), self.issuer.issuer_url());
        self.issuer.answer_with(TOKEN, move |request| {
            let mut state = lock(&state);
            let answer = state.token(&form(request.text()), &key, &url);
            state.dated(answer)
        });
        let (state, url) = (Arc::clone(&self.state), self.issuer.issuer_url());
        self.issuer.answer_with(DEVICE, move |request| {
            let form = form(request.text());
            if lock(&state).device_without_pkce && form.contains_key("code_challenge") {
                return failure("invalid_request", "unknown parameter");
            }
            Answer::json(&json!({
                "device_code": "canary-device-code", "user_code": "ABCD-EFGH", "verification_uri": format!("{url}/go"),
                "expires_in": 600, "interval": 5,
            }))
        });
        let state = Arc::clone(&self.state);
        self.issuer.answer_with(REVOKE, move |request| {
            let mut state = lock(&state);
            if form(request.text()).get("token") == state.refresh_token.as_ref() {
                state.is_over = true;
            }
            Answer::status(200)
        });
    }

    /// What it does and has seen.
    pub fn state(&self) -> MutexGuard<'_, LoginProviderState> {
        lock(&self.state)
    }

    /// Requests to the token endpoint.
    pub fn token_requests(&self) -> usize {
        self.issuer.count(TOKEN)
    }

    /// Requests of every kind.
    pub fn requests(&self) -> usize {
        self.issuer.log().requests.len()
    }

    /// Requests that start a device login.
    pub fn device_requests(&self) -> usize {
        self.issuer.count(DEVICE)
    }

    /// Answers the token endpoint with this until [`LoginProvider::serve_honestly`].
    pub fn answer_token(&self, answer: Answer) {
        self.issuer.answer(TOKEN, answer);
    }
}

/// An error answer.
pub fn failure(code: &str, description: &str) -> Answer {
    Answer::json(&json!({"error": code, "error_description": description})).with_status(400)
}

fn lock(state: &Mutex<LoginProviderState>) -> MutexGuard<'_, LoginProviderState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LoginProviderState {
    fn now(&self) -> i64 {
        SystemClock.now().as_second() + self.clock_offset
    }

    /// Whether a refresh with this token brings tokens.
    pub fn honours(&self, refresh_token: &str) -> bool {
        let valid = [&self.refresh_token, &self.previous_refresh_token];
        !self.is_over && valid.into_iter().flatten().any(|token| token == refresh_token)
    }

    /// With the provider's time.
    fn dated(&self, answer: Answer) -> Answer {
        let time = Timestamp::from_second(self.now()).expect("a time");
        let text = time.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
        if self.clock_offset == 0 { answer } else { answer.header("date", &text) }
    }

    fn token(&mut self, form: &HashMap<String, String>, key: &SigningKey, url: &str) -> Answer {
        self.forms.push(form.clone());
        let field = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
        let mut nonce = None;
        match field("grant_type") {
            "refresh_token" => {
                if !self.honours(field("refresh_token")) {
                    // One use of an old token ends the session, as with providers that detect reuse.
                    self.is_over = true;
                    return failure("invalid_grant", "Session not active");
                }
            }
            "authorization_code" => match self.codes.remove(field("code")) {
                Some(found) => nonce = Some(found),
                None => return failure("invalid_grant", "Code not valid"),
            },
            "urn:ietf:params:oauth:grant-type:device_code" if !self.device_answers.is_empty() => {
                return failure(self.device_answers.remove(0), "");
            }
            _ => self.is_over = false,
        }
        self.serial += 1;
        let mut claims = json!({
            "iss": url, "sub": "ann", "aud": CLIENT, "email": "ann@example.com", "iat": self.now(),
            "exp": self.now() + self.lifetime, "jti": self.serial.to_string(),
        });
        if let Some(nonce) = nonce {
            claims["nonce"] = json!(nonce);
        }
        replace(&mut claims, &self.claims);
        let used = form.get("refresh_token");
        let is_repeated = used.is_some() && used == self.previous_refresh_token.as_ref();
        if self.rotates && !is_repeated || self.refresh_token.is_none() {
            self.previous_refresh_token = used.filter(|_| self.forgives_lost_answers).cloned();
            self.refresh_token = Some(format!("canary-refresh-{}", self.serial));
        }
        let mut answer = json!({
            "token_type": "bearer", "id_token": key.token(&claims), "access_token": format!("canary-access-{}", self.serial),
            "refresh_token": self.refresh_token, "expires_in": self.lifetime, "scope": "openid",
        });
        replace(&mut answer, &self.answer);
        for name in ["id_token", "access_token", "refresh_token"] {
            self.sent.extend(answer[name].as_str().map(ToOwned::to_owned));
        }
        Answer::json(&answer)
    }
}

fn replace(object: &mut Value, members: &Map<String, Value>) {
    let object = object.as_object_mut().expect("an object");
    for (name, value) in members {
        if value.is_null() {
            object.remove(name);
        } else {
            object.insert(name.clone(), value.clone());
        }
    }
}

/// The fields of a form or query.
///
/// # Panics
/// If it is not percent-encoded UTF-8.
pub fn form(text: &str) -> HashMap<String, String> {
    text.split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (decoded(name), decoded(value)))
        .collect()
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits = std::str::from_utf8(&after[..2]).expect("an escape");
                rest = &after[2..];
                u8::from_str_radix(digits, 16).expect("an escape")
            }
            other => *other,
        });
    }
    String::from_utf8(bytes).expect("UTF-8")
}
