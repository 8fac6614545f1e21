//! Ordinary requests: headers, protocols, server names, bodies, upgrades.

use std::io::Write;

use bytes::Bytes;
use http::{Request, StatusCode, Version};
use http_body_util::BodyExt;
use hyper_util::rt::TokioIo;
use navicert_testkit::net::http_server::HttpServerBuilder;
use navicert_testkit::{Answer, ApiServer, Ca, Canaries, Gate, HttpServer, Tunnel, Watch, wait};
use navicert_types::kubeconfig::AuthInfo;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::support::{
    ScriptedSource, bearer, certificate, fixture, request, rig_with, settings, shown, text,
};
use crate::transport::{Body, Impersonation, TransportError, TransportSettings, Trust};

#[tokio::test]
async fn one_connection_serves_many_requests_over_http1_and_http2() {
    let ca = Ca::new("root");
    for http1_only in [true, false] {
        let api = ApiServer::start_with(&ca, |server| if http1_only { server.http1_only() } else { server });
        api.accept_token("t", "ann", &[]);
        let fixture = fixture(&api, &ca, ScriptedSource::new([bearer("t")]));
        for _ in 0..5 {
            assert_eq!(fixture.read("/version").await.0, 200);
        }
        let requests = api.requests();
        let version = if http1_only { Version::HTTP_11 } else { Version::HTTP_2 };
        assert!(requests.iter().all(|request| request.version == version), "{requests:?}");
        assert_eq!(api.connections().len(), 1, "http1_only: {http1_only}");
    }
}

#[tokio::test]
async fn http1_request_spawns_no_task_and_an_aborted_one_closes_its_connection() {
    let ca = Ca::new("root");
    let api = ApiServer::start_with(&ca, HttpServerBuilder::http1_only);
    api.accept_token("t", "ann", &[]);
    let fixture = fixture(&api, &ca, ScriptedSource::new([bearer("t")]));
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    for _ in 0..2 {
        let answer = fixture.transport.send(request("/version")).await.unwrap();
        assert_eq!(tasks(), before);
        assert!(!answer.into_body().collect().await.unwrap().to_bytes().is_empty());
    }
    assert_eq!((api.connections().len(), tasks()), (1, before));
    let watch = Watch::new();
    api.answer("/watch", watch.answer());
    drop(fixture.transport.send(request("/watch")).await.unwrap());
    watch.wait_for_closed(1).await;
    assert_eq!(fixture.read("/version").await.0, 200);
    assert_eq!(api.connections().len(), 2);
}

// C149
#[tokio::test]
async fn http2_can_be_disabled() {
    let ca = Ca::new("root");
    let api = ApiServer::start(&ca);
    api.accept_token("t", "ann", &[]);
    let fixture = rig_with(
        TransportSettings { http2: false, ..settings(&api, &ca) },
        ScriptedSource::new([bearer("t")]),
    );
    assert_eq!(fixture.read("/version").await.0, 200);
    assert_eq!(api.requests()[0].version, Version::HTTP_11);
}

// T04
#[tokio::test]
async fn concurrent_requests_share_connections() {
    let ca = Ca::new("root");
    for http1_only in [true, false] {
        let api = ApiServer::start_with(&ca, |server| if http1_only { server.http1_only() } else { server });
        api.accept_token("t", "ann", &[]);
        let fixture = fixture(&api, &ca, ScriptedSource::new([bearer("t")]));
        let tasks: Vec<_> = (0..64)
            .map(|_| {
                let transport = fixture.transport.clone();
                tokio::spawn(async move { transport.send(request("/version")).await.unwrap().status() })
            })
            .collect();
        for task in tasks {
            assert_eq!(wait::within("an answer", task).await.unwrap(), StatusCode::OK);
        }
        let (requests, connections) = (api.requests(), api.connections().len());
        assert_eq!(requests.len(), 64);
        assert!(requests.iter().all(|request| request.bearer_token() == Some("t")));
        if http1_only {
            assert!(connections <= 64, "{connections}: never more than there are requests");
        } else {
            assert_eq!(connections, 1, "HTTP/2 requests share one connection");
        }
    }
}

// A connection carries a limited number of streams; more watches than that must not wait for each other.
#[tokio::test]
async fn opens_another_connection_when_the_stream_limit_is_reached() {
    let ca = Ca::new("root");
    let api = ApiServer::start(&ca);
    api.accept_token("t", "ann", &[]);
    let pods = Watch::new();
    api.answer("/watch", pods.answer());
    let fixture = rig_with(
        TransportSettings { http2_streams: 10, ..settings(&api, &ca) },
        ScriptedSource::new([bearer("t")]),
    );
    let tasks: Vec<_> = (0..35)
        .map(|_| {
            let transport = fixture.transport.clone();
            tokio::spawn(async move { transport.send(request("/watch")).await.unwrap() })
        })
        .collect();
    pods.wait_for_opened(35).await;
    pods.bytes("x");
    let mut watches = Vec::new();
    for task in tasks {
        watches.push(wait::within("a watch", task).await.unwrap());
    }
    assert_eq!(api.connections().len(), 4);
    drop(watches);
    pods.wait_for_closed(35).await;
    for _ in 0..20 {
        assert_eq!(fixture.read("/version").await.0, 200);
    }
    assert_eq!(api.connections().len(), 4, "remaining connections are reused");
}

// C167, C471
#[tokio::test]
async fn keeps_a_requests_own_authorization() {
    let ca = Ca::new("root");
    let api = ApiServer::start(&ca);
    api.accept_token("t", "ann", &[]);
    for first in [true, false] {
        let source = ScriptedSource::new([bearer("t"), bearer("u")]);
        let fixture = fixture(&api, &ca, source.clone());
        if !first {
            assert_eq!(fixture.read("/version").await.0, 200);
        }
        let asked = source.lookups();
        let own = Request::get("/version").header("authorization", "Bearer mine").body(Body::empty());
        assert_eq!(fixture.send(own.unwrap()).await.unwrap().status(), 401);
        assert!(source.rejections().is_empty(), "first: {first}");
        assert_eq!(api.requests().last().unwrap().bearer_token(), Some("mine"));
        if !first {
            assert_eq!(source.lookups(), asked, "an open connection is enough");
        }
    }
}

// C160
#[tokio::test]
async fn plain_http_neither_sends_nor_fetches_credentials() {
    let server = HttpServer::start_plain();
    server.answer("/x", Answer::text("plain"));
    let source = ScriptedSource::new([bearer("t")]);
    let user = AuthInfo { impersonate: "bob".into(), ..AuthInfo::default() };
    let settings = TransportSettings {
        impersonation: Impersonation::from_user(&user).unwrap(),
        ..TransportSettings::new(server.url())
    };
    let fixture = rig_with(settings, source.clone());
    assert_eq!(fixture.read("/x").await, (200, "plain".to_owned()));
    let seen = &server.requests()[0];
    assert_eq!(seen.header("authorization"), None);
    assert_eq!(seen.header("impersonate-user"), Some("bob"), "impersonation is still sent");
    assert_eq!(source.lookups(), 0);
}

#[tokio::test]
async fn credentials_are_sent_to_their_own_server_only() {
    let ca = Ca::new("root");
    let (api, other) = (ApiServer::start(&ca), ApiServer::start(&ca));
    api.accept_token("t", "ann", &[]);
    let fixture = fixture(&api, &ca, ScriptedSource::new([bearer("t")]));
    assert_eq!(fixture.read(&api.url_of("/version")).await.0, 200, "the server's own URL is accepted");
    for stranger in [other.url_of("/version"), api.url_of("/version").replace("https", "http")] {
        let error = fixture.get(&stranger).await.unwrap_err();
        assert!(matches!(error, TransportError::OtherServer { .. }), "{error}");
    }
    assert!(other.connections().is_empty());
}

// C161
#[tokio::test]
async fn request_paths_are_joined_to_the_servers_path() {
    let ca = Ca::new("root");
    let api = ApiServer::start(&ca);
    api.accept_token("t", "ann", &[]);
    let settings =
        TransportSettings { server: format!("{}/clusters/one/", api.url()), ..settings(&api, &ca) };
    let fixture = rig_with(settings, ScriptedSource::new([bearer("t")]));
    assert_eq!(fixture.read("/api/v1/pods?limit=1").await.0, 200);
    assert_eq!(api.requests()[0].target, "/clusters/one/api/v1/pods?limit=1");
}

#[tokio::test]
async fn tls_server_name_is_sent_and_verified() {
    let ca = Ca::new("root");
    let identity = ca.server_without_names().name("api.example.test").issue();
    let api = ApiServer::start_with(&ca, |server| server.identity(&identity));
    api.accept_token("t", "ann", &[]);
    let named = TransportSettings { tls_server_name: "api.example.test".into(), ..settings(&api, &ca) };
    assert_eq!(rig_with(named, ScriptedSource::new([bearer("t")])).read("/version").await.0, 200);
    let name = api.connections()[0].tls.as_ref().unwrap().server_name.clone();
    assert_eq!(name.as_deref(), Some("api.example.test"));

    let error = fixture(&api, &ca, ScriptedSource::new([bearer("t")])).get("/version").await.unwrap_err();
    assert!(matches!(error, TransportError::Handshake { .. }), "{error}");
}

// C180
#[tokio::test]
async fn only_the_configured_authority_is_trusted_unless_verification_is_off() {
    let (ca, stranger) = (Ca::new("root"), Ca::new("stranger"));
    let api = ApiServer::start(&ca);
    api.accept_token("t", "ann", &[]);
    let with = |trust| {
        rig_with(TransportSettings { trust, ..settings(&api, &ca) }, ScriptedSource::new([bearer("t")]))
    };
    let error = with(Trust::Pem(stranger.pem().into_bytes())).get("/version").await.unwrap_err();
    assert!(shown(&error).contains("UnknownIssuer"), "{}", shown(&error));
    assert_eq!(with(Trust::Insecure).read("/version").await.0, 200);
}

// C186
#[tokio::test]
async fn self_signed_server_certificate_is_accepted_if_it_is_trusted_itself() {
    let (ca, other) = (Ca::self_signed_server("api"), Ca::self_signed_server("api"));
    let api = ApiServer::start_with(&ca, |server| server.identity(&ca.own_identity()));
    api.accept_token("t", "ann", &[]);
    let with = |settings| rig_with(settings, ScriptedSource::new([bearer("t")]));
    assert_eq!(with(settings(&api, &ca)).read("/version").await.0, 200);

    let error = with(settings(&api, &other)).get("/version").await.unwrap_err();
    assert!(matches!(error, TransportError::Handshake { .. }), "{error}");
    let other_name = TransportSettings { tls_server_name: "other.example".into(), ..settings(&api, &ca) };
    let error = with(other_name).get("/version").await.unwrap_err();
    assert!(shown(&error).contains("not valid for name"), "{}", shown(&error));
}

#[tokio::test]
async fn response_is_compressed_on_the_wire_and_decompressed_for_the_caller() {
    let ca = Ca::new("root");
    let api = ApiServer::start(&ca);
    let long = "navicert ".repeat(100_000);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(long.as_bytes()).unwrap();
    let packed = gzip.finish().unwrap();
    let answer = Answer::bytes("text/plain", packed.clone()).header("content-encoding", "gzip");
    api.answer("/packed", answer.clone());
    api.answer("/broken", answer.truncated_at(packed.len() / 2));
    let rig1 = fixture(&api, &ca, ScriptedSource::new([bearer("t")]));
    let response = rig1.get("/packed").await.unwrap();
    assert!(!response.headers().contains_key("content-encoding"));
    assert_eq!(text(response).await, long);
    assert_eq!(api.requests()[0].header("accept-encoding"), Some("gzip"));

    let broken = rig1.get("/broken").await.unwrap().into_body().collect().await;
    assert!(broken.is_err(), "a truncated response is an error");

    let own = Request::get("/packed").header("accept-encoding", "gzip").body(Body::empty()).unwrap();
    let response = rig1.send(own).await.unwrap();
    assert_eq!(
        response.headers()["content-encoding"],
        "gzip",
        "a caller that requests gzip gets it unchanged"
    );

    let off = rig_with(
        TransportSettings { compression: false, ..settings(&api, &ca) },
        ScriptedSource::new([bearer("t")]),
    );
    let _ = off.get("/packed").await.unwrap();
    assert_eq!(api.requests().last().unwrap().header("accept-encoding"), None);
}

#[tokio::test]
async fn watch_delivers_each_event_immediately() {
    let ca = Ca::new("root");
    for http1_only in [true, false] {
        let api = ApiServer::start_with(&ca, |server| if http1_only { server.http1_only() } else { server });
        let pods = Watch::new();
        api.answer("/api/v1/pods", pods.answer());
        let fixture = fixture(&api, &ca, ScriptedSource::new([bearer("t")]));
        let mut body = fixture.get("/api/v1/pods?watch=true").await.unwrap().into_body();
        for number in 0..3 {
            pods.event(&json!({"type": "ADDED", "number": number}));
            let frame = wait::within("an event", body.frame()).await.unwrap().unwrap();
            let event = String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap();
            assert!(event.contains(&format!("\"number\":{number}")), "{event}");
        }
        drop(body);
        pods.wait_for_closed(1).await;
    }
}

// C432: upgrades
#[tokio::test]
async fn upgrade_refreshes_the_credential_before_switching_protocols() {
    let ca = Ca::new("root");
    let api = ApiServer::start(&ca);
    api.accept_token("new", "ann", &[]);
    let tunnel = Tunnel::echo();
    let upgraded = tunnel.clone();
    api.answer_with("/exec", move |request| match request.bearer_token() {
        Some("new") => upgraded.answer(),
        _ => Answer::unauthorized(),
    });
    let source = ScriptedSource::new([bearer("old"), bearer("new")]);
    let fixture = fixture(&api, &ca, source.clone());
    let upgrade = Request::get("/exec")
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .body(Body::empty())
        .unwrap();
    let response = fixture.send(upgrade).await.unwrap();
    assert_eq!(response.status(), 101);
    let stream = wait::within("the upgrade", hyper::upgrade::on(response)).await.unwrap();
    let mut stream = TokioIo::new(stream);
    stream.write_all(b"hello").await.unwrap();
    let mut echo = [0; 5];
    wait::within("the echo", stream.read_exact(&mut echo)).await.unwrap();
    assert_eq!(&echo, b"hello");
    assert_eq!(source.refreshes(), 1);
    // A rotation does not close an upgraded stream (C454).
    source.replace(certificate(&ca.client("ann").issue()));
    assert_eq!(fixture.read("/version").await.0, 200);
    fixture.timer.advance(std::time::Duration::from_secs(3600));
    stream.write_all(b"still").await.unwrap();
    wait::within("the echo", stream.read_exact(&mut echo)).await.unwrap();
    assert_eq!(&echo, b"still");
}

#[tokio::test]
async fn idle_connection_closed_by_the_server_fails_no_request() {
    let ca = Ca::new("root");
    for http1_only in [true, false] {
        let api = ApiServer::start_with(&ca, |server| if http1_only { server.http1_only() } else { server });
        api.accept_token("t", "ann", &[]);
        let fixture = fixture(&api, &ca, ScriptedSource::new([bearer("t")]));
        for cut in [navicert_testkit::Cut::Clip, navicert_testkit::Cut::Reset] {
            assert_eq!(fixture.read("/version").await.0, 200);
            api.cut_connections(cut);
            assert_eq!(fixture.read("/version").await.0, 200, "{cut:?}, http1_only: {http1_only}");
        }
    }
}

// Applies to requests that must not be sent twice, too.
#[tokio::test]
async fn post_is_never_sent_on_a_connection_closed_by_the_server() {
    let ca = Ca::new("root");
    let api = ApiServer::start_with(&ca, HttpServerBuilder::http1_only);
    api.accept_token("t", "ann", &[]);
    let (fixture, other) = (
        fixture(&api, &ca, ScriptedSource::new([bearer("t")])),
        fixture(&api, &ca, ScriptedSource::new([bearer("t")])),
    );
    for round in 0..20 {
        assert_eq!(fixture.read("/version").await.0, 200);
        api.cut_connections(navicert_testkit::Cut::Clip);
        // Meanwhile the end of the connection arrives, while the connection is idle and not polled.
        assert_eq!(other.read("/version").await.0, 200);
        let post = Request::post("/version").body(Body::from("{}")).unwrap();
        assert_eq!(fixture.transport.send(post).await.unwrap().status(), 200, "round {round}");
    }
}

// C182
#[tokio::test]
async fn silent_server_times_out() {
    let ca = Ca::new("root");
    let api = ApiServer::start(&ca);
    let gate = Gate::new();
    api.stall_connections(&gate);
    let fixture = fixture(&api, &ca, ScriptedSource::new([bearer("t")]));
    let transport = fixture.transport.clone();
    let asked = tokio::spawn(async move { transport.send(request("/version")).await });
    gate.wait_for_arrivals(1).await;
    let ten = std::time::Duration::from_secs(10);
    let waiting = async {
        while !fixture.timer.sleeps().contains(&ten) {
            tokio::task::yield_now().await;
        }
    };
    wait::within("the handshake to begin", waiting).await;
    fixture.timer.advance(ten);
    let error = wait::within("the end", asked).await.unwrap().unwrap_err();
    assert!(matches!(error, TransportError::HandshakeTimeout { seconds: 10, .. }), "{error}");
    assert!(error.is_retriable());
}

// T14, C433
#[tokio::test]
async fn callers_request_is_not_modified() {
    let ca = Ca::new("root");
    let api = ApiServer::start(&ca);
    api.accept_token("new", "ann", &[]);
    let fixture = fixture(&api, &ca, ScriptedSource::new([bearer("old"), bearer("new")]));
    let body = Bytes::from_static(b"{}");
    let make = || Request::post("/x").header("x-mine", "1").body(Body::from(body.clone())).unwrap();
    let kept = make();
    assert_eq!(fixture.send(make()).await.unwrap().status(), 200);
    let (first, second) = (&api.requests()[0], &api.requests()[1]);
    assert_eq!((first.bearer_token(), second.bearer_token()), (Some("old"), Some("new")));
    assert_eq!((first.body.as_slice(), second.body.as_slice()), (b"{}".as_slice(), b"{}".as_slice()));
    assert_eq!(kept.headers().len(), 1, "{:?}", kept.headers());
}

#[tokio::test]
async fn errors_contain_no_secret() {
    let ca = Ca::new("root");
    let mut canaries = Canaries::new();
    let token = canaries.plant("token");
    let password = canaries.plant("proxy password");
    let api = ApiServer::start(&ca);
    api.answer("/cut", Answer::cut(navicert_testkit::Cut::Reset));
    let source = ScriptedSource::new([bearer(&token)]);
    let mut texts = String::new();
    let good = fixture(&api, &ca, source.clone());
    texts.push_str(&shown(&good.get("/cut").await.unwrap_err()));
    texts.push_str(&format!("{:?}", good.transport));
    let strange =
        TransportSettings { trust: Trust::Pem(Ca::new("other").pem().into_bytes()), ..settings(&api, &ca) };
    texts.push_str(&shown(&rig_with(strange, source.clone()).get("/x").await.unwrap_err()));
    let proxy = crate::transport::Proxy::parse(&format!("http://ann:{password}@127.0.0.1:1")).unwrap();
    let proxied =
        TransportSettings { proxy: crate::transport::ProxyChoice::Always(proxy), ..settings(&api, &ca) };
    let proxied = rig_with(proxied, source.clone());
    texts.push_str(&shown(&proxied.get("/x").await.unwrap_err()));
    texts.push_str(&format!("{:?}", proxied.transport));
    source.fail_refreshes();
    texts.push_str(&format!("{:?}", good.get("/x").await.unwrap().status()));
    assert!(texts.contains("127.0.0.1:1"), "the errors were collected: {texts}");
    canaries.assert_absent("errors and debug output", texts.as_bytes());
}
