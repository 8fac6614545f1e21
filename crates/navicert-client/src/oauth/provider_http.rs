//! Requests to a provider, with limits on time and size. Redirects are not followed with secrets.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, DATE, LOCATION, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response};
use http_body_util::{BodyExt as _, Limited};
use jiff::fmt::rfc2822::DateTimeParser;
use navicert_go::url::Url;
use navicert_types::{Timestamp, error_chain, redact};
use zeroize::Zeroizing;

use super::address::{check_address, host_of};
use super::error::{OAuthError, SendError};
use super::form::Form;
use super::object::{JsonObject, clean};
use crate::context::ClientContext;
use crate::credential::{ClientIdentity, Credential, StaticCredential};
use crate::transport::{
    Body, ProxyChoice, ProxyError, ResponseBody, Timeouts, Timer, Transport, TransportError,
    TransportSettings, Trust,
};

/// Limit of a response body.
const MAX_BODY_BYTES: usize = 1 << 20;
/// Limit for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Limit for the whole exchange.
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(30);
/// Redirects that a document may take.
const MAX_REDIRECTS: usize = 3;

/// How a provider is reached.
#[derive(Clone)]
pub struct OAuthConnection {
    /// The issuer: plain http is allowed on loopback, and only if this is such an address.
    pub issuer: String,
    /// The trusted roots.
    pub trust: Trust,
    /// The proxy.
    pub proxy: ProxyChoice,
    /// The name that the certificate is verified for; empty: the host.
    pub tls_server_name: String,
    /// The TLS client certificate.
    pub identity: Option<Arc<ClientIdentity>>,
    /// Additional headers of every request.
    pub headers: HeaderMap,
}

/// One request, without anything secret.
#[derive(Clone, Copy, Debug)]
pub struct RequestSummary<'r> {
    /// The method.
    pub method: &'r Method,
    /// Host and port.
    pub host: &'r str,
    /// The path without its query.
    pub path: &'r str,
    /// The status; `None` without an answer.
    pub status: Option<u16>,
    /// How long it took.
    pub elapsed: Duration,
}

/// Sees every request.
pub trait ObserveRequests: fmt::Debug + Send + Sync {
    /// A request has ended.
    fn observe(&self, request: RequestSummary<'_>);
}

/// Sends requests to the hosts of one provider.
pub struct OAuthHttp {
    connection: OAuthConnection,
    context: ClientContext,
    /// The timer of the limit of an exchange.
    timer: Arc<dyn Timer>,
    transports: Mutex<HashMap<String, Transport>>,
    observer: Option<Arc<dyn ObserveRequests>>,
}

/// A response with its body.
pub struct HttpAnswer {
    /// The status.
    pub status: u16,
    /// The body, which may contain tokens.
    pub body: Zeroizing<Vec<u8>>,
    /// The provider's time.
    pub date: Option<Timestamp>,
    /// When it was received, by the local clock.
    pub received_at: Timestamp,
    /// `Retry-After` in seconds.
    pub retry_after: Option<Duration>,
    location: Option<String>,
}

impl OAuthHttp {
    /// A client for a provider. Sends nothing.
    pub fn new(connection: OAuthConnection, context: ClientContext) -> Self {
        let timer = Arc::clone(&context.timer);
        OAuthHttp { connection, context, timer, transports: Mutex::default(), observer: None }
    }

    /// The same with another timer for the limit of an exchange.
    #[must_use]
    pub fn timed_by(self, timer: Arc<dyn Timer>) -> Self {
        OAuthHttp { timer, ..self }
    }

    /// The same with an observer.
    #[must_use]
    pub fn observed_by(self, observer: Arc<dyn ObserveRequests>) -> Self {
        OAuthHttp { observer: Some(observer), ..self }
    }

    /// Fetches a document, following redirects on the same server.
    ///
    /// # Errors
    /// [`SendError`]: there is no answer.
    pub async fn get(&self, url: &str) -> Result<HttpAnswer, SendError> {
        let mut url = url.to_owned();
        for _ in 0..=MAX_REDIRECTS {
            let answer = self.send(&url, Method::GET, Bytes::new(), &HeaderMap::new()).await?;
            let Some(target) = answer.redirect_target() else { return Ok(answer) };
            url = same_server(&url, target).ok_or_else(|| redirected(&url, target))?;
        }
        Err(redirected(&url, &url).into())
    }

    /// Fetches a document with another authorization, for token services of a CI system.
    ///
    /// # Errors
    /// As [`OAuthHttp::get`]; a redirect is an error.
    pub async fn get_with_bearer(&self, url: &str, bearer: HeaderValue) -> Result<HttpAnswer, SendError> {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, bearer);
        let answer = self.send(url, Method::GET, Bytes::new(), &headers).await?;
        match answer.redirect_target() {
            Some(target) => Err(redirected(url, target).into()),
            None => Ok(answer),
        }
    }

    /// Posts a form. A redirect is an error: it would carry secrets elsewhere.
    ///
    /// # Errors
    /// As [`OAuthHttp::get`].
    pub async fn post(
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
        check_address(url, &self.connection.issuer)?;
        let host = host_of(url).to_owned();
        let parsed = Url::parse(url).map_err(|_| OAuthError::Address { url: host.clone() })?;
        let path = if parsed.path.is_empty() { "/" } else { parsed.path };
        let target = parsed.query.map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"));
        let transport = self.transport(&format!("{}://{}", parsed.scheme, parsed.host), &host)?;
        let mut request = Request::new(Body::from(body));
        *request.method_mut() = method.clone();
        *request.uri_mut() = target.parse().map_err(|_| OAuthError::Address { url: host.clone() })?;
        request.headers_mut().extend(self.connection.headers.clone());
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
        request.headers_mut().extend(headers.clone());
        let started = self.context.clock.monotonic();
        let exchange = async {
            let response = transport.send(request).await.map_err(|error| Self::failure(&host, &error))?;
            self.receive(response, &host).await
        };
        let answer = tokio::select! {
            answer = exchange => answer,
            () = self.timer.sleep(EXCHANGE_TIMEOUT) => Err(SendError {
                error: OAuthError::Unreachable {
                    host: host.clone(),
                    why: format!("no answer within {} s", EXCHANGE_TIMEOUT.as_secs()),
                },
                was_sent: true,
            }),
        };
        if let Some(observer) = &self.observer {
            let elapsed = self.context.clock.monotonic().saturating_sub(started);
            let status = answer.as_ref().ok().map(|answer| answer.status);
            observer.observe(RequestSummary { method: &method, host: &host, path, status, elapsed });
        }
        answer
    }

    async fn receive(&self, response: Response<ResponseBody>, host: &str) -> Result<HttpAnswer, SendError> {
        let received_at = self.context.clock.now();
        let (head, body) = response.into_parts();
        let text = |name: HeaderName| head.headers.get(name)?.to_str().ok();
        let date = text(DATE).and_then(|date| DateTimeParser::new().parse_timestamp(date).ok());
        let retry_after = text(RETRY_AFTER).and_then(|value| value.parse().ok()).map(Duration::from_secs);
        let location = text(LOCATION).map(ToOwned::to_owned);
        let status = head.status.as_u16();
        let body = Limited::new(body, MAX_BODY_BYTES).collect().await;
        let body = body.map_err(|error| {
            let too_long = error.downcast_ref::<http_body_util::LengthLimitError>().is_some();
            let error = match too_long {
                true => OAuthError::TooLong { host: host.to_owned(), limit: MAX_BODY_BYTES },
                false => OAuthError::Unreachable {
                    host: host.to_owned(),
                    why: "the answer was cut off".to_owned(),
                },
            };
            SendError { error, was_sent: true }
        })?;
        let body = Zeroizing::new(body.to_bytes().to_vec());
        Ok(HttpAnswer { status, body, date, received_at, retry_after, location })
    }

    fn transport(&self, origin: &str, host: &str) -> Result<Transport, OAuthError> {
        let mut transports = self.transports.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(transport) = transports.get(origin) {
            return Ok(transport.clone());
        }
        let settings = TransportSettings {
            trust: self.connection.trust.clone(),
            proxy: self.connection.proxy.clone(),
            tls_server_name: self.connection.tls_server_name.clone(),
            retry_unauthorized: false,
            timeouts: Timeouts { connect: CONNECT_TIMEOUT, ..Timeouts::default() },
            ..TransportSettings::new(origin)
        };
        let credential = Credential { identity: self.connection.identity.clone(), ..Credential::anonymous() };
        let source = Arc::new(StaticCredential::new(credential));
        let transport = Transport::new(settings, source, self.context.clone())
            .map_err(|error| OAuthError::Settings { host: host.to_owned(), why: error_chain(&error) })?;
        transports.insert(origin.to_owned(), transport.clone());
        Ok(transport)
    }

    fn failure(host: &str, error: &TransportError) -> SendError {
        let host = host.to_owned();
        let was_sent = matches!(error, TransportError::Http(_));
        let error = match error {
            TransportError::Handshake { source, .. } => {
                OAuthError::Certificate { host, why: error_chain(source) }
            }
            TransportError::Proxy { proxy, source: ProxyError::Credentials } => {
                OAuthError::ProxyLogin { proxy: proxy.clone() }
            }
            other => OAuthError::Unreachable { host, why: error_chain(other) },
        };
        SendError { error, was_sent }
    }
}

impl fmt::Debug for OAuthHttp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuthHttp").field("issuer", &self.connection.issuer).finish_non_exhaustive()
    }
}

/// Omits the body.
impl fmt::Debug for HttpAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpAnswer").field("status", &self.status).finish_non_exhaustive()
    }
}

impl HttpAnswer {
    /// Why the answer stands for a fault that may pass: a status, or an error code. `None` for any other answer.
    pub fn transient_fault(&self) -> Option<String> {
        let code = self.text_member("error");
        let is_fault = matches!(self.status, 408 | 425 | 429 | 500..=599)
            || (self.status >= 400
                && matches!(code.as_deref(), Some("temporarily_unavailable" | "server_error")));
        is_fault.then(|| match self.status {
            400 => code.unwrap_or_default(),
            status => format!("status {status}"),
        })
    }

    /// An answer of an endpoint that should have succeeded, as an error.
    pub fn unexpected(&self, host: &str) -> OAuthError {
        // A successful answer may contain a token, so nothing of it is shown.
        let start = match self.status {
            200..=299 => String::new(),
            _ => clean(&String::from_utf8_lossy(&self.body), 80),
        };
        OAuthError::NotJson { host: host.to_owned(), status: self.status, start }
    }

    /// A text of the answer, if it is an object that has it.
    pub fn text_member(&self, name: &str) -> Option<String> {
        JsonObject::read(&self.body)?.text(name)
    }

    fn redirect_target(&self) -> Option<&str> {
        let is_redirect = matches!(self.status, 301..=303 | 307 | 308);
        is_redirect.then(|| self.location.as_deref().unwrap_or_default())
    }
}

fn redirected(url: &str, target: &str) -> OAuthError {
    let target = redact::line(host_of(target)).chars().take(100).collect();
    OAuthError::Redirected { host: host_of(url).to_owned(), target }
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
