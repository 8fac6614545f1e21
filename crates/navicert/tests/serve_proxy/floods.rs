//! Floods at the proxy's door, from processes of their own where they are large: strange tokens, thousands of connections that
//! only stand there, requests that are taken back, and more HTTP/2 than one should send. Requests go through all the time, and
//! memory stays bounded.

use navicert_testkit::crowd::{self, Crowd, Plan};
use navicert_testkit::jws::{Algorithm, SigningKey};
use navicert_testkit::load::lasting;
use navicert_testkit::process::Process;
use navicert_testkit::{Answer, Gate, H2load, soak};
use navicert_types::{Clock as _, SystemClock};
use serde_json::json;

use super::faults::requests;
use super::setup::{Serving, Setup};

/// What the crowd's process runs, and does nothing otherwise.
#[test]
fn crowd() {
    crowd::play();
}

const CROWD: &str = "floods::crowd";

fn resident(serving: &Serving) -> u64 {
    Process(serving.program.pid()).resident().unwrap()
}

fn plan(serving: &Serving, standing: usize, resetting: usize, token: String) -> Plan {
    Plan { address: serving.address, standing, resetting, path: "/slow".to_owned(), token }
}

// H22, A64, B16: strange tokens cost the issuer a request now and then, and good traffic nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_strange_tokens_leaves_good_traffic_alone() {
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
    assert!(weight < crowd::most_kib(0), "{weight} KiB after {before} KiB");
    assert_eq!(setup.api.requests().iter().filter(|seen| seen.path() == "/api").count(), 0);
    serving.end().await;
}

// Ten thousand in `make soak`: as many as there are places by default. Every fifth asks without a token and is sent away with its
// 401 (S274), so that more have to come for all places to be taken.
#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_idle_connections_dial_nobody_and_keep_nobody_waiting() {
    let count = (1_000 * soak::factor()).min(10_000);
    let setup = Setup::new();
    let limits = format!("{{selfCheck: off}}, limits: {{connections: {count}}}");
    setup.configure(&limits, &json!({"claim": "sub", "prefix": "corp:"}));
    let serving = setup.start(&[]).await;
    let before = resident(&serving);
    let crowd = Crowd::gather(CROWD, &setup.ca, &plan(&serving, count + count / 2, 0, String::new())).await;
    assert_eq!(setup.api.connections().len(), 0, "nothing is dialled for them");
    let load = requests(&setup, &serving);
    load.more(200).await;
    lasting().await;
    let weight = resident(&serving).saturating_sub(before);
    load.end(&format!("{count} idle connections, {before} KiB before, {weight} KiB more")).await;
    assert!(weight < crowd::most_kib(count), "{weight} KiB for {count} connections");
    assert!(setup.api.connections().len() < 20, "only good traffic has dialled");
    let met = crowd.leave().await;
    assert!(met.sent_away > 0, "there was no place for all: {met:?}");
    serving.program.wait_for_output("no place is free: idle connections are ended to make room").await;
    serving.end().await;
}

// CVE-2023-44487: whoever asks and takes back, over and over, is sent away before it costs much; meanwhile h2load asks for as
// much as it can get.
#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_http2_and_of_resets_leaves_good_traffic_alone() {
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
    let crowd = Crowd::gather(CROWD, &setup.ca, &plan(&serving, 0, 8, token.clone())).await;
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
    let met = crowd.leave().await;
    load.end(&format!("{requests} of h2load, {met:?}, {before} KiB before, {weight} KiB more")).await;
    assert!(met.resets >= 1_000 && met.goaways >= 8, "{met:?}");
    assert!(weight < crowd::most_kib(0), "{weight} KiB more than {before} KiB");
    gate.open();
    serving.end().await;
}
