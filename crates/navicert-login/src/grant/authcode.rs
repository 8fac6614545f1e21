//! Authorization code in the person's browser, answered on loopback.

use std::sync::Arc;
use std::time::Duration;

use navicert_types::Secret;
use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use super::keyboard::parse_pasted;
use super::parameters::{
    flag_parameters, pkce_verifier, redirects_to_localhost, wants_consent_prompt, wants_offline_access_type,
};
use super::prompt::BackgroundPrompt;
use super::{GrantRun, requested_scopes};
use crate::browser::OpenableUrl;
use crate::cache::Entry;
use crate::check::Expectation;
use crate::error::LoginError;
use crate::key::read_file;
use crate::pages::OutcomePage;
use crate::provider::{Form as FormBody, Metadata, OAuthFailure, Repeat, classify, clean};
use crate::random;
use crate::receiver::{
    AnswerError, BindError, ListenAddress, PendingLogin, Receiver, ReceiverSettings, RedirectTarget,
    ResponseMode,
};
use crate::request::{Form, ParMode};

/// Time after which the address is shown although a browser was opened.
const HINT_AFTER: Duration = Duration::from_secs(8);
/// Further time after which the redirect URI is shown: providers tell only the person that they do not know it.
const REDIRECT_HINT_AFTER: Duration = Duration::from_secs(25);
/// Shown while a pasted answer is taken too.
const PASTE_PROMPT: &str = "or paste the address of the last page, or the code: ";
/// kubelogin's ports.
const COMPATIBLE_PORTS: [u16; 2] = [8000, 18000];

/// The secrets of one authorization request.
pub(super) struct LoginSecrets {
    pub(super) state: Secret<String>,
    pub(super) nonce: Secret<String>,
    pub(super) verifier: Option<Secret<String>>,
}

impl GrantRun<'_> {
    pub(super) async fn authcode(&self) -> Result<Entry, LoginError> {
        let metadata = self.client.metadata().await?;
        let receiver = self.bind()?;
        for address in receiver.exposed_addresses() {
            self.context.messages.show(&format!("warning: the login's callback listens on {address}"));
        }
        let redirect_uri = receiver.redirect_uri().to_owned();
        let secrets = self.login_secrets(&metadata)?;
        let authorization_url = self.authorization_url(&metadata, &secrets, &redirect_uri).await?;
        let pending = PendingLogin {
            authorization_url,
            state: secrets.state.clone(),
            issuer: self.request.issuer.clone(),
            iss_required: metadata.authorization_response_iss_parameter_supported,
            response_mode: self.response_mode(),
        };
        let start_url = receiver.start_url().to_owned();
        let port = receiver.port();
        let complete = async |answer: Result<Secret<String>, AnswerError>| {
            let result = match answer {
                Ok(code) => self.exchange_code(&code, &secrets, &redirect_uri).await,
                Err(error) => Err(self.answer_error(error, &metadata, &redirect_uri)),
            };
            let page = self.page(&result);
            (result, page)
        };
        let limit = self.request.login_limit();
        let serve = receiver.serve(pending, complete);
        let pasted = tokio::select! {
            result = serve => return result,
            pasted = async {
                self.guide_person(&start_url, port).await?;
                self.pasted_answer(&secrets, &metadata, &redirect_uri).await
            } => pasted?,
            () = self.context.timer.sleep(limit) => return Err(LoginError::TimedOut { limit }),
        };
        match pasted {
            Ok(code) => self.exchange_code(&code, &secrets, &redirect_uri).await,
            Err(error) => Err(self.answer_error(error, &metadata, &redirect_uri)),
        }
    }

    /// Waits for an answer that the person pastes, for a browser that cannot reach this machine. Ends only with one.
    // L727
    async fn pasted_answer(
        &self,
        secrets: &LoginSecrets,
        metadata: &Metadata,
        redirect_uri: &str,
    ) -> Result<Result<Secret<String>, AnswerError>, LoginError> {
        let limit = self.request.login_limit();
        let mut prompt = match self.person.can_type {
            true => BackgroundPrompt::start(PASTE_PROMPT, self.context, limit).ok(),
            false => None,
        };
        let reading = async {
            let Some(prompt) = &mut prompt else { return std::future::pending().await };
            loop {
                match parse_pasted(&prompt.line().await?, &secrets.state, metadata) {
                    Ok(answer) => return Ok(answer),
                    Err(error) => self.context.messages.show(&format!("warning: {error}")),
                }
            }
        };
        let hinting = async {
            self.context.timer.sleep(REDIRECT_HINT_AFTER).await;
            self.context.messages.show(&format!(
                "If the browser shows an error about redirect_uri, register {redirect_uri} with the provider."
            ));
            std::future::pending().await
        };
        tokio::select! {
            answer = reading => answer,
            never = hinting => never,
        }
    }

    /// Opens the browser, and shows its address if no answer comes.
    async fn guide_person(&self, start_url: &str, port: u16) -> Result<(), LoginError> {
        let browser = self.browser()?.filter(|_| !self.request.browser.skip_open);
        let is_opened = match (browser, OpenableUrl::parse(start_url)) {
            (Some(browser), Ok(url)) => {
                let opened = tokio::task::spawn_blocking(move || browser.open(&url)).await;
                match opened {
                    Ok(Ok(())) => true,
                    Ok(Err(error)) => {
                        let error = navicert_types::error_chain(&error);
                        self.context.messages.show(&format!("warning: failed to open a browser: {error}"));
                        false
                    }
                    Err(_) => false,
                }
            }
            _ => false,
        };
        if is_opened {
            self.context.timer.sleep(HINT_AFTER).await;
        }
        self.context.messages.show(&format!("To log in to {}, open {start_url}", self.request.host()));
        if self.context.variable("SSH_CONNECTION").is_some() {
            self.context.messages.show(&format!(
                "or first, on your own machine: ssh -N -L {port}:127.0.0.1:{port} {}",
                navicert_types::redact::line(&crate::context::LoginContext::host_name())
            ));
        }
        Ok(())
    }

    pub(super) fn login_secrets(&self, metadata: &Metadata) -> Result<LoginSecrets, LoginError> {
        Ok(LoginSecrets {
            state: random::secret()?,
            nonce: random::secret()?,
            verifier: pkce_verifier(self.request, metadata)?,
        })
    }

    /// The address that the browser opens at the provider.
    pub(super) async fn authorization_url(
        &self,
        metadata: &Metadata,
        secrets: &LoginSecrets,
        redirect_uri: &str,
    ) -> Result<Secret<String>, LoginError> {
        let host = || self.request.host().to_owned();
        let endpoint = metadata.authorization_endpoint.as_deref();
        let endpoint = endpoint.ok_or_else(|| LoginError::Grant {
            host: host(),
            grant: "authcode".to_owned(),
            offered: metadata.grant_types_supported.join(" "),
        })?;
        let parameters = self.authorization_parameters(metadata, secrets, redirect_uri);
        let mut query = FormBody::new();
        let is_pushed = match self.request.browser.par {
            ParMode::Auto => metadata.require_pushed_authorization_requests,
            ParMode::Always => true,
            ParMode::Never => false,
        };
        if is_pushed {
            let request_uri = self.push(metadata, &parameters, redirect_uri).await?;
            query.add("client_id", &self.request.client_id);
            query.add("request_uri", &request_uri);
        } else {
            query.add("client_id", &self.request.client_id);
            for (name, value) in &parameters {
                query.add(name, value);
            }
        }
        let separator = if endpoint.contains('?') { '&' } else { '?' };
        Ok(Secret::new(format!("{endpoint}{separator}{}", query.as_str())))
    }

    /// Every parameter except the client id.
    fn authorization_parameters(
        &self,
        metadata: &Metadata,
        secrets: &LoginSecrets,
        redirect_uri: &str,
    ) -> Vec<(String, String)> {
        let mut parameters: Vec<(String, String)> = Vec::new();
        let mut add = |name: &str, value: &str| parameters.push((name.to_owned(), value.to_owned()));
        add("response_type", "code");
        add("redirect_uri", redirect_uri);
        add("scope", &requested_scopes(self.request, metadata));
        add("state", secrets.state.expose());
        add("nonce", secrets.nonce.expose());
        if let Some(verifier) = &secrets.verifier {
            add("code_challenge", &random::hashed(verifier));
            add("code_challenge_method", "S256");
        }
        let flags = flag_parameters(self.request);
        let is_set = |name: &str| flags.iter().any(|(known, _)| known == name);
        if wants_offline_access_type(self.request) && !is_set("access_type") {
            add("access_type", "offline");
        }
        if wants_consent_prompt(self.request) && !is_set("prompt") {
            add("prompt", "consent");
        }
        parameters.extend(flags);
        parameters
    }

    /// Pushes the request (RFC 9126), so that the browser's address has none of it.
    async fn push(
        &self,
        metadata: &Metadata,
        parameters: &[(String, String)],
        redirect_uri: &str,
    ) -> Result<String, LoginError> {
        let host = self.request.host();
        let endpoint = |metadata: &Metadata| {
            let missing = || LoginError::Grant {
                host: host.to_owned(),
                grant: "pushed authorization requests".to_owned(),
                offered: String::new(),
            };
            metadata.pushed_authorization_request_endpoint.clone().ok_or_else(missing)
        };
        let fields: Vec<(&str, &str)> =
            parameters.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let answer = self.client.post(endpoint, &fields, Repeat::Always).await?;
        if let Some(failure) = OAuthFailure::read(&answer) {
            return Err(classify(&failure, self.request, Some(metadata), redirect_uri, "authcode"));
        }
        answer.text_member("request_uri").ok_or_else(|| answer.unexpected(host).into())
    }

    /// Exchanges the code, once.
    pub(super) async fn exchange_code(
        &self,
        code: &Secret<String>,
        secrets: &LoginSecrets,
        redirect_uri: &str,
    ) -> Result<Entry, LoginError> {
        let mut fields = vec![
            ("grant_type", "authorization_code"),
            ("code", code.expose().as_str()),
            ("redirect_uri", redirect_uri),
        ];
        fields
            .extend(secrets.verifier.as_ref().map(|verifier| ("code_verifier", verifier.expose().as_str())));
        match self.client.token_request(&fields, Repeat::Never).await {
            Ok(answer) => {
                let expectation = Expectation { nonce: Some(&secrets.nonce), ..Expectation::default() };
                self.finish(answer, expectation).await
            }
            Err(failure) => Err(self.token_error(failure, redirect_uri, "authorization_code").await),
        }
    }

    pub(super) fn answer_error(
        &self,
        error: AnswerError,
        metadata: &Metadata,
        redirect_uri: &str,
    ) -> LoginError {
        match error {
            AnswerError::Provider { error, description } => {
                let failure = OAuthFailure::new(&error, description.as_deref().unwrap_or_default());
                classify(&failure, self.request, Some(metadata), redirect_uri, "authcode")
            }
            AnswerError::MixUp { answered, expected } => LoginError::MixUp {
                found: clean(answered.as_deref().unwrap_or("an unnamed issuer"), 200),
                issuer: expected,
            },
            AnswerError::Strangers { address } => LoginError::Strangers { address: address.to_string() },
            other => LoginError::ProviderError {
                host: self.request.host().to_owned(),
                code: other.to_string(),
                description: String::new(),
            },
        }
    }

    fn page(&self, result: &Result<Entry, LoginError>) -> OutcomePage {
        let issuer_host = self.request.host().to_owned();
        match (result, &self.request.browser.open_after) {
            (Ok(entry), Some(url)) => {
                OutcomePage::Redirect { url: url.clone(), display: entry.display.clone(), issuer_host }
            }
            (Ok(entry), None) => OutcomePage::LoggedIn { display: entry.display.clone(), issuer_host },
            (Err(error), _) => OutcomePage::NotLoggedIn {
                reason: error.to_string(),
                help: Some("Go back to your terminal and run the command again.".to_owned()),
                provider_error: None,
                provider_description: None,
            },
        }
    }

    fn response_mode(&self) -> ResponseMode {
        let mode = self.request.parameters.extra.iter().find(|(name, _)| name == "response_mode");
        match mode {
            Some((_, value)) if value == "form_post" => ResponseMode::FormPost,
            _ => ResponseMode::Query,
        }
    }

    fn bind(&self) -> Result<Receiver, LoginError> {
        let usage = |error: &dyn std::fmt::Display| LoginError::Usage(error.to_string());
        let redirect = self.redirect_target()?;
        let browser = &self.request.browser;
        let addresses = match (browser.listen.is_empty(), self.request.form) {
            (false, _) => {
                let parsed = browser.listen.iter().map(|text| text.parse::<ListenAddress>());
                parsed.collect::<Result<_, _>>().map_err(|error| usage(&error))?
            }
            (true, Form::Compatible) => COMPATIBLE_PORTS.map(ListenAddress::loopback).to_vec(),
            (true, Form::Own) => {
                vec![redirect.port().map_or(ListenAddress::FREE_PORT, ListenAddress::localhost)]
            }
        };
        let tls = browser.certificate.as_ref().map(|(certificate, key)| server_config(certificate, key));
        let settings = ReceiverSettings { addresses, redirect, tls: tls.transpose()? };
        Receiver::bind(&settings).map_err(|error| match error {
            BindError::PortTaken(taken) => LoginError::PortTaken {
                addresses: taken.iter().map(ToString::to_string).collect::<Vec<_>>().join(" nor "),
            },
            BindError::Random => LoginError::Internal(error.to_string()),
            other => usage(&other),
        })
    }

    pub(super) fn redirect_target(&self) -> Result<RedirectTarget, LoginError> {
        match &self.request.browser.redirect_url {
            Some(url) => RedirectTarget::explicit(url).map_err(|error| LoginError::Usage(error.to_string())),
            None if redirects_to_localhost(self.request) => Ok(RedirectTarget::LOCALHOST),
            None => Ok(RedirectTarget::LOOPBACK_ADDRESS),
        }
    }
}

/// The receiver's certificate and key.
fn server_config(
    certificate: &std::path::Path,
    key: &std::path::Path,
) -> Result<Arc<ServerConfig>, LoginError> {
    let invalid =
        |path: &std::path::Path, why: String| LoginError::File { path: path.display().to_string(), why };
    let chain = CertificateDer::pem_slice_iter(&read_file(certificate)?)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|_| invalid(certificate, "not a certificate in PEM".to_owned()))?;
    let private = PrivateKeyDer::from_pem_slice(&zeroize::Zeroizing::new(read_file(key)?))
        .map_err(|_| invalid(key, "not a private key in PEM".to_owned()))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, private));
    config.map(Arc::new).map_err(|error| invalid(certificate, error.to_string()))
}
