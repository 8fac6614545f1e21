//! A certificate, a client certificate authority and an issuer's certificate authority that the kubelet mounts and
//! rotates: pod certificates (`credentialBundlePath`) and cluster trust bundles.

use navicert_testkit::{Ca, HttpClient, Identity, ProjectedVolume, wait};
use serde_json::{Value, json};

use super::{Serving, Setup};

/// Status of a review by a client with this certificate; `None` if the connection fails.
async fn ask(serving: &Serving, ca: &Ca, client: &Identity, token: &str) -> Option<(u16, Value)> {
    let review =
        json!({"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "spec": {"token": token}});
    let url = format!("https://{}/authenticate", serving.listen);
    let client = HttpClient::with_identity(ca, client);
    let reply = Box::pin(client.post_json(&url, &review)).await.ok()?;
    Some((reply.status.as_u16(), reply.json()["status"]["user"]["username"].clone()))
}

async fn until(what: &str, serving: &Serving, ca: &Ca, (client, token): (&Identity, &str), expected: &Value) {
    let asking = async {
        while Box::pin(ask(serving, ca, client, token)).await != Some((200, expected.clone())) {
            tokio::task::yield_now().await;
        }
    };
    wait::within(what, Box::pin(asking)).await;
}

#[tokio::test]
async fn pod_certificate_and_trust_bundles_are_followed_when_the_kubelet_rotates_them() {
    let setup = Setup::new();
    let mut config: Value = serde_json::from_str(&setup.config("oidc:")).unwrap();
    config["jwt"][0]["issuer"].as_object_mut().unwrap().remove("certificateAuthority");
    setup.write("config.yaml", &config.to_string());
    let navicert_config = json!({
        "apiVersion": "navicert/v1alpha1", "kind": "NavicertConfiguration", "servers": {"readyIssuers": "none"},
        "issuers": [{"url": setup.issuer.issuer_url(), "certificateAuthorityFile": "volume/issuer.pem"}],
    });
    setup.write("navicert.yaml", &navicert_config.to_string());
    std::fs::create_dir(setup.path("volume")).unwrap();
    let [old_servers, new_servers, old_clients, new_clients, other] =
        ["old servers", "new servers", "old clients", "new clients", "other"].map(Ca::new);
    let files = |server: &Ca, clients: &Ca, issuer: &Ca| {
        let bundle = server.server().issue().credential_bundle_pem();
        [("bundle.pem", bundle), ("clients.pem", clients.pem()), ("issuer.pem", issuer.pem())]
    };
    let volume = ProjectedVolume::create(&setup.path("volume"), &files(&old_servers, &old_clients, &other));
    let bundle = ["--tls-cert-file", "volume/bundle.pem", "--tls-private-key-file", "volume/bundle.pem"];
    let trust = ["--client-ca-file", "volume/clients.pem", "--navicert-config", "navicert.yaml"];
    let serving = setup.serve(&[bundle, trust].concat()).await;
    let token = setup.token(&json!({}));
    let (old_client, new_client) =
        (old_clients.client("kube-apiserver").issue(), new_clients.client("kube-apiserver").issue());

    // The issuer is not trusted yet, so its keys are missing.
    let response = ask(&serving, &old_servers, &old_client, &token).await;
    assert_eq!(response, Some((200, Value::Null)));
    volume.update(&files(&old_servers, &old_clients, &setup.ca));
    let accepted = json!("oidc:ann");
    until("the issuer's authority", &serving, &old_servers, (&old_client, &token), &accepted).await;

    volume.update(&files(&new_servers, &new_clients, &setup.ca));
    until("the new certificate", &serving, &new_servers, (&new_client, &token), &accepted).await;
    let response = ask(&serving, &new_servers, &old_client, &token).await;
    assert!(response.is_none_or(|(code, _)| code == 401), "the old authority is no longer trusted");
    let (_, page) = serving.inspect("/metrics").await;
    assert!(page.contains("navicert_tls_certificate_reloads_total{status=\"failure\"} 0"), "{page}");
}
