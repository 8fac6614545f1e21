//! Faults under a load of three hundred requests per second: no wrong response, no avoidable failure, and the log reports
//! every fault. A few seconds each here, a minute in `make soak`.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;
use http::Request;
use navicert_testkit::net::load::{Verdict, period, sleep_period};
use navicert_testkit::services::issuer_faults::IssuerFaults;
use navicert_testkit::{Answer, Cut, Gate, HttpClient, Load, RawClient, Tunnel, Watch, soak, wait};
use navicert_types::Clock as _;
use serde_json::{Value, json};

use super::setup::{Serving, Setup};

/// Client of the load test.
#[derive(Clone, Default)]
struct LoadClient {
    addresses: Vec<String>,
    /// Use the second address instead of the first.
    has_moved: Arc<AtomicBool>,
    /// Odd while the API server is down.
    outages: Arc<AtomicUsize>,
}

/// Requests of ann, and some that are rejected.
pub(crate) fn requests(setup: &Setup, serving: &Serving) -> Load {
    ask(setup, LoadClient { addresses: vec![serving.address.to_string()], ..LoadClient::default() })
}

fn ask(setup: &Setup, asking: LoadClient) -> Load {
    let good = (0..30).map(|number| (setup.token(&json!({"jti": number.to_string()})), 200));
    let bad =
        [setup.token(&json!({"exp": 1_000})), setup.token(&json!({"aud": "other"})), "opaque".to_owned()];
    let tokens: Vec<_> = good.chain(bad.map(|token| (token, 401))).collect();
    let (client, tokens, asking) = (HttpClient::trusting(&setup.ca), Arc::new(tokens), Arc::new(asking));
    Load::start(move |number| {
        let (client, tokens, asking) = (client.clone(), Arc::clone(&tokens), Arc::clone(&asking));
        async move {
            let (token, code) = &tokens[number % tokens.len()];
            let address = &asking.addresses[usize::from(asking.has_moved.load(Ordering::Acquire))];
            let before = asking.outages.load(Ordering::Acquire);
            let request = Request::get(format!("https://{address}/api/v1/pods"))
                .header("authorization", format!("Bearer {token}"))
                .body(Bytes::new())
                .unwrap();
            let reply = Box::pin(client.send(request)).await;
            let after = asking.outages.load(Ordering::Acquire);
            match reply {
                Ok(reply) if reply.status == *code => Verdict::Right,
                Ok(reply) if reply.status == 502 && (before != after || after % 2 == 1) => Verdict::Excused,
                Ok(reply) => Verdict::Wrong(format!("{}, not {code}: {}", reply.status, reply.text())),
                Err(error) => Verdict::Lost(error.to_string()),
            }
        }
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn issuer_faults_cause_no_wrong_response() {
    let setup = Setup::new();
    let serving = setup.start(&[]).await;
    let trouble = IssuerFaults { issuer: &setup.issuer, audience: "kubernetes", server: &serving.program };
    let accepts = async |token: &str| setup.get(&serving, "/api", token).await.status == 200;
    Box::pin(trouble.run(|| requests(&setup, &serving), accepts)).await;
    for seen in setup.api.requests() {
        let user = seen.header_values("impersonate-user");
        let is_known = ["corp:ann", "corp:bob"].iter().any(|known| user.as_slice() == [*known]);
        assert!(is_known, "{user:?}");
    }
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn replacing_certificate_and_configuration_loses_no_request() {
    let setup = Setup::new();
    let serving = setup.start(&[]).await;
    let load = requests(&setup, &serving);
    let token = setup.token(&json!({}));
    let mut round = 0;
    while round < 2 || load.right() < 180 * soak::factor() {
        round += 1;
        load.more(20).await;
        setup.certify();
        let prefix = format!("round-{round}:");
        setup.configure("{selfCheck: off}", &json!({"claim": "sub", "prefix": prefix}));
        let path = format!("/changed-{round}");
        let changed = async {
            loop {
                assert_eq!(setup.get(&serving, &path, &token).await.status, 200);
                let seen = setup.api.requests().into_iter().rev().find(|seen| seen.path() == path).unwrap();
                if seen.header_values("impersonate-user") == [format!("{prefix}ann")] {
                    return;
                }
            }
        };
        wait::within("the new configuration", Box::pin(changed)).await;
    }
    load.end(&format!("{round} changes of certificate and configuration")).await;
    for seen in setup.api.requests() {
        let user = seen.header_values("impersonate-user");
        assert!(matches!(user.as_slice(), [user] if user.ends_with(":ann")), "{user:?}");
    }
    for told in ["reloaded TLS certificate", "reloaded configuration"] {
        serving.program.wait_for_repeated_output(told, 2, wait::LIMIT).await;
    }
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn api_server_restart_causes_only_502_responses_while_it_lasts() {
    let setup = Setup::new();
    let serving = setup.start(&["--audit-log-path", "audit.log"]).await;
    let asking = LoadClient { addresses: vec![serving.address.to_string()], ..LoadClient::default() };
    let (load, outages) = (ask(&setup, asking.clone()), &asking.outages);
    let (clock, mut restarts) = (navicert_types::SystemClock, 0);
    let until = clock.monotonic() + period();
    while restarts < 3 || clock.monotonic() < until {
        restarts += 1;
        load.more(20).await;
        outages.fetch_add(1, Ordering::AcqRel);
        setup.api.refuse_connections();
        setup.api.cut_connections(Cut::Clip);
        for _ in 0..5 {
            assert_eq!(setup.get(&serving, "/api", &setup.token(&json!({}))).await.status, 502);
        }
        setup.api.accept_connections();
        outages.fetch_add(1, Ordering::AcqRel);
        assert_eq!(setup.get(&serving, "/api", &setup.token(&json!({}))).await.status, 200);
        load.more(20).await;
    }
    load.end(&format!("{restarts} restarts of the API server")).await;
    serving.program.wait_for_output("failed to forward request to the API server").await;
    let dir = setup.dir.path().to_owned();
    serving.end().await;
    let log = fs::read_to_string(dir.join("audit.log")).unwrap();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let failed: Vec<&Value> = lines.iter().filter(|line| line["code"] == 502).collect();
    assert!(failed.len() >= 5 * restarts, "{} lines", failed.len());
    assert!(failed.iter().all(|line| line["decision"] == "error" && line["user"]["username"] == "corp:ann"));
}

// One replica stops while another runs, as in a rollout: clients that respect readiness lose no request.
#[tokio::test(flavor = "multi_thread")]
async fn stopping_a_replica_loses_no_request() {
    let setup = Setup::new();
    let first = setup.start(&["--shutdown-delay", "2s"]).await;
    let second = setup.start(&[]).await;
    let asking = LoadClient {
        addresses: vec![first.address.to_string(), second.address.to_string()],
        ..LoadClient::default()
    };
    let load = ask(&setup, asking.clone());
    sleep_period().await;
    first.program.signal("TERM");
    let noticed = async { while first.inspect("/readyz").await.status != 503 {} };
    wait::within("not ready", Box::pin(noticed)).await;
    asking.has_moved.store(true, Ordering::Release);
    let outcome = first.program.wait().await;
    assert_eq!(outcome.code(), Some(0));
    let said = super::setup::text(&outcome.stdout);
    for told in ["shutting down, draining in-flight requests", "all requests finished"] {
        assert!(said.contains(told), "{said}");
    }
    load.more(20).await;
    load.end("SIGTERM").await;
    second.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn in_flight_requests_complete_after_sigterm() {
    let setup = Setup::new();
    let gate = Gate::new();
    setup.api.answer("/slow", Answer::text("done").after(&gate));
    let serving = setup.start(&[]).await;
    let token = setup.token(&json!({}));
    let url = format!("https://{}/slow", serving.address);
    let slow: Vec<_> = (0..8)
        .map(|number| {
            let client = HttpClient::trusting(&setup.ca);
            let client = if number % 2 == 0 { client } else { client.http2() };
            let request = Request::get(&url).header("authorization", format!("Bearer {token}"));
            let request = request.body(Bytes::new()).unwrap();
            tokio::spawn(async move { Box::pin(client.send(request)).await.unwrap() })
        })
        .collect();
    gate.wait_for_arrivals(8).await;
    serving.program.signal("TERM");
    let stopping = async {
        while serving.inspect("/readyz").await.status != 503 {
            tokio::task::yield_now().await;
        }
    };
    wait::within("not ready", Box::pin(stopping)).await;
    gate.open();
    for response in slow {
        let reply = response.await.unwrap();
        assert_eq!((reply.status.as_u16(), reply.text()), (200, "done"));
    }
    let outcome = serving.program.wait().await;
    assert_eq!(outcome.code(), Some(0), "{}", super::setup::text(&outcome.stdout));
}

// At shutdown a watch ends properly, early in the grace period; a tunnel may use all of it, unless a second signal ends
// the server at once. The first signal is answered with that hint.
#[tokio::test(flavor = "multi_thread")]
async fn second_signal_ends_the_server_at_once() {
    for (first, second) in [("TERM", "INT"), ("INT", "TERM")] {
        let setup = Setup::new();
        let (pods, tunnel) = (Watch::new(), Tunnel::echo());
        setup.api.answer("/api/v1/pods", pods.answer());
        setup.api.answer("/exec", tunnel.answer());
        let flags = ["--shutdown-grace", "1h", "--audit-log-path", "audit.log"];
        let serving = setup.start(&flags).await;
        let token = setup.token(&json!({}));
        let open = async |request: &str, lines: &str| {
            let mut client = RawClient::connect_tls(serving.address, &setup.ca, None, &["http/1.1"]).await;
            let head =
                format!("{request} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\n{lines}\r\n");
            client.write(head.as_bytes()).await;
            client.read_until(b"\r\n\r\n").await;
            client
        };
        let mut watching = open("GET /api/v1/pods?watch=true", "").await;
        let mut tunnelling = open("POST /exec", "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n").await;
        serving.program.signal(first);
        assert!(watching.read_to_end(1_000).await.ends_with(b"0\r\n\r\n"));
        tunnelling.write(b"still open").await;
        assert_eq!(tunnelling.read_exactly(10).await, b"still open");
        serving.program.wait_for_output("a second SIGTERM or SIGINT ends the server at once").await;
        serving.program.signal(second);
        let outcome = serving.program.wait().await;
        assert_eq!(outcome.code(), Some(1));
        assert!(super::setup::text(&outcome.stdout).contains("shutdown_forced"));
        let log = fs::read_to_string(setup.dir.path().join("audit.log")).unwrap();
        assert_eq!(log.lines().count(), 2, "{log}");
    }
}
