//! Checks a provider, logs in, and proves the API server's configuration against the very token that came.
//!
//! ```text
//! discovery ──▶ redirect URIs ──▶ login ──▶ refresh ──▶ AuthenticationConfiguration ──navicert-authn──▶ user
//! ```

mod documents;
mod from_user;
mod options;
mod storage;

use std::sync::Arc;

use navicert_authn::config::load;
use navicert_authn::jwks::{KeySet, StaticKeys};

use navicert_authn::{Authenticators, AuthnOutcome, AuthnProfile, AuthnRequest};
use navicert_types::{Secret, redact};
use serde_json::{Map, Value};

use crate::cache::{CacheFolder, Entry};
use crate::check::unverified_claims;
use crate::context::LoginContext;
use crate::error::LoginError;
use crate::key::{KeyFields, read_file};
use crate::provider::{Metadata, ProviderClient};
use crate::request::{Form, LoginRequest};
use crate::{LoginSession, SessionOrigin, login};

pub use documents::{SetupDocuments, kubeconfig_entry};
pub use from_user::{UserSource, variables_from_user, words_from_user};
pub use options::{SetupApiVersion, SetupOptions};
pub use storage::{StorageChoice, choose_storage};

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetupVerdict {
    /// As it should be.
    Pass,
    /// Something to know.
    Warn,
    /// Something to fix.
    Fail,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetupStep {
    /// Its name.
    pub name: &'static str,
    /// How it ended.
    pub verdict: SetupVerdict,
    /// What was found.
    pub text: String,
}

/// What was found, and what to configure.
#[derive(Clone, Debug, Default)]
pub struct SetupReport {
    /// Every step, in order.
    pub steps: Vec<SetupStep>,
    /// The claims of the token: only for the person at the terminal.
    pub claims: Vec<(String, String)>,
    /// The files and commands; absent if a step before them failed.
    pub documents: Option<SetupDocuments>,
}

impl SetupReport {
    fn add(&mut self, name: &'static str, verdict: SetupVerdict, text: impl Into<String>) {
        self.steps.push(SetupStep { name, verdict, text: text.into() });
    }

    /// Whether no step failed.
    pub fn is_good(&self) -> bool {
        self.steps.iter().all(|step| step.verdict != SetupVerdict::Fail)
    }
}

/// Runs every step. Stops at the first that the following ones need.
///
/// # Errors
/// The login failed.
pub fn setup(
    request: &LoginRequest,
    options: &SetupOptions,
    context: &LoginContext,
) -> Result<SetupReport, LoginError> {
    let mut report = SetupReport::default();
    let key = KeyFields::new(request)?;
    let folder = CacheFolder::locate(request, context)?;
    folder.create()?;
    let (metadata, keys) = fetch(request, context, &folder, &key)?;
    check_metadata(request, &metadata, &mut report);
    report.add(
        "redirect",
        SetupVerdict::Pass,
        format!("register with the provider: {}", redirect_uris(request)),
    );
    storage::report_storage(request, options, &mut report);
    let session = login(request, context)?;
    report.add("login", SetupVerdict::Pass, format!("logged in as {}", session.display()));
    check_refresh(request, context, &folder, &key, &mut report);
    let Some(token) = session.token() else {
        return Err(LoginError::Internal("a session without a token".to_owned()));
    };
    let Some(claims) = unverified_claims(token) else {
        report.add("claims", SetupVerdict::Fail, "the token is opaque: no API server can verify it");
        return Ok(report);
    };
    report.claims = shown(&claims);
    let documents = SetupDocuments::new(request, options, &authorities(request)?, &claims);
    check_configuration(&documents, token, &keys, context, &mut report);
    check_entry(request, options, &mut report);
    report.documents = Some(documents);
    Ok(report)
}

/// The root certificates for the provider as PEM text, which the API server needs as well.
fn authorities(request: &LoginRequest) -> Result<String, LoginError> {
    let connection = &request.connection;
    let files = connection.authorities.iter().map(|path| read_file(path)).collect::<Result<Vec<_>, _>>()?;
    let texts = files.iter().chain(&connection.authority_data);
    Ok(texts.map(|pem| String::from_utf8_lossy(pem).trim().to_owned() + "\n").collect())
}

/// Names what the printed kubeconfig does not contain.
fn check_entry(request: &LoginRequest, options: &SetupOptions, report: &mut SetupReport) {
    let names: Vec<String> = request.left_out().iter().map(|name| format!("--{name}")).collect();
    if !names.is_empty() {
        let text = format!("left out because a value may be a secret: {}", names.join(", "));
        report.add("kubeconfig", SetupVerdict::Warn, text);
    }
    let hidden: Vec<&str> = options.hidden_variables().map(|(name, _)| name.as_str()).collect();
    if !hidden.is_empty() {
        let text = format!(
            "not printed because a value may be a secret, but kept by --write: the variable {}",
            hidden.join(", ")
        );
        report.add("kubeconfig", SetupVerdict::Warn, text);
    }
}

/// The provider's documents, fetched now.
fn fetch(
    request: &LoginRequest,
    context: &LoginContext,
    folder: &CacheFolder,
    key: &KeyFields,
) -> Result<(Metadata, String), LoginError> {
    let runtime = crate::runtime::runtime()?;
    let request = LoginRequest { force_refresh: true, ..request.clone() };
    runtime.block_on(Box::pin(async {
        let client = ProviderClient::new(&request, context, folder, key)?;
        let metadata = client.metadata().await?;
        let keys = client.keys_text().await?;
        Ok((metadata, keys))
    }))
}

fn check_metadata(request: &LoginRequest, metadata: &Metadata, report: &mut SetupReport) {
    use SetupVerdict::{Fail, Pass, Warn};
    report.add("discovery", Pass, format!("issuer {}", metadata.issuer));
    let accepted = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"];
    let algorithms = &metadata.id_token_signing_alg_values_supported;
    let usable: Vec<&str> =
        algorithms.iter().map(String::as_str).filter(|name| accepted.contains(name)).collect();
    match (algorithms.is_empty(), usable.is_empty()) {
        (true, _) => report.add("algorithms", Warn, "the provider lists no signature algorithms"),
        (_, true) => report.add(
            "algorithms",
            Fail,
            "none of the signature algorithms is one that an API server accepts",
        ),
        (_, false) => report.add("algorithms", Pass, usable.join(", ")),
    }
    match metadata.code_challenge_methods_supported.as_deref() {
        Some(methods) if methods.iter().any(|method| method == "S256") => report.add("pkce", Pass, "S256"),
        Some(_) => report.add("pkce", Fail, "S256 is not listed; see --oidc-pkce-method"),
        None => report.add("pkce", Warn, "the provider lists no methods; S256 is sent all the same"),
    }
    let offers_offline = metadata.scopes_supported.iter().any(|scope| scope == "offline_access");
    let is_requested = request.extra_scopes.iter().any(|scope| scope == "offline_access");
    match offers_offline || is_requested {
        true => report.add("scopes", Pass, "offline_access is requested"),
        false => report.add("scopes", Warn, "offline_access is not listed; a refresh token may not come"),
    }
    let offered = |endpoint: Option<&String>| {
        if endpoint.is_some() { (Pass, "offered") } else { (Warn, "not offered") }
    };
    for (name, endpoint) in [
        ("device", metadata.device_authorization_endpoint.as_ref()),
        ("revocation", metadata.revocation_endpoint.as_ref()),
        ("end session", metadata.end_session_endpoint.as_ref()),
    ] {
        let (verdict, text) = offered(endpoint);
        report.add(name, verdict, text);
    }
}

fn redirect_uris(request: &LoginRequest) -> String {
    match (&request.browser.redirect_url, request.form) {
        (Some(url), _) => url.clone(),
        (None, Form::Compatible) => "http://localhost:8000 and http://localhost:18000".to_owned(),
        (None, Form::Own) => "http://127.0.0.1/callback, for any port".to_owned(),
    }
}

/// Refreshes at once: does it work, and does the provider rotate?
fn check_refresh(
    request: &LoginRequest,
    context: &LoginContext,
    folder: &CacheFolder,
    key: &KeyFields,
    report: &mut SetupReport,
) {
    use SetupVerdict::{Fail, Pass, Warn};
    let stored = || folder.read(&key.cache_key()).and_then(|entry: Entry| entry.refresh_token);
    let Some(before) = stored() else {
        report.add("refresh", Warn, "no refresh token came: you will be asked again when the token expires");
        return;
    };
    let forced = LoginRequest { force_refresh: true, ..request.clone() };
    match login(&forced, context) {
        Ok(LoginSession { origin: SessionOrigin::Refreshed, .. }) => {
            let rotates = stored().is_some_and(|after| after != before);
            let text = if rotates { "works, and the refresh token rotates" } else { "works" };
            report.add("refresh", Pass, text);
        }
        Ok(_) => report.add("refresh", Fail, "the provider did not accept the refresh token"),
        Err(error) => report.add("refresh", Fail, error.to_string()),
    }
}

/// The configuration and this token, decided as an API server decides.
fn check_configuration(
    documents: &SetupDocuments,
    token: &Secret<String>,
    keys: &str,
    context: &LoginContext,
    report: &mut SetupReport,
) {
    use SetupVerdict::{Fail, Pass};
    for (name, profile) in [("kube", AuthnProfile::KUBE), ("hardened", AuthnProfile::HARDENED)] {
        let step = if name == "kube" { "API server" } else { "hardened" };
        let loaded = match load(documents.authentication_configuration.as_bytes(), &profile) {
            Ok(loaded) => loaded,
            Err(error) => {
                report.add(step, Fail, error.to_string());
                continue;
            }
        };
        let Ok(keys) = KeySet::parse(keys.as_bytes(), &profile) else {
            report.add(step, Fail, "the provider's keys cannot be used");
            continue;
        };
        let keys = Arc::new(StaticKeys::new(keys));
        let authenticators = Authenticators::new(loaded.compiled, |_| Arc::clone(&keys) as Arc<_>);
        match authenticators.authenticate(&AuthnRequest::new(token.expose(), context.clock.now())) {
            AuthnOutcome::Authenticated(user) => {
                let groups = user.groups().join(", ");
                let user = redact::line(user.username()).into_owned();
                report.add(step, Pass, format!("user {user}, groups [{}]", redact::line(&groups)));
            }
            AuthnOutcome::NoOpinion(why) => report.add(step, Fail, why.to_string()),
            AuthnOutcome::Rejected(rejection) => report.add(step, Fail, rejection.refusal.to_string()),
        }
    }
}

fn shown(claims: &Map<String, Value>) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
    claims.iter().map(|(name, value)| (name.clone(), text(value))).collect()
}
