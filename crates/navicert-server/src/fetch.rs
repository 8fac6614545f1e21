//! Discovery documents, key sets and distributed claims over HTTP: what `navicert-authn` asks for and does not get
//! itself. Connections are the client's: same TLS, same proxies, kept open between requests.

mod redirect;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{AUTHORIZATION, LOCATION};
use http::{HeaderValue, Request, Response, Uri};
use http_body_util::BodyExt as _;
use navicert_authn::config::Egress;
use navicert_authn::jwks::{BoxFuture, Fetch, FetchError, FetchRequest, Fetched, Stage};
use navicert_client::credential::{Credential, Fixed};
use navicert_client::transport::{
    Around, Body, ProxyChoice, ProxyEnvironment, ResponseBody, Settings, Transport, TransportError, Trust,
};

/// How many servers' connections are kept; the addresses of distributed claims are a token's choice.
const MOST_LINES: usize = 256;
/// A body without another limit ends here, so that memory is not the limit.
const MOST_BYTES: usize = 64 << 20;

/// Gets documents with the connections of `navicert-client`.
///
/// ```no_run
/// use navicert_authn::{Profile, config, jwks};
/// use navicert_client::transport::ProxyEnvironment;
/// use navicert_server::fetch::HttpFetch;
///
/// # async fn example(issuer: &config::CompiledIssuer) {
/// let fetch = HttpFetch::new(ProxyEnvironment::default());
/// let look = jwks::look(issuer, &fetch, &Profile::HARDENED).await;
/// assert!(look.is_good(), "{:?}", look.seen);
/// # }
/// ```
pub struct HttpFetch {
    proxies: ProxyEnvironment,
    egress: HashMap<Egress, ProxyChoice>,
    around: Around,
    lines: Mutex<HashMap<LineKey, Transport>>,
}

/// Requests that may share connections.
#[derive(Clone, PartialEq, Eq, Hash)]
struct LineKey {
    origin: String,
    roots: Vec<u8>,
    egress: Option<Egress>,
    public_only: bool,
}

impl HttpFetch {
    /// Through the proxies that the environment names, with this machine's roots, files and clock.
    pub fn new(proxies: ProxyEnvironment) -> Self {
        HttpFetch::with(proxies, Around::system())
    }

    /// The same with another clock or timer.
    pub fn with(proxies: ProxyEnvironment, around: Around) -> Self {
        HttpFetch { proxies, egress: HashMap::new(), around, lines: Mutex::default() }
    }

    /// Requests of issuers with this `egressSelectorType` take this way (S154).
    #[must_use]
    pub fn with_egress(mut self, egress: Egress, way: ProxyChoice) -> Self {
        self.egress.insert(egress, way);
        self
    }

    /// Whether a way out is configured. An issuer that names another one must not start (S154).
    pub fn has_egress(&self, egress: Egress) -> bool {
        self.egress.contains_key(&egress)
    }

    /// The whole of one GET: redirects, then the body.
    async fn fetch(&self, request: FetchRequest<'_>) -> Result<Fetched, FetchError> {
        let mut url = parse(request.url)?;
        let mut base = request.known_as.map_or(Ok(url.clone()), parse)?;
        let asked = url.clone();
        for _ in 0..=request.limits.redirects {
            let response = self.send(&request, &asked, &url).await?;
            let Some(location) = redirect::location(response.status(), response.headers().get(LOCATION))
            else {
                return read(response, url, request.limits.bytes.min(MOST_BYTES)).await;
            };
            let next = redirect::resolve(&base, location)
                .ok_or_else(|| FetchError::new(Stage::Http, format!("`{url}` redirects to no address")))?;
            if request.limits.keeps_scheme && next.scheme() != url.scheme() {
                let what = format!("`{url}` redirects to another scheme, which is not allowed");
                return Err(FetchError::new(Stage::Http, what));
            }
            if request.limits.keeps_host && next.authority() != url.authority() {
                let what = format!("`{url}` redirects to another host, which is not allowed");
                return Err(FetchError::new(Stage::Http, what));
            }
            base = next.clone();
            url = next;
        }
        let what = format!("`{}` redirects more than {} times", request.url, request.limits.redirects);
        Err(FetchError::new(Stage::Http, what))
    }

    async fn send(
        &self,
        request: &FetchRequest<'_>,
        asked: &Uri,
        url: &Uri,
    ) -> Result<Response<ResponseBody>, FetchError> {
        let transport = self.line(request, url)?;
        let path = url.path_and_query().map_or("/", |path| path.as_str());
        let mut message = Request::get(path)
            .body(Body::empty())
            .map_err(|error| failed(Stage::Address, format!("`{url}` cannot be asked for"), error))?;
        if let Some(bearer) = request.bearer
            && (asked.scheme(), asked.authority()) == (url.scheme(), url.authority())
        {
            let mut value = HeaderValue::try_from(format!("Bearer {}", bearer.expose()))
                .map_err(|_| FetchError::new(Stage::Address, "the access token cannot be sent"))?;
            value.set_sensitive(true);
            message.headers_mut().insert(AUTHORIZATION, value);
        }
        transport.send(message).await.map_err(|error| {
            let stage = stage(&error);
            failed(stage, format!("get `{url}`"), error)
        })
    }

    /// The connections to a server, made when first needed.
    fn line(&self, request: &FetchRequest<'_>, url: &Uri) -> Result<Transport, FetchError> {
        let origin = format!(
            "{}://{}",
            url.scheme_str().unwrap_or_default(),
            url.authority().map_or("", |a| a.as_str())
        );
        let public_only = request.limits.public_only;
        let key = LineKey { origin, roots: fingerprint(request.roots), egress: request.egress, public_only };
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = lines.get(&key) {
            return Ok(line.clone());
        }
        let proxy = match request.egress {
            None => ProxyChoice::Environment(self.proxies.clone()),
            Some(egress) => self.egress.get(&egress).cloned().ok_or_else(|| {
                FetchError::new(Stage::Proxy, format!("no way is configured for egress `{}`", egress.name()))
            })?,
        };
        let settings = Settings {
            trust: if request.roots.is_empty() { Trust::System } else { Trust::Pem(pem(request.roots)) },
            proxy,
            public_only,
            retry_unauthorized: false,
            max_idle: 2,
            ..Settings::new(&key.origin)
        };
        let source = Arc::new(Fixed::new(Credential::anonymous()));
        let line = Transport::new(settings, source, self.around.clone())
            .map_err(|error| failed(Stage::Address, format!("`{}` cannot be used", key.origin), error))?;
        if lines.len() >= MOST_LINES
            && let Some(any) = lines.keys().next().cloned()
        {
            lines.remove(&any);
        }
        lines.insert(key, line.clone());
        Ok(line)
    }
}

impl Fetch for HttpFetch {
    fn get<'f>(&'f self, request: FetchRequest<'f>) -> BoxFuture<'f, Result<Fetched, FetchError>> {
        Box::pin(async move {
            let limit = request.limits.time;
            let late = self.around.timer.sleep(limit);
            tokio::select! {
                biased;
                outcome = self.fetch(request) => outcome,
                () = late => Err(too_late(request.url, limit)),
            }
        })
    }
}

impl fmt::Debug for HttpFetch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpFetch").field("egress", &self.egress.keys()).finish_non_exhaustive()
    }
}

fn too_late(url: &str, limit: Duration) -> FetchError {
    FetchError::new(Stage::Http, format!("get `{url}`: no answer within {} s", limit.as_secs()))
}

async fn read(response: Response<ResponseBody>, url: Uri, most: usize) -> Result<Fetched, FetchError> {
    let (head, mut body) = response.into_parts();
    let headers = head.headers.iter().map(|(name, value)| {
        (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    });
    let mut fetched = Fetched {
        status: head.status.as_u16(),
        url: url.to_string(),
        headers: headers.collect(),
        body: Vec::new(),
    };
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|error| failed(Stage::Http, format!("read the answer of `{url}`"), error))?;
        let Ok(data) = frame.into_data() else { continue };
        if fetched.body.len() + data.len() > most {
            return Err(FetchError::new(
                Stage::Http,
                format!("the answer of `{url}` is longer than {most} bytes"),
            ));
        }
        fetched.body.extend_from_slice(&data);
    }
    Ok(fetched)
}

fn parse(text: &str) -> Result<Uri, FetchError> {
    let unusable =
        || FetchError::new(Stage::Address, format!("`{text}` is not an address over http or https"));
    let url: Uri = text.parse().map_err(|_| unusable())?;
    let is_http = matches!(url.scheme_str(), Some("http" | "https"));
    if is_http && url.host().is_some_and(|host| !host.is_empty()) { Ok(url) } else { Err(unusable()) }
}

fn stage(error: &TransportError) -> Stage {
    match error {
        TransportError::Lookup { .. } | TransportError::PrivateAddress { .. } => Stage::Lookup,
        TransportError::Connect { .. } | TransportError::ConnectTimeout { .. } => Stage::Connect,
        TransportError::Proxy { .. } => Stage::Proxy,
        TransportError::Handshake { .. }
        | TransportError::HandshakeTimeout { .. }
        | TransportError::CertificateRefused { .. } => Stage::Tls,
        TransportError::Path(_) | TransportError::OtherServer { .. } => Stage::Address,
        _ => Stage::Http,
    }
}

fn failed(stage: Stage, what: String, source: impl std::error::Error + Send + Sync + 'static) -> FetchError {
    FetchError { stage, what, source: Some(Box::new(source)) }
}

fn fingerprint(roots: &[Vec<u8>]) -> Vec<u8> {
    roots.iter().flat_map(|root| digest(&SHA256, root).as_ref().to_vec()).collect()
}

fn pem(roots: &[Vec<u8>]) -> Vec<u8> {
    let certificate = |der: &Vec<u8>| {
        format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", STANDARD.encode(der))
    };
    roots.iter().map(certificate).collect::<String>().into_bytes()
}
