//! Requests to the provider, with limits on time and size. Redirects are not followed with secrets.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, DATE, LOCATION, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response};
use http_body_util::{BodyExt as _, Limited};
use jiff::fmt::rfc2822::DateTimeParser;
use navicert_client::ClientContext;
use navicert_client::credential::{ClientIdentity, Credential, StaticCredential};
use navicert_client::transport::{
    Body, Proxy, ProxyChoice, ProxyEnvironment, ProxyError, ResponseBody, Timeouts, Transport,
    TransportError, TransportSettings, Trust,
};
use navicert_go::percent;
use navicert_go::url::Url;
use navicert_types::{Timestamp, error_chain};
use zeroize::Zeroizing;

use super::address::check_address;
use crate::context::LoginContext;
use crate::error::LoginError;
use crate::key::read_file;
use crate::request::{LoginRequest, host_of};

/// Limit of a response body.
pub(crate) const MAX_BODY_BYTES: usize = 1 << 20;
/// Limit for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Limit for the whole exchange.
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(30);
/// Redirects that a document may take.
const MAX_REDIRECTS: usize = 3;

/// Sends requests to the hosts of one provider.
pub(crate) struct ProviderHttp {
    issuer: String,
    client: ClientContext,
    trust: Trust,
    proxy: ProxyChoice,
    tls_server_name: String,
    identity: Option<Arc<ClientIdentity>>,
    headers: HeaderMap,
    transports: Mutex<HashMap<String, Transport>>,
    context: LoginContext,
    verbosity: u8,
}

/// A response with its body.
pub(crate) struct HttpAnswer {
    pub(crate) status: u16,
    pub(crate) body: Zeroizing<Vec<u8>>,
    /// The provider's time.
    pub(crate) date: Option<Timestamp>,
    /// When it was received, by the local clock.
    pub(crate) received_at: Timestamp,
    pub(crate) retry_after: Option<Duration>,
    location: Option<String>,
}

/// A request without a response.
pub(crate) struct SendError {
    pub(crate) error: LoginError,
    /// The provider may have received the request.
    pub(crate) was_sent: bool,
}

impl From<LoginError> for SendError {
    fn from(error: LoginError) -> Self {
        SendError { error, was_sent: false }
    }
}

/// A form body. Cleared from memory when dropped: it may contain secrets.
#[derive(Clone, Default)]
pub(crate) struct Form(Zeroizing<String>);

impl Form {
    pub(crate) fn new() -> Self {
        Form::default()
    }

    pub(crate) fn add(&mut self, name: &str, value: &str) {
        if !self.0.is_empty() {
            self.0.push('&');
        }
        percent::encode_into(&mut self.0, name.as_bytes(), percent::Plus::Literal, percent::is_unreserved);
        self.0.push('=');
        percent::encode_into(&mut self.0, value.as_bytes(), percent::Plus::Literal, percent::is_unreserved);
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl ProviderHttp {
    pub(crate) fn new(request: &LoginRequest, context: &LoginContext) -> Result<Self, LoginError> {
        let connection = &request.connection;
        let mut client = ClientContext::new(context.environment.clone());
        client.clock = Arc::clone(&context.clock);
        let lookup = |name: &str| context.environment.variable(name)?.to_str().map(ToOwned::to_owned);
        let proxy = if connection.proxy_url.is_empty() {
            ProxyChoice::Environment(ProxyEnvironment::read(lookup))
        } else {
            let parsed = Proxy::parse(&connection.proxy_url);
            ProxyChoice::Always(
                parsed.map_err(|error| LoginError::Usage(format!("invalid --proxy-url: {error}")))?,
            )
        };
        let identity = connection.client_certificate.as_ref().map(|(certificate, key)| {
            let identity =
                ClientIdentity::from_pem(&read_file(certificate)?, &Zeroizing::new(read_file(key)?));
            let failed = |error: navicert_client::credential::IdentityError| LoginError::File {
                path: certificate.display().to_string(),
                why: error_chain(&error),
            };
            identity.map(Arc::new).map_err(failed)
        });
        let mut headers = HeaderMap::new();
        for (name, value) in &connection.headers {
            if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
                headers.append(name, value);
            }
        }
        Ok(ProviderHttp {
            issuer: request.issuer.clone(),
            client,
            trust: trust(request)?,
            proxy,
            tls_server_name: connection.tls_server_name.clone(),
            identity: identity.transpose()?,
            headers,
            transports: Mutex::default(),
            context: context.clone(),
            verbosity: request.verbosity,
        })
    }

    /// Fetches a document, following redirects on the same server.
    pub(crate) async fn get(&self, url: &str) -> Result<HttpAnswer, SendError> {
        let mut url = url.to_owned();
        for _ in 0..=MAX_REDIRECTS {
            let answer = self.send(&url, Method::GET, Bytes::new(), &HeaderMap::new()).await?;
            let Some(target) = answer.redirect_target() else { return Ok(answer) };
            url = same_server(&url, target).ok_or_else(|| redirected(&url, target))?;
        }
        Err(redirected(&url, &url).into())
    }

    /// Fetches a document with another authorization, for token services of a CI system.
    pub(crate) async fn get_with_bearer(
        &self,
        url: &str,
        bearer: HeaderValue,
    ) -> Result<HttpAnswer, SendError> {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, bearer);
        let answer = self.send(url, Method::GET, Bytes::new(), &headers).await?;
        match answer.redirect_target() {
            Some(target) => Err(redirected(url, target).into()),
            None => Ok(answer),
        }
    }

    /// Posts a form. A redirect is an error: it would carry secrets elsewhere.
    pub(crate) async fn post(
        &self,
        url: &str,
        form: &Form,
        authorization: Option<HeaderValue>,
    ) -> Result<HttpAnswer, SendError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        if let Some(value) = authorization {
            headers.insert(AUTHORIZATION, value);
        }
        let body = Bytes::copy_from_slice(form.as_str().as_bytes());
        let answer = self.send(url, Method::POST, body, &headers).await?;
        match answer.redirect_target() {
            Some(target) => Err(redirected(url, target).into()),
            None => Ok(answer),
        }
    }

    async fn send(
        &self,
        url: &str,
        method: Method,
        body: Bytes,
        headers: &HeaderMap,
    ) -> Result<HttpAnswer, SendError> {
        check_address(url, &self.issuer)?;
        let host = host_of(url).to_owned();
        let parsed = Url::parse(url).map_err(|_| LoginError::Http { url: host.clone() })?;
        let path = if parsed.path.is_empty() { "/" } else { parsed.path };
        let target = parsed.query.map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"));
        let transport = self.transport(&format!("{}://{}", parsed.scheme, parsed.host), &host)?;
        let mut request = Request::new(Body::from(body));
        *request.method_mut() = method.clone();
        *request.uri_mut() =
            target.parse().map_err(|_| LoginError::Internal(format!("invalid path of {host}")))?;
        request.headers_mut().extend(self.headers.clone());
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
        request.headers_mut().extend(headers.clone());
        let started = self.context.clock.monotonic();
        let exchange = async {
            let response = transport.send(request).await.map_err(|error| self.failure(&host, &error))?;
            self.receive(response, &host).await
        };
        let answer = tokio::select! {
            answer = exchange => answer,
            () = self.context.timer.sleep(EXCHANGE_TIMEOUT) => Err(SendError {
                error: LoginError::Unreachable {
                    host: host.clone(),
                    why: format!("no answer within {} s", EXCHANGE_TIMEOUT.as_secs()),
                },
                was_sent: true,
            }),
        };
        if self.verbosity >= 2 {
            let status = answer.as_ref().map_or("no answer".to_owned(), |answer| answer.status.to_string());
            let elapsed = self.context.clock.monotonic().saturating_sub(started).as_millis();
            self.context.messages.show(&format!("{method} {host}{path}: {status}, {elapsed} ms"));
        }
        answer
    }

    async fn receive(&self, response: Response<ResponseBody>, host: &str) -> Result<HttpAnswer, SendError> {
        let received_at = self.context.clock.now();
        let text = |name: HeaderName| response.headers().get(name)?.to_str().ok();
        let date = text(DATE).and_then(|date| DateTimeParser::new().parse_timestamp(date).ok());
        let retry_after = text(RETRY_AFTER).and_then(|value| value.parse().ok()).map(Duration::from_secs);
        let location = text(LOCATION).map(ToOwned::to_owned);
        let status = response.status().as_u16();
        let body = Limited::new(response.into_body(), MAX_BODY_BYTES).collect().await;
        let body = body.map_err(|error| {
            let too_long = error.downcast_ref::<http_body_util::LengthLimitError>().is_some();
            let error = match too_long {
                true => LoginError::AnswerTooLong { host: host.to_owned(), limit: MAX_BODY_BYTES },
                false => LoginError::Unreachable {
                    host: host.to_owned(),
                    why: "the answer was cut off".to_owned(),
                },
            };
            SendError { error, was_sent: true }
        })?;
        let body = Zeroizing::new(body.to_bytes().to_vec());
        Ok(HttpAnswer { status, body, date, received_at, retry_after, location })
    }

    fn transport(&self, origin: &str, host: &str) -> Result<Transport, LoginError> {
        let mut transports = self.transports.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(transport) = transports.get(origin) {
            return Ok(transport.clone());
        }
        let settings = TransportSettings {
            trust: self.trust.clone(),
            proxy: self.proxy.clone(),
            tls_server_name: self.tls_server_name.clone(),
            retry_unauthorized: false,
            timeouts: Timeouts { connect: CONNECT_TIMEOUT, ..Timeouts::default() },
            ..TransportSettings::new(origin)
        };
        let credential = Credential { identity: self.identity.clone(), ..Credential::anonymous() };
        let source = Arc::new(StaticCredential::new(credential));
        let transport = Transport::new(settings, source, self.client.clone()).map_err(|error| {
            LoginError::Usage(format!("invalid connection settings for {host}: {}", error_chain(&error)))
        })?;
        transports.insert(origin.to_owned(), transport.clone());
        Ok(transport)
    }

    fn failure(&self, host: &str, error: &TransportError) -> SendError {
        let host = host.to_owned();
        let was_sent = matches!(error, TransportError::Http(_));
        let error = match error {
            TransportError::Handshake { source, .. } => {
                LoginError::Certificate { host, why: error_chain(source) }
            }
            TransportError::Proxy { proxy, source: ProxyError::Credentials } => {
                LoginError::ProxyLogin { proxy: proxy.clone() }
            }
            other => LoginError::Unreachable { host, why: error_chain(other) },
        };
        SendError { error, was_sent }
    }
}

impl HttpAnswer {
    /// The error of a status that may pass.
    pub(crate) fn transient_fault(&self, host: &str) -> Option<LoginError> {
        let code = super::failure::error_code(&self.body);
        let is_fault = matches!(self.status, 408 | 425 | 429 | 500..=599)
            || (self.status >= 400
                && matches!(code.as_deref(), Some("temporarily_unavailable" | "server_error")));
        let why = || match self.status {
            400 => code.clone().unwrap_or_default(),
            status => format!("status {status}"),
        };
        is_fault.then(|| LoginError::ProviderFault { host: host.to_owned(), why: why() })
    }

    fn redirect_target(&self) -> Option<&str> {
        let is_redirect = matches!(self.status, 301..=303 | 307 | 308);
        is_redirect.then(|| self.location.as_deref().unwrap_or_default())
    }
}

/// The trusted roots of the request.
fn trust(request: &LoginRequest) -> Result<Trust, LoginError> {
    let connection = &request.connection;
    if connection.is_insecure {
        return Ok(Trust::Insecure);
    }
    let mut pem = Vec::new();
    for path in &connection.authorities {
        pem.extend(read_file(path)?);
        pem.push(b'\n');
    }
    for data in &connection.authority_data {
        pem.extend(data);
        pem.push(b'\n');
    }
    Ok(if pem.is_empty() { Trust::System } else { Trust::Pem(pem) })
}

fn redirected(url: &str, target: &str) -> LoginError {
    let target = navicert_types::redact::line(host_of(target)).chars().take(100).collect();
    LoginError::Redirected { host: host_of(url).to_owned(), target }
}

/// The redirect's address, if it has the scheme and authority of the request.
fn same_server(url: &str, target: &str) -> Option<String> {
    let from = Url::parse(url).ok()?;
    let origin = format!("{}://{}", from.scheme, from.host);
    if target.starts_with('/') && !target.starts_with("//") {
        return Some(format!("{origin}{target}"));
    }
    let to = Url::parse(target).ok()?;
    (to.scheme == from.scheme && to.host == from.host).then(|| target.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    // L608
    #[test]
    fn forms_are_percent_encoded() {
        let mut form = Form::new();
        form.add("a", "x y&z=ä+");
        form.add("resource", "https://r/");
        assert_eq!(form.as_str(), "a=x%20y%26z%3D%C3%A4%2B&resource=https%3A%2F%2Fr%2F");
    }

    // L606
    #[test]
    fn redirects_stay_on_the_server() {
        let url = "https://id.example/a";
        assert_eq!(same_server(url, "/b").as_deref(), Some("https://id.example/b"));
        assert_eq!(same_server(url, "https://id.example/b").as_deref(), Some("https://id.example/b"));
        for target in ["//evil/b", "https://evil/b", "http://id.example/b", "b", ""] {
            assert_eq!(same_server(url, target), None, "{target}");
        }
    }
}
