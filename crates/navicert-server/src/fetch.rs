//! Fetches discovery documents, key sets and distributed claims for `navicert-authn`, with the transports of
//! `navicert-client` (TLS, proxies, connection pools).

mod redirect;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use http::header::{AUTHORIZATION, LOCATION};
use http::{HeaderValue, Request, Response, Uri};
use http_body_util::BodyExt as _;
use navicert_authn::config::Egress;
use navicert_authn::jwks::{BoxFuture, Fetch, FetchError, FetchRequest, FetchResponse, FetchStage};
use navicert_client::ClientContext;
use navicert_client::credential::{Credential, StaticCredential};
use navicert_client::transport::{
    Body, ProxyChoice, ProxyEnvironment, ResponseBody, Timer, Transport, TransportError, TransportSettings,
    Trust,
};

/// Maximum number of cached transports; tokens choose the addresses of distributed claims.
const MAX_TRANSPORTS: usize = 256;
/// Maximum body size of requests without a lower limit.
const MAX_BODY_BYTES: usize = 64 << 20;

/// Fetches documents with `navicert-client`'s transports.
///
/// ```no_run
/// use navicert_authn::{AuthnProfile, config, jwks};
/// use navicert_client::transport::ProxyEnvironment;
/// use navicert_server::fetch::HttpFetch;
///
/// # async fn example(issuer: &config::CompiledIssuer) {
/// let fetch = HttpFetch::new(ProxyEnvironment::default());
/// let report = jwks::probe_issuer(issuer, &fetch, &AuthnProfile::HARDENED).await;
/// assert!(report.is_good(), "{:?}", report.results);
/// # }
/// ```
pub struct HttpFetch {
    proxies: ProxyEnvironment,
    egress: HashMap<Egress, ProxyChoice>,
    client_context: ClientContext,
    transports: Mutex<HashMap<TransportKey, Transport>>,
}

/// Requests with equal keys share a transport.
#[derive(Clone, PartialEq, Eq, Hash)]
struct TransportKey {
    origin: String,
    roots: Vec<u8>,
    egress: Option<Egress>,
    public_only: bool,
}

impl HttpFetch {
    /// Uses the proxies of the environment, and the system's root certificates, files and clock.
    pub fn new(proxies: ProxyEnvironment) -> Self {
        HttpFetch::with(proxies, ClientContext::system())
    }

    /// Uses another clock or timer.
    pub fn with(proxies: ProxyEnvironment, client_context: ClientContext) -> Self {
        HttpFetch { proxies, egress: HashMap::new(), client_context, transports: Mutex::default() }
    }

    /// Routes requests of issuers with this `egressSelectorType` through this proxy.
    // S154
    #[must_use]
    pub fn with_egress(mut self, egress: Egress, way: ProxyChoice) -> Self {
        self.egress.insert(egress, way);
        self
    }

    /// Whether this egress is configured. A configuration that names another one must be rejected.
    // S154
    pub fn has_egress(&self, egress: Egress) -> bool {
        self.egress.contains_key(&egress)
    }

    /// One GET: follows redirects, reads the body.
    async fn fetch(&self, request: FetchRequest<'_>) -> Result<FetchResponse, FetchError> {
        let mut url = parse(request.url)?;
        let mut base = request.redirect_base.map_or(Ok(url.clone()), parse)?;
        let asked = url.clone();
        for _ in 0..=request.limits.redirects {
            let response = self.send(&request, &asked, &url).await?;
            let Some(location) = redirect::location(response.status(), response.headers().get(LOCATION))
            else {
                return read(response, url, request.limits.bytes.min(MAX_BODY_BYTES)).await;
            };
            let next = redirect::resolve(&base, location).ok_or_else(|| {
                FetchError::new(FetchStage::Http, format!("`{url}` redirects to an invalid URL"))
            })?;
            if request.limits.keeps_scheme && next.scheme() != url.scheme() {
                let what = format!("`{url}` redirects to another scheme, which is not allowed");
                return Err(FetchError::new(FetchStage::Http, what));
            }
            if request.limits.keeps_host && next.authority() != url.authority() {
                let what = format!("`{url}` redirects to another host, which is not allowed");
                return Err(FetchError::new(FetchStage::Http, what));
            }
            base = next.clone();
            url = next;
        }
        let what = format!("`{}` redirects more than {} times", request.url, request.limits.redirects);
        Err(FetchError::new(FetchStage::Http, what))
    }

    async fn send(
        &self,
        request: &FetchRequest<'_>,
        asked: &Uri,
        url: &Uri,
    ) -> Result<Response<ResponseBody>, FetchError> {
        let transport = self.transport(request, url)?;
        let path = url.path_and_query().map_or("/", |path| path.as_str());
        let mut message = Request::get(path)
            .body(Body::empty())
            .map_err(|error| failed(FetchStage::Address, format!("invalid URL `{url}`"), error))?;
        if let Some(bearer) = request.bearer
            && (asked.scheme(), asked.authority()) == (url.scheme(), url.authority())
        {
            let mut value = HeaderValue::try_from(format!("Bearer {}", bearer.expose())).map_err(|_| {
                FetchError::new(FetchStage::Address, "invalid access token: not allowed in a header")
            })?;
            value.set_sensitive(true);
            message.headers_mut().insert(AUTHORIZATION, value);
        }
        transport.send(message).await.map_err(|error| {
            let stage = stage(&error);
            failed(stage, format!("failed to fetch `{url}`"), error)
        })
    }

    /// The transport for a server, created on first use.
    fn transport(&self, request: &FetchRequest<'_>, url: &Uri) -> Result<Transport, FetchError> {
        let origin = format!(
            "{}://{}",
            url.scheme_str().unwrap_or_default(),
            url.authority().map_or("", |a| a.as_str())
        );
        let public_only = request.limits.public_only;
        let key =
            TransportKey { origin, roots: fingerprint(request.roots), egress: request.egress, public_only };
        let mut lines = self.transports.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = lines.get(&key) {
            return Ok(line.clone());
        }
        let proxy = match request.egress {
            None => ProxyChoice::Environment(self.proxies.clone()),
            Some(egress) => self.egress.get(&egress).cloned().ok_or_else(|| {
                FetchError::new(
                    FetchStage::Proxy,
                    format!("no proxy configured for egress `{}`", egress.name()),
                )
            })?,
        };
        let settings = TransportSettings {
            trust: if request.roots.is_empty() { Trust::System } else { Trust::Der(request.roots.to_vec()) },
            proxy,
            public_only,
            retry_unauthorized: false,
            max_idle: 2,
            ..TransportSettings::new(&key.origin)
        };
        let source = Arc::new(StaticCredential::new(Credential::anonymous()));
        let line = Transport::new(settings, source, self.client_context.clone()).map_err(|error| {
            failed(FetchStage::Address, format!("failed to create a transport for `{}`", key.origin), error)
        })?;
        if lines.len() >= MAX_TRANSPORTS
            && let Some(any) = lines.keys().next().cloned()
        {
            lines.remove(&any);
        }
        lines.insert(key, line.clone());
        Ok(line)
    }
}

impl Fetch for HttpFetch {
    fn get<'f>(&'f self, request: FetchRequest<'f>) -> BoxFuture<'f, Result<FetchResponse, FetchError>> {
        Box::pin(async move {
            let limit = request.limits.time;
            let late = self.client_context.timer.sleep(limit);
            tokio::select! {
                biased;
                outcome = self.fetch(request) => outcome,
                () = late => Err(timeout_error(request.url, limit)),
            }
        })
    }
}

impl fmt::Debug for HttpFetch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpFetch").field("egress", &self.egress.keys()).finish_non_exhaustive()
    }
}

/// Answers a request with a document at `path` of another server, fetched through a transport with credentials of its own.
/// The limits on size and time hold; redirects are not followed. The request's URL stands in errors and in the response.
///
/// # Errors
/// [`FetchError`]: no response was received within the limits.
pub async fn fetch_through(
    transport: &Transport,
    timer: &dyn Timer,
    path: &str,
    request: FetchRequest<'_>,
) -> Result<FetchResponse, FetchError> {
    let limits = request.limits;
    let exchange = async {
        let url = parse(request.url)?;
        let message = Request::get(path)
            .body(Body::empty())
            .map_err(|error| failed(FetchStage::Address, format!("invalid path `{path}`"), error))?;
        let response = transport.send(message).await.map_err(|error| {
            let stage = stage(&error);
            failed(stage, format!("failed to fetch `{url}`"), error)
        })?;
        read(response, url, limits.bytes.min(MAX_BODY_BYTES)).await
    };
    tokio::select! {
        biased;
        outcome = exchange => outcome,
        () = timer.sleep(limits.time) => Err(timeout_error(request.url, limits.time)),
    }
}

fn timeout_error(url: &str, limit: Duration) -> FetchError {
    FetchError::new(
        FetchStage::Http,
        format!("failed to fetch `{url}`: no response within {} s", limit.as_secs()),
    )
}

async fn read(response: Response<ResponseBody>, url: Uri, most: usize) -> Result<FetchResponse, FetchError> {
    let (head, mut body) = response.into_parts();
    let headers = head.headers.iter().map(|(name, value)| {
        (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    });
    let mut fetched = FetchResponse {
        status: head.status.as_u16(),
        url: url.to_string(),
        headers: headers.collect(),
        body: Vec::new(),
    };
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            failed(FetchStage::Http, format!("failed to read the response of `{url}`"), error)
        })?;
        let Ok(data) = frame.into_data() else { continue };
        if fetched.body.len() + data.len() > most {
            return Err(FetchError::new(
                FetchStage::Http,
                format!("the response of `{url}` exceeds {most} bytes"),
            ));
        }
        fetched.body.extend_from_slice(&data);
    }
    Ok(fetched)
}

fn parse(text: &str) -> Result<Uri, FetchError> {
    let unusable =
        || FetchError::new(FetchStage::Address, format!("invalid URL `{text}`: expected http or https"));
    let url: Uri = text.parse().map_err(|_| unusable())?;
    let is_http = matches!(url.scheme_str(), Some("http" | "https"));
    if is_http && url.host().is_some_and(|host| !host.is_empty()) { Ok(url) } else { Err(unusable()) }
}

fn stage(error: &TransportError) -> FetchStage {
    match error {
        TransportError::Lookup { .. } | TransportError::LocalAddress { .. } => FetchStage::Lookup,
        TransportError::Connect { .. } | TransportError::ConnectTimeout { .. } => FetchStage::Connect,
        TransportError::Proxy { .. } => FetchStage::Proxy,
        TransportError::Handshake { .. }
        | TransportError::HandshakeTimeout { .. }
        | TransportError::CertificateRejected { .. } => FetchStage::Tls,
        TransportError::Path(_) | TransportError::OtherServer { .. } => FetchStage::Address,
        _ => FetchStage::Http,
    }
}

fn failed(
    stage: FetchStage,
    what: String,
    source: impl std::error::Error + Send + Sync + 'static,
) -> FetchError {
    FetchError { stage, what, source: Some(Box::new(source)) }
}

fn fingerprint(roots: &[Vec<u8>]) -> Vec<u8> {
    roots.iter().flat_map(|root| digest(&SHA256, root).as_ref().to_vec()).collect()
}
