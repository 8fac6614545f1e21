//! `navicert signer request` against a real kube-apiserver (`make interop`): a key that is made in SoftHSM or in a TPM, a
//! `CertificateSigningRequest` that an administrator approves with kubectl, and the stored certificate in use.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod hsm_support;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use navicert_testkit::cli::program::Outcome;
use navicert_testkit::k8s::cluster::Cluster;
use navicert_testkit::{Program, SoftHsm, SoftTpm, wait};
use serde_json::{Value, json};
use tempfile::TempDir;

const PIN: &str = "canary-271828";
const USER: &str = "device-ann";

/// A device, and a home without any file about it.
struct Device {
    module: PathBuf,
    token: String,
    variables: Vec<(OsString, OsString)>,
    home: TempDir,
}

impl Device {
    fn new(module: &Path, token: &str, variables: Vec<(OsString, OsString)>) -> Self {
        let home = tempfile::tempdir().unwrap();
        Device { module: module.to_owned(), token: token.to_owned(), variables, home }
    }

    fn uri(&self) -> String {
        format!("pkcs11:token={};object=ann", self.token.replace(' ', "%20"))
    }

    fn navicert(&self, arguments: &[&str]) -> Program {
        let signer = hsm_support::signer();
        let mut program = Program::new(env!("CARGO_BIN_EXE_navicert"))
            .arguments(arguments)
            .own_environment()
            .variable("PATH", format!("{}:/usr/bin:/bin", signer.parent().unwrap().display()))
            .variable("HOME", self.home.path())
            .variable("NAVICERT_PKCS11_MODULE", &self.module)
            .variable("NAVICERT_PINENTRY", hsm_support::pinentry(self.home.path(), PIN));
        for (name, value) in &self.variables {
            program = program.variable(name, value);
        }
        program
    }
}

fn stdout(outcome: &Outcome) -> String {
    assert_eq!(outcome.code(), Some(0), "{}", String::from_utf8_lossy(&outcome.stderr));
    String::from_utf8(outcome.stdout.clone()).unwrap()
}

fn kubectl(cluster: &Cluster, arguments: &[&str]) -> String {
    stdout(&cluster.kubectl(cluster.admin_kubeconfig()).arguments(arguments).run().unwrap())
}

/// What kube-controller-manager does, which the control plane of the tests lacks: issues the certificate of an approved request.
fn issue(cluster: &Cluster, name: &str, directory: &Path) {
    let object: Value = serde_json::from_str(&kubectl(cluster, &["get", "csr", name, "-o", "json"])).unwrap();
    assert_eq!(object["status"]["conditions"][0]["type"], "Approved");
    assert_eq!(object["spec"]["signerName"], "kubernetes.io/kube-apiserver-client");
    assert_eq!(object["spec"]["usages"], json!(["client auth"]));
    assert_eq!(object["spec"]["expirationSeconds"], 3600);
    let file = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    let request = object["spec"]["request"].as_str().unwrap();
    let decode = Program::new("base64").arguments(["-d"]).stdin(request).run().unwrap();
    std::fs::write(file("request.pem"), stdout(&decode)).unwrap();
    std::fs::write(file("client.ext"), "extendedKeyUsage = clientAuth\n").unwrap();
    let (authority, key) = cluster.client_ca();
    let signed = Program::new("openssl")
        .arguments([
            "x509",
            "-req",
            "-days",
            "1",
            "-in",
            &file("request.pem"),
            "-extfile",
            &file("client.ext"),
        ])
        .arguments(["-set_serial", "4711", "-CA", authority.to_str().unwrap()])
        .arguments(["-CAkey", key.to_str().unwrap()])
        .run()
        .unwrap();
    let encoded = Program::new("base64").arguments(["-w0"]).stdin(stdout(&signed)).run().unwrap();
    let mut issued = object;
    issued["status"]["certificate"] = json!(stdout(&encoded).trim());
    std::fs::write(file("issued.json"), issued.to_string()).unwrap();
    let path = format!("/apis/certificates.k8s.io/v1/certificatesigningrequests/{name}/status");
    kubectl(cluster, &["replace", "--raw", &path, "-f", &file("issued.json")]);
}

/// From a device without a key to the answer of the API server.
fn assert_request_leads_to_access(cluster: &Cluster, device: &Device, kind: &str, name: &str) {
    let uri = device.uri();
    let admin = cluster.admin_kubeconfig().to_str().unwrap();
    let subject = ["--common-name", USER, "--organization", "developers", "--organization", "on-call"];
    let request = ["signer", "request", &uri, "--generate", kind];
    let submit =
        ["--submit", "--name", name, "--valid-for", "1h", "--wait", "--store", "--kubeconfig", admin];
    let arguments = [&request[..], &subject, &submit].concat();
    let running = device.navicert(&arguments).start_running().unwrap();
    wait::blocking(running.wait_for_output("kubectl certificate approve"));
    kubectl(cluster, &["certificate", "approve", name]);
    issue(cluster, name, device.home.path());
    let printed = wait::blocking(running.wait_for_output("navicert signer check"));
    assert!(printed.contains("stored the certificate in token"), "{printed}");
    assert!(running.status().success());

    let listed = stdout(&device.navicert(&["signer", "list"]).run().unwrap());
    let authority = std::fs::read_to_string(cluster.ca()).unwrap();
    hsm_support::paste(&listed, device.home.path(), USER, cluster.server(), &authority);
    let client = cluster.kubectl(Path::new("/nonexistent")).to_string();
    let review = device.navicert(&["run", "--", &client, "auth", "whoami", "-o", "json"]).run().unwrap();
    let review: Value = serde_json::from_str(&stdout(&review)).unwrap();
    let user = &review["status"]["userInfo"];
    assert_eq!(user["username"], USER);
    assert_eq!(user["groups"], json!(["developers", "on-call", "system:authenticated"]));
}

#[test]
fn certificate_is_requested_approved_and_stored_in_softhsm() {
    let cluster = Cluster::shared();
    for (kind, name) in [("ec-p256", "softhsm-ec"), ("rsa-2048", "softhsm-rsa")] {
        let Some(hsm) = SoftHsm::start("my token", PIN) else { return };
        let device = Device::new(hsm.module(), hsm.label(), hsm.variables());
        assert_request_leads_to_access(cluster, &device, kind, name);
    }
}

#[test]
fn certificate_is_requested_approved_and_stored_in_a_tpm() {
    let cluster = Cluster::shared();
    let Some(tpm) = SoftTpm::start(PIN) else { return };
    let device = Device::new(tpm.module(), tpm.label(), tpm.variables());
    assert_request_leads_to_access(cluster, &device, "ec-p256", "tpm-ec");
}

#[test]
fn denied_request_is_an_error_that_says_why() {
    let cluster = Cluster::shared();
    let Some(hsm) = SoftHsm::start("my token", PIN) else { return };
    let device = Device::new(hsm.module(), hsm.label(), hsm.variables());
    let admin = cluster.admin_kubeconfig().to_str().unwrap();
    let uri = device.uri();
    let request = ["signer", "request", &uri, "--generate", "ec-p256", "--common-name", USER];
    let submit = ["--submit", "--name", "denied", "--wait", "--kubeconfig", admin];
    let running = device.navicert(&[&request[..], &submit].concat()).start_running().unwrap();
    wait::blocking(running.wait_for_output("kubectl certificate approve"));
    kubectl(cluster, &["certificate", "deny", "denied"]);
    wait::blocking(running.wait_for_output("CertificateSigningRequest `denied` was denied"));
    assert_eq!(running.status().code(), Some(1));
}
