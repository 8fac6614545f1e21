//! Gateway authentication over real sockets: token, host, origin, address, and `--read-only`.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests; a broken set-up should stop the test"
)]

use std::net::SocketAddr;
use std::sync::Arc;

use navicert_client::ClientContext;
use navicert_client::credential::{ClientIdentity, Credential, StaticCredential};
use navicert_client::transport::{Transport, TransportSettings, Trust};
use navicert_server::gateway::{self, Gateway, RunningGateway};
use navicert_testkit::{ApiServer, Ca, RawClient};
use navicert_types::kubeconfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

struct GatewayFixture {
    api: ApiServer,
    running: RunningGateway,
    authority: Vec<u8>,
    token: String,
    base: tempfile::TempDir,
}

impl GatewayFixture {
    fn open(read_only: bool) -> Self {
        let ca = Ca::new("gateway");
        let api = ApiServer::start(&ca);
        let ann = ca.client("ann").issue();
        let identity =
            ClientIdentity::from_pem(ann.chain_pem().as_bytes(), ann.key_pem().as_bytes()).unwrap();
        let credential = Credential { identity: Some(Arc::new(identity)), ..Credential::anonymous() };
        let trust = Trust::Pem(ca.pem().into_bytes());
        let settings = TransportSettings { trust, compression: false, ..TransportSettings::new(api.url()) };
        let upstream =
            Transport::new(settings, Arc::new(StaticCredential::new(credential)), ClientContext::system())
                .unwrap();
        let base = tempfile::tempdir().unwrap();
        let settings = gateway::GatewaySettings { read_only, ..gateway::GatewaySettings::default() };
        let running = Gateway::open(upstream, &settings, base.path()).unwrap().start().unwrap();
        let config = kubeconfig::decode(&std::fs::read(running.kubeconfig().path()).unwrap()).unwrap();
        let authority = config.clusters[0].cluster.certificate_authority_data.clone();
        let token = config.users[0].user.token.expose().clone();
        GatewayFixture { api, running, authority, token, base }
    }

    fn address(&self) -> SocketAddr {
        self.running.address()
    }

    /// Sends a request with these header lines and returns the status.
    async fn ask(&self, request: &str, lines: &[String]) -> u16 {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(&self.authority).unwrap()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let stream = TcpStream::connect(self.address()).await.unwrap();
        let name = ServerName::IpAddress(self.address().ip().into());
        let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
        let mut client = RawClient::over(stream);
        let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
        client.write(format!("{request} HTTP/1.1\r\n{lines}Connection: close\r\n\r\n").as_bytes()).await;
        let answer = client.read_to_end(100_000).await;
        String::from_utf8_lossy(&answer)
            .split(' ')
            .nth(1)
            .and_then(|code| code.parse().ok())
            .unwrap_or_default()
    }

    fn token(&self) -> String {
        format!("Authorization: Bearer {}", self.token)
    }

    fn host(&self) -> String {
        format!("Host: {}", self.address())
    }
}

// Wrong token, wrong `Host` or `Origin`.
#[tokio::test]
async fn gateway_requires_its_token_and_host() {
    let gateway = GatewayFixture::open(false);
    let port = gateway.address().port();
    for (lines, expected) in [
        (vec![gateway.host()], 401),
        (vec![gateway.host(), "Authorization: Bearer wrong".into()], 401),
        (vec![gateway.host(), format!("Authorization: Basic {}", gateway.token)], 401),
        (vec![format!("Host: localhost:{port}"), gateway.token()], 403),
        (vec![format!("Host: [::1]:{port}"), gateway.token()], 403),
        (vec!["Host: evil.example".into(), gateway.token()], 403),
        (vec![gateway.token()], 400),
        (vec![gateway.host(), gateway.host(), gateway.token()], 400),
        (vec![gateway.host(), gateway.token(), "Origin: https://evil.example".into()], 403),
        (vec![gateway.host(), gateway.token(), "Origin: null".into()], 403),
        (vec![gateway.host(), gateway.token(), "X-Remote-User: admin".into()], 400),
    ] {
        assert_eq!(gateway.ask("GET /version", &lines).await, expected, "{lines:?}");
    }
    assert_eq!(gateway.api.requests().len(), 0, "nothing of it reached the API server");
    let absolute = format!("GET https://{}/version", gateway.address());
    assert_eq!(gateway.ask(&absolute, &["Host: evil.example".into(), gateway.token()]).await, 400);
    let foreign = "GET https://evil.example/version";
    assert_eq!(gateway.ask(foreign, &["Host: evil.example".into(), gateway.token()]).await, 403);
    assert_eq!(gateway.ask(foreign, &[gateway.host(), gateway.token()]).await, 400);
    assert_eq!(gateway.api.requests().len(), 0);
    assert_eq!(gateway.ask(&absolute, &[gateway.host(), gateway.token()]).await, 200);
    assert_eq!(gateway.ask("GET /version", &[gateway.host(), gateway.token()]).await, 200);
    let request = &gateway.api.requests()[0];
    assert_eq!(request.header("authorization"), None, "the gateway's token stays here");
    assert_eq!(request.client.as_ref().unwrap().common_name, "ann");
}

// IPv6 loopback, and every other address of the machine.
#[tokio::test]
async fn gateway_listens_only_on_ipv4_loopback() {
    let gateway = GatewayFixture::open(false);
    let port = gateway.address().port();
    assert!(TcpStream::connect(("127.0.0.1", port)).await.is_ok(), "it listens at all");
    for other in ["[::1]", "127.0.0.2", "[::ffff:127.0.0.2]"] {
        assert!(TcpStream::connect(format!("{other}:{port}")).await.is_err(), "{other}");
    }
}

#[tokio::test]
async fn read_only_gateway_rejects_changes() {
    let gateway = GatewayFixture::open(true);
    for (request, expected) in [
        ("GET /api/v1/namespaces/a/pods", 200),
        ("POST /apis/authentication.k8s.io/v1/selfsubjectreviews", 200),
        ("POST /api/v1/namespaces/a/pods", 403),
        ("GET /api/v1/namespaces/a/pods/b/%65xec", 403),
        ("GET /api/v1/namespaces/a/pods/b/%2e%2e/b/exec", 403),
        ("GET //api/v1/namespaces/a/pods", 403),
        ("DELETE /api/v1/namespaces/a", 403),
    ] {
        assert_eq!(gateway.ask(request, &[gateway.host(), gateway.token()]).await, expected, "{request}");
    }
    assert_eq!(gateway.api.requests().len(), 2);
}

#[tokio::test]
async fn dropped_gateway_leaves_no_port_and_no_file() {
    let gateway = GatewayFixture::open(false);
    assert_eq!(gateway.ask("GET /version", &[gateway.host(), gateway.token()]).await, 200);
    let (address, dir) = (gateway.address(), gateway.running.kubeconfig().dir().to_owned());
    let GatewayFixture { running, base, .. } = gateway;
    drop(running);
    assert!(!dir.exists() && std::fs::read_dir(base.path()).unwrap().count() == 0);
    // The threads end at their next poll; the port is closed from then on.
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
}
