//! Ambiguous requests and identity headers of clients, written byte for byte.

use navicert_server::ServerLimits;
use navicert_testkit::{Answer, RawClient};
use proptest::prelude::*;

use super::{Front, Plan, status};

async fn ask(front: &Front, request: &str, lines: &[String], body: &str) -> Vec<u8> {
    let mut client = front.raw().await;
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let _ = client.try_write((front.head(request, &lines) + body).as_bytes()).await;
    answer(&mut client).await
}

async fn answer(client: &mut RawClient) -> Vec<u8> {
    client.read_until(b"\r\n\r\n").await
}

// PV2–PV5, PV9, A74, A75, B1, B2, B3, B17
#[tokio::test]
async fn ambiguous_requests_never_reach_the_api_server() {
    let front = Front::start().await;
    let token = format!("Authorization: Bearer {}", front.ann());
    for (lines, body, expected) in [
        (&["Impersonate-User: admin"][..], "", 403),
        (&["impersonate-group: system:masters"], "", 403),
        (&["Impersonate_User: a"], "", 403),
        (&["IMPERSONATE-USER: a"], "", 403),
        (&["Impersonate-Uid: 1"], "", 403),
        (&["Impersonate-Extra-a: 1"], "", 403),
        (&["Impersonate-Foo: x"], "", 403),
        (&["Impersonate: x"], "", 403),
        (&["Connection: Impersonate-User"], "", 400),
        (&["Connection: close, impersonate-group"], "", 400),
        (&["Connection: ,, iMPERSONATE_uSER"], "", 400),
        (&["Connection: close", "Connection: Impersonate-Extra-example.org%2Ffoo"], "", 400),
        (&["Connection: Authorization"], "", 400),
        (&["Connection: X-Remote-User"], "", 400),
        (&["X-Remote-User: admin"], "", 400),
        (&["x_remote_user: admin"], "", 400),
        (&["X-Remote-Extra-Scopes: admin"], "", 400),
        (&["Authorization: Bearer again"], "", 400),
        (&["X-Folded: a", " b"], "", 400),
        (&["X-Folded: a", "\tb"], "", 400),
        (&["X-Space : a"], "", 400),
        (&["Impersonate-User : a"], "", 400),
        (&["Content-Length: 5", "Transfer-Encoding: chunked"], "0\r\n\r\n", 400),
        (&["Content-Length: 5", "Content-Length: 6"], "hello", 400),
        (&["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"], "0\r\n\r\n", 400),
        (&["Transfer-Encoding: chunked, identity"], "0\r\n\r\n", 400),
        (&["Transfer_Encoding: chunked"], "0\r\n\r\n", 400),
        (&["X-Bare: a\nImpersonate-User: b"], "", 400),
        (&["X-Bare: a\rImpersonate-User: b"], "", 400),
        (&["X-Nul: a\0b"], "", 400),
        (&["Host: other"], "", 400),
    ] {
        let lines: Vec<String> =
            std::iter::once(token.clone()).chain(lines.iter().map(|line| (*line).to_owned())).collect();
        let smuggled = format!("{body}GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n");
        let answer = ask(&front, "POST /api", &lines, &smuggled).await;
        assert_eq!(status(&answer), expected, "{lines:?}: {}", answer.escape_ascii());
    }
    assert_eq!(front.api.connections().len(), 0, "the API server is untouched");
}

// Every rejection that the proxy decides on names the user, if the request has one, and the reason.
#[tokio::test]
async fn rejections_name_user_source_and_reason() {
    let front = Front::start().await;
    let good = format!("Authorization: Bearer {}", front.ann());
    let bad = "Authorization: Bearer bad".to_owned();
    for (token, line, expected) in [
        (&good, "Impersonate-User: admin", "403 ann - impersonation /api"),
        (&good, "Impersonate_User: admin", "403 ann - impersonation /api"),
        (&good, "X-Remote-User: admin", "400 ann - request /api"),
        (&good, "Connection: Impersonate-User", "400 ann - request /api"),
        (&good, "Expect: something", "400 ann - request /api"),
        // Two tokens: which user is it?
        (&good, "Authorization: Bearer again", "400 - - request /api"),
        (&bad, "X-Remote-User: admin", "400 - - request /api"),
        // An unauthenticated client learns nothing about the policy.
        (&bad, "Impersonate-User: admin", "401 - - malformed /api"),
    ] {
        let answer = ask(&front, "GET /api", &[token.clone(), line.to_owned()], "").await;
        assert!(expected.starts_with(&status(&answer).to_string()), "{line}");
        assert_eq!(front.observer.last(), expected, "{line}");
    }
    let answer = ask(&front, "GET /api", &["Impersonate-User: admin".to_owned()], "").await;
    assert_eq!((status(&answer), front.observer.last().as_str()), (401, "401 - - no_credentials /api"));
    assert_eq!(front.api.connections().len(), 0);
    front.api.answer("/away", Answer::redirect(301, "https://evil.example/"));
    assert_eq!(front.get("/away", &front.ann()).await.status, 502);
    assert_eq!(front.observer.last(), "502 ann - upstream /away");
    // The API server's own errors are not the proxy's decision.
    front.api.answer("/broken", Answer::failure(500, "InternalError", "no"));
    assert_eq!(front.get("/broken", &front.ann()).await.status, 500);
    assert_eq!(front.observer.last(), "500 ann - - /broken");
    let limits = ServerLimits { requests: 0, ..ServerLimits::for_proxy() };
    let full = Front::with(Plan { limits, ..Plan::default() }).await;
    assert_eq!(full.get("/api", &full.ann()).await.status, 429);
    assert!(full.observer.last().ends_with(" too_many_requests /api"), "{}", full.observer.last());
}

// A75, RUSTSEC-2026-0033
#[tokio::test]
async fn http_1_0_cannot_be_chunked() {
    let front = Front::start().await;
    let token = front.ann();
    let mut client = front.raw().await;
    let head = format!(
        "POST /api HTTP/1.0\r\nHost: a\r\nAuthorization: Bearer {token}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    );
    client.write(head.as_bytes()).await;
    assert_eq!(status(&client.read_to_end(10_000).await), 400);
    assert_eq!(front.api.connections().len(), 0);
}

// PV17, PV18, S243, S258
#[tokio::test]
async fn forwards_paths_unchanged_and_ignores_tokens_in_them() {
    let front = Front::start().await;
    let token = front.ann();
    let authorization = format!("Authorization: Bearer {token}");
    for (asked, seen) in [
        ("/a%2Fb/../c//d;e=f?q=%20&&x", "/a%2Fb/../c//d;e=f?q=%20&&x"),
        ("/%2e%2E/..;/", "/%2e%2E/..;/"),
        ("//double", "//double"),
        ("/api?access_token=secret&x=1", "/api?x=1"),
        ("/api?access%5ftoken=secret&x=1", "/api?x=1"),
        ("/api?x=1&%61ccess_%74oken=secret", "/api?x=1"),
        ("/api?x=1;access_token=secret", "/api?x=1"),
    ] {
        let answer = ask(&front, &format!("GET {asked}"), std::slice::from_ref(&authorization), "").await;
        assert_eq!(status(&answer), 200, "{asked}");
        assert_eq!(front.api.requests().last().unwrap().target, seen);
    }
    let answer = ask(&front, &format!("GET /api?access_token={token}"), &[], "").await;
    assert_eq!(status(&answer), 401, "PV17");
    // RFC 9112, section 3.2.2: the same server in absolute form.
    for (asked, seen) in [
        (format!("https://{}/a%2Fb/../c?x=1&access_token=secret", front.address), "/a%2Fb/../c?x=1"),
        (format!("http://{}/api", front.address), "/api"),
        (format!("https://{}", front.address), "/"),
    ] {
        let answer = ask(&front, &format!("GET {asked}"), std::slice::from_ref(&authorization), "").await;
        assert_eq!(status(&answer), 200, "{asked}");
        let request = front.api.requests().pop().unwrap();
        assert_eq!(request.target, seen);
        assert_eq!(front.observer.last(), format!("200 ann - - {}", seen.split('?').next().unwrap()));
    }
    let of_other_users = format!("https://ann@{}/api", front.address);
    for target in ["https://other/api", &of_other_users, "ftp://other/api", "other:443", "/a%00b", "*"] {
        let answer = ask(&front, &format!("GET {target}"), std::slice::from_ref(&authorization), "").await;
        assert_eq!(status(&answer), 400, "{target}");
    }
    assert_eq!(front.api.requests().len(), 10);
}

/// Spellings of a header name that an attacker might use.
fn disguised() -> impl Strategy<Value = String> {
    let names = prop::sample::select(vec![
        "Impersonate-User",
        "Impersonate-Uid",
        "Impersonate-Group",
        "Impersonate-Extra-Example.org%2Ffoo",
        "Authorization",
        "X-Forwarded-For",
        "X-Remote-User",
    ]);
    (names, any::<u32>(), any::<bool>()).prop_map(|(name, cases, underscores)| {
        let cased = name.chars().enumerate().map(|(index, one)| {
            if cases >> (index % 32) & 1 == 1 { one.to_ascii_uppercase() } else { one.to_ascii_lowercase() }
        });
        let name: String = cased.collect();
        if underscores { name.replace('-', "_") } else { name }
    })
}

// CVE-2021-31999, CVE-2022-23652, CVE-2025-48865 and similar (B1–B3): whatever `Connection` lists, the API server
// sees the proxy's headers or no request at all.
#[test]
fn connection_options_never_strip_identity_headers() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let front = runtime.block_on(Front::start());
    let token = format!("Authorization: Bearer {}", front.ann());
    let lists = prop::collection::vec(
        (
            prop::collection::vec(
                prop_oneof![disguised(), Just("close".to_owned()), Just(String::new())],
                0..4,
            ),
            any::<bool>(),
        ),
        1..4,
    );
    proptest!(ProptestConfig::with_cases(60), |(lists in lists)| {
        let before = front.api.requests().len();
        let line = |(names, spaced): &(Vec<String>, bool)| {
            format!("Connection: {}", names.join(if *spaced { " ,  " } else { "," }))
        };
        let lines: Vec<String> = std::iter::once(token.clone()).chain(lists.iter().map(line)).collect();
        let answer = runtime.block_on(ask(&front, "GET /api", &lines, ""));
        let requests = front.api.requests();
        match status(&answer) {
            200 => {
                let seen = requests.last().unwrap();
                prop_assert_eq!(requests.len(), before + 1);
                prop_assert_eq!(seen.header_values("impersonate-user"), ["ann"]);
                prop_assert_eq!(seen.header_values("impersonate-group"), ["dev", "a,b"]);
                prop_assert_eq!(seen.header_values("impersonate-uid"), ["7"]);
                prop_assert_eq!(seen.header_values("impersonate-extra-example.org%2ffoo"), ["x", "y"]);
                prop_assert_eq!(seen.header_values("x-forwarded-for"), ["127.0.0.1"]);
            }
            400 => prop_assert_eq!(requests.len(), before),
            other => prop_assert!(false, "{} for {:?}", other, lines),
        }
    });
}

// PV9 and the rest over HTTP/2, which has no framing ambiguity but has header names.
#[tokio::test]
async fn http2_requests_get_the_same_checks() {
    let front = Front::start().await;
    let token = front.ann();
    for (name, value, expected) in [
        ("impersonate-user", "admin", 403),
        ("impersonate_user", "admin", 403),
        ("x-remote-group", "system:masters", 400),
        ("host", "other", 400),
    ] {
        let request = front.request("/api", &token, &[(name, value)]);
        let reply = front.client().http2().send(request).await.unwrap();
        assert_eq!(reply.status.as_u16(), expected, "{name}");
    }
    assert_eq!(front.api.connections().len(), 0);
}
