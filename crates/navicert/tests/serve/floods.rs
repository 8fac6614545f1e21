//! Floods against the webhook from separate processes: thousands of idle connections, rapid resets and heavy HTTP/2 load.
//! Valid requests succeed throughout, and memory stays bounded.

use std::fs;

use navicert_testkit::cli::process::Process;
use navicert_testkit::net::connection_flood::{self, ConnectionFlood, FloodPlan};
use navicert_testkit::net::load::sleep_period;
use navicert_testkit::{H2load, Load, Program, soak};
use serde_json::json;

use super::load::{Questions, ask};
use super::{NAVICERT, OPEN, Serving, Setup};

/// Entry point of the flooding process; does nothing in a normal test run.
#[test]
fn flood_process() {
    connection_flood::run_if_child();
}

const FLOOD_TEST: &str = "floods::flood_process";

/// Steady load of valid requests.
fn good(setup: &Setup, serving: &Serving) -> Load {
    ask(setup, vec![serving.listen.clone()], &Questions::of(setup, &["oidc:ann"]))
}

fn plan(serving: &Serving, standing: usize, resetting: usize) -> FloodPlan {
    FloodPlan {
        address: serving.listen.parse().unwrap(),
        idle: standing,
        resetting,
        path: "/auth".to_owned(),
        token: "garbage".to_owned(),
    }
}

// Ten thousand in `make soak`, the default connection limit.
#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_idle_connections_delay_no_request() {
    let count = (1_000 * soak::factor()).min(10_000);
    let setup = Setup::new();
    let head = "apiVersion: navicert/v1alpha1\nkind: NavicertConfiguration\n";
    setup.write("navicert.yaml", &format!("{head}servers: {{limits: {{connections: {count}}}}}\n"));
    let serving = setup.serve(&[OPEN, &["--navicert-config", "navicert.yaml"]].concat()).await;
    let process = Process(serving.running.pid());
    let before = process.resident().unwrap();
    let flood = ConnectionFlood::start(FLOOD_TEST, &setup.ca, &plan(&serving, count, 0)).await;
    let load = good(&setup, &serving);
    load.more(200).await;
    sleep_period().await;
    let weight = process.resident().unwrap().saturating_sub(before);
    assert!(serving.figure("navicert_connections").await <= count);
    load.end(&format!("{count} idle connections, {before} KiB before, {weight} KiB more")).await;
    assert!(weight < connection_flood::max_memory_kib(count), "{weight} KiB for {count} connections");
    let report = flood.stop().await;
    assert!(report.closed_by_server > 0, "the connection limit was never reached: {report:?}");
    // Others hit the timeout.
    assert!(serving.figure("navicert_connections_pushed_out_total").await > 0);
    serving.running.wait_for_output("connection limit reached, evicting idle connections").await;
}

/// The same program with fewer open files.
fn with_open_files(limit: &str) -> Program {
    Program::new("/bin/sh").arguments(["-c", &format!("ulimit {limit}; exec \"$@\""), "sh", NAVICERT])
}

#[tokio::test]
async fn open_file_limit_is_raised_as_needed() {
    let setup = Setup::new();
    let head = "apiVersion: navicert/v1alpha1\nkind: NavicertConfiguration\n";
    setup.write("navicert.yaml", &format!("{head}servers: {{limits: {{connections: 1000}}}}\n"));
    let few = [OPEN, &["--navicert-config", "navicert.yaml"]].concat();
    let serving = setup.serve_by(with_open_files("-Sn 256"), &few).await;
    let limits = fs::read_to_string(format!("/proc/{}/limits", serving.running.pid())).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    assert_eq!(line.split_whitespace().nth(3), Some("3024"), "two for each, and 1024: {line}");
}

#[tokio::test(flavor = "multi_thread")]
async fn low_file_limit_reduces_the_connection_limit_and_requests_still_succeed() {
    let setup = Setup::new();
    let serving = setup.serve_by(with_open_files("-n 128"), OPEN).await;
    serving.running.wait_for_output("hard limit on open files").await;
    let flood = ConnectionFlood::start(FLOOD_TEST, &setup.ca, &plan(&serving, 70, 0)).await;
    let load = good(&setup, &serving);
    load.more(60).await;
    assert!(serving.figure("navicert_connections").await <= 64);
    load.end("128 open files").await;
    assert!(flood.stop().await.closed_by_server >= 20);
}

// CVE-2023-44487, while h2load sends as many requests as it can.
#[tokio::test(flavor = "multi_thread")]
async fn http2_and_reset_floods_do_not_affect_valid_requests() {
    if !H2load::is_installed() {
        return;
    }
    let setup = Setup::new();
    let serving = setup.serve(OPEN).await;
    let process = Process(serving.running.pid());
    let load = good(&setup, &serving);
    load.more(20).await;
    let before = process.resident().unwrap();
    let flood = ConnectionFlood::start(FLOOD_TEST, &setup.ca, &plan(&serving, 0, 8)).await;
    let review = json!({
        "kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "spec": {"token": setup.token(&json!({}))},
    });
    setup.write("review.json", &review.to_string());
    let (url, body) = (format!("https://{}/authenticate", serving.listen), setup.path("review.json"));
    let requests = 2_000 * soak::factor();
    let asking = tokio::task::spawn_blocking(move || {
        H2load { url: &url, authorization: None, body: Some(&body), requests, clients: 20, streams: 50 }.run()
    });
    let counts = asking.await.unwrap();
    assert_eq!((counts.good, counts.refused, counts.bad), (requests, 0, 0));
    load.more(20).await;
    let weight = process.resident().unwrap().saturating_sub(before);
    let report = flood.stop().await;
    load.end(&format!("{requests} of h2load, {report:?}, {before} KiB before, {weight} KiB more")).await;
    assert!(report.resets >= 1_000 && report.goaways >= 8, "{report:?}");
    assert!(weight < connection_flood::max_memory_kib(0), "{weight} KiB more than {before} KiB");
}
