//! The proxy's own permissions: legacy and constrained impersonation, granted in full, in part or not at all.

use std::sync::Arc;

use navicert_client::credential::BoxFuture;
use navicert_server::health::Check as _;
use navicert_server::proxy::service_accounts::{ReviewFailed, TokenReviewer};
use navicert_server::proxy::settings::{ProxySettings, SelfCheck, ServiceAccountTokens};
use navicert_server::proxy::upstream_access::PermissionsCheck;
use navicert_testkit::{Answer, ApiServer};
use navicert_types::token_review::UserInfo;
use serde_json::json;

use super::{Front, Plan};

const SELF_REVIEW: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
const VERBS: [&str; 8] = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];

/// Grants the permissions that `may` accepts, as `VERB GROUP/RESOURCE[/SUBRESOURCE]` or `VERB PATH`.
pub(super) fn grant(api: &ApiServer, may: impl Fn(&str) -> bool + Send + Sync + 'static) {
    api.answer_with(SELF_REVIEW, move |request| {
        let mut review = request.json();
        let spec = &review["spec"];
        let text = |field: &str, name: &str| spec[field][name].as_str().unwrap_or_default().to_owned();
        let asked = match spec["nonResourceAttributes"].is_object() {
            true => {
                format!("{} {}", text("nonResourceAttributes", "verb"), text("nonResourceAttributes", "path"))
            }
            false => {
                let part = |name: &str| text("resourceAttributes", name);
                let path = format!(
                    "{} {}/{}/{}",
                    part("verb"),
                    part("group"),
                    part("resource"),
                    part("subresource")
                );
                path.trim_end_matches('/').to_owned()
            }
        };
        review["status"] = json!({"allowed": may(&asked)});
        Answer::json(&review).with_status(201)
    });
}

pub(super) fn serve_version(api: &ApiServer, minor: &str) {
    api.answer("/version", Answer::json(&json!({"major": "1", "minor": minor})));
}

async fn front(settings: ProxySettings) -> Front {
    let front = Front::with(Plan { settings, ..Plan::default() }).await;
    serve_version(&front.api, "37");
    front
}

fn is_first_half(asked: &str) -> bool {
    asked.starts_with("impersonate:user-info authentication.k8s.io/")
}

fn is_second_half(asked: &str) -> bool {
    asked.starts_with("impersonate-on:user-info:") && (asked.ends_with(" */*") || asked.ends_with(" /*"))
}

/// The note of `/readyz?verbose`.
fn note(front: &Front) -> Option<String> {
    PermissionsCheck(Arc::clone(front.proxy.upstream_access())).note()
}

// S237, S270: both halves are needed; the rules that are printed are those of the half that is missing.
#[tokio::test]
async fn constrained_impersonation_needs_both_halves() {
    for (first, second) in [(false, false), (true, false), (false, true), (true, true)] {
        let front = front(ProxySettings::default()).await;
        grant(&front.api, move |asked| (first && is_first_half(asked)) || (second && is_second_half(asked)));
        let verdict = front.proxy.upstream_access().check().await;
        assert_eq!(front.proxy.upstream_access().permissions(), verdict);
        let Err(rules) = verdict else {
            assert!(first && second);
            assert_eq!(note(&front), None);
            continue;
        };
        assert_eq!(note(&front), None);
        let has = |part: &str| rules.contains(part);
        match (first, second) {
            (false, false) => {
                assert!(has("resources: [\"users\", \"groups\"], verbs: [\"impersonate\"]"), "{rules}");
                assert!(!has("user-info"), "{rules}");
            }
            (true, false) => {
                assert!(
                    has("- {nonResourceURLs: [\"/*\"], verbs: [\"impersonate-on:user-info:get\"]}"),
                    "{rules}"
                );
                for verb in VERBS {
                    assert!(has(&format!("\"impersonate-on:user-info:{verb}\"")), "{verb}: {rules}");
                }
                assert!(!has("impersonate:user-info") && !has("\"impersonate\""), "{rules}");
            }
            (false, true) => {
                let rule = "- {apiGroups: [\"authentication.k8s.io\"], resources: [\"users\", \"groups\", \"uids\", \
                            \"userextras/authentication.kubernetes.io/credential-id\", \"userextras/example.org/foo\"], \
                            verbs: [\"impersonate:user-info\"]}";
                assert!(has(rule) && !has("impersonate-on"), "{rules}");
            }
            (true, true) => panic!("both halves suffice: {rules}"),
        }
    }
}

// S237, S270: rules for some verbs suffice, with a warning that names the others.
#[tokio::test]
async fn missing_verbs_are_reported_and_do_not_fail_readiness() {
    let front = front(ProxySettings::default()).await;
    let access = front.proxy.upstream_access();
    for missing in VERBS.iter().map(|verb| format!("impersonate-on:user-info:{verb} */*")) {
        let denied = missing.clone();
        grant(&front.api, move |asked| is_first_half(asked) || (is_second_half(asked) && asked != denied));
        assert_eq!(access.check().await, Ok(()), "{missing}");
        let note = note(&front).unwrap();
        let verb = missing.split([':', ' ']).nth(2).unwrap();
        let servable: Vec<&str> = VERBS.into_iter().filter(|one| *one != verb).collect();
        let expected = format!(
            "requests of users can be forwarded for {}, get of paths such as /version and /apis, but not for {verb}; to \
             forward them, add these rules to the proxy's ClusterRole:\n\
             - {{apiGroups: [\"*\"], resources: [\"*\"], verbs: [\"impersonate-on:user-info:{verb}\"]}}\n",
            servable.join(", ")
        );
        assert_eq!(note, expected);
    }
    // Read-only, without discovery.
    let read = ["get", "list", "watch"].map(|verb| format!("impersonate-on:user-info:{verb} */*"));
    grant(&front.api, move |asked| is_first_half(asked) || read.iter().any(|one| one == asked));
    assert_eq!(access.check().await, Ok(()));
    let note = note(&front).unwrap();
    let expected = "can be forwarded for get, list, watch, but not for create, update, patch, delete, deletecollection, \
                    get of paths such as /version and /apis;";
    assert!(note.contains(expected), "{note}");
    // Legacy impersonation permits everything.
    grant(&front.api, |asked| asked.starts_with("impersonate "));
    assert_eq!((access.check().await, self::note(&front)), (Ok(()), None));
}

// S237: one mode has to permit the whole identity.
#[tokio::test]
async fn halves_of_both_ways_do_not_add_up() {
    let front = front(ProxySettings::default()).await;
    grant(&front.api, |asked| {
        asked == "impersonate /users"
            || (is_first_half(asked) && !asked.ends_with("/users"))
            || is_second_half(asked)
    });
    let rules = front.proxy.upstream_access().check().await.unwrap_err();
    assert!(
        rules.contains("{apiGroups: [\"\"], resources: [\"groups\"], verbs: [\"impersonate\"]}"),
        "{rules}"
    );
}

// S237: a rule with the verb `*` grants the newer verbs on servers that do not know them.
#[tokio::test]
async fn constrained_permissions_do_not_count_on_older_servers() {
    for (minor, is_sufficient) in [("35", false), ("36", true), ("37+", true)] {
        let front = front(ProxySettings::default()).await;
        serve_version(&front.api, minor);
        grant(&front.api, |asked| asked.contains(":user-info"));
        let verdict = front.proxy.upstream_access().check().await;
        assert_eq!(verdict.is_ok(), is_sufficient, "{minor}: {verdict:?}");
        if let Err(rules) = verdict {
            assert!(rules.contains("verbs: [\"impersonate\"]"), "{rules}");
        }
    }
}

/// Accepts tokens that end in `robot`, as a service account whose token is bound to a pod.
#[derive(Debug)]
struct BoundTokens;

impl TokenReviewer for BoundTokens {
    fn review<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<UserInfo>, ReviewFailed>> {
        let extra = ["credential-id", "pod-name", "pod-uid", "node-name", "node-uid"];
        let extra =
            extra.map(|key| (format!("authentication.kubernetes.io/{key}"), vec![format!("a-{key}")]));
        let robot = UserInfo {
            username: "system:serviceaccount:ns:robot".to_owned(),
            uid: "u-1".to_owned(),
            groups: vec!["system:serviceaccounts".to_owned(), "system:serviceaccounts:ns".to_owned()],
            extra: extra.into(),
        };
        let answer = Ok(token.ends_with("robot").then_some(robot));
        Box::pin(async move { answer })
    }
}

async fn service_accounts(self_check: SelfCheck) -> (Front, String) {
    let settings = ProxySettings {
        service_account_tokens: ServiceAccountTokens::Impersonate,
        self_check,
        ..ProxySettings::default()
    };
    let front =
        Front::with(Plan { settings, reviewer: Some(Arc::new(BoundTokens)), ..Plan::default() }).await;
    serve_version(&front.api, "37");
    let token =
        front.token("system:serviceaccount:ns:robot", &json!({"iss": "https://kubernetes.default.svc"}));
    let token = format!("{}.robot", token.rsplit_once('.').unwrap().0);
    (front, token)
}

// S276: a service account of a pod has a UID and five extra attributes, which the self-check asks for.
#[tokio::test]
async fn attributes_of_bound_tokens_are_required_and_sent() {
    let (front, token) = service_accounts(SelfCheck::Required).await;
    let access = front.proxy.upstream_access();
    for missing in [
        "create authentication.k8s.io/tokenreviews",
        "impersonate /serviceaccounts",
        "impersonate /groups",
        "impersonate authentication.k8s.io/uids",
        "impersonate authentication.k8s.io/userextras/authentication.kubernetes.io/credential-id",
        "impersonate authentication.k8s.io/userextras/authentication.kubernetes.io/pod-name",
        "impersonate authentication.k8s.io/userextras/authentication.kubernetes.io/pod-uid",
        "impersonate authentication.k8s.io/userextras/authentication.kubernetes.io/node-name",
        "impersonate authentication.k8s.io/userextras/authentication.kubernetes.io/node-uid",
    ] {
        grant(&front.api, move |asked| {
            !asked.contains(":user-info") && !asked.contains(":serviceaccount") && asked != missing
        });
        let rules = access.check().await.unwrap_err();
        let resource = missing.rsplit_once(' ').unwrap().1.split_once('/').unwrap().1;
        assert!(rules.contains(&format!("resources: [\"{resource}\"]")), "{missing}: {rules}");
    }
    grant(&front.api, |asked| asked.starts_with("impersonate ") || asked.starts_with("create "));
    assert_eq!(access.check().await, Ok(()));
    assert_eq!(front.get("/robots", &token).await.status, 200);
    let seen = front.api.requests().pop().unwrap();
    assert_eq!(seen.header_values("impersonate-user"), ["system:serviceaccount:ns:robot"]);
    assert_eq!(seen.header_values("impersonate-uid"), ["u-1"]);
    assert_eq!(
        seen.header_values("impersonate-group"),
        ["system:serviceaccounts", "system:serviceaccounts:ns"]
    );
    let pod = seen.header_values("impersonate-extra-authentication.kubernetes.io%2fpod-name");
    assert_eq!(pod, ["a-pod-name"]);
}

// S237, S276: constrained impersonation takes a service account's name alone.
#[tokio::test]
async fn only_the_name_of_a_service_account_is_sent_with_constrained_permissions() {
    for self_check in [SelfCheck::Required, SelfCheck::Warn] {
        let (front, token) = service_accounts(self_check).await;
        let access = front.proxy.upstream_access();
        let constrained =
            |asked: &str| asked.starts_with("create ") || is_first_half(asked) || is_second_half(asked);
        // Without the mode for service accounts, its rules are missing.
        grant(&front.api, constrained);
        let rules = access.check().await.unwrap_err();
        let name = "- {apiGroups: [\"authentication.k8s.io\"], resources: [\"serviceaccounts\"], \
                    verbs: [\"impersonate:serviceaccount\"]}\n";
        assert!(rules.contains(name) && rules.contains("impersonate-on:serviceaccount:list"), "{rules}");
        grant(&front.api, move |asked| constrained(asked) || asked.contains(":serviceaccount"));
        assert_eq!(access.check().await, Ok(()));
        assert_eq!(front.get("/robots", &token).await.status, 200);
        let seen = front.api.requests().pop().unwrap();
        let identity: Vec<&str> = seen
            .headers
            .keys()
            .map(http::HeaderName::as_str)
            .filter(|name| name.starts_with("impersonate"))
            .collect();
        assert_eq!(identity, ["impersonate-user"]);
        assert_eq!(seen.header_values("impersonate-user"), ["system:serviceaccount:ns:robot"]);
        // Other users are sent with everything.
        assert_eq!(front.get("/users", &front.ann()).await.status, 200);
        assert_eq!(front.api.requests().pop().unwrap().header_values("impersonate-uid"), ["7"]);
        // Some verbs of service accounts only.
        grant(&front.api, move |asked| {
            constrained(asked)
                || asked.starts_with("impersonate:serviceaccount")
                || asked == "impersonate-on:serviceaccount:get */*"
        });
        assert_eq!(access.check().await, Ok(()));
        let note = note(&front).unwrap();
        assert!(
            note.starts_with("requests of service accounts can be forwarded for get, but not for list,"),
            "{note}"
        );
    }
}
