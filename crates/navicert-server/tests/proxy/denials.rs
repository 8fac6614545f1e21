//! A 403 about the proxy's own account is not the user's.

use navicert_server::proxy::settings::{IdentityMode, ImpersonationPolicy, ProxySettings, SelfCheck};
use navicert_testkit::{Answer, ApiServer};

use super::permissions::{grant, serve_version};
use super::{Front, Plan};

/// The user name that the fake API server knows the proxy's token by.
const LEGACY: &str = "groups \"dev\" is forbidden: User \"proxy\" cannot impersonate resource \"groups\" in API group \"\" at the \
                      cluster scope";
const CONSTRAINED: &str = "pods is forbidden: User \"proxy\" cannot impersonate-on:user-info:list resource \"pods\" in API group \"\" \
                           in the namespace \"default\"";
const OF_ANN: &str = "pods is forbidden: User \"ann\" cannot list resource \"pods\" in API group \"\" in the namespace \"default\"";

fn forbid(api: &ApiServer, message: &str) {
    api.answer("/pods", Answer::failure(403, "Forbidden", message));
}

/// Code, message and audit reason of a request.
async fn asked(front: &Front) -> (u16, String, String) {
    let reply = front.get("/pods", &front.ann()).await;
    let message = reply.json()["message"].as_str().unwrap().to_owned();
    let reason = front.observer.last().split(' ').nth(3).unwrap().to_owned();
    (reply.status.as_u16(), message, reason)
}

// S246
#[tokio::test]
async fn denial_of_the_proxys_account_is_a_502_with_the_missing_rule() {
    let front = Front::start().await;
    forbid(&front.api, LEGACY);
    let (code, message, reason) = asked(&front).await;
    assert_eq!((code, reason.as_str()), (502, "upstream_permissions"));
    let expected = "the API server does not permit the proxy to impersonate this user; missing rule of its ClusterRole: \
                    {apiGroups: [\"\"], resources: [\"groups\"], verbs: [\"impersonate\"]}";
    assert_eq!(message, expected);
    assert_eq!(front.proxy.upstream_access().credential(), Ok(()), "the credential is accepted");
    // Newer servers name a constrained permission first; without rules of that kind, the legacy ones are needed.
    forbid(&front.api, CONSTRAINED);
    let (code, message, _) = asked(&front).await;
    assert_eq!(code, 502);
    assert!(message.contains("missing at least one of the rules for this user: {apiGroups: [\"\"], resources: [\"users\", \"groups\"]"), "{message}");
    assert!(!message.contains("impersonate-on"), "{message}");
    // The own account was asked for once.
    assert_eq!(front.api.count(ApiServer::WHO_AM_I), 1);
}

// S237, S246
#[tokio::test]
async fn with_constrained_rules_the_named_permission_is_the_missing_one() {
    let settings = ProxySettings { self_check: SelfCheck::Warn, ..ProxySettings::default() };
    let front = Front::with(Plan { settings, ..Plan::default() }).await;
    serve_version(&front.api, "37");
    grant(&front.api, |asked| asked.contains(":user-info") && !asked.contains(":list"));
    assert_eq!(front.proxy.upstream_access().check().await, Ok(()));
    forbid(&front.api, CONSTRAINED);
    let (code, message, reason) = asked(&front).await;
    assert_eq!((code, reason.as_str()), (502, "upstream_permissions"));
    let rule = "{apiGroups: [\"\"], resources: [\"pods\"], verbs: [\"impersonate-on:user-info:list\"]}";
    assert!(message.ends_with(rule), "{message}");
    let masters = "groups.authentication.k8s.io \"system:masters\" is forbidden: User \"proxy\" cannot impersonate:user-info resource \
                   \"groups\" in API group \"authentication.k8s.io\" at the cluster scope: impersonating the system:masters group is not \
                   allowed";
    forbid(&front.api, masters);
    let (code, message, _) = asked(&front).await;
    assert_eq!(code, 502);
    assert!(
        message.ends_with("this user: impersonating the system:masters group is not allowed"),
        "{message}"
    );
}

// S246: every other 403 is relayed byte for byte.
#[tokio::test]
async fn other_denials_are_relayed() {
    let front = Front::start().await;
    let own_user = LEGACY.replace("proxy", "ann");
    for message in [OF_ANN, &own_user, "no"] {
        forbid(&front.api, message);
        let (code, relayed, reason) = asked(&front).await;
        assert_eq!((code, relayed.as_str(), reason.as_str()), (403, message, "-"));
    }
    // Neither a Status nor small enough to be one.
    front.api.answer("/pods", Answer::text(LEGACY).with_status(403));
    let reply = front.get("/pods", &front.ann()).await;
    assert_eq!((reply.status.as_u16(), reply.text()), (403, LEGACY));
    front.api.answer("/pods", Answer::filler("application/json", 64 * 1024).with_status(403));
    let reply = front.get("/pods", &front.ann()).await;
    assert_eq!((reply.status.as_u16(), reply.text().len()), (403, 64 * 1024));
    // An API server that does not know who the proxy is.
    let unknown = Front::start().await;
    unknown.api.answer(ApiServer::WHO_AM_I, Answer::status(404));
    forbid(&unknown.api, LEGACY);
    assert_eq!(asked(&unknown).await.0, 403);
}

// S231, S246: in requestHeader mode the API server authorizes impersonation for the user.
#[tokio::test]
async fn front_proxy_relays_denials_of_impersonation() {
    let front = Front::set(ProxySettings {
        mode: IdentityMode::RequestHeader(Default::default()),
        client_impersonation: ImpersonationPolicy::Allow,
        ..ProxySettings::default()
    })
    .await;
    forbid(&front.api, LEGACY);
    assert_eq!(asked(&front).await, (403, LEGACY.to_owned(), "-".to_owned()));
}

// S246: a controller's client asks for protobuf.
#[tokio::test]
async fn denials_in_protobuf_are_recognised() {
    let front = Front::start().await;
    let field = |number: u8, bytes: &[u8]| {
        let length = bytes.len();
        // Two bytes suffice for every length here.
        let length = [u8::try_from(length & 0x7f).unwrap() | 0x80, u8::try_from(length >> 7).unwrap()];
        [&[(number << 3) | 2][..], &length, bytes].concat()
    };
    let status = [field(2, b"Failure"), field(3, LEGACY.as_bytes())].concat();
    let body = [b"k8s\0".to_vec(), field(1, b""), field(2, &status)].concat();
    let answer = Answer::bytes("application/vnd.kubernetes.protobuf", body);
    front.api.answer("/pods", answer.with_status(403));
    assert_eq!(asked(&front).await.0, 502);
}
