//! `kubectl --as` through the proxy.

use navicert_server::proxy::settings::{IdentityMode, ImpersonationPolicy, ProxySettings};
use navicert_testkit::{Answer, ApiServer};
use serde_json::{Value, json};

use super::Front;

const REVIEW: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

fn review(api: &ApiServer, may: impl Fn(&Value) -> bool + Send + Sync + 'static) {
    api.answer_with(REVIEW, move |request| {
        let mut review = request.json();
        review["status"] = json!({"allowed": may(&review["spec"]["resourceAttributes"])});
        Answer::json(&review).with_status(201)
    });
}

const AS_BOB: [(&str, &str); 4] = [
    ("impersonate-user", "bob"),
    ("impersonate-group", "ops"),
    ("impersonate-uid", "9"),
    ("impersonate-extra-example.org%2fteam", "blue"),
];

// S239, B13, B18
#[tokio::test]
async fn authorized_user_impersonates_and_stays_visible() {
    let front = Front::set(ProxySettings {
        client_impersonation: ImpersonationPolicy::Allow,
        ..ProxySettings::default()
    })
    .await;
    review(&front.api, |_| true);
    let token = front.ann();
    let reply = front.client().send(front.request("/api", &token, &AS_BOB)).await.unwrap();
    assert_eq!(reply.status, 200, "{}", reply.text());
    let requests = front.api.wait_for_requests(6).await;
    // Servers before 1.36 have only the legacy way.
    assert_eq!(requests[0].path(), "/version");
    let asked: Vec<String> =
        requests[1..5].iter().map(|request| request.json()["spec"].to_string()).collect();
    for (spec, attributes) in asked.iter().zip([
        json!({"verb": "impersonate", "resource": "users", "name": "bob"}),
        json!({"verb": "impersonate", "group": "authentication.k8s.io", "resource": "uids", "name": "9"}),
        json!({"verb": "impersonate", "resource": "groups", "name": "ops"}),
        json!({"verb": "impersonate", "group": "authentication.k8s.io", "resource": "userextras",
               "subresource": "example.org/team", "name": "blue"}),
    ]) {
        let spec: Value = serde_json::from_str(spec).unwrap();
        assert_eq!(spec["resourceAttributes"], attributes);
        assert_eq!((spec["user"].clone(), spec["uid"].clone()), (json!("ann"), json!("7")));
        assert_eq!(spec["groups"], json!(["dev", "a,b", "system:authenticated"]));
        assert_eq!(spec["extra"]["example.org/foo"], json!(["x", "y"]));
    }
    let seen = &requests[5];
    assert_eq!(seen.header_values("impersonate-user"), ["bob"]);
    assert_eq!(seen.header_values("impersonate-group"), ["ops"]);
    assert_eq!(seen.header_values("impersonate-uid"), ["9"]);
    assert_eq!(seen.header_values("impersonate-extra-example.org%2fteam"), ["blue"]);
    assert_eq!(seen.header_values("impersonate-extra-original-user.navicert%2fusername"), ["ann"]);
    assert_eq!(seen.header_values("impersonate-extra-original-user.navicert%2fuid"), ["7"]);
    assert_eq!(seen.header_values("impersonate-extra-original-user.navicert%2fgroups"), ["dev", "a,b"]);
    assert_eq!(seen.header("impersonate-extra-example.org%2ffoo"), None, "the other one's, not ours");
    assert_eq!(front.observer.last(), "200 ann bob - /api");
    // Without impersonation headers no review is sent, and the user stays ann.
    assert_eq!(front.get("/api", &token).await.status, 200);
    let seen = front.api.requests().pop().unwrap();
    assert_eq!(seen.header_values("impersonate-user"), ["ann"]);
}

// S239, S241
#[tokio::test]
async fn missing_impersonation_permission_is_a_403() {
    let front = Front::set(ProxySettings {
        client_impersonation: ImpersonationPolicy::Allow,
        ..ProxySettings::default()
    })
    .await;
    let token = front.ann();
    for denied in ["users", "groups", "uids", "userextras"] {
        review(&front.api, move |asked| asked["resource"] != denied);
        let reply = front.client().send(front.request("/secret", &token, &AS_BOB)).await.unwrap();
        assert_eq!(reply.status, 403, "{denied}");
        let message = reply.json()["message"].as_str().unwrap().to_owned();
        assert!(message.contains("User \"ann\" cannot impersonate"), "{message}");
        assert_eq!(front.observer.last(), "403 ann - impersonation /secret");
    }
    review(&front.api, |_| true);
    for headers in [
        &[("impersonate-group", "ops")][..],
        &[("impersonate-user", "")],
        &[("impersonate-user", "bob"), ("impersonate-new", "x")],
        &[("impersonate-user", "bob"), ("impersonate_group", "x")],
        &[("impersonate-user", "bob"), ("impersonate-extra-original-user.navicert%2fusername", "eve")],
        &[("impersonate-user", "bob"), ("impersonate-extra-%41", "x")],
    ] {
        let reply = front.client().send(front.request("/secret", &token, headers)).await.unwrap();
        assert_eq!(reply.status, 403, "{headers:?}");
    }
    // A failed review does not allow impersonation.
    front.api.answer(REVIEW, Answer::failure(403, "Forbidden", "no"));
    let reply = front.client().send(front.request("/secret", &token, &AS_BOB)).await.unwrap();
    assert_eq!(reply.status, 502);
    front.api.answer(REVIEW, Answer::json(&json!({"status": {"allowed": true}})));
    let reply = front.client().send(front.request("/secret", &token, &AS_BOB)).await.unwrap();
    assert_eq!(reply.status, 502, "a yes to nothing is no yes");
    assert_eq!(front.api.count("/secret"), 0);
}

// S233: a name with the prefix of service accounts that is none is a user, as in the API server: permission for the
// service accounts of a namespace does not extend to it.
#[tokio::test]
async fn malformed_service_account_name_is_a_user() {
    let front = Front::set(ProxySettings {
        client_impersonation: ImpersonationPolicy::Allow,
        ..ProxySettings::default()
    })
    .await;
    review(&front.api, |asked| asked["resource"] == "serviceaccounts" && asked["namespace"] == "a");
    for (name, code) in [
        ("system:serviceaccount:a:b", 200),
        ("system:serviceaccount:a:b:c", 403),
        ("system:serviceaccount:a:B", 403),
        ("system:serviceaccount:a:", 403),
    ] {
        let request = front.request("/api", &front.ann(), &[("impersonate-user", name)]);
        assert_eq!(front.client().send(request).await.unwrap().status.as_u16(), code, "{name}");
    }
}

// S239: a front proxy leaves the decision to the API server, which knows the real user.
#[tokio::test]
async fn front_proxy_leaves_impersonation_to_the_api_server() {
    let mode = IdentityMode::RequestHeader(Default::default());
    let front = Front::set(ProxySettings {
        mode,
        client_impersonation: ImpersonationPolicy::Allow,
        ..ProxySettings::default()
    })
    .await;
    let token = front.ann();
    assert_eq!(front.client().send(front.request("/api", &token, &AS_BOB)).await.unwrap().status, 200);
    let seen = &front.api.wait_for_requests(1).await[0];
    assert_eq!(seen.header_values("x-remote-user"), ["ann"]);
    assert_eq!(seen.header_values("impersonate-user"), ["bob"]);
    let odd = front.request("/api", &token, &[("impersonate-new", "x")]);
    assert_eq!(front.client().send(odd).await.unwrap().status, 403);
}
