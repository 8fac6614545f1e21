//! Over time: tokens expire, are revoked, lose their issuer; permissions are missing and get granted.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use navicert_server::health::Check as _;
use navicert_server::proxy::client_address::Network;
use navicert_server::proxy::settings::{IdentityMode, ProxySettings, SelfCheck};
use navicert_server::proxy::upstream_access::PermissionsCheck;
use navicert_testkit::{Answer, ApiServer, RawClient, wait};
use navicert_types::Clock as _;
use navicert_types::clock::ManualClock;
use rustls::crypto::aws_lc_rs;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use super::{Front, Plan, configuration};

// PV19: a cached decision does not outlive the token.
#[tokio::test]
async fn cached_token_is_rejected_after_expiry() {
    let clock = Arc::new(ManualClock::at(1_800_000_000));
    let front = Front::with(Plan { clock: Arc::clone(&clock) as _, ..Plan::default() }).await;
    let token = front.token("ann", &json!({"exp": clock.now().as_second() + 4}));
    assert_eq!(front.get("/api", &token).await.status, 200);
    clock.advance(Duration::from_secs(3));
    assert_eq!(front.get("/api", &token).await.status, 200);
    clock.advance(Duration::from_secs(2));
    assert_eq!(front.get("/api", &token).await.status, 401);
    assert_eq!(front.observer.last(), "401 - - expired /api");
}

// PV20: a configuration change removes an issuer's tokens at once.
#[tokio::test]
async fn cached_token_is_rejected_after_its_issuer_is_removed() {
    let front = Front::start().await;
    let token = front.ann();
    assert_eq!(front.get("/api", &token).await.status, 200);
    fs::write(front.dir.path().join("authentication.yaml"), configuration(&[], None)).unwrap();
    front.until(401, &token).await;
    assert_eq!(front.observer.last(), "401 - - unknown_issuer /api");
    let issuer = (front.issuer.issuer_url(), &front.ca);
    fs::write(front.dir.path().join("authentication.yaml"), configuration(&[(&issuer.0, issuer.1)], None))
        .unwrap();
    front.until(200, &token).await;
}

// A65: a token is rejected from the moment it is on the revocation list, even if it was just accepted.
#[tokio::test]
async fn revoked_token_is_rejected_although_cached() {
    let dir = tempfile::tempdir().unwrap();
    let list = dir.path().join("revoked.yaml");
    let write = |tokens: &Value| {
        let text = json!({"apiVersion": "navicert/v1alpha1", "kind": "RevocationList", "tokens": tokens});
        fs::write(&list, text.to_string()).unwrap();
    };
    write(&json!([]));
    let navicert_config = format!("revocationList: {}\n", list.display());
    let front = Front::with(Plan { navicert_config, ..Plan::default() }).await;
    let (token, other) = (front.ann(), front.token("bob", &json!({"jti": "other"})));
    assert_eq!(front.get("/api", &token).await.status, 200);
    write(&json!([{"issuer": front.issuer.issuer_url(), "jti": "4f2a"}]));
    front.until(401, &token).await;
    assert_eq!(front.observer.last(), "401 - - revoked /api");
    assert_eq!(front.get("/api", &other).await.status, 200);
}

// S274: the response, then GOAWAY, then the connection closes.
#[tokio::test]
async fn unauthenticated_http2_connection_is_closed() {
    let front = Front::start().await;
    let stream = RawClient::connect_tls(front.address, &front.ca, None, &["h2"]).await;
    let io = hyper_util::rt::TokioIo::new(stream.into_stream());
    let executor = hyper_util::rt::TokioExecutor::new();
    let (mut sender, connection) = hyper::client::conn::http2::handshake(executor, io).await.unwrap();
    let connection = tokio::spawn(connection);
    let request = front.request("/api", "bad", &[]).map(|_| http_body_util::Empty::<bytes::Bytes>::new());
    assert_eq!(sender.send_request(request).await.unwrap().status(), 401);
    wait::within("the end of the connection", connection).await.unwrap().unwrap();
}

const SELF_REVIEW: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/// Answers access reviews of the proxy.
fn review(api: &ApiServer, may: impl Fn(&str) -> bool + Send + Sync + 'static) {
    api.answer_with(SELF_REVIEW, move |request| {
        let mut review = request.json();
        let asked = &review["spec"]["resourceAttributes"];
        let text = |name: &str| asked[name].as_str().unwrap_or_default().to_owned();
        let asked =
            format!("{} {}/{}/{}", text("verb"), text("group"), text("resource"), text("subresource"));
        review["status"] = json!({"allowed": may(&asked)});
        Answer::json(&review).with_status(201)
    });
}

// S270, B12
#[tokio::test]
async fn reports_missing_permissions_as_rbac_rules() {
    let front = Front::with(Plan { settings: ProxySettings::default(), ..Plan::default() }).await;
    let access = front.proxy.upstream_access();
    assert_eq!(access.permissions(), Err("not checked yet".to_owned()));
    review(&front.api, |asked| {
        !asked.contains("userextras/example.org/foo") && !asked.contains(":user-info")
    });
    let expected = "the proxy's account lacks permissions; add these rules to its ClusterRole:\n\
                    - {apiGroups: [\"authentication.k8s.io\"], resources: [\"userextras/example.org/foo\"], \
                    verbs: [\"impersonate\"]}\n";
    assert_eq!(access.check().await, Err(expected.to_owned()));
    assert_eq!(access.permissions(), Err(expected.to_owned()));
    review(&front.api, |asked| asked.starts_with("impersonate "));
    assert_eq!(access.check().await, Ok(()));
    let asked: Vec<String> = front
        .api
        .requests()
        .iter()
        .filter(|request| request.path() == SELF_REVIEW)
        .map(|request| request.json()["spec"]["resourceAttributes"]["resource"].as_str().unwrap().to_owned())
        .collect();
    for resource in ["users", "groups", "uids", "userextras"] {
        assert!(asked.iter().any(|one| one == resource), "{resource}");
    }
    // A failed review is not a permission.
    front.api.answer(SELF_REVIEW, Answer::failure(403, "Forbidden", "no"));
    assert_eq!(
        access.check().await,
        Err("unexpected response of the API server to a SelfSubjectAccessReview request: 403 Forbidden"
            .to_owned())
    );
}

#[tokio::test]
async fn undetermined_reviews_are_not_reported_as_missing_permissions() {
    let front = Front::with(Plan { settings: ProxySettings::default(), ..Plan::default() }).await;
    let prefix = "the API server's answer to a SelfSubjectAccessReview request is undetermined: ";
    for (status, expected) in [
        (
            json!({"allowed": false, "evaluationError": "webhook authorizer: connection refused"}),
            Some("webhook authorizer: connection refused"),
        ),
        (
            json!({"allowed": false, "conditionsChain": [{"authorizerName": "a", "conditions": [{"id": "a"}]}]}),
            Some("it depends on the content of the request"),
        ),
        (
            json!({"allowed": false, "conditionSetChain": [{"conditions": [{"id": "a"}]}]}),
            Some("it depends on the content of the request"),
        ),
        // A denial is an answer, whatever else failed.
        (json!({"allowed": false, "denied": true, "evaluationError": "timeout"}), None),
        (json!({"allowed": false, "reason": "RBAC: clusterrole \"a\" not found"}), None),
    ] {
        front.api.answer_with(SELF_REVIEW, move |request| {
            let mut review = request.json();
            review["status"] = status.clone();
            Answer::json(&review).with_status(201)
        });
        let verdict = front.proxy.upstream_access().check().await.unwrap_err();
        match expected {
            Some(reason) => assert_eq!(verdict, format!("{prefix}{reason}")),
            None => assert!(verdict.starts_with("the proxy's account lacks permissions"), "{verdict}"),
        }
    }
}

// S246: the credential is not reported as accepted while the API server does not answer, and recovers by itself.
#[tokio::test]
async fn unreachable_api_server_fails_the_credential_check() {
    for self_check in [SelfCheck::Required, SelfCheck::Warn, SelfCheck::Off] {
        let settings = ProxySettings { self_check, ..ProxySettings::default() };
        let front = Front::with(Plan { settings, ..Plan::default() }).await;
        review(&front.api, |_| true);
        let access = front.proxy.upstream_access();
        let before = if self_check == SelfCheck::Off { Ok(()) } else { Err("not checked yet".to_owned()) };
        assert_eq!(access.credential(), before, "{self_check:?}");
        assert_eq!(access.check().await, Ok(()), "{self_check:?}");
        assert_eq!(access.credential(), Ok(()), "{self_check:?}");

        front.api.refuse_connections();
        let token = front.ann();
        // The first request may fail on a connection of the pool, which a client can cause too; the second has to connect.
        for _ in 0..2 {
            assert_eq!(front.get("/api", &token).await.status, 502, "{self_check:?}");
        }
        assert!(access.check().await.is_err(), "{self_check:?}");
        let why = access.credential().unwrap_err();
        assert!(why.starts_with("no answer from the API server: "), "{self_check:?}: {why}");
        let unknown = Err("not checked: no answer from the API server".to_owned());
        let expected = if self_check == SelfCheck::Required { unknown } else { Ok(()) };
        assert_eq!(access.permissions(), expected, "{self_check:?}");

        front.api.accept_connections();
        assert_eq!(access.check().await, Ok(()), "{self_check:?}");
        assert_eq!((access.credential(), access.permissions()), (Ok(()), Ok(())), "{self_check:?}");
    }
}

// S246: a credential that the self check sees rejected is reported too, and recovers without a client's request.
#[tokio::test]
async fn self_check_notices_a_rejected_credential() {
    let front = Front::with(Plan { settings: ProxySettings::default(), ..Plan::default() }).await;
    review(&front.api, |_| true);
    let access = front.proxy.upstream_access();
    front.api.answer(SELF_REVIEW, Answer::unauthorized());
    assert!(access.check().await.is_err());
    assert_eq!(access.credential(), Err("the API server rejected the proxy's credential (401)".to_owned()));
    review(&front.api, |_| true);
    assert_eq!(access.check().await, Ok(()));
    assert_eq!(access.credential(), Ok(()));
}

// S228, S266: a front proxy checks whether the API server trusts it.
#[tokio::test]
async fn untrusted_front_proxy_is_not_ready() {
    let mode = IdentityMode::RequestHeader(Default::default());
    let settings = ProxySettings {
        mode,
        require_uid: true,
        self_check: SelfCheck::Required,
        ..ProxySettings::default()
    };
    let front = Front::with(Plan { settings, ..Plan::default() }).await;
    let access = front.proxy.upstream_access();
    front.api.answer(ApiServer::WHO_AM_I, Answer::unauthorized());
    let wrong = access.check().await.unwrap_err();
    assert!(wrong.starts_with("the API server does not accept the proxy's certificate, neither"), "{wrong}");
    assert!(wrong.contains("--requestheader-client-ca-file"), "{wrong}");
    authenticate(&front.api, None, Some("navicert-proxy"));
    let wrong = access.check().await.unwrap_err();
    assert!(wrong.contains("as user `navicert-proxy` and ignores identity headers"), "{wrong}");
    assert!(
        wrong.contains("--requestheader-allowed-names to be empty or to list `navicert-proxy`"),
        "{wrong}"
    );
    front.api.answer_with(ApiServer::WHO_AM_I, |request| {
        let user = json!({"username": request.header("x-remote-user")});
        Answer::json(&json!({"kind": "SelfSubjectReview", "status": {"userInfo": user}}))
    });
    assert_eq!(access.check().await, Ok(()));
    front.api.answer("/version", Answer::json(&json!({"major": "1", "minor": "31+"})));
    let wrong = access.check().await.unwrap_err();
    assert!(wrong.contains("requireUid"), "{wrong}");
}

/// Authenticates requests by the header, else as this user, else not at all.
fn authenticate(api: &ApiServer, header: Option<&'static str>, certificate: Option<&'static str>) {
    api.answer_with(ApiServer::WHO_AM_I, move |request| {
        match header.and_then(|header| request.header(header)).or(certificate) {
            Some(user) => Answer::json(
                &json!({"kind": "SelfSubjectReview", "status": {"userInfo": {"username": user}}}),
            ),
            None => Answer::unauthorized(),
        }
    });
}

// V7: a certificate that is a user's, too, is reported and does not fail readiness; one that is not is asked for once.
#[tokio::test]
async fn front_proxy_that_shares_its_authority_with_users_is_reported() {
    let mode = IdentityMode::RequestHeader(Default::default());
    let settings = ProxySettings { mode, self_check: SelfCheck::Required, ..ProxySettings::default() };
    let front = Front::with(Plan { settings, ..Plan::default() }).await;
    let access = front.proxy.upstream_access();
    let note = || PermissionsCheck(Arc::clone(access)).note();
    authenticate(&front.api, Some("x-remote-user"), Some("navicert-proxy"));
    for (minor, has_names) in [("34", false), ("35", true)] {
        front.api.answer("/version", Answer::json(&json!({"major": "1", "minor": minor})));
        assert_eq!(access.check().await, Ok(()));
        assert_eq!(access.permissions(), Ok(()));
        let note = note().unwrap();
        assert!(note.contains("accepts the proxy's certificate as user `navicert-proxy`, too"), "{note}");
        assert_eq!(note.contains("1.35 and later does not start"), !has_names, "{note}");
        assert_eq!(note.contains("set the API server's --requestheader-allowed-names"), !has_names, "{note}");
    }
    authenticate(&front.api, Some("x-remote-user"), None);
    assert_eq!((access.check().await, note()), (Ok(()), None));
    let bare = || {
        let requests = front.api.requests();
        requests.iter().filter(|request| request.header("x-remote-user").is_none()).count()
    };
    let asked = bare();
    assert_eq!((access.check().await, bare()), (Ok(()), asked));
}

// PROXY protocol: disabled, its header is not TLS; enabled, it gives the client address, and only trusted peers may
// connect.
#[tokio::test]
async fn load_balancer_addresses_count_only_where_configured() {
    let trusted: Vec<Network> = vec!["127.0.0.0/8".parse().unwrap()];
    let strange: Vec<Network> = vec!["192.0.2.0/24".parse().unwrap()];
    for (proxy_protocol, trusted_proxies, expected) in
        [(true, trusted.clone(), Some("198.51.100.7")), (true, strange, None), (false, trusted, None)]
    {
        let front =
            Front::set(ProxySettings { proxy_protocol, trusted_proxies, ..ProxySettings::default() }).await;
        let mut tcp = tokio::net::TcpStream::connect(front.address).await.unwrap();
        tcp.write_all(b"PROXY TCP4 198.51.100.7 10.0.0.1 56324 443\r\n").await.unwrap();
        let mut config = rustls::ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(front.ca.root_store())
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let name = rustls_pki_types::ServerName::IpAddress(front.address.ip().into());
        let secured = tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, tcp).await;
        let Some(address) = expected else {
            assert!(secured.is_err());
            continue;
        };
        let mut client = RawClient::over(secured.unwrap());
        let token = format!("Authorization: Bearer {}", front.ann());
        client.write(front.head("GET /api", &[&token]).as_bytes()).await;
        client.read_until(b"200").await;
        assert_eq!(front.api.wait_for_requests(1).await[0].header_values("x-forwarded-for"), [address]);
    }
}
