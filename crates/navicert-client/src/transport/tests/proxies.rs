//! Proxies: `CONNECT` over http and https, SOCKS5, forwarding of plain http (C148).

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use navicert_testkit::{Answer, ApiServer, Ca, HttpServer};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::support::{ScriptedSource, bearer, rig_with, settings, shown};
use crate::transport::{Proxy, ProxyChoice, ProxyEnvironment, TransportError, TransportSettings};

/// A proxy on loopback that connects every client to one server, whatever target it requests, and records what it
/// received.
struct TestProxy {
    address: SocketAddr,
    received: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

#[derive(Clone, Copy)]
enum Kind {
    Connect,
    Socks5,
}

impl TestProxy {
    async fn start(kind: Kind, to: SocketAddr, tls: Option<&Ca>, answer: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let received = Arc::new(Mutex::new(Vec::new()));
        let notes = Arc::clone(&received);
        let acceptor = tls.map(acceptor);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (notes, acceptor) = (Arc::clone(&notes), acceptor.clone());
                tokio::spawn(async move {
                    match acceptor {
                        Some(acceptor) => {
                            let Ok(stream) = acceptor.accept(stream).await else { return };
                            let presented = stream.get_ref().1.peer_certificates().is_some();
                            notes.lock().unwrap().push(format!("client certificate: {presented}"));
                            serve(kind, stream, to, &notes, answer).await;
                        }
                        None => serve(kind, stream, to, &notes, answer).await,
                    }
                });
            }
        });
        TestProxy { address, received, task }
    }

    fn received(&self) -> Vec<String> {
        self.received.lock().unwrap().clone()
    }
}

impl Drop for TestProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn acceptor(ca: &Ca) -> tokio_rustls::TlsAcceptor {
    let identity = ca.server().issue();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let roots = ca.root_store();
    let verifier = rustls::server::WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider))
        .allow_unauthenticated()
        .build()
        .unwrap();
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(identity.chain().to_vec(), identity.rustls_key())
        .unwrap();
    tokio_rustls::TlsAcceptor::from(Arc::new(config))
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    kind: Kind,
    stream: S,
    to: SocketAddr,
    received: &Mutex<Vec<String>>,
    answer: &str,
) {
    let mut stream = BufReader::new(stream);
    match kind {
        Kind::Connect => {
            loop {
                let mut line = String::new();
                if stream.read_line(&mut line).await.is_err() || line.trim().is_empty() {
                    break;
                }
                received.lock().unwrap().push(line.trim().to_owned());
            }
            let _ = stream.write_all(format!("HTTP/1.1 {answer}\r\nx: y\r\n\r\n").as_bytes()).await;
            let _ = stream.flush().await;
            if !answer.starts_with('2') {
                return;
            }
        }
        Kind::Socks5 => {
            let mut head = [0; 2];
            stream.read_exact(&mut head).await.unwrap();
            let mut methods = vec![0; head[1].into()];
            stream.read_exact(&mut methods).await.unwrap();
            if methods.contains(&2) {
                stream.write_all(&[5, 2]).await.unwrap();
                assert_eq!(stream.read_u8().await.unwrap(), 1);
                let (name, password) =
                    (read_length_prefixed(&mut stream).await, read_length_prefixed(&mut stream).await);
                received.lock().unwrap().push(format!("{name}:{password}"));
                stream.write_all(&[1, 0]).await.unwrap();
            } else {
                stream.write_all(&[5, 0]).await.unwrap();
            }
            let mut asked = [0; 4];
            stream.read_exact(&mut asked).await.unwrap();
            let host = match asked[3] {
                1 => {
                    let mut address = [0; 4];
                    stream.read_exact(&mut address).await.unwrap();
                    std::net::Ipv4Addr::from(address).to_string()
                }
                _ => read_length_prefixed(&mut stream).await,
            };
            let port = stream.read_u16().await.unwrap();
            received.lock().unwrap().push(format!("{host}:{port}"));
            let code = answer.parse().unwrap();
            stream.write_all(&[5, code, 0, 1, 0, 0, 0, 0, 0, 0]).await.unwrap();
            if code != 0 {
                return;
            }
        }
    }
    let mut server = TcpStream::connect(to).await.unwrap();
    let _ = tokio::io::copy_bidirectional(&mut stream, &mut server).await;
}

async fn read_length_prefixed(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut text = vec![0; stream.read_u8().await.unwrap().into()];
    stream.read_exact(&mut text).await.unwrap();
    String::from_utf8(text).unwrap()
}

fn through(api: &HttpServer, ca: &Ca, proxy: &str) -> TransportSettings {
    let proxy = ProxyChoice::Always(Proxy::parse(proxy).unwrap());
    TransportSettings { proxy, ..settings(api, ca) }
}

#[tokio::test]
async fn http_proxy_gets_only_its_own_password() {
    let ca = Ca::new("root");
    let api = ApiServer::start(&ca);
    api.accept_token("t", "ann", &[]);
    for (tls, scheme) in [(None, "http"), (Some(&ca), "https")] {
        let proxy = TestProxy::start(Kind::Connect, api.address(), tls, "200 fine").await;
        let url = format!("{scheme}://ann:s%40fe@{}", proxy.address);
        let identity = super::support::certificate(&ca.client("ann").issue());
        let credential = crate::credential::Credential { identity: identity.identity, ..bearer("t") };
        let fixture = rig_with(through(&api, &ca, &url), ScriptedSource::new([credential]));
        for _ in 0..2 {
            assert_eq!(fixture.read("/version").await.0, 200, "{scheme}");
        }
        let received = proxy.received();
        let target = format!("CONNECT {} HTTP/1.1", api.address());
        assert_eq!(received.iter().filter(|line| **line == target).count(), 1, "{received:?}");
        assert!(received.contains(&"Proxy-Authorization: Basic YW5uOnNAZmU=".to_owned()), "{received:?}");
        assert!(!received.join(" ").contains("Bearer"), "the proxy does not get the server's token");
        assert!(!received.contains(&"client certificate: true".to_owned()), "nor the client certificate");
        assert!(api.requests().last().unwrap().client.is_some(), "the server gets it");
        assert_eq!(api.requests().last().unwrap().header("proxy-authorization"), None);
    }
}

#[tokio::test]
async fn socks5_proxy_resolves_names() {
    let ca = Ca::new("root");
    let identity = ca.server().name("api.example.test").issue();
    let api = ApiServer::start_with(&ca, |server| server.identity(&identity));
    api.accept_token("t", "ann", &[]);
    let proxy = TestProxy::start(Kind::Socks5, api.address(), None, "0").await;
    let url = format!("socks5://ann:safe@{}", proxy.address);
    let settings =
        TransportSettings { server: "https://api.example.test:6443".into(), ..through(&api, &ca, &url) };
    let fixture = rig_with(settings, ScriptedSource::new([bearer("t")]));
    assert_eq!(fixture.read("/version").await.0, 200);
    assert_eq!(proxy.received(), ["ann:safe", "api.example.test:6443"]);
    let fixture = rig_with(
        through(&api, &ca, &format!("socks5://{}", proxy.address)),
        ScriptedSource::new([bearer("t")]),
    );
    assert_eq!(fixture.read("/version").await.0, 200);
    assert_eq!(proxy.received().last(), Some(&api.address().to_string()), "IP addresses are sent as such");
}

#[tokio::test]
async fn error_names_the_proxy_and_its_reason_without_its_password() {
    let ca = Ca::new("root");
    let api = ApiServer::start(&ca);
    for (kind, answer, scheme, expected) in [
        (Kind::Connect, "403 Forbidden", "http", "403 Forbidden"),
        (Kind::Connect, "407 Who", "http", "rejected the credentials"),
        (Kind::Socks5, "5", "socks5", "connection refused"),
    ] {
        let proxy = TestProxy::start(kind, api.address(), None, answer).await;
        let url = format!("{scheme}://ann:hunter2@{}", proxy.address);
        let error = rig_with(through(&api, &ca, &url), ScriptedSource::new([bearer("t")]))
            .get("/x")
            .await
            .unwrap_err();
        assert!(matches!(error, TransportError::Proxy { .. }), "{error:?}");
        let text = shown(&error);
        assert!(text.contains(expected) && text.contains(&proxy.address.to_string()), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
        assert!(api.connections().is_empty());
    }
}

#[tokio::test]
async fn proxy_forwards_requests_for_a_plain_http_server() {
    let server = HttpServer::start_plain();
    server.answer_with("*", |request| Answer::text(&request.target));
    let proxy = HttpServer::start_plain();
    proxy.answer("/x", Answer::text("forwarded"));
    let settings = TransportSettings {
        proxy: ProxyChoice::Environment(ProxyEnvironment {
            http_proxy: format!("http://ann:safe@{}", proxy.address()),
            ..ProxyEnvironment::default()
        }),
        ..TransportSettings::new("http://server.example.test:8080")
    };
    let fixture = rig_with(settings, ScriptedSource::new([bearer("t")]));
    assert_eq!(fixture.read("/x").await, (200, "forwarded".to_owned()));
    let received = String::from_utf8(proxy.connections()[0].received()).unwrap();
    assert!(received.starts_with("GET http://server.example.test:8080/x HTTP/1.1\r\n"), "{received}");
    assert_eq!(proxy.requests()[0].header("proxy-authorization"), Some("Basic YW5uOnNhZmU="));
    assert_eq!(proxy.requests()[0].header("authorization"), None, "C160");
}

// C148
#[tokio::test]
async fn environment_proxy_is_not_used_for_loopback_but_proxy_url_is() {
    let ca = Ca::new("root");
    let api = ApiServer::start(&ca);
    api.accept_token("t", "ann", &[]);
    let proxy = TestProxy::start(Kind::Connect, api.address(), None, "200 fine").await;
    let environment =
        ProxyEnvironment { https_proxy: format!("http://{}", proxy.address), ..ProxyEnvironment::default() };
    let from_environment =
        TransportSettings { proxy: ProxyChoice::Environment(environment), ..settings(&api, &ca) };
    assert_eq!(rig_with(from_environment, ScriptedSource::new([bearer("t")])).read("/version").await.0, 200);
    assert!(proxy.received().is_empty());
    let explicit = through(&api, &ca, &format!("http://{}", proxy.address));
    assert_eq!(rig_with(explicit, ScriptedSource::new([bearer("t")])).read("/version").await.0, 200);
    assert!(!proxy.received().is_empty());
}
