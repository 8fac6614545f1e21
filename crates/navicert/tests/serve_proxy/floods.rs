//! Floods against the proxy, large ones from separate processes: unknown tokens, thousands of idle connections, rapid
//! resets and heavy HTTP/2 load. Valid requests succeed throughout, and memory stays bounded.

use navicert_testkit::cli::process::Process;
use navicert_testkit::net::connection_flood::{self, ConnectionFlood, FloodPlan};
use navicert_testkit::net::load::sleep_period;
use navicert_testkit::pki::jws::{Algorithm, SigningKey};
use navicert_testkit::{Answer, Gate, H2load, soak};
use navicert_types::{Clock as _, SystemClock};
use serde_json::json;

use super::faults::requests;
use super::setup::{Serving, Setup};

/// Entry point of the flooding process; does nothing in a normal test run.
#[test]
fn flood_process() {
    connection_flood::run_if_child();
}

pub(crate) const FLOOD_TEST: &str = "floods::flood_process";

fn resident(serving: &Serving) -> u64 {
    Process(serving.program.pid()).resident().unwrap()
}

fn plan(serving: &Serving, standing: usize, resetting: usize, token: String) -> FloodPlan {
    FloodPlan { address: serving.address, idle: standing, resetting, path: "/slow".to_owned(), token }
}

// H22, A64, B16: unknown tokens cause rate-limited requests to the issuer and do not affect valid traffic.
#[tokio::test(flavor = "multi_thread")]
async fn flood_of_unknown_tokens_does_not_affect_valid_traffic() {
    let setup = Setup::new();
    let serving = setup.start(&[]).await;
    let load = requests(&setup, &serving);
    load.more(20).await;
    let (before, fetched) = (resident(&serving), setup.issuer.count(setup.issuer.jwks_path()));
    let (clock, strange) = (SystemClock, SigningKey::generate(Algorithm::Es256, "strange"));
    let started = clock.monotonic();
    let claims = setup.issuer.claims("eve", "kubernetes", clock.now());
    for number in 0..200 * soak::factor() {
        let token = match number % 4 {
            0 => strange.renamed(&format!("unknown-{number}")).token(&claims),
            1 => format!("garbage-{number}"),
            2 => ".".repeat(1_000 + number % 1_000),
            _ => format!("e30.{}.e30", "A".repeat(20_000)),
        };
        assert_eq!(setup.get(&serving, "/api", &token).await.status, 401);
    }
    load.more(20).await;
    let fetched = setup.issuer.count(setup.issuer.jwks_path()) - fetched;
    let weight = resident(&serving).saturating_sub(before);
    load.end(&format!("strange tokens, {before} KiB before, {weight} KiB more")).await;
    // Three at once, and one more every ten seconds.
    let may = 20 + (clock.monotonic() - started).as_secs() / 10;
    assert!(fetched as u64 <= may, "{fetched} requests for keys");
    assert!(weight < connection_flood::max_memory_kib(0), "{weight} KiB after {before} KiB");
    assert_eq!(setup.api.requests().iter().filter(|seen| seen.path() == "/api").count(), 0);
    serving.end().await;
}

// Ten thousand in `make soak`, the default connection limit. Every fifth connection sends a request without a token and is
// closed after its 401 (S274), so more are opened to reach the limit.
#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_idle_connections_open_no_upstream_connection_and_delay_no_request() {
    let count = (1_000 * soak::factor()).min(10_000);
    let setup = Setup::new();
    let limits = format!("{{selfCheck: off}}, limits: {{connections: {count}}}");
    setup.configure(&limits, &json!({"claim": "sub", "prefix": "corp:"}));
    let serving = setup.start(&[]).await;
    let before = resident(&serving);
    let flood =
        ConnectionFlood::start(FLOOD_TEST, &setup.ca, &plan(&serving, count + count / 2, 0, String::new()))
            .await;
    assert_eq!(setup.api.connections().len(), 0, "nothing is dialled for them");
    let load = requests(&setup, &serving);
    load.more(200).await;
    sleep_period().await;
    let weight = resident(&serving).saturating_sub(before);
    load.end(&format!("{count} idle connections, {before} KiB before, {weight} KiB more")).await;
    assert!(weight < connection_flood::max_memory_kib(count), "{weight} KiB for {count} connections");
    assert!(setup.api.connections().len() < 20, "only good traffic has dialled");
    let report = flood.stop().await;
    assert!(report.closed_by_server > 0, "the connection limit was never reached: {report:?}");
    serving.program.wait_for_output("connection limit reached, evicting idle connections").await;
    serving.end().await;
}

// CVE-2023-44487: a client that resets its requests continuously is disconnected, while h2load sends as many requests as
// it can.
#[tokio::test(flavor = "multi_thread")]
async fn http2_and_reset_floods_do_not_affect_valid_traffic() {
    if !H2load::is_installed() {
        return;
    }
    let setup = Setup::new();
    let gate = Gate::new();
    setup.api.answer("/slow", Answer::text("done").after(&gate));
    let serving = setup.start(&[]).await;
    let load = requests(&setup, &serving);
    load.more(20).await;
    let before = resident(&serving);
    let token = setup.token(&json!({}));
    let flood = ConnectionFlood::start(FLOOD_TEST, &setup.ca, &plan(&serving, 0, 8, token.clone())).await;
    let (url, requests) = (format!("https://{}/api/v1/pods", serving.address), 2_000 * soak::factor());
    let asking = tokio::task::spawn_blocking(move || {
        let authorization = format!("Bearer {token}");
        H2load {
            url: &url,
            authorization: Some(&authorization),
            body: None,
            requests,
            clients: 20,
            streams: 50,
        }
        .run()
    });
    let counts = asking.await.unwrap();
    assert_eq!((counts.good, counts.refused, counts.bad), (requests, 0, 0));
    load.more(20).await;
    let weight = resident(&serving).saturating_sub(before);
    let report = flood.stop().await;
    load.end(&format!("{requests} of h2load, {report:?}, {before} KiB before, {weight} KiB more")).await;
    assert!(report.resets >= 1_000 && report.goaways >= 8, "{report:?}");
    assert!(weight < connection_flood::max_memory_kib(0), "{weight} KiB more than {before} KiB");
    gate.open();
    serving.end().await;
}
