//! A real kube-apiserver uses `navicert serve webhook` in both API versions, and accepts the files of `examples/deploy`
//! (`make interop`).
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "helpers of tests; a broken set-up should stop the test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use navicert_testkit::cli::program::Running;
use navicert_testkit::k8s::cluster::Cluster;
use navicert_testkit::{Ca, HttpClient, Issuer, Kubeconfig, Program, wait};
use navicert_types::{Clock as _, SystemClock};
use serde_json::{Value, json};

const NAVICERT: &str = env!("CARGO_BIN_EXE_navicert");

/// A webhook with an issuer that the API server knows nothing of.
struct Webhook {
    issuer: Issuer,
    dir: tempfile::TempDir,
    running: Running,
    kubeconfig: PathBuf,
    health: String,
}

impl Webhook {
    fn start() -> Self {
        let (ca, callers) = (Ca::new("webhook"), Ca::new("callers"));
        let issuer = Issuer::start(&ca);
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let config = json!({
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",
            "jwt": [{
                "issuer": {"url": issuer.issuer_url(), "audiences": ["web"], "certificateAuthority": ca.pem()},
                "claimMappings": {
                    "username": {"expression": "'web:' + claims.sub"},
                    "groups": {"expression": "claims.groups.map(group, 'web:' + group)"},
                    "uid": {"claim": "id"},
                    "extra": [{"key": "example.org/team", "valueExpression": "claims.team"}],
                },
            }],
        });
        fs::write(at("config.yaml"), config.to_string()).unwrap();
        let head = "apiVersion: navicert/v1alpha1\nkind: ";
        fs::write(
            at("navicert.yaml"),
            format!("{head}NavicertConfiguration\nrevocationList: revoked.yaml\n"),
        )
        .unwrap();
        fs::write(at("revoked.yaml"), format!("{head}RevocationList\n")).unwrap();
        fs::write(at("ca.pem"), ca.pem()).unwrap();
        fs::write(at("callers.pem"), callers.pem()).unwrap();
        for (name, identity) in
            [("tls", ca.server().issue()), ("caller", callers.client("kube-apiserver").issue())]
        {
            fs::write(at(&format!("{name}.crt")), identity.chain_pem()).unwrap();
            fs::write(at(&format!("{name}.key")), identity.key_pem()).unwrap();
        }
        let program = || {
            Program::new(NAVICERT)
                .arguments(["serve", "webhook", "-o", "json", "--authentication-config", "config.yaml"])
                .arguments(["--tls-cert-file", "tls.crt", "--tls-private-key-file", "tls.key"])
                .arguments(["--client-ca-file", "callers.pem", "--client-allowed-names", "kube-apiserver"])
                .arguments(["--api-audiences", "https://kubernetes.default.svc"])
                .arguments(["--navicert-config", "navicert.yaml"])
                .directory(dir.path())
        };
        let running = program()
            .arguments([
                "--listen",
                "127.0.0.1:0",
                "--health-listen",
                "127.0.0.1:0",
                "--audit-log-path",
                "audit.log",
            ])
            .start_running()
            .unwrap();
        let said = wait::blocking(running.wait_for_output("\"server\":\"webhook\"}\n"));
        let told = said.lines().find(|line| line.starts_with("{\"health\"")).unwrap();
        let told: Value = serde_json::from_str(told).unwrap();
        let text = |name: &str| told.get(name).and_then(Value::as_str).unwrap().to_owned();
        let printed = program()
            .arguments(["--print-kubeconfig", "--server-url", &format!("https://{}", text("listen"))])
            .arguments(["--certificate-authority", "ca.pem", "--client-certificate"])
            .arguments([at("caller.crt")])
            .arguments(["--client-key"])
            .arguments([at("caller.key")])
            .run()
            .unwrap();
        assert_eq!(printed.code(), Some(0), "{}", String::from_utf8_lossy(&printed.stderr));
        let kubeconfig = at("webhook.kubeconfig");
        fs::write(&kubeconfig, printed.stdout).unwrap();
        Webhook { kubeconfig, health: text("health"), issuer, dir, running }
    }

    fn token(&self) -> String {
        let mut claims = self.issuer.claims("ann", "web", SystemClock.now());
        let more = json!({"jti": "j-1", "groups": ["dev", "a, b"], "id": "u-1", "team": "é"});
        let claims = claims.as_object_mut().unwrap();
        claims.extend(more.as_object().unwrap().clone());
        self.issuer.token(&json!(claims))
    }

    async fn is_ready(&self) {
        let any = HttpClient::trusting(&Ca::new("unused"));
        let asking = async {
            while any.get(&format!("http://{}/readyz", self.health)).await.unwrap().status != 200 {}
        };
        wait::within("readiness", Box::pin(asking)).await;
    }
}

fn kubeconfig(cluster: &Cluster, dir: &Path, token: &str) -> PathBuf {
    let config = Kubeconfig::new(cluster.server()).ca_file(cluster.ca()).token(token);
    config.write(dir.join("user.kubeconfig"))
}

fn whoami(cluster: &Cluster, kubeconfig: &Path) -> (Option<i32>, Value, String) {
    let outcome = cluster.kubectl(kubeconfig).arguments(["auth", "whoami", "-o", "json"]).run().unwrap();
    let told = serde_json::from_slice(&outcome.stdout).unwrap_or_default();
    (outcome.code(), told, String::from_utf8_lossy(&outcome.stderr).into_owned())
}

// S208–S222: how the API server interprets the webhook's responses.
#[test]
fn kube_apiserver_accepts_reviews_in_both_versions() {
    for version in ["v1", "v1beta1"] {
        let webhook = Webhook::start();
        let flags = [
            format!("--authentication-token-webhook-config-file={}", webhook.kubeconfig.display()),
            format!("--authentication-token-webhook-version={version}"),
            "--authentication-token-webhook-cache-ttl=1s".to_owned(),
        ];
        let cluster = Cluster::start_with(&flags.each_ref().map(String::as_str));
        wait::blocking(webhook.is_ready());
        let path = kubeconfig(&cluster, webhook.dir.path(), &webhook.token());
        let (code, told, complaint) = whoami(&cluster, &path);
        assert_eq!(code, Some(0), "{version}: {complaint}\n{}", webhook.running.output());
        let expected = json!({
            "username": "web:ann", "uid": "u-1", "groups": ["web:dev", "web:a, b", "system:authenticated"],
            "extra": {
                "authentication.kubernetes.io/credential-id": ["JTI=j-1"], "example.org/team": ["é"],
            },
        });
        assert_eq!(told.pointer("/status/userInfo"), Some(&expected), "{version}");
        // A bad token is a 401 of the API server without retries.
        let bad = navicert_testkit::pki::jws::with_tampered_signature(&webhook.token());
        let (code, _, complaint) = whoami(&cluster, &kubeconfig(&cluster, webhook.dir.path(), &bad));
        assert!(code != Some(0) && complaint.contains("Unauthorized"), "{complaint}");
        let audit = fs::read_to_string(webhook.dir.path().join("audit.log")).unwrap();
        assert!(
            audit.contains("\"caller\":\"kube-apiserver\"") && audit.contains("\"username\":\"web:ann\""),
            "{audit}"
        );
        assert_eq!(audit.matches("\"reason\":\"signature\"").count(), 1, "{audit}");
    }
}

// docs/webhook.md: an accepted token works for up to the TTL and ten seconds more after it was revoked, and no longer.
#[test]
fn revoked_token_lives_as_long_as_the_caches_of_kube_apiserver() {
    const TTL: Duration = Duration::from_secs(10);
    const SECOND_CACHE: Duration = Duration::from_secs(10);
    let webhook = Webhook::start();
    let flags = [
        format!("--authentication-token-webhook-config-file={}", webhook.kubeconfig.display()),
        "--authentication-token-webhook-version=v1".to_owned(),
        format!("--authentication-token-webhook-cache-ttl={}s", TTL.as_secs()),
    ];
    let cluster = Cluster::start_with(&flags.each_ref().map(String::as_str));
    wait::blocking(webhook.is_ready());
    let path = kubeconfig(&cluster, webhook.dir.path(), &webhook.token());
    let (code, _, complaint) = whoami(&cluster, &path);
    assert_eq!(code, Some(0), "{complaint}");
    let revoked = format!(
        "apiVersion: navicert/v1alpha1\nkind: RevocationList\ntokens: [{{issuer: '{}', jti: j-1}}]\n",
        webhook.issuer.issuer_url()
    );
    let at = |name: &str| webhook.dir.path().join(name);
    fs::write(at("revoked.new"), revoked).unwrap();
    fs::rename(at("revoked.new"), at("revoked.yaml")).unwrap();
    let reloaded = wait::blocking(webhook.running.wait_for_output("revocation_list_reloaded"));
    assert!(reloaded.contains("revocation_list_reloaded"));
    // The webhook answers no accepted review from here on, so the API server's caches were filled before.
    let since = SystemClock.monotonic();
    let mut last_accepted = None;
    loop {
        let asked = SystemClock.monotonic().saturating_sub(since);
        let (code, _, complaint) = whoami(&cluster, &path);
        if code != Some(0) {
            assert!(complaint.contains("Unauthorized"), "{complaint}");
            break;
        }
        assert!(asked <= TTL + SECOND_CACHE, "accepted {asked:?} after it was revoked");
        last_accepted = Some(asked);
    }
    assert!(last_accepted.is_some(), "the API server's caches outlive the revocation");
}

// What `examples/deploy` describes is what an API server takes.
#[test]
fn the_example_deployment_is_accepted() {
    let cluster = Cluster::shared();
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/deploy");
    let admin = || cluster.kubectl(cluster.admin_kubeconfig());
    let made = admin().arguments(["create", "namespace", "navicert"]).run().unwrap();
    assert_eq!(made.code(), Some(0), "{}", String::from_utf8_lossy(&made.stderr));
    let applied = admin().arguments(["apply", "--dry-run=server", "-k"]).arguments([deploy]).run().unwrap();
    let told = String::from_utf8_lossy(&applied.stdout);
    assert_eq!(applied.code(), Some(0), "{told}{}", String::from_utf8_lossy(&applied.stderr));
    for object in [
        "deployment.apps/",
        "poddisruptionbudget",
        "horizontalpodautoscaler",
        "networkpolicy",
        "clusterrole",
        "configmap/",
    ] {
        assert!(told.contains(object), "{object} in {told}");
    }
}
