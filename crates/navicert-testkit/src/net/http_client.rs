//! A plain HTTPS client for tests of servers: one connection per request, nothing followed, nothing retried.

use std::error::Error;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode, Uri, Version};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::pki::ca::{Ca, Identity};

/// Whatever went wrong on the way.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// A client. Clones share TLS sessions, so that they can be resumed.
///
/// ```
/// use navicert_testkit::{Answer, Ca, HttpClient, HttpServer};
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let ca = Ca::new("client example");
/// let server = HttpServer::start(&ca);
/// let reply = HttpClient::trusting(&ca).http2().get(&server.url_of("/")).await.unwrap();
/// assert_eq!((reply.status.as_u16(), reply.version), (404, http::Version::HTTP_2));
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct HttpClient {
    config: Arc<ClientConfig>,
}

/// A response as received.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The status.
    pub status: StatusCode,
    /// HTTP/1.1 or HTTP/2.
    pub version: Version,
    /// The headers.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Bytes,
    /// The trailers, if there were any.
    pub trailers: HeaderMap,
}

impl HttpClient {
    /// A client that trusts this CA, shows no certificate and speaks HTTP/1.1.
    pub fn trusting(ca: &Ca) -> Self {
        HttpClient::build(ca.root_store(), None, rustls::DEFAULT_VERSIONS)
    }

    /// The same with certificate authorities in PEM, such as those of a kubeconfig.
    ///
    /// # Errors
    /// If a certificate cannot be read.
    pub fn trusting_pem(pem: &[u8]) -> Result<Self, BoxError> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            roots.add(certificate?)?;
        }
        Ok(HttpClient::build(Arc::new(roots), None, rustls::DEFAULT_VERSIONS))
    }

    /// A client that sends this certificate when the server requests one.
    pub fn with_identity(ca: &Ca, identity: &Identity) -> Self {
        HttpClient::build(ca.root_store(), Some(identity), rustls::DEFAULT_VERSIONS)
    }

    /// A client of these TLS versions alone.
    pub fn with_versions(
        ca: &Ca,
        identity: Option<&Identity>,
        versions: &[&'static SupportedProtocolVersion],
    ) -> Self {
        HttpClient::build(ca.root_store(), identity, versions)
    }

    /// The same client, offering HTTP/2 alone.
    pub fn http2(&self) -> Self {
        let mut config = (*self.config).clone();
        config.alpn_protocols = vec![b"h2".to_vec()];
        HttpClient { config: Arc::new(config) }
    }

    /// Sends a GET.
    ///
    /// # Errors
    /// If the URL is none, or the server cannot be reached or breaks off.
    pub async fn get(&self, url: &str) -> Result<Reply, BoxError> {
        self.send(Request::get(url).body(Bytes::new())?).await
    }

    /// Sends a POST with a JSON body.
    ///
    /// # Errors
    /// As for [`get`](Self::get).
    pub async fn post_json(&self, url: &str, body: &serde_json::Value) -> Result<Reply, BoxError> {
        let request = Request::builder()
            .method(Method::POST)
            .uri(url)
            .header("content-type", "application/json")
            .body(Bytes::from(body.to_string()))?;
        self.send(request).await
    }

    /// Sends any request; its URI is absolute. `Host` is filled in if absent.
    ///
    /// # Errors
    /// As for [`get`](Self::get).
    pub async fn send(&self, request: Request<Bytes>) -> Result<Reply, BoxError> {
        let uri = request.uri().clone();
        let host = uri.host().ok_or("a URL without a host")?.trim_matches(['[', ']']).to_owned();
        let port = uri.port_u16().unwrap_or(if uri.scheme_str() == Some("http") { 80 } else { 443 });
        let stream = TcpStream::connect((host.as_str(), port)).await?;
        stream.set_nodelay(true)?;
        if uri.scheme_str() == Some("http") {
            return exchange_http1(stream, request).await;
        }
        let name = ServerName::try_from(host)?;
        let stream = TlsConnector::from(Arc::clone(&self.config)).connect(name, stream).await?;
        match stream.get_ref().1.alpn_protocol() {
            Some(b"h2") => exchange_http2(stream, request).await,
            _ => exchange_http1(stream, request).await,
        }
    }

    fn build(
        roots: Arc<RootCertStore>,
        identity: Option<&Identity>,
        versions: &[&'static SupportedProtocolVersion],
    ) -> Self {
        let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_protocol_versions(versions)
            .expect("TLS versions the crypto provider has")
            .with_root_certificates(roots);
        let mut config = match identity {
            Some(identity) => builder
                .with_client_auth_cert(identity.chain().to_vec(), identity.rustls_key())
                .expect("a certificate and its key"),
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        HttpClient { config: Arc::new(config) }
    }
}

impl Reply {
    /// The body as text.
    ///
    /// # Panics
    /// If it is not UTF-8.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap_or_else(|error| panic!("the reply is not text: {error}"))
    }

    /// The body as JSON.
    ///
    /// # Panics
    /// If it is none.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("the reply is not JSON: {error}"))
    }

    /// A header's first value, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

async fn exchange_http1<S>(stream: S, mut request: Request<Bytes>) -> Result<Reply, BoxError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let authority = request.uri().authority().ok_or("a URL without a host")?.as_str().parse()?;
    request.headers_mut().entry(http::header::HOST).or_insert(authority);
    let target = request.uri().path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    *request.uri_mut() = target.parse::<Uri>()?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let _driver = Driver(tokio::spawn(async move {
        let _ = connection.await;
    }));
    collect(sender.send_request(request.map(Full::new)).await?).await
}

async fn exchange_http2<S>(stream: S, request: Request<Bytes>) -> Result<Reply, BoxError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
    let _driver = Driver(tokio::spawn(async move {
        let _ = connection.await;
    }));
    collect(sender.send_request(request.map(Full::new)).await?).await
}

async fn collect(response: http::Response<hyper::body::Incoming>) -> Result<Reply, BoxError> {
    let (head, body) = response.into_parts();
    let collected = body.collect().await?;
    let trailers = collected.trailers().cloned().unwrap_or_default();
    let body = collected.to_bytes();
    Ok(Reply { status: head.status, version: head.version, headers: head.headers, body, trailers })
}

/// Ends the connection's task with the exchange, so that a dropped request is a closed connection.
struct Driver(tokio::task::JoinHandle<()>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}
