//! Floods at the webhook's door, from processes of their own: thousands of connections that only stand there, requests that are
//! taken back, and more HTTP/2 than one should send. Good questions are answered all the time, and memory stays bounded.

use std::fs;

use navicert_testkit::crowd::{self, Crowd, Plan};
use navicert_testkit::load::lasting;
use navicert_testkit::process::Process;
use navicert_testkit::{H2load, Load, Program, soak};
use serde_json::json;

use super::load::{Questions, ask};
use super::{NAVICERT, OPEN, Place, Serving};

/// What the crowd's process runs, and does nothing otherwise.
#[test]
fn crowd() {
    crowd::play();
}

const CROWD: &str = "floods::crowd";

/// Good questions all the time.
fn good(place: &Place, serving: &Serving) -> Load {
    ask(place, vec![serving.listen.clone()], &Questions::of(place, &["oidc:ann"]))
}

fn plan(serving: &Serving, standing: usize, resetting: usize) -> Plan {
    Plan {
        address: serving.listen.parse().unwrap(),
        standing,
        resetting,
        path: "/auth".to_owned(),
        token: "garbage".to_owned(),
    }
}

// Ten thousand in `make soak`: as many as there are places by default.
#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_idle_connections_keep_nobody_from_being_answered() {
    let count = (1_000 * soak::factor()).min(10_000);
    let place = Place::new();
    let head = "apiVersion: navicert/v1alpha1\nkind: NavicertConfiguration\n";
    place.write("navicert.yaml", &format!("{head}servers: {{limits: {{connections: {count}}}}}\n"));
    let serving = place.serve(&[OPEN, &["--navicert-config", "navicert.yaml"]].concat()).await;
    let process = Process(serving.running.pid());
    let before = process.resident().unwrap();
    let crowd = Crowd::gather(CROWD, &place.ca, &plan(&serving, count, 0)).await;
    let load = good(&place, &serving);
    load.more(200).await;
    lasting().await;
    let weight = process.resident().unwrap().saturating_sub(before);
    assert!(serving.figure("navicert_connections").await <= count);
    load.end(&format!("{count} idle connections, {before} KiB before, {weight} KiB more")).await;
    assert!(weight < crowd::most_kib(count), "{weight} KiB for {count} connections");
    let met = crowd.leave().await;
    assert!(met.sent_away > 0, "there was no place for all: {met:?}");
    // Others ran out of time.
    assert!(serving.figure("navicert_connections_pushed_out_total").await > 0);
    serving.running.wait_for_output("no place is free: idle connections are ended to make room").await;
}

/// The same program with fewer open files.
fn with_open_files(limit: &str) -> Program {
    Program::new("/bin/sh").arguments(["-c", &format!("ulimit {limit}; exec \"$@\""), "sh", NAVICERT])
}

#[tokio::test]
async fn the_limit_of_open_files_is_raised_to_what_is_needed() {
    let place = Place::new();
    let head = "apiVersion: navicert/v1alpha1\nkind: NavicertConfiguration\n";
    place.write("navicert.yaml", &format!("{head}servers: {{limits: {{connections: 1000}}}}\n"));
    let few = [OPEN, &["--navicert-config", "navicert.yaml"]].concat();
    let serving = place.serve_by(with_open_files("-Sn 256"), &few).await;
    let limits = fs::read_to_string(format!("/proc/{}/limits", serving.running.pid())).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    assert_eq!(line.split_whitespace().nth(3), Some("3024"), "two for each, and 1024: {line}");
}

#[tokio::test(flavor = "multi_thread")]
async fn with_few_open_files_there_are_fewer_places_and_whoever_asks_is_answered() {
    let place = Place::new();
    let serving = place.serve_by(with_open_files("-n 128"), OPEN).await;
    serving.running.wait_for_output("too few open files").await;
    let crowd = Crowd::gather(CROWD, &place.ca, &plan(&serving, 70, 0)).await;
    let load = good(&place, &serving);
    load.more(60).await;
    assert!(serving.figure("navicert_connections").await <= 64);
    load.end("128 open files").await;
    assert!(crowd.leave().await.sent_away >= 20);
}

// CVE-2023-44487, while h2load asks as many questions as it can.
#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_http2_and_of_resets_leaves_good_questions_alone() {
    if !H2load::is_installed() {
        return;
    }
    let place = Place::new();
    let serving = place.serve(OPEN).await;
    let process = Process(serving.running.pid());
    let load = good(&place, &serving);
    load.more(20).await;
    let before = process.resident().unwrap();
    let crowd = Crowd::gather(CROWD, &place.ca, &plan(&serving, 0, 8)).await;
    let review = json!({
        "kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "spec": {"token": place.token(&json!({}))},
    });
    place.write("review.json", &review.to_string());
    let (url, body) = (format!("https://{}/authenticate", serving.listen), place.path("review.json"));
    let requests = 2_000 * soak::factor();
    let asking = tokio::task::spawn_blocking(move || {
        H2load { url: &url, authorization: None, body: Some(&body), requests, clients: 20, streams: 50 }.run()
    });
    let counts = asking.await.unwrap();
    assert_eq!((counts.good, counts.refused, counts.bad), (requests, 0, 0));
    load.more(20).await;
    let weight = process.resident().unwrap().saturating_sub(before);
    let met = crowd.leave().await;
    load.end(&format!("{requests} of h2load, {met:?}, {before} KiB before, {weight} KiB more")).await;
    assert!(met.resets >= 1_000 && met.goaways >= 8, "{met:?}");
    assert!(weight < crowd::most_kib(0), "{weight} KiB more than {before} KiB");
}
