//! Fetching documents over real sockets: redirects, limits, roots, proxies, and the report about an issuer.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::sync::Arc;
use std::time::Duration;

use navicert_authn::config::{CompiledIssuer, Egress};
use navicert_authn::explain::StepOutcome;
use navicert_authn::jwks::{
    Fetch, FetchError, FetchLimits, FetchRequest, FetchResponse, FetchStage, Probe, probe_issuer,
};
use navicert_authn::{AuthnProfile, Hardening};
use navicert_client::ClientContext;
use navicert_client::transport::{ManualTimer, Proxy, ProxyChoice, ProxyEnvironment};
use navicert_server::fetch::HttpFetch;
use navicert_testkit::{Answer, Ca, Gate, HttpServer, Issuer, wait};
use navicert_types::{Secret, error_chain};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

fn fetch() -> HttpFetch {
    HttpFetch::new(ProxyEnvironment::default())
}

fn compiled(url: &str, ca: Option<&Ca>) -> CompiledIssuer {
    CompiledIssuer {
        url: url.to_owned(),
        discovery_url: None,
        certificate_authority: ca.map(|ca| ca.der().to_vec()).into_iter().collect(),
        audiences: vec!["aud1".to_owned()],
        egress: None,
    }
}

async fn get(
    fetch: &HttpFetch,
    url: &str,
    ca: &Ca,
    profile: &AuthnProfile,
) -> Result<FetchResponse, FetchError> {
    let issuer = compiled("https://unused", Some(ca));
    wait::within("an answer", fetch.get(FetchRequest::for_issuer(&issuer, url, profile))).await
}

// S152, S155, H18
#[tokio::test]
async fn follows_redirects_as_far_as_the_profile_allows() {
    let ca = Ca::new("redirects");
    let (server, plain) = (HttpServer::start(&ca), HttpServer::start_plain());
    for number in 0..12 {
        let target = format!("/{}", number + 1);
        server.answer(&format!("/{number}"), Answer::redirect(302, &target));
    }
    server.answer("/5", Answer::text("five").header("Cache-Control", "max-age=7"));
    plain.answer("/x", Answer::text("plain"));
    server.answer("/plain", Answer::redirect(301, &plain.url_of("/x")));
    let fetch = fetch();
    let found = get(&fetch, &server.url_of("/0"), &ca, &AuthnProfile::HARDENED).await.unwrap();
    assert_eq!((found.status, found.url, found.body), (200, server.url_of("/5"), b"five".to_vec()));
    assert_eq!(found.headers.iter().find(|(name, _)| name == "cache-control").unwrap().1, "max-age=7");

    server.answer("/5", Answer::redirect(302, "6"));
    server.answer("/10", Answer::text("ten"));
    let hardened = get(&fetch, &server.url_of("/0"), &ca, &AuthnProfile::HARDENED).await.unwrap_err();
    assert_eq!(
        (hardened.stage, error_chain(&hardened).contains("more than 5 times")),
        (FetchStage::Http, true),
        "{hardened}"
    );
    assert_eq!(get(&fetch, &server.url_of("/0"), &ca, &AuthnProfile::KUBE).await.unwrap().body, b"ten");

    let hardened = get(&fetch, &server.url_of("/plain"), &ca, &AuthnProfile::HARDENED).await.unwrap_err();
    assert!(error_chain(&hardened).contains("another scheme"), "{hardened}");
    assert_eq!(plain.requests().len(), 0);
    let lax = AuthnProfile::HARDENED.with(Hardening::BoundedResponses, false);
    assert_eq!(get(&fetch, &server.url_of("/plain"), &ca, &lax).await.unwrap().body, b"plain");
    // A single connection served all requests.
    assert_eq!(server.connections().len(), 1);
}

// S156: upstream resolves a relative redirect of the discovery host against the issuer.
#[tokio::test]
async fn resolves_relative_redirects_against_the_configured_url() {
    let ca = Ca::new("known as");
    let (elsewhere, issuer) = (HttpServer::start(&ca), HttpServer::start(&ca));
    elsewhere.answer("/d", Answer::redirect(302, "/moved"));
    elsewhere.answer("/moved", Answer::text("elsewhere"));
    issuer.answer("/moved", Answer::text("issuer"));
    let configured = compiled("https://unused", Some(&ca));
    let (url, redirect_base) = (elsewhere.url_of("/d"), issuer.url_of("/.well-known/openid-configuration"));
    let fetch = fetch();
    for (redirect_base, expected) in [(None, "elsewhere"), (Some(redirect_base.as_str()), "issuer")] {
        let request = FetchRequest {
            redirect_base,
            ..FetchRequest::for_issuer(&configured, &url, &AuthnProfile::KUBE)
        };
        assert_eq!(fetch.get(request).await.unwrap().body, expected.as_bytes());
    }
}

// S155, A62, H18
#[tokio::test]
async fn limits_endless_and_silent_responses() {
    let ca = Ca::new("limits");
    let server = HttpServer::start(&ca);
    server.answer("/endless", Answer::endless("application/json"));
    server.answer("/just", Answer::filler("application/json", 1 << 20));
    server.answer("/more", Answer::filler("application/json", (1 << 20) + 1));
    let fetch = fetch();
    assert_eq!(
        get(&fetch, &server.url_of("/just"), &ca, &AuthnProfile::HARDENED).await.unwrap().body.len(),
        1 << 20
    );
    for path in ["/more", "/endless"] {
        let error = get(&fetch, &server.url_of(path), &ca, &AuthnProfile::HARDENED).await.unwrap_err();
        assert!(error_chain(&error).contains("exceeds 1048576 bytes"), "{error}");
    }

    let (gate, timer) = (Gate::new(), ManualTimer::default());
    server.answer("/silent", Answer::text("late").after(&gate));
    let client_context = ClientContext { timer: Arc::new(timer.clone()), ..ClientContext::system() };
    let fetch = HttpFetch::with(ProxyEnvironment::default(), client_context);
    let url = server.url_of("/silent");
    let (outcome, ()) = tokio::join!(get(&fetch, &url, &ca, &AuthnProfile::HARDENED), async {
        gate.wait_for_arrivals(1).await;
        timer.advance(Duration::from_secs(30));
    });
    assert!(error_chain(&outcome.unwrap_err()).contains("no response within 30 s"));
}

// C186
#[tokio::test]
async fn self_signed_issuer_is_trusted_by_its_own_certificate() {
    let (ca, other) = (Ca::self_signed_server("issuer"), Ca::self_signed_server("issuer"));
    let server = HttpServer::builder().identity(&ca.own_identity()).start(&ca);
    server.answer("/keys", Answer::text("keys"));
    let url = server.url_of("/keys");
    assert_eq!(get(&fetch(), &url, &ca, &AuthnProfile::HARDENED).await.unwrap().body, b"keys");
    let error = get(&fetch(), &url, &other, &AuthnProfile::HARDENED).await.unwrap_err();
    assert_eq!(error.stage, FetchStage::Tls, "{error}");
}

// S153, H23: roots are per issuer, and connections are not shared between issuers with different roots.
#[tokio::test]
async fn trusts_only_the_configured_roots() {
    let (ours, theirs) = (Ca::new("ours"), Ca::new("theirs"));
    let server = HttpServer::start(&ours);
    server.answer("/x", Answer::text("x"));
    let (fetch, url) = (fetch(), server.url_of("/x"));
    assert_eq!(get(&fetch, &url, &ours, &AuthnProfile::KUBE).await.unwrap().status, 200);
    let error = get(&fetch, &url, &theirs, &AuthnProfile::KUBE).await.unwrap_err();
    assert_eq!(error.stage, FetchStage::Tls, "{}", error_chain(&error));
    let system = compiled("https://unused", None);
    let error = fetch.get(FetchRequest::for_issuer(&system, &url, &AuthnProfile::KUBE)).await.unwrap_err();
    assert_eq!(error.stage, FetchStage::Tls, "{}", error_chain(&error));
    assert_eq!(get(&fetch, &url, &ours, &AuthnProfile::KUBE).await.unwrap().status, 200);
    assert_eq!(server.requests().len(), 2);
}

// S174, H23
#[tokio::test]
async fn sends_no_bearer_token_to_other_hosts_and_can_skip_private_addresses() {
    let ca = Ca::new("bearer");
    let (server, other) = (HttpServer::start(&ca), HttpServer::start(&ca));
    server.answer("/away", Answer::redirect(302, &other.url_of("/x")));
    server.answer("/here", Answer::redirect(302, "/x"));
    let issuer = compiled("https://unused", Some(&ca));
    let secret = Secret::new("s3cret-access".to_owned());
    let fetch = fetch();
    for path in ["/away", "/here"] {
        let url = server.url_of(path);
        let request = FetchRequest {
            bearer: Some(&secret),
            ..FetchRequest::for_issuer(&issuer, &url, &AuthnProfile::KUBE)
        };
        fetch.get(request).await.unwrap();
    }
    let authorized = |server: &HttpServer| {
        let requests = server.requests();
        requests.iter().filter(|request| request.header("authorization").is_some()).count()
    };
    assert_eq!((authorized(&server), other.requests().len(), authorized(&other)), (3, 1, 0));

    let url = server.url_of("/x");
    let mut request = FetchRequest::for_issuer(&issuer, &url, &AuthnProfile::KUBE);
    request.limits = FetchLimits { public_only: true, ..request.limits };
    let error = fetch.get(request).await.unwrap_err();
    assert!(error_chain(&error).contains("not allowed"), "{}", error_chain(&error));
    assert!(!format!("{request:?} {error:?}").contains("s3cret"));
}

/// A proxy that connects every client to one server, and returns the requested host names.
async fn proxy(to: std::net::SocketAddr) -> (String, tokio::sync::mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (requested, requests) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let requested = requested.clone();
            tokio::spawn(async move {
                let mut stream = BufReader::new(stream);
                let mut first = String::new();
                stream.read_line(&mut first).await.unwrap();
                requested.send(first.trim_end().to_owned()).unwrap();
                let mut line = String::new();
                while line != "\r\n" {
                    line.clear();
                    stream.read_line(&mut line).await.unwrap();
                }
                stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                let mut server = TcpStream::connect(to).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut stream, &mut server).await;
            });
        }
    });
    (url, requests)
}

// S152, S154
#[tokio::test]
async fn uses_proxies_of_the_environment_and_of_an_egress_selector() {
    let ca = Ca::new("proxies");
    let identity = ca.server().name("issuer.example").issue();
    let server = HttpServer::builder().identity(&identity).start(&ca);
    server.answer("/x", Answer::text("x"));
    let (url, mut requests) = proxy(server.address()).await;
    let environment = ProxyEnvironment {
        https_proxy: url.clone(),
        no_proxy: "direct.example".to_owned(),
        ..ProxyEnvironment::default()
    };
    let fetch = HttpFetch::new(environment);
    let target = format!("https://issuer.example:{}/x", server.address().port());
    assert_eq!(get(&fetch, &target, &ca, &AuthnProfile::HARDENED).await.unwrap().body, b"x");
    let expected = format!("CONNECT issuer.example:{} HTTP/1.1", server.address().port());
    assert_eq!(requests.recv().await.unwrap(), expected);

    // An egress selector without a proxy is an error, never a direct connection.
    let mut issuer = compiled("https://unused", Some(&ca));
    issuer.egress = Some(Egress::Cluster);
    let error =
        fetch.get(FetchRequest::for_issuer(&issuer, &target, &AuthnProfile::HARDENED)).await.unwrap_err();
    assert_eq!(
        (error.stage, error_chain(&error).contains("`cluster`")),
        (FetchStage::Proxy, true),
        "{}",
        error_chain(&error)
    );
    let through = ProxyChoice::Always(Proxy::parse(&url).unwrap());
    let fetch = HttpFetch::new(ProxyEnvironment::default()).with_egress(Egress::Cluster, through);
    assert!(fetch.has_egress(Egress::Cluster) && !fetch.has_egress(Egress::ControlPlane));
    assert_eq!(
        fetch.get(FetchRequest::for_issuer(&issuer, &target, &AuthnProfile::HARDENED)).await.unwrap().body,
        b"x"
    );
    assert_eq!(requests.recv().await.unwrap(), expected);
}

// S305
#[tokio::test]
async fn checking_a_real_issuer_reports_every_step() {
    let ca = Ca::new("look");
    let issuer = Issuer::start(&ca);
    let configured = compiled(&issuer.issuer_url(), Some(&ca));
    let fetch = fetch();
    let report = probe_issuer(&configured, &fetch, &AuthnProfile::HARDENED).await;
    assert!(report.is_good(), "{:?}", report.results);
    assert_eq!(report.keys.unwrap().keys()[0].kid(), "key-1");

    let failed = |report: navicert_authn::jwks::IssuerProbe| {
        let failed =
            report.results.iter().find(|result| matches!(result.verdict, StepOutcome::Fail(_))).unwrap();
        (failed.probe, report.is_unreachable())
    };
    let slash = compiled(&format!("{}/", issuer.issuer_url()), Some(&ca));
    assert_eq!(failed(probe_issuer(&slash, &fetch, &AuthnProfile::HARDENED).await), (Probe::Issuer, false));
    let other = compiled(&issuer.issuer_url(), Some(&Ca::new("other")));
    assert_eq!(failed(probe_issuer(&other, &fetch, &AuthnProfile::HARDENED).await), (Probe::Tls, true));
    issuer.refuse_connections();
    let again = HttpFetch::new(ProxyEnvironment::default());
    assert_eq!(
        failed(probe_issuer(&configured, &again, &AuthnProfile::HARDENED).await),
        (Probe::Connect, true)
    );
}
