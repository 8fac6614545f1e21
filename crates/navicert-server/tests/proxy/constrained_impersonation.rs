//! `kubectl --as` through the proxy by users with the rights of constrained impersonation (KEP-5284): the proxy asks what the
//! API server would ask, in its order.

use std::collections::BTreeSet;
use std::sync::Arc;

use http::{Method, Request};
use navicert_client::credential::BoxFuture;
use navicert_server::proxy::service_accounts::{ReviewFailed, TokenReviewer};
use navicert_server::proxy::settings::{ImpersonationPolicy, ProxySettings, SelfCheck, ServiceAccountTokens};
use navicert_testkit::{Answer, ApiServer};
use navicert_types::token_review::UserInfo;
use serde_json::{Value, json};

use super::permissions::serve_version;
use super::{Front, Plan};

const REVIEW: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

fn settings() -> ProxySettings {
    ProxySettings {
        client_impersonation: ImpersonationPolicy::Allow,
        self_check: SelfCheck::Off,
        ..ProxySettings::default()
    }
}

async fn front() -> Front {
    let front = Front::set(settings()).await;
    serve_version(&front.api, "37");
    front
}

/// A review as one line: verb, then `GROUP/RESOURCE[/SUBRESOURCE] NAMESPACE NAME` or the path.
fn line(review: &Value) -> String {
    let spec = &review["spec"];
    if let Some(path) = spec["nonResourceAttributes"]["path"].as_str() {
        return format!("{} {path}", spec["nonResourceAttributes"]["verb"].as_str().unwrap());
    }
    let part = |name: &str| spec["resourceAttributes"][name].as_str().unwrap_or_default().to_owned();
    let resource = format!("{}/{}/{}", part("group"), part("resource"), part("subresource"));
    let line =
        format!("{} {} {} {}", part("verb"), resource.trim_end_matches('/'), part("namespace"), part("name"));
    line.trim_end().to_owned()
}

/// Grants exactly these permissions.
fn grant(api: &ApiServer, granted: &[&str]) {
    let granted: BTreeSet<String> = granted.iter().map(|one| (*one).to_owned()).collect();
    api.answer_with(REVIEW, move |request| {
        let mut review = request.json();
        review["status"] = json!({"allowed": granted.contains(&line(&review))});
        Answer::json(&review).with_status(201)
    });
}

/// Sends a request with impersonation headers; returns the code, the reviews in order, and the message.
async fn send(
    front: &Front,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
) -> (u16, Vec<String>, String) {
    let before = front.api.requests().len();
    let request = Request::builder()
        .method(method)
        .uri(front.url(path))
        .header("authorization", format!("Bearer {}", front.ann()));
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    let reply = front.client().send(request.body(bytes::Bytes::new()).unwrap()).await.unwrap();
    let requests = front.api.requests().split_off(before);
    let reviews =
        requests.iter().filter(|request| request.path() == REVIEW).map(|request| line(&request.json()));
    let message = reply.json()["message"].as_str().unwrap_or_default().to_owned();
    (reply.status.as_u16(), reviews.collect(), message)
}

const PODS: &str = "/api/v1/namespaces/a/pods";
const BOB: [(&str, &str); 1] = [("impersonate-user", "bob")];

// S237, S239
#[tokio::test]
async fn user_with_constrained_rights_impersonates_for_permitted_requests() {
    let front = front().await;
    let on_list = "impersonate-on:user-info:list /pods a";
    let as_bob = "impersonate:user-info authentication.k8s.io/users  bob";
    grant(&front.api, &[on_list, as_bob]);
    let (code, reviews, _) = send(&front, Method::GET, PODS, &BOB).await;
    assert_eq!((code, reviews.as_slice()), (200, &[on_list.to_owned(), as_bob.to_owned()][..]));
    let seen = front.api.requests().pop().unwrap();
    assert_eq!(seen.header_values("impersonate-user"), ["bob"]);
    assert_eq!(seen.header_values("impersonate-extra-original-user.navicert%2fusername"), ["ann"]);
    // Other requests fall back to `impersonate`, which is not granted; the first denial is reported.
    for (method, path, on) in [
        (Method::POST, PODS, "impersonate-on:user-info:create /pods a"),
        (Method::GET, "/api/v1/namespaces/b/pods", "impersonate-on:user-info:list /pods b"),
        (Method::GET, "/api/v1/namespaces/a/pods?watch=1", "impersonate-on:user-info:watch /pods a"),
        (Method::GET, "/api/v1/namespaces/a/pods/x/log", "impersonate-on:user-info:get /pods/log a x"),
        (Method::DELETE, PODS, "impersonate-on:user-info:deletecollection /pods a"),
        (
            Method::PATCH,
            "/apis/apps/v1/namespaces/a/deployments/x",
            "impersonate-on:user-info:patch apps/deployments a x",
        ),
        (Method::GET, "/version/", "impersonate-on:user-info:get /version/"),
    ] {
        let (code, reviews, message) = send(&front, method, path, &BOB).await;
        assert_eq!(
            (code, reviews.as_slice()),
            (403, &[on.to_owned(), "impersonate /users  bob".to_owned()][..])
        );
        let verb = on.split(' ').next().unwrap();
        assert!(message.contains(&format!("User \"ann\" cannot {verb} ")), "{message}");
    }
    // The second half alone does not suffice.
    grant(&front.api, &[on_list]);
    let (code, reviews, message) = send(&front, Method::GET, PODS, &BOB).await;
    assert_eq!((code, reviews.len()), (403, 3));
    assert!(message.starts_with("users.authentication.k8s.io \"bob\" is forbidden: User \"ann\" cannot impersonate:user-info resource \"users\""), "{message}");
    // The legacy permission decides when no mode does.
    grant(&front.api, &["impersonate /users  bob"]);
    let (code, reviews, _) = send(&front, Method::GET, PODS, &BOB).await;
    assert_eq!(
        (code, reviews.as_slice()),
        (200, &[on_list.to_owned(), "impersonate /users  bob".to_owned()][..])
    );
}

// S237: the selectors of a request are part of its attributes.
#[tokio::test]
async fn reviews_have_the_attributes_of_the_request() {
    let front = front().await;
    grant(&front.api, &[]);
    let path = "/apis/apps/v1/namespaces/a/deployments?fieldSelector=metadata.name%3Dx&labelSelector=b%3Dc";
    send(&front, Method::GET, path, &BOB).await;
    let review = front.api.requests().into_iter().find(|request| request.path() == REVIEW).unwrap().json();
    let expected = json!({
        "verb": "impersonate-on:user-info:list", "group": "apps", "version": "v1", "resource": "deployments",
        "namespace": "a", "name": "x",
        "fieldSelector": {"rawSelector": "metadata.name=x"}, "labelSelector": {"rawSelector": "b=c"},
    });
    assert_eq!(review["spec"]["resourceAttributes"], expected);
    assert_eq!(review["spec"]["user"], "ann");
    assert_eq!(review["spec"]["extra"]["example.org/foo"], json!(["x", "y"]));
}

// S237: UID, groups and extra attributes; four or more are asked for at once first.
#[tokio::test]
async fn every_part_of_the_identity_is_reviewed_in_order() {
    let front = front().await;
    let headers = [
        ("impersonate-user", "bob"),
        ("impersonate-uid", "9"),
        ("impersonate-group", "g1"),
        ("impersonate-group", "g2"),
        ("impersonate-group", "g3"),
        ("impersonate-group", "g4"),
        ("impersonate-extra-example.org%2fteam", "blue"),
    ];
    let auth = |rest: &str| format!("impersonate:user-info authentication.k8s.io/{rest}");
    let all = [
        "impersonate-on:user-info:list /pods a".to_owned(),
        auth("users  bob"),
        auth("uids  9"),
        auth("groups  *"),
        auth("userextras/example.org/team  blue"),
    ];
    let granted: Vec<&str> = all.iter().map(String::as_str).collect();
    grant(&front.api, &granted);
    let (code, reviews, _) = send(&front, Method::GET, PODS, &headers).await;
    assert_eq!((code, reviews.as_slice()), (200, &all[..]));
    // Without the permission for all groups, each is asked for.
    let each = ["g1", "g2", "g3", "g4"].map(|group| auth(&format!("groups  {group}")));
    let mut granted: Vec<&str> = granted.into_iter().filter(|one| !one.ends_with('*')).collect();
    granted.extend(each.iter().map(String::as_str));
    grant(&front.api, &granted);
    let (code, reviews, _) = send(&front, Method::GET, PODS, &headers).await;
    assert_eq!((code, reviews.len()), (200, 9));
    granted.retain(|one| !one.ends_with("g3"));
    grant(&front.api, &granted);
    let (code, _, message) = send(&front, Method::GET, PODS, &headers).await;
    assert_eq!(code, 403);
    assert!(message.starts_with("groups.authentication.k8s.io \"g3\" is forbidden"), "{message}");
}

// S237: what no constrained mode permits needs the legacy permission.
#[tokio::test]
async fn privileged_groups_and_invalid_keys_need_the_legacy_permission() {
    let front = front().await;
    let constrained = [
        "impersonate-on:user-info:list /pods a",
        "impersonate:user-info authentication.k8s.io/users  bob",
        "impersonate:user-info authentication.k8s.io/groups  system:masters",
        "impersonate:user-info authentication.k8s.io/userextras/team  blue",
    ];
    for (header, reason, legacy) in [
        (
            ("impersonate-group", "system:masters"),
            "impersonating the system:masters group is not allowed",
            "impersonate /groups  system:masters",
        ),
        (
            ("impersonate-extra-team", "blue"),
            "impersonating an invalid key in extra is not allowed",
            "impersonate authentication.k8s.io/userextras/team  blue",
        ),
    ] {
        let headers = [("impersonate-user", "bob"), header];
        grant(&front.api, &constrained);
        let (code, _, message) = send(&front, Method::GET, PODS, &headers).await;
        assert_eq!(code, 403, "{header:?}");
        assert!(message.ends_with(reason), "{message}");
        grant(&front.api, &[&constrained[..], &["impersonate /users  bob", legacy][..]].concat());
        assert_eq!(send(&front, Method::GET, PODS, &headers).await.0, 200, "{header:?}");
    }
}

// S237: service accounts and nodes have modes of their own, for their name alone.
#[tokio::test]
async fn service_accounts_and_nodes_have_their_own_modes() {
    let front = front().await;
    for (username, granted, groups) in [
        (
            "system:serviceaccount:ns:robot",
            [
                "impersonate-on:serviceaccount:list /pods a",
                "impersonate:serviceaccount authentication.k8s.io/serviceaccounts ns robot",
            ],
            &[][..],
        ),
        (
            "system:node:worker-1",
            [
                "impersonate-on:arbitrary-node:list /pods a",
                "impersonate:arbitrary-node authentication.k8s.io/nodes  worker-1",
            ],
            &["system:nodes"],
        ),
    ] {
        grant(&front.api, &granted);
        let (code, reviews, _) = send(&front, Method::GET, PODS, &[("impersonate-user", username)]).await;
        assert_eq!((code, reviews), (200, granted.map(str::to_owned).to_vec()));
        let seen = front.api.requests().pop().unwrap();
        assert_eq!(seen.header_values("impersonate-user"), [username]);
        // The API server would set the groups of a node itself; those of a service account it adds in any way.
        assert_eq!(seen.header_values("impersonate-group"), groups);
        // The rights for users do not extend to them, nor does the mode permit anything but the name.
        grant(
            &front.api,
            &[
                "impersonate-on:user-info:list /pods a",
                &format!("impersonate:user-info authentication.k8s.io/users  {username}"),
            ],
        );
        assert_eq!(send(&front, Method::GET, PODS, &[("impersonate-user", username)]).await.0, 403);
        grant(&front.api, &granted);
        let with_group = [("impersonate-user", username), ("impersonate-group", "x")];
        let (code, reviews, _) = send(&front, Method::GET, PODS, &with_group).await;
        assert_eq!(code, 403);
        assert!(reviews.iter().all(|review| review.starts_with("impersonate /")), "{reviews:?}");
    }
}

/// A service account on the node `worker-1`.
#[derive(Debug)]
struct NodeAgent;

impl TokenReviewer for NodeAgent {
    fn review<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Option<UserInfo>, ReviewFailed>> {
        let extra = [("node-name", "worker-1"), ("pod-name", "agent-x")]
            .map(|(key, value)| (format!("authentication.kubernetes.io/{key}"), vec![value.to_owned()]));
        let agent = UserInfo {
            username: "system:serviceaccount:ns:agent".to_owned(),
            extra: extra.into(),
            ..UserInfo::default()
        };
        Box::pin(async move { Ok(Some(agent)) })
    }
}

// S237: a node agent may act as the node that it runs on; the API server passes only the keys of its attributes.
#[tokio::test]
async fn node_agent_acts_as_its_own_node() {
    let settings = ProxySettings { service_account_tokens: ServiceAccountTokens::Impersonate, ..settings() };
    let front = Front::with(Plan { settings, reviewer: Some(Arc::new(NodeAgent)), ..Plan::default() }).await;
    serve_version(&front.api, "37");
    grant(
        &front.api,
        &[
            "impersonate-on:associated-node:list /pods a",
            "impersonate:associated-node authentication.k8s.io/nodes  *",
        ],
    );
    let token = front.token("agent", &json!({"iss": "https://kubernetes.default.svc"}));
    for (node, code) in [("system:node:worker-1", 200), ("system:node:worker-2", 403)] {
        let request = front.request(PODS, &token, &[("impersonate-user", node)]);
        assert_eq!(front.client().send(request).await.unwrap().status.as_u16(), code, "{node}");
    }
    let requests = front.api.requests();
    let review = requests.iter().find(|request| request.path() == REVIEW).unwrap().json();
    let keys = json!(["authentication.kubernetes.io/node-name", "authentication.kubernetes.io/pod-name"]);
    assert_eq!(review["spec"]["extra"], json!({"authentication.kubernetes.io/associated-node-keys": keys}));
    let seen = requests.iter().find(|request| request.path() == PODS).unwrap();
    assert_eq!(seen.header_values("impersonate-group"), ["system:nodes"]);
}

// S237: on servers before 1.36 the newer verbs, which a rule with `*` grants, permit nothing.
#[tokio::test]
async fn older_servers_have_only_the_legacy_permission() {
    let wide =
        ["impersonate-on:user-info:list /pods a", "impersonate:user-info authentication.k8s.io/users  bob"];
    let front = Front::set(settings()).await;
    serve_version(&front.api, "35");
    grant(&front.api, &wide);
    let (code, reviews, _) = send(&front, Method::GET, PODS, &BOB).await;
    assert_eq!((code, reviews.as_slice()), (403, &["impersonate /users  bob".to_owned()][..]));
    // The version is read once a minute.
    send(&front, Method::GET, PODS, &BOB).await;
    assert_eq!(front.api.count("/version"), 1);
    // An API server that does not say counts as an old one.
    let unknown = Front::set(settings()).await;
    unknown.api.answer("/version", Answer::status(404));
    grant(&unknown.api, &wide);
    assert_eq!(send(&unknown, Method::GET, PODS, &BOB).await.0, 403);
}

// S239: the number of reviews is bounded.
#[tokio::test]
async fn number_of_reviews_is_bounded() {
    let front = front().await;
    let groups: Vec<String> = (0..63).map(|number| format!("g{number}")).collect();
    let mut headers = vec![("impersonate-user", "bob")];
    headers.extend(groups.iter().map(|group| ("impersonate-group", group.as_str())));
    let (code, reviews, message) = send(&front, Method::GET, PODS, &headers).await;
    assert_eq!((code, reviews.len()), (403, 0));
    assert!(message.contains("too many"), "{message}");
    headers.pop();
    front.api.answer_with(REVIEW, |request| {
        let mut review = request.json();
        // Everything but the last group: as many reviews as possible.
        let is_last =
            ["g61", "*"].contains(&review["spec"]["resourceAttributes"]["name"].as_str().unwrap_or_default());
        review["status"] = json!({"allowed": !is_last});
        Answer::json(&review).with_status(201)
    });
    let (code, reviews, _) = send(&front, Method::GET, PODS, &headers).await;
    assert_eq!((code, reviews.len()), (403, 2 * 63 + 2));
}
