//! A kubeconfig that was written for kubelogin.

use std::path::Path;

use navicert_testkit::services::openid_provider::LOGIN_CLIENT;
use navicert_testkit::{Answer, ApiServer, Ca, Kubeconfig};
use serde_json::{Value, json};

use super::{LoginUser, claims, free_port, link_into, on_terminal, run};

/// Runs kubectl on a terminal with a kubeconfig that names `kubectl oidc-login get-token`, and this program as that plugin in `PATH`. The
/// first run logs in with the browser, the second one does not. Returns the claims of the token that arrived.
pub(crate) async fn use_kubeconfig_of_kubelogin(user: &LoginUser, kubectl: &Path, plugin: &Path) -> Value {
    let dir = tempfile::tempdir_in(&user.dir).unwrap();
    let path = link_into(&dir.path().join("bin"), &[("kubectl", kubectl), ("kubectl-oidc_login", plugin)]);
    let ca = Ca::new("API server");
    let api = ApiServer::start(&ca);
    api.answer_with("/echo", |request| {
        let authorization = request.header_values("authorization").join(",");
        Answer::json(&json!({"authorization": authorization}))
    });
    let exec = json!({"exec": {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": "kubectl",
        "args": [
            "oidc-login", "get-token",
            format!("--oidc-issuer-url={}", user.provider.issuer),
            format!("--oidc-client-id={LOGIN_CLIENT}"),
            "--oidc-extra-scope=email",
            format!("--certificate-authority={}", user.provider.ca_file.display()),
            format!("--listen-address=127.0.0.1:{}", free_port()),
            user.browser_flag(),
        ],
    }});
    let kubeconfig = Kubeconfig::new(api.url()).ca(&ca).user(exec).write(dir.path().join("kubeconfig"));
    let words = ["kubectl", "get", "--raw", "/echo"].map(str::to_owned);
    let program = on_terminal(&words)
        .own_environment()
        .variable("HOME", dir.path())
        .variable("PATH", path)
        .variable("KUBECONFIG", kubeconfig)
        .limit(super::LIMIT);
    let tabs = user.browser.tabs().await.len();
    let tokens = [(), ()].map(|()| {
        let (code, shown, _) = run(&program);
        assert_eq!(code, Some(0), "{shown}");
        let sent = shown.split("Bearer ").nth(1).and_then(|rest| rest.split('"').next());
        sent.unwrap_or_else(|| panic!("no token: {shown}")).to_owned()
    });
    assert_eq!(tokens[0], tokens[1], "the second run uses the cache");
    assert_eq!(user.browser.tabs().await.len(), tabs + 1, "one tab");
    claims(&tokens[0])
}
