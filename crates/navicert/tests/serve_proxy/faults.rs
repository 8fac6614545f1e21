//! Faults and floods while requests go through: no wrong answer, none lost that could have been given, memory bounded. Short
//! here; `make soak` runs the same for longer.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;
use http::Request;
use navicert_testkit::jws::{Algorithm, SigningKey};
use navicert_testkit::{Answer, Cut, Gate, HttpClient, RawClient, soak, wait};
use serde_json::json;

use super::setup::{Serving, Setup};

/// Requests that are sent one after another by each of a few clients until told to stop.
struct Load {
    stop: Arc<AtomicBool>,
    good: Arc<AtomicUsize>,
    clients: Vec<tokio::task::JoinHandle<Vec<String>>>,
}

impl Load {
    /// Four clients; each answer is judged by its code.
    fn start(setup: &Setup, serving: &Serving, expected: &'static [u16]) -> Self {
        let (stop, good) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (url, token) = (format!("https://{}/api/v1/pods", serving.address), setup.token(&json!({})));
        let clients = (0..4).map(|_| {
            let (stop, good, url, token) = (Arc::clone(&stop), Arc::clone(&good), url.clone(), token.clone());
            let client = HttpClient::trusting(&setup.ca);
            tokio::spawn(async move {
                let mut wrong = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let request = Request::get(&url).header("authorization", format!("Bearer {token}"));
                    match Box::pin(client.send(request.body(Bytes::new()).unwrap())).await {
                        Ok(reply) if reply.status == 200 => {
                            good.fetch_add(1, Ordering::Relaxed);
                        }
                        Ok(reply) if expected.contains(&reply.status.as_u16()) => {}
                        Ok(reply) => wrong.push(format!("{}: {}", reply.status, reply.text())),
                        Err(error) => wrong.push(error.to_string()),
                    }
                }
                wrong
            })
        });
        Load { clients: clients.collect(), stop, good }
    }

    /// Waits for so many good answers more.
    async fn more(&self, count: usize) {
        let wanted = self.good.load(Ordering::Relaxed) + count;
        let waiting = async {
            while self.good.load(Ordering::Relaxed) < wanted {
                tokio::task::yield_now().await;
            }
        };
        wait::within(&format!("{count} good answers"), waiting).await;
    }

    async fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        for client in self.clients {
            let wrong = client.await.unwrap();
            assert!(wrong.is_empty(), "{wrong:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn certificate_configuration_and_keys_are_replaced_and_no_request_notices() {
    let setup = Setup::new();
    let serving = setup.start(&[]).await;
    let load = Load::start(&setup, &serving, &[]);
    let token = setup.token(&json!({}));
    for round in 0..2 * soak::factor() {
        load.more(20).await;
        setup.certify();
        let prefix = format!("round-{round}:");
        setup.configure("{selfCheck: off}", &json!({"claim": "sub", "prefix": prefix}));
        let changed = async {
            loop {
                assert_eq!(setup.get(&serving, "/changed", &token).await.status, 200);
                let seen =
                    setup.api.requests().into_iter().rev().find(|seen| seen.path() == "/changed").unwrap();
                if seen.header_values("impersonate-user") == [format!("{prefix}ann")] {
                    return;
                }
            }
        };
        wait::within("the new configuration", Box::pin(changed)).await;
        setup.issuer.add_key(SigningKey::generate(Algorithm::Es256, &format!("round-{round}")));
        assert_eq!(setup.get(&serving, "/api", &setup.token(&json!({}))).await.status, 200);
    }
    load.more(20).await;
    load.end().await;
    for seen in setup.api.requests() {
        let user = seen.header_values("impersonate-user");
        assert!(matches!(user.as_slice(), [user] if user.ends_with(":ann")), "{user:?}");
    }
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_of_the_api_server_is_a_502_while_it_lasts_and_nothing_else() {
    let setup = Setup::new();
    let serving = setup.start(&[]).await;
    let load = Load::start(&setup, &serving, &[502]);
    for _ in 0..3 * soak::factor() {
        load.more(20).await;
        setup.api.refuse_connections();
        setup.api.cut_connections(Cut::Clip);
        assert_eq!(setup.get(&serving, "/api", &setup.token(&json!({}))).await.status, 502);
        setup.api.accept_connections();
        load.more(20).await;
    }
    load.end().await;
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_begun_is_answered_after_sigterm() {
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
    for answer in slow {
        let reply = answer.await.unwrap();
        assert_eq!((reply.status.as_u16(), reply.text()), (200, "done"));
    }
    let outcome = serving.program.wait().await;
    assert_eq!(outcome.code(), Some(0), "{}", super::setup::text(&outcome.stdout));
}

fn resident(serving: &Serving) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", serving.program.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Most that a flood may add, in KiB.
const MOST: u64 = 48 * 1024;

// H22, A64, B16: strange tokens cost the issuer a request now and then, and good traffic nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_strange_tokens_leaves_good_traffic_alone() {
    let setup = Setup::new();
    let serving = setup.start(&[]).await;
    let load = Load::start(&setup, &serving, &[]);
    load.more(20).await;
    let (before, fetched) = (resident(&serving), setup.issuer.count(setup.issuer.jwks_path()));
    let strange = SigningKey::generate(Algorithm::Es256, "strange");
    let claims =
        setup.issuer.claims("eve", "kubernetes", navicert_types::Clock::now(&navicert_types::SystemClock));
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
    load.end().await;
    let fetched = setup.issuer.count(setup.issuer.jwks_path()) - fetched;
    assert!(fetched < 20, "{fetched} requests for keys");
    assert!(resident(&serving) < before + MOST, "{} KiB after {before} KiB", resident(&serving));
    assert_eq!(setup.api.requests().iter().filter(|seen| seen.path() == "/api").count(), 0);
    serving.end().await;
}

// Connections that say nothing, or begin and never go on: they dial no upstream and do not keep others from being served.
#[tokio::test(flavor = "multi_thread")]
async fn idle_and_slow_connections_dial_nobody_and_keep_nobody_waiting() {
    let setup = Setup::new();
    let serving = setup.start(&[]).await;
    let before = resident(&serving);
    let mut idle = Vec::new();
    for number in 0..100 * soak::factor() {
        let mut client = RawClient::connect_tls(serving.address, &setup.ca, None, &["http/1.1"]).await;
        if number % 2 == 1 {
            client.write(b"GET /api HTTP/1.1\r\nHost: a\r\nX-Slow: ").await;
        }
        idle.push(client);
    }
    assert_eq!(setup.api.connections().len(), 0, "nothing is dialled for them");
    let load = Load::start(&setup, &serving, &[]);
    load.more(20).await;
    load.end().await;
    let weight = resident(&serving).saturating_sub(before);
    assert!(weight < MOST, "{weight} KiB for {} connections", idle.len());
    serving.program.signal("TERM");
    drop(idle);
    assert_eq!(serving.program.wait().await.code(), Some(0));
}

// CVE-2023-44487: a client that asks and takes back, over and over, is sent away before it costs much.
#[tokio::test(flavor = "multi_thread")]
async fn a_rapid_reset_ends_the_connection_and_good_traffic_goes_on() {
    let setup = Setup::new();
    let gate = Gate::new();
    setup.api.answer("/slow", Answer::text("done").after(&gate));
    let serving = setup.start(&[]).await;
    let load = Load::start(&setup, &serving, &[]);
    load.more(20).await;
    let before = resident(&serving);
    let (authority, token) = (serving.address.to_string(), setup.token(&json!({})));
    for _ in 0..3 * soak::factor() {
        let mut client = RawClient::connect_tls(serving.address, &setup.ca, None, &["h2"]).await;
        client.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
        client.write(&frame(4, 0, 0, &[])).await;
        for batch in 0..100 {
            let ask_and_take_back = |number: u32| {
                let stream = 2 * (batch * 100 + number) + 1;
                let head = frame(1, 0x5, stream, &fields(&authority, &token));
                [head, frame(3, 0, stream, &8u32.to_be_bytes())].concat()
            };
            let bytes: Vec<u8> = (0..100).flat_map(ask_and_take_back).collect();
            if client.try_write(&bytes).await.is_err() {
                break;
            }
        }
        let told = client.read_to_end(1 << 20).await;
        assert!(has_goaway(&told), "no GOAWAY in {} bytes", told.len());
    }
    load.more(20).await;
    load.end().await;
    assert!(resident(&serving) < before + MOST, "{} KiB after {before} KiB", resident(&serving));
    gate.open();
    serving.end().await;
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A GET of `/slow`, its fields in the plainest form of HPACK.
fn fields(authority: &str, token: &str) -> Vec<u8> {
    let text = |text: &str| {
        let mut length = Vec::new();
        let mut rest = text.len();
        if rest < 127 {
            length.push(u8::try_from(rest).unwrap());
        } else {
            length.push(127);
            rest -= 127;
            while rest >= 128 {
                length.push(u8::try_from(rest % 128).unwrap() | 0x80);
                rest /= 128;
            }
            length.push(u8::try_from(rest).unwrap());
        }
        [&length, text.as_bytes()].concat()
    };
    let bearer = format!("Bearer {token}");
    // :method GET, :scheme https, :path, :authority, authorization
    [vec![0x82, 0x87, 0x04], text("/slow"), vec![0x01], text(authority), vec![0x0f, 0x08], text(&bearer)]
        .concat()
}

fn has_goaway(mut bytes: &[u8]) -> bool {
    while let Some(head) = bytes.first_chunk::<9>() {
        let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        if head[3] == 7 {
            return true;
        }
        bytes = bytes.get(9 + length..).unwrap_or_default();
    }
    false
}
