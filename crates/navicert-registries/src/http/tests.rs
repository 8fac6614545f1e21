//! The HTTP client against misbehaving servers.

use std::sync::Mutex;

use navicert_testkit::{Answer, Ca, Cut, Gate, HttpServer, RawServer, Step};
use navicert_types::SystemClock;
use navicert_types::clock::ManualClock;

use super::*;

/// Advances the clock instead of sleeping, and records the pauses.
#[derive(Clone, Debug)]
struct RecordingSleep(Arc<ManualClock>, Arc<Mutex<Vec<Duration>>>);

impl Sleep for RecordingSleep {
    fn sleep(&self, duration: Duration) {
        self.0.advance(duration);
        self.1.lock().unwrap().push(duration);
    }
}

struct Run {
    client: RegistryHttpClient,
    pauses: Arc<Mutex<Vec<Duration>>>,
    journal: Journal,
}

impl Run {
    fn new(variables: &[(&str, &str)]) -> Self {
        let clock = Arc::new(ManualClock::at(1_700_000_000));
        let pauses = Arc::default();
        let pause = RecordingSleep(Arc::clone(&clock), Arc::clone(&pauses));
        let environment = variables.iter().copied().collect();
        let client = RegistryHttpClient::new(&environment, clock, Box::new(pause), TOTAL_TIMEOUT);
        Run { client, pauses, journal: Journal::new() }
    }

    fn get(&self, url: &str) -> Result<HttpResponse, HttpError> {
        self.send(HttpRequest::new("GET", HttpUrl::parse(url).unwrap()))
    }

    fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let request = HttpRequest { timeout: Duration::from_millis(400), max_body_bytes: 100_000, ..request };
        self.client.send(&request, &self.journal)
    }

    fn pauses(&self) -> Vec<Duration> {
        self.pauses.lock().unwrap().clone()
    }
}

#[test]
fn retries_transient_failures_with_jittered_backoff() {
    // I214
    let server = HttpServer::start_plain();
    for status in [500, 503] {
        server.answer_once("/x", Answer::status(status));
    }
    server.answer("/x", Answer::text("at last"));
    let run = Run::new(&[]);
    assert_eq!(run.get(&server.url_of("/x")).unwrap().text(), "at last");
    let pauses = run.pauses();
    assert_eq!(pauses.len(), 2);
    assert!((200..=400).contains(&pauses[0].as_millis()), "{pauses:?}");
    assert!((400..=800).contains(&pauses[1].as_millis()), "{pauses:?}");
}

#[test]
fn does_not_retry_permanent_failures() {
    // I214
    let server = HttpServer::start_plain();
    for status in [400, 401, 403, 404] {
        server.answer("/x", Answer::status(status));
        assert_eq!(Run::new(&[]).get(&server.url_of("/x")).unwrap().status, status);
    }
    assert_eq!(server.count("/x"), 4);
}

#[test]
fn returns_last_response_after_max_attempts() {
    let server = HttpServer::start_plain();
    server.answer("/x", Answer::status(429));
    let run = Run::new(&[]);
    assert_eq!(run.get(&server.url_of("/x")).unwrap().status, 429);
    assert_eq!(server.count("/x"), 3);
    server.answer("/x", Answer::cut(Cut::Reset));
    assert!(matches!(
        run.get(&server.url_of("/x")),
        Err(HttpError::ConnectionLost { .. } | HttpError::Malformed { .. })
    ));
}

#[test]
fn starts_no_attempt_after_total_timeout() {
    // I209, I246
    let server = HttpServer::start_plain();
    server.answer("/x", Answer::status(500));
    let run = Run::new(&[]);
    let request = HttpRequest {
        attempts: 1_000,
        ..HttpRequest::new("GET", HttpUrl::parse(&server.url_of("/x")).unwrap())
    };
    assert_eq!(run.send(request).unwrap().status, 500);
    let waited: Duration = run.pauses().iter().sum();
    assert!(waited <= TOTAL_TIMEOUT && waited > TOTAL_TIMEOUT / 2, "{waited:?}");
    run.client.sleep.sleep(TOTAL_TIMEOUT);
    assert!(matches!(run.get(&server.url_of("/x")), Err(HttpError::TotalTimeout { .. })));
}

#[test]
fn does_not_follow_redirect_and_names_its_target() {
    // I217
    let other = HttpServer::start_plain();
    let server = HttpServer::start_plain();
    for status in [301, 302, 303, 307, 308] {
        server.answer("/x", Answer::redirect(status, &other.url_of("/stolen")));
        let error = Run::new(&[]).get(&server.url_of("/x")).unwrap_err();
        assert!(
            matches!(&error, HttpError::Redirected { to, .. } if *to == other.address().to_string()),
            "{error}"
        );
    }
    server.answer("/x", Answer::redirect(302, "/relative?secret"));
    let error = Run::new(&[]).get(&server.url_of("/x")).unwrap_err();
    assert!(!error.to_string().contains("secret"), "{error}");
    assert!(other.requests().is_empty());
}

#[test]
fn rejects_huge_and_endless_responses() {
    let server = HttpServer::start_plain();
    for answer in [Answer::filler("text/plain", 1 << 40), Answer::endless("text/plain")] {
        server.answer("/x", answer);
        let error = Run::new(&[]).get(&server.url_of("/x")).unwrap_err();
        assert!(matches!(error, HttpError::TooLarge { limit: 100_000, .. }), "{error}");
    }
}

#[test]
fn times_out_on_silent_and_slow_servers() {
    let server = HttpServer::start_plain();
    let gate = Gate::new();
    for answer in [Answer::text("x").after(&gate), Answer::text("hello").stalled_at(2, &gate)] {
        server.answer("/x", answer);
        let clock = Arc::new(SystemClock);
        let environment = Environment::empty();
        let pause = RecordingSleep(Arc::new(ManualClock::at(0)), Arc::default());
        let client = RegistryHttpClient::new(&environment, clock, Box::new(pause), TOTAL_TIMEOUT);
        let request = HttpRequest::new("GET", HttpUrl::parse(&server.url_of("/x")).unwrap());
        let request = HttpRequest { timeout: Duration::from_millis(100), attempts: 1, ..request };
        let error = client.send(&request, &Journal::new()).unwrap_err();
        assert!(matches!(error, HttpError::TimedOut { .. }), "{error}");
    }
}

#[test]
fn reports_unreachable_hosts() {
    let server = HttpServer::start_plain();
    let url = server.url_of("/x");
    drop(server);
    let error = Run::new(&[]).get(&url).unwrap_err();
    assert!(matches!(error, HttpError::Connect { .. }), "{error}");
    assert!(error.is_transient());
}

#[test]
fn never_sends_header_with_line_break() {
    let server = HttpServer::start_plain();
    for value in ["a\r\nx-evil: 1", "a\nb", "a\0b"] {
        let request =
            HttpRequest::new("GET", HttpUrl::parse(&server.url()).unwrap()).header("authorization", value);
        assert!(matches!(Run::new(&[]).send(request), Err(HttpError::BadHeader { .. })));
    }
    assert!(server.connections().is_empty());
}

#[test]
fn tls_trusts_only_configured_authorities() {
    let (ca, other) = (Ca::new("trusted"), Ca::new("other"));
    let dir = tempfile::tempdir().unwrap();
    let bundle = dir.path().join("ca.pem");
    std::fs::write(&bundle, ca.pem()).unwrap();
    let variables = [("AWS_CA_BUNDLE", bundle.to_str().unwrap())];
    let server = HttpServer::start(&ca);
    server.answer("/x", Answer::text("over TLS"));
    let run = Run::new(&variables);
    assert_eq!(run.get(&server.url_of("/x")).unwrap().text(), "over TLS");
    assert_eq!(run.get(&server.url_of("/x")).unwrap().text(), "over TLS");
    let stranger = HttpServer::start(&other);
    let error = run.get(&stranger.url_of("/x")).unwrap_err();
    assert!(matches!(error, HttpError::Tls { .. }) && !error.is_transient(), "{error}");
    assert!(stranger.requests().is_empty());
}

#[test]
fn warns_of_clock_skew() {
    // I212
    let server = HttpServer::start_plain();
    server.answer("/x", Answer::text("x").header("date", "Tue, 14 Nov 2023 22:40:00 GMT"));
    let run = Run::new(&[]);
    run.get(&server.url_of("/x")).unwrap();
    assert!(run.journal.warnings()[0].ends_with("differ by 1600 s"), "{:?}", run.journal.warnings());
}

/// A bundle of certificate authorities in a file.
fn bundle(ca: &Ca) -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ca.pem");
    std::fs::write(&path, ca.pem()).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (dir, path)
}

#[test]
fn http_and_https_proxies_get_only_their_own_password() {
    // I213
    let ca = Ca::new("root");
    let (_dir, authorities) = bundle(&ca);
    let script = || vec![Step::read_head(), Step::write("HTTP/1.1 403 Nope\r\n\r\n")];
    for (proxy, scheme) in
        [(RawServer::start(script()), ""), (RawServer::start_tls(&ca, script()), "https://")]
    {
        let address = format!("{scheme}user:canary-password@{}", proxy.address());
        let run = Run::new(&[("HTTPS_PROXY", &address), ("AWS_CA_BUNDLE", &authorities)]);
        let request = HttpRequest::new("GET", HttpUrl::parse("https://registry.example/x").unwrap());
        let error = run.send(request.header("authorization", "canary-token")).unwrap_err();
        assert!(matches!(error, HttpError::Proxy { source: ProxyError::Rejected(_), .. }), "{error}");
        let head = String::from_utf8(proxy.received(0)).unwrap();
        assert!(head.starts_with("CONNECT registry.example:443 HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("Proxy-Authorization: Basic ") && !head.contains("canary-token"), "{head}");
        assert!(!navicert_types::error_chain(&error).contains("canary"), "{error:?}");
    }
}

#[test]
fn connects_directly_to_metadata_servers() {
    // I213: the address is not loopback's, so that only `direct` keeps the proxy away.
    let proxy = RawServer::start(vec![Step::read_head()]);
    let address = proxy.address().to_string();
    let run = Run::new(&[("HTTP_PROXY", &address), ("http_proxy", &address)]);
    let url = HttpUrl::parse("http://metadata.example/x").unwrap();
    let server = HttpServer::start_plain();
    let request = HttpRequest {
        connect_to: Some(server.address().ip()),
        attempts: 1,
        ..HttpRequest::to_metadata_server("GET", HttpUrl { port: server.address().port(), ..url })
    };
    assert_eq!(run.send(request).unwrap().status, 404);
    assert_eq!(proxy.connections(), 0);
}

#[test]
fn proxy_forwards_requests_for_plain_http() {
    let proxy = HttpServer::start_plain();
    proxy.answer("/x", Answer::text("forwarded"));
    let run = Run::new(&[("http_proxy", &format!("http://ann:safe@{}", proxy.address()))]);
    assert_eq!(run.get("http://registry.example:8080/x").unwrap().text(), "forwarded");
    let received = String::from_utf8(proxy.connections()[0].received()).unwrap();
    assert!(received.starts_with("GET http://registry.example:8080/x HTTP/1.1\r\n"), "{received}");
    assert_eq!(proxy.requests()[0].header("proxy-authorization"), Some("Basic YW5uOnNhZmU="));
}

#[test]
fn socks5_proxy_resolves_names_and_carries_tls() {
    let ca = Ca::new("root");
    let (_dir, authorities) = bundle(&ca);
    let server = HttpServer::builder().identity(&ca.server().name("registry.example").issue()).start(&ca);
    server.answer("/x", Answer::text("through SOCKS"));
    let proxy = SocksProxy::start(server.address());
    let address = format!("socks5://{}", proxy.address);
    let run = Run::new(&[("HTTPS_PROXY", ""), ("https_proxy", &address), ("AWS_CA_BUNDLE", &authorities)]);
    assert_eq!(run.get("https://registry.example/x").unwrap().text(), "through SOCKS");
    assert_eq!(proxy.asked.recv().unwrap(), b"\x05\x01\0\x03\x10registry.example\x01\xbb");
}

/// A SOCKS5 proxy for one client. It connects to a fixed server, whatever address the client requests.
struct SocksProxy {
    address: std::net::SocketAddr,
    /// The request.
    asked: std::sync::mpsc::Receiver<Vec<u8>>,
}

impl SocksProxy {
    fn start(server: std::net::SocketAddr) -> Self {
        use std::io::{Read as _, Write as _};
        use std::net::{Shutdown, TcpListener, TcpStream};

        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, asked) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let mut offer = [0; 3];
            client.read_exact(&mut offer).unwrap();
            client.write_all(&[5, 0]).unwrap();
            let mut request = vec![0; 5 + "registry.example".len() + 2];
            client.read_exact(&mut request).unwrap();
            sender.send(request).unwrap();
            client.write_all(&[5, 0, 0, 1, 127, 0, 0, 1, 0, 0]).unwrap();
            let server = TcpStream::connect(server).unwrap();
            let (mut from, mut to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            let back = std::thread::spawn(move || {
                let _ = io::copy(&mut from, &mut to);
                let _ = to.shutdown(Shutdown::Write);
            });
            let _ = io::copy(&mut client, &mut &server);
            let _ = server.shutdown(Shutdown::Write);
            back.join().unwrap();
        });
        SocksProxy { address, asked }
    }
}
