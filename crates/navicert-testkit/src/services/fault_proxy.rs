//! A TLS reverse proxy in front of an OpenID provider that disturbs the publication of its keys for a time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, EXPIRES, HOST, HeaderName, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderValue};
use navicert_types::{Clock as _, SystemClock};
use serde_json::Value;
use tokio::sync::watch;

use crate::net::answer::Answer;
use crate::net::http_client::{BoxError, HttpClient, Reply};
use crate::net::http_server::{HttpServer, Request};
use crate::pki::ca::Ca;

/// What happens to requests for the key set while a fault lasts.
#[derive(Clone, Debug)]
pub enum KeysFault {
    /// They get this status.
    Status(u16),
    /// They get this key set, such as the one before a rotation.
    Stale(Bytes),
    /// They get their answer when the fault ends.
    Delayed,
    /// They never get an answer; requests after the fault do.
    Unanswered,
    /// They get the key set with further keys.
    Added(Vec<Value>),
}

/// What the proxy makes of `Cache-Control` and `Expires` of the key set.
#[derive(Clone, Debug)]
pub enum KeysCaching {
    /// The provider's own.
    Forwarded,
    /// Both are removed.
    Removed,
    /// This `Cache-Control`.
    Fixed(&'static str),
}

/// A reverse proxy on a loopback port, in a thread of its own; it is gone when dropped. Its URL is the provider's issuer.
#[derive(Debug)]
pub struct FaultProxy {
    server: HttpServer,
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    client: HttpClient,
    keys_path: &'static str,
    caching: KeysCaching,
    host: HeaderValue,
    state: Mutex<State>,
    /// How many requests will never get an answer.
    unanswered: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct State {
    /// The fault, and the reading of the monotonic clock at which it ends.
    fault: Option<(KeysFault, Duration)>,
}

impl FaultProxy {
    /// A proxy with a certificate of `ca` for a provider that publishes its keys at `keys_path`. It answers 404 until it knows the
    /// provider.
    ///
    /// # Panics
    /// If no port is free.
    pub fn start(ca: &Ca, keys_path: &'static str, caching: KeysCaching) -> Self {
        let server = HttpServer::start(ca);
        let host = HeaderValue::try_from(server.address().to_string()).expect("an address is a header value");
        let client = HttpClient::trusting(ca);
        let inner = Inner {
            client,
            keys_path,
            caching,
            host,
            state: Mutex::default(),
            unanswered: watch::Sender::default(),
        };
        FaultProxy { server, inner: Arc::new(inner) }
    }

    /// `https://127.0.0.1:port`, without a slash at the end.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// Forwards every request to this URL from now on.
    pub fn forward_to(&self, provider: &str) {
        let (inner, provider) = (Arc::clone(&self.inner), provider.to_owned());
        self.server.answer_with_future("*", move |request| {
            let (inner, provider) = (Arc::clone(&inner), provider.clone());
            async move { inner.answer(&request, &provider).await }
        });
    }

    /// Begins a fault that lasts for this long.
    pub fn inject(&self, fault: KeysFault, lasts: Duration) {
        self.inner.state().fault = Some((fault, SystemClock.monotonic() + lasts));
    }

    /// How many requests for the key set have arrived.
    pub fn key_requests(&self) -> usize {
        self.server.count(self.inner.keys_path)
    }
}

impl Inner {
    async fn answer(&self, request: &Request, provider: &str) -> Answer {
        if request.path() != self.keys_path {
            return self.forward(request, provider).await;
        }
        let fault = self.current_fault();
        match &fault {
            None | Some((KeysFault::Added(_) | KeysFault::Delayed, _)) => {}
            Some((KeysFault::Status(status), _)) => return Answer::status(*status),
            Some((KeysFault::Stale(keys), _)) => {
                return self.cached(Answer::bytes("application/json", keys.clone()));
            }
            Some((KeysFault::Unanswered, _)) => {
                self.unanswered.send_modify(|count| *count += 1);
                std::future::pending::<()>().await;
            }
        }
        if let Some((KeysFault::Delayed, remaining)) = fault {
            let _ = tokio::time::timeout(remaining, std::future::pending::<()>()).await;
        }
        let answer = match (fault, self.fetch(request, provider).await) {
            (Some((KeysFault::Added(keys), _)), Ok(reply)) => with_keys(&reply, &keys),
            (_, reply) => forwarded(reply),
        };
        self.cached(answer)
    }

    async fn forward(&self, request: &Request, provider: &str) -> Answer {
        forwarded(self.fetch(request, provider).await)
    }

    async fn fetch(&self, request: &Request, provider: &str) -> Result<Reply, BoxError> {
        let mut forwarded = http::Request::builder()
            .method(request.method.clone())
            .uri(format!("{provider}{}", request.target))
            .body(Bytes::from(request.body.clone()))?;
        *forwarded.headers_mut() = end_to_end(&request.headers);
        // The provider names its endpoints by the host that clients know.
        forwarded.headers_mut().insert(HOST, self.host.clone());
        Box::pin(self.client.send(forwarded)).await
    }

    fn cached(&self, mut answer: Answer) -> Answer {
        if !matches!(self.caching, KeysCaching::Forwarded) {
            answer.headers.remove(CACHE_CONTROL);
            answer.headers.remove(EXPIRES);
        }
        if let KeysCaching::Fixed(value) = self.caching {
            answer.headers.insert(CACHE_CONTROL, HeaderValue::from_static(value));
        }
        answer
    }

    /// The fault that lasts, and for how much longer.
    fn current_fault(&self) -> Option<(KeysFault, Duration)> {
        let state = self.state();
        let (fault, end) = state.fault.as_ref()?;
        let remaining = end.checked_sub(SystemClock.monotonic())?;
        Some((fault.clone(), remaining))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The provider's answer, or 502.
fn forwarded(reply: Result<Reply, BoxError>) -> Answer {
    match reply {
        Ok(reply) => {
            let mut answer = Answer::bytes("text/plain", reply.body).with_status(reply.status.as_u16());
            answer.headers = end_to_end(&reply.headers);
            answer
        }
        Err(_) => Answer::status(502),
    }
}

/// The key set with further keys.
fn with_keys(reply: &Reply, further: &[Value]) -> Answer {
    let mut set = reply.json();
    let keys = set.get_mut("keys").and_then(Value::as_array_mut).expect("a key set");
    keys.extend_from_slice(further);
    let mut answer = Answer::json(&set);
    answer.headers = end_to_end(&reply.headers);
    answer
}

/// The headers that are not about the connection.
fn end_to_end(headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    for name in [CONNECTION, TRANSFER_ENCODING, CONTENT_LENGTH, HeaderName::from_static("keep-alive")] {
        headers.remove(name);
    }
    headers
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::wait;

    const LONG: Duration = Duration::from_secs(3600);

    fn proxied(caching: KeysCaching) -> (HttpServer, FaultProxy, HttpClient) {
        let ca = Ca::new("proxy");
        let provider = HttpServer::start(&ca);
        provider.answer(
            "/keys",
            Answer::json(&json!({"keys": [{"kid": "k1"}]})).header("cache-control", "max-age=7"),
        );
        provider.answer_with("/token", |request| {
            Answer::json(&json!({
                "body": String::from_utf8_lossy(&request.body), "host": request.header("host"),
            }))
            .header("set-cookie", "a=1")
            .header("set-cookie", "b=2")
            .with_status(201)
        });
        let proxy = FaultProxy::start(&ca, "/keys", caching);
        proxy.forward_to(&provider.url());
        (provider, proxy, HttpClient::trusting(&ca))
    }

    #[tokio::test]
    async fn requests_and_responses_are_forwarded_whole() {
        let (_provider, proxy, client) = proxied(KeysCaching::Forwarded);
        let reply = client.post_json(&format!("{}/token", proxy.url()), &json!({"a": 1})).await.unwrap();
        assert_eq!(reply.status, 201);
        assert_eq!(reply.headers.get_all("set-cookie").iter().count(), 2);
        let host = proxy.url().replace("https://", "");
        assert_eq!(reply.json(), json!({"body": "{\"a\":1}", "host": host}));
        let keys = client.http2().get(&format!("{}/keys", proxy.url())).await.unwrap();
        assert_eq!((keys.status.as_u16(), keys.header("cache-control")), (200, Some("max-age=7")));
    }

    #[tokio::test]
    async fn keys_are_disturbed_while_a_fault_lasts() {
        let (_provider, proxy, client) = proxied(KeysCaching::Fixed("max-age=120"));
        let url = format!("{}/keys", proxy.url());
        proxy.inject(KeysFault::Status(500), LONG);
        assert_eq!(client.get(&url).await.unwrap().status, 500);
        assert_eq!(client.get(&format!("{}/token", proxy.url())).await.unwrap().status, 201);
        proxy.inject(KeysFault::Stale(Bytes::from_static(b"{}")), LONG);
        assert_eq!(client.get(&url).await.unwrap().text(), "{}");
        proxy.inject(KeysFault::Added(vec![json!({"kty": "odd"})]), LONG);
        let reply = client.get(&url).await.unwrap();
        assert_eq!(reply.json(), json!({"keys": [{"kid": "k1"}, {"kty": "odd"}]}));
        assert_eq!(reply.header("cache-control"), Some("max-age=120"));
        proxy.inject(KeysFault::Delayed, Duration::from_millis(5));
        assert_eq!(client.get(&url).await.unwrap().json(), json!({"keys": [{"kid": "k1"}]}));
        proxy.inject(KeysFault::Unanswered, LONG);
        let (waiting, at) = (client.clone(), url.clone());
        let unanswered = tokio::spawn(async move { waiting.get(&at).await });
        // The request is logged before the fault is looked up.
        wait::until("the request", proxy.inner.unanswered.subscribe(), |count| *count == 1, usize::to_string)
            .await;
        proxy.inject(KeysFault::Status(500), Duration::ZERO);
        assert_eq!(client.get(&url).await.unwrap().status, 200, "the fault has ended");
        assert!(!unanswered.is_finished());
        assert_eq!(proxy.key_requests(), 6);
        unanswered.abort();
    }
}
