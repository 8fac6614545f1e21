//! `--online` against a real issuer on loopback: the result of every probe step, and the evaluation of a real token.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "helpers of tests, which run the program itself"
)]

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use navicert_testkit::{Ca, Issuer};
use navicert_types::{Clock as _, SystemClock};
use serde_json::{Value, json};

struct Setup {
    ca: Ca,
    issuer: Issuer,
    dir: tempfile::TempDir,
}

impl Setup {
    fn new() -> Self {
        let ca = Ca::new("online");
        Setup { issuer: Issuer::start(&ca), ca, dir: tempfile::tempdir().unwrap() }
    }

    /// Writes a configuration for an issuer URL.
    fn configure(&self, url: &str, trusted: &Ca) {
        let config = json!({
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "AuthenticationConfiguration",
            "jwt": [{
                "issuer": {"url": url, "audiences": ["kube"], "certificateAuthority": trusted.pem()},
                "claimMappings": {"username": {"claim": "sub", "prefix": "oidc:"}},
            }],
        });
        std::fs::write(self.dir.path().join("authn.yaml"), config.to_string()).unwrap();
    }

    fn run(&self, arguments: &[&str], input: &str) -> Output {
        let mut child = Command::new(env!("CARGO_BIN_EXE_navicert"))
            .current_dir(self.dir.path())
            .args(["-o", "json", "authn"])
            .args(arguments)
            .env_remove("HTTPS_PROXY")
            .env_remove("https_proxy")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    /// `(exit code, [(step, verdict)])` of a check.
    fn check(&self) -> (Option<i32>, Vec<(String, String)>) {
        let output = self.run(&["check", "--online", "authn.yaml"], "");
        let response: Value = serde_json::from_slice(&output.stdout).unwrap();
        let steps = response["online"][0]["steps"].as_array().unwrap().iter().map(|step| {
            let text = |name: &str| step[name].as_str().unwrap().to_owned();
            (text("step"), text("verdict"))
        });
        (output.status.code(), steps.collect())
    }
}

/// The step that failed, and that all before it passed and none after it was tried.
fn failure(steps: &[(String, String)]) -> String {
    let at = steps.iter().position(|(_, verdict)| verdict == "fail").unwrap();
    assert!(steps.iter().take(at).all(|(_, verdict)| verdict == "pass"), "{steps:?}");
    assert!(steps.iter().skip(at + 1).all(|(_, verdict)| verdict == "skip"), "{steps:?}");
    steps[at].0.clone()
}

// S305
#[test]
fn a_good_issuer_passes_every_step() {
    let setup = Setup::new();
    setup.configure(&setup.issuer.issuer_url(), &setup.ca);
    let (code, steps) = setup.check();
    assert_eq!(code, Some(0), "{steps:?}");
    assert_eq!(steps.len(), 8);
    assert!(steps.iter().all(|(_, verdict)| verdict == "pass"), "{steps:?}");
}

// S305, A57
#[test]
fn each_issuer_fault_fails_its_step() {
    let setup = Setup::new();
    let url = setup.issuer.issuer_url();
    setup.configure(&url, &Ca::new("another"));
    let (code, steps) = setup.check();
    assert_eq!((code, failure(&steps).as_str()), (Some(4), "the server certificate is trusted"));
    setup.configure(&format!("{url}/"), &setup.ca);
    let (code, steps) = setup.check();
    assert_eq!((code, failure(&steps).as_str()), (Some(1), "the discovery document belongs to the issuer"));
    setup.configure("https://localhost:1", &setup.ca);
    let (code, steps) = setup.check();
    assert_eq!((code, failure(&steps).as_str()), (Some(4), "the host accepts connections"));
    setup.configure(&url, &setup.ca);
    setup.issuer.replace_keys([]);
    let (code, steps) = setup.check();
    assert_eq!((code, failure(&steps).as_str()), (Some(1), "the key set has usable keys"));
    setup.issuer.set_discovery("jwks_uri", json!(5));
    let (code, steps) = setup.check();
    assert_eq!((code, failure(&steps).as_str()), (Some(1), "the discovery document is valid"));
}

#[test]
fn token_is_evaluated_and_explained_with_fetched_keys() {
    let setup = Setup::new();
    setup.configure(&setup.issuer.issuer_url(), &setup.ca);
    let mut claims = setup.issuer.claims("ann", "kube", SystemClock.now());
    let good = setup.issuer.token(&claims);
    let judged = |verb: &str, token: &str| {
        let output = setup.run(&[verb, "--online", "--config", "authn.yaml"], token);
        (output.status.code(), serde_json::from_slice::<Value>(&output.stdout).unwrap())
    };
    let (code, response) = judged("eval", &good);
    assert_eq!((code, &response["user"]["username"]), (Some(0), &json!("oidc:ann")), "{response}");
    claims["aud"] = json!("other");
    let other = setup.issuer.token(&claims);
    let (code, response) = judged("explain", &other);
    assert_eq!((code, &response["class"]), (Some(1), &json!("audience")), "{response}");
    let logged = response["kubeWouldLog"].as_str().unwrap();
    assert_eq!(logged, "oidc: verify token: oidc: expected audience \"kube\" got …");
    // The issuer changes its keys: the old token's key is gone, and that is said.
    setup.issuer.replace_keys([navicert_testkit::jws::SigningKey::generate(
        navicert_testkit::jws::Algorithm::Es256,
        "k9",
    )]);
    let (code, response) = judged("explain", &good);
    assert_eq!((code, &response["class"]), (Some(1), &json!("kid_unknown")), "{response}");
    assert!(response["hints"].to_string().contains("`k9`"), "{response}");
}
