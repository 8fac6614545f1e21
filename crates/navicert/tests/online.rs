//! `--online` against a real issuer on loopback: the result of every probe step, and the evaluation of a real token.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "helpers of tests, which run the program itself"
)]

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use navicert_testkit::cli::output_schema;
use navicert_testkit::pki::jws::{Algorithm, SigningKey};
use navicert_testkit::{Answer, Ca, Issuer};
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
                "claimMappings": {
                    "username": {"claim": "sub", "prefix": "oidc:"},
                    "groups": {"claim": "groups", "prefix": "oidc:"},
                },
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

    /// The exit code and the response of `eval` or `explain` with keys from the issuer.
    fn decide(&self, verb: &str, profile: &str, token: &str) -> (Option<i32>, Value) {
        let arguments = [verb, "--online", "--config", "authn.yaml", "--profile", profile];
        let output = self.run(&arguments, token);
        let response = serde_json::from_slice(&output.stdout).unwrap();
        output_schema::check_all(&format!("authn-{verb}"), [&response]);
        (output.status.code(), response)
    }

    /// `(exit code, [(step, verdict)])` of a check.
    fn check(&self) -> (Option<i32>, Vec<(String, String)>) {
        let output = self.run(&["check", "--online", "authn.yaml"], "");
        let response: Value = serde_json::from_slice(&output.stdout).unwrap();
        output_schema::check_all("authn-check", [&response]);
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
    setup.issuer.replace_keys([SigningKey::generate(Algorithm::Es256, "k9")]);
    let (code, response) = judged("explain", &good);
    assert_eq!((code, &response["class"]), (Some(1), &json!("kid_unknown")), "{response}");
    assert!(response["hints"].to_string().contains("`k9`"), "{response}");
}

// S305: Keycloak publishes an encryption key beside its signing key.
#[test]
fn encryption_keys_are_not_counted_as_usable() {
    let setup = Setup::new();
    setup.configure(&setup.issuer.issuer_url(), &setup.ca);
    let mut encryption = SigningKey::generate(Algorithm::Es256, "enc").jwk();
    encryption["use"] = json!("enc");
    setup.issuer.add_odd_key(encryption);
    let output = setup.run(&["check", "--online", "authn.yaml"], "");
    let response: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(response["online"][0]["steps"][6]["note"], "1 usable, 1 unusable");
    setup.issuer.replace_keys([]);
    let (code, steps) = setup.check();
    assert_eq!((code, failure(&steps).as_str()), (Some(1), "the key set has usable keys"));
}

#[test]
fn explanation_fetches_each_document_once() {
    let setup = Setup::new();
    setup.configure(&setup.issuer.issuer_url(), &setup.ca);
    let token = setup.issuer.token(&setup.issuer.claims("ann", "kube", SystemClock.now()));
    let (code, response) = setup.decide("explain", "hardened", &token);
    assert_eq!((code, &response["kubeTakesIt"]), (Some(0), &json!(true)), "{response}");
    assert_eq!(setup.issuer.count(setup.issuer.discovery_path()), 1);
    assert_eq!(setup.issuer.count(setup.issuer.jwks_path()), 1);
}

#[test]
fn unreachable_issuer_is_exit_code_4_and_not_ready() {
    let setup = Setup::new();
    setup.configure("https://localhost:1", &setup.ca);
    let mut claims = setup.issuer.claims("ann", "kube", SystemClock.now());
    claims["iss"] = json!("https://localhost:1");
    let token = setup.issuer.token(&claims);
    for profile in ["kube", "hardened"] {
        for verb in ["eval", "explain"] {
            let (code, response) = setup.decide(verb, profile, &token);
            assert_eq!((code, &response["class"]), (Some(4), &json!("not_ready")), "{verb} {response}");
        }
        let (_, response) = setup.decide("explain", profile, &token);
        assert_eq!(response["steps"][3]["verdict"], "fail", "{response}");
        assert_eq!(response["kubeWouldLog"], "oidc: authenticator not initialized");
        let output = setup.run(&["explain", "--online", "--config", "authn.yaml"], &token);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(errors.contains("failed to fetch the keys of issuer `https://localhost:1`: "), "{errors}");
    }
    // A token of another issuer does not need this one.
    let (code, _) = setup.decide("eval", "kube", "opaque");
    assert_eq!(code, Some(1));
}

#[test]
fn failed_key_endpoint_is_reported_without_words_of_kube_apiserver() {
    let setup = Setup::new();
    setup.configure(&setup.issuer.issuer_url(), &setup.ca);
    setup.issuer.answer(setup.issuer.jwks_path(), Answer::status(503));
    let token = setup.issuer.token(&setup.issuer.claims("ann", "kube", SystemClock.now()));
    let (code, response) = setup.decide("explain", "hardened", &token);
    assert_eq!((code, &response["class"]), (Some(1), &json!("not_ready")), "{response}");
    assert_eq!((&response["kubeWouldLog"], &response["kubeTakesIt"]), (&json!(null), &json!(false)));
}

// S172, S175: as a server decides, and kube-apiserver too once it has discovered the claim's issuer.
#[test]
fn distributed_claims_are_resolved() {
    let setup = Setup::new();
    setup.configure(&setup.issuer.issuer_url(), &setup.ca);
    let mut source = setup.issuer.claims("ann", "kube", SystemClock.now());
    source["groups"] = json!(["dev"]);
    setup.issuer.answer("/groups", Answer::text(&setup.issuer.token(&source)));
    let mut claims = setup.issuer.claims("ann", "kube", SystemClock.now());
    claims["_claim_names"] = json!({"groups": "src"});
    claims["_claim_sources"] = json!({"src": {"endpoint": setup.issuer.url_of("/groups")}});
    let token = setup.issuer.token(&claims);
    for profile in ["kube", "hardened"] {
        let (code, response) = setup.decide("eval", profile, &token);
        assert_eq!((code, &response["user"]["groups"]), (Some(0), &json!(["oidc:dev"])), "{response}");
        let (code, response) = setup.decide("explain", profile, &token);
        assert_eq!((code, &response["kubeTakesIt"]), (Some(0), &json!(true)), "{response}");
    }
    setup.issuer.answer("/groups", Answer::status(500));
    let (code, response) = setup.decide("explain", "hardened", &token);
    assert_eq!((code, &response["class"]), (Some(1), &json!("distributed")), "{response}");
    let why = "the source of a distributed claim returned an error status";
    assert_eq!((&response["error"], &response["kubeWouldLog"]), (&json!(why), &json!(null)), "{response}");
}

#[test]
fn verdicts_are_coloured_unless_colours_are_off() {
    let setup = Setup::new();
    setup.configure("https://localhost:1", &setup.ca);
    for (verb, exit) in [
        (&["explain", "--online", "--config", "authn.yaml"][..], 1),
        (&["check", "--online", "authn.yaml"], 4),
    ] {
        let printed = |colour: (&str, &str)| {
            let output = Command::new(env!("CARGO_BIN_EXE_navicert"))
                .current_dir(setup.dir.path())
                .arg("authn")
                .args(verb)
                .env_remove("NO_COLOR")
                .env_remove("CLICOLOR_FORCE")
                .env(colour.0, colour.1)
                .stdin(Stdio::null())
                .output()
                .unwrap();
            assert_eq!(output.status.code(), Some(exit), "{output:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        let (forced, plain) = (printed(("CLICOLOR_FORCE", "1")), printed(("NO_COLOR", "1")));
        for word in ["\u{1b}[1;31mFAIL\u{1b}[0m", "\u{1b}[2mSKIP\u{1b}[0m"] {
            assert!(forced.contains(word), "{forced:?}");
        }
        assert!(!plain.contains('\u{1b}') && plain.contains("FAIL  "), "{plain:?}");
    }
}
