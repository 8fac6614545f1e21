//! A login from its start link to its last page.

use std::cell::RefCell;

use tokio::sync::oneshot;

use super::*;

#[tokio::test]
async fn browser_is_sent_to_the_provider_and_back_to_a_page() {
    // L902, L911, L912
    let receiver = bind();
    let site = Site::of(&receiver);
    assert_eq!(receiver.redirect_uri(), format!("http://{}/callback", site.address));
    assert_eq!(receiver.start_url(), format!("http://{}{}", site.address, site.start_path));
    assert_eq!(site.start_path.len(), "/start/".len() + 22);
    let (outcome, ()) = serve_while(receiver, async {
        let started = site.get(&site.start_path).await;
        assert_eq!((started.status, started.location()), (303, AUTHORIZATION_URL));
        assert_eq!(started.headers("referrer-policy"), ["no-referrer"]);
        let answered = site.get(CALLBACK).await;
        assert_eq!(answered.status, 303);
        assert!(answered.location().starts_with("/done/"), "{answered:?}");
        let page = site.get(answered.location()).await;
        assert_eq!(page.status, 200);
        assert!(page.body.contains("<bdi>ann@example.com</bdi>"), "{page:?}");
        for secret in ["right", "abc"] {
            assert!(!page.body.contains(secret) && !answered.location().contains(secret), "{secret}");
        }
    })
    .await;
    assert_eq!(outcome, Ok("abc".to_owned()));
    // L716
    assert!(tokio::net::TcpStream::connect(site.address).await.is_err(), "the port is closed");
}

#[tokio::test]
async fn page_comes_after_the_tokens_were_stored() {
    // L913
    let events = RefCell::new(Vec::new());
    let (release, released) = oneshot::channel::<()>();
    let receiver = bind();
    let site = Site::of(&receiver);
    let serving = receiver.serve(pending_login(), async |answer| {
        events.borrow_mut().push("code received");
        released.await.unwrap();
        events.borrow_mut().push("tokens stored");
        keep(answer).await
    });
    let browser = async {
        let mut client = RawClient::connect(site.address).await;
        client.write(format!("GET {CALLBACK} HTTP/1.1\r\nHost: {}\r\n\r\n", site.address).as_bytes()).await;
        // Others are answered meanwhile.
        while events.borrow().is_empty() {
            assert_eq!(site.get("/").await.status, 404);
        }
        assert_eq!(site.get("/done/AAAAAAAAAAAAAAAAAAAAAA").await.status, 404);
        release.send(()).unwrap();
        let answered = Reply::parse(&client.read_to_end(10_000).await);
        events.borrow_mut().push("browser answered");
        site.get(answered.location()).await
    };
    let (outcome, page) = Box::pin(within("the login", async { tokio::join!(serving, browser) })).await;
    assert!(outcome.is_ok() && page.body.contains("Logged in"));
    assert_eq!(*events.borrow(), ["code received", "tokens stored", "browser answered"]);
}

#[tokio::test(start_paused = true)]
async fn exchange_may_take_longer_than_a_request() {
    let receiver = bind();
    let site = Site::of(&receiver);
    let serving = receiver.serve(pending_login(), async |answer| {
        let _ = tokio::time::timeout(Duration::from_secs(25), std::future::pending::<()>()).await;
        keep(answer).await
    });
    let (outcome, page) = tokio::join!(serving, finish(&site));
    assert_eq!(outcome, Ok("abc".to_owned()));
    assert!(page.body.contains("<title>Logged in</title>"));
}

#[tokio::test(start_paused = true)]
async fn browser_that_never_fetches_its_page_delays_the_login_by_two_seconds() {
    // L716
    let receiver = bind();
    let site = Site::of(&receiver);
    let started = tokio::time::Instant::now();
    let serving = receiver.serve(pending_login(), keep);
    let (outcome, answered) = tokio::join!(serving, site.get(CALLBACK));
    assert_eq!((outcome, answered.status), (Ok("abc".to_owned()), 303));
    assert_eq!(started.elapsed().as_secs(), 2);
}

#[tokio::test]
async fn provider_error_ends_the_login_with_a_page() {
    let receiver = bind();
    let site = Site::of(&receiver);
    let (outcome, page) = serve_while(receiver, async {
        let query =
            "error=access_denied&error_description=Ask+%3Cb%3EBob&state=right&iss=https://login.example";
        let answered = site.get(&format!("/callback?{query}")).await;
        assert_eq!(answered.status, 303);
        site.get(answered.location()).await
    })
    .await;
    let description = Some("Ask <b>Bob".to_owned());
    assert_eq!(outcome, Err(AnswerError::Provider { error: "access_denied".to_owned(), description }));
    assert!(page.body.contains("<title>Not logged in</title>"), "{page:?}");
    assert!(page.body.contains("Ask &lt;b&gt;Bob"), "{page:?}");
}

#[tokio::test]
async fn page_of_the_users_choice_replaces_ours() {
    // L934
    let receiver = bind();
    let site = Site::of(&receiver);
    let serving = receiver.serve(pending_login(), async |_| {
        let (display, issuer_host) = ("ann".to_owned(), "login.example".to_owned());
        ((), OutcomePage::Redirect { url: "https://docs.example/".to_owned(), display, issuer_host })
    });
    let ((), answered) = tokio::join!(serving, site.get(CALLBACK));
    assert_eq!((answered.status, answered.location()), (303, "https://docs.example/"));
}

#[tokio::test]
async fn form_post_is_accepted_only_if_it_was_asked_for() {
    // L911 step 1
    const FORM: &str = "application/x-www-form-urlencoded";
    let body = "code=abc&state=right&iss=https%3A%2F%2Flogin.example";
    survives(bind(), async |site| {
        let reply = site.post("/callback", FORM, body).await;
        assert_eq!((reply.status, reply.headers("allow")), (405, vec!["GET"]));
    })
    .await;
    let receiver = bind();
    let site = Site::of(&receiver);
    let login = PendingLogin { response_mode: ResponseMode::FormPost, ..pending_login() };
    let (outcome, page) = serve_login_while(receiver, login, async {
        assert_eq!(site.post("/callback", "text/plain", body).await.status, 415);
        assert_eq!(
            site.post("/callback?state=right&code=x", FORM, "").await.status,
            400,
            "not from the query"
        );
        let answered = site.post("/callback", "application/x-www-form-urlencoded; charset=utf-8", body).await;
        assert_eq!(answered.status, 303);
        site.get(answered.location()).await
    })
    .await;
    assert_eq!(outcome, Ok("abc".to_owned()));
    assert!(page.body.contains("<title>Logged in</title>"));
}

#[tokio::test]
async fn redirect_alone_serves_its_link_once() {
    let receiver = bind();
    let site = Site::of(&receiver);
    let target = "https://login.example/logout?id_token_hint=secret";
    let serving = receiver.serve_redirect(Secret::from(target.to_owned()));
    let browser = async {
        assert_eq!(site.get(CALLBACK).await.status, 404);
        assert_eq!(site.get("/start/AAAAAAAAAAAAAAAAAAAAAA").await.status, 404);
        site.get(&site.start_path).await
    };
    let ((), reply) = Box::pin(within("the redirect", async { tokio::join!(serving, browser) })).await;
    assert_eq!((reply.status, reply.location()), (303, target));
}

#[tokio::test]
async fn https_receiver_has_https_addresses() {
    let ca = navicert_testkit::Ca::new("login");
    let identity = ca.server().issue();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(identity.chain().to_vec(), identity.rustls_key())
        .unwrap();
    let plain = settings(&["127.0.0.1:0"], RedirectTarget::LOOPBACK_ADDRESS);
    let receiver = Receiver::bind(&ReceiverSettings { tls: Some(Arc::new(tls)), ..plain }).unwrap();
    let site = Site::of(&receiver);
    assert_eq!(receiver.redirect_uri(), format!("https://{}/callback", site.address));
    assert!(receiver.start_url().starts_with("https://127.0.0.1:"));
    let (outcome, ()) = serve_while(receiver, async {
        assert_eq!(site.get(CALLBACK).await.status, 0, "not without TLS");
        let mut target = CALLBACK.to_owned();
        for status in [303, 200] {
            let mut client = RawClient::connect_tls(site.address, &ca, None, &["http/1.1"]).await;
            let request = format!("GET {target} HTTP/1.1\r\nHost: {}\r\n\r\n", site.address);
            client.write(request.as_bytes()).await;
            let reply = Reply::parse(&client.read_to_end(10_000).await);
            assert_eq!(reply.status, status);
            target = reply.location().to_owned();
        }
    })
    .await;
    assert_eq!(outcome, Ok("abc".to_owned()));
}
