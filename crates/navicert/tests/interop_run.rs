//! `navicert run` between the current kubectl and a real kube-apiserver (`make interop`): whose rights a command has, by
//! certificate, by plugin and by keys in devices, and what a read-only gateway lets through.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod hsm_support;

use std::ffi::OsString;
use std::path::Path;

use navicert_testkit::cluster::Cluster;
use navicert_testkit::program::Outcome;
use navicert_testkit::softhsm::HsmKey;
use navicert_testkit::{KeyKind, Program, SoftHsm, SoftTpm};
use serde_json::Value;

/// `navicert run [flags] -- kubectl …` with the kubectl that belongs to the cluster.
fn run(cluster: &Cluster, kubeconfig: &Path, flags: &[&str], arguments: &[&str]) -> Outcome {
    let home = tempfile::tempdir().unwrap();
    let kubectl = cluster.kubectl(kubeconfig).to_string();
    Program::new(env!("CARGO_BIN_EXE_navicert"))
        .arguments(["run"])
        .arguments(flags)
        .arguments(["--", kubectl.as_str()])
        .arguments(arguments)
        .variable("HOME", home.path())
        .variable("KUBECONFIG", kubeconfig)
        .run()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn succeeds(cluster: &Cluster, kubeconfig: &Path, flags: &[&str], arguments: &[&str]) -> String {
    let outcome = run(cluster, kubeconfig, flags, arguments);
    assert_eq!(outcome.code(), Some(0), "{flags:?} {arguments:?}: {}", text(&outcome.stderr));
    text(&outcome.stdout)
}

// Issue 8: whoami through the gateway is the certificate's user and groups; so is a plugin's token.
#[test]
fn a_command_is_whoever_the_credential_says() {
    let cluster = Cluster::shared();
    for (kubeconfig, user, group) in [
        (cluster.admin_kubeconfig(), "peers-admin", "system:masters"),
        (cluster.jwt_kubeconfig(), "peers:ann", "peers:developers"),
    ] {
        for flags in [&[][..], &["--read-only"]] {
            let review = succeeds(cluster, kubeconfig, flags, &["auth", "whoami", "-o", "json"]);
            let review: Value = serde_json::from_str(&review).unwrap();
            assert_eq!(review["status"]["userInfo"]["username"], user);
            let groups = review["status"]["userInfo"]["groups"].to_string();
            assert!(groups.contains(group), "{groups}");
        }
    }
}

const PIN: &str = "canary-271828";

/// `navicert run -- kubectl auth whoami` with a key in a device, for which the cluster's own authority of clients issues
/// a certificate, and the lines that `signer list` prints.
fn assert_is_whom_the_certificate_names(
    cluster: &Cluster,
    (module, variables): (&Path, Vec<(OsString, OsString)>),
    key: &HsmKey,
    import: impl FnOnce(&[u8]),
) {
    let authority = cluster.client_authority();
    let certificate = authority.client("hardware-ann").organization("developers").organization("on-call");
    import(certificate.issue_for(&key.public_key).first().unwrap());

    let home = tempfile::tempdir().unwrap();
    let signer = hsm_support::signer();
    let path = format!("{}:/usr/bin:/bin", signer.parent().unwrap().display());
    let navicert = |arguments: &[&str]| {
        let mut program = Program::new(env!("CARGO_BIN_EXE_navicert"))
            .arguments(arguments)
            .own_environment()
            .variable("PATH", &path)
            .variable("HOME", home.path())
            .variable("NAVICERT_PKCS11_MODULE", module)
            .variable("NAVICERT_PINENTRY", hsm_support::pinentry(home.path(), PIN));
        for (name, value) in &variables {
            program = program.variable(name, value);
        }
        let outcome = program.run().unwrap();
        assert_eq!(outcome.code(), Some(0), "{arguments:?}: {}", text(&outcome.stderr));
        text(&outcome.stdout)
    };
    let authority = std::fs::read_to_string(cluster.ca()).unwrap();
    let listed = navicert(&["signer", "list"]);
    hsm_support::paste(&listed, home.path(), "hardware-ann", cluster.server(), &authority);
    let kubectl = cluster.kubectl(Path::new("/nonexistent")).to_string();
    let review = navicert(&["run", "--", &kubectl, "auth", "whoami", "-o", "json"]);
    let review: Value = serde_json::from_str(&review).unwrap();
    let user = &review["status"]["userInfo"];
    assert_eq!(user["username"], "hardware-ann");
    assert_eq!(user["groups"], serde_json::json!(["developers", "on-call", "system:authenticated"]));
}

// Issue 8, T44: a key that pkcs11-tool made in SoftHSM, of every kind the API server takes.
#[test]
fn a_command_is_whom_the_certificate_of_a_key_in_softhsm_names() {
    let cluster = Cluster::shared();
    for kind in [KeyKind::EcP256, KeyKind::Rsa2048, KeyKind::EcP384, KeyKind::Ed25519] {
        let Some(hsm) = SoftHsm::start("my token", PIN) else { return };
        let key = hsm.generate(kind, "01", "work key");
        let import = |certificate: &[u8]| hsm.import_certificate(certificate, "01", "work key");
        assert_is_whom_the_certificate_names(cluster, (hsm.module(), hsm.variables()), &key, import);
    }
}

// Issue 8: so does a TPM key.
#[test]
fn a_command_is_whom_the_certificate_of_a_key_in_a_tpm_names() {
    let cluster = Cluster::shared();
    let Some(tpm) = SoftTpm::start(PIN) else { return };
    let key = tpm.generate("work key");
    let import = |certificate: &[u8]| tpm.import_certificate(certificate, "work key");
    assert_is_whom_the_certificate_names(cluster, (tpm.module(), tpm.variables()), &key, import);
}

#[test]
fn reading_and_writing_go_through_and_a_watch_ends_with_its_command() {
    let cluster = Cluster::shared();
    let admin = cluster.admin_kubeconfig();
    let made = succeeds(cluster, admin, &[], &["create", "namespace", "through-the-gateway"]);
    assert!(made.contains("created"), "{made}");
    let listed = succeeds(cluster, admin, &[], &["get", "namespaces", "-o", "name"]);
    assert!(listed.contains("namespace/through-the-gateway"), "{listed}");
    let waited =
        ["wait", "--for=jsonpath={.status.phase}=Active", "namespace/through-the-gateway", "--timeout=20s"];
    assert!(succeeds(cluster, admin, &[], &waited).contains("condition met"));
    let applied = ["apply", "--server-side", "-f", "-"];
    let manifest = "{apiVersion: v1, kind: ConfigMap, metadata: {name: made, namespace: through-the-gateway}, data: {a: b}}";
    let home = tempfile::tempdir().unwrap();
    let kubectl = cluster.kubectl(admin).to_string();
    let outcome = Program::new(env!("CARGO_BIN_EXE_navicert"))
        .arguments(["run", "--", kubectl.as_str()])
        .arguments(applied)
        .variable("HOME", home.path())
        .variable("KUBECONFIG", admin)
        .stdin(manifest)
        .run()
        .unwrap();
    assert_eq!(outcome.code(), Some(0), "{}", text(&outcome.stderr));
}

#[test]
fn a_read_only_gateway_lets_look_and_ask_but_not_change() {
    let cluster = Cluster::shared();
    let admin = cluster.admin_kubeconfig();
    let read_only = ["--read-only"];
    assert!(succeeds(cluster, admin, &read_only, &["get", "namespaces"]).contains("default"));
    assert_eq!(succeeds(cluster, admin, &read_only, &["auth", "can-i", "delete", "pods"]).trim(), "yes");
    succeeds(cluster, admin, &read_only, &["api-resources"]);
    succeeds(cluster, admin, &read_only, &["explain", "pods.spec"]);
    for arguments in [
        &["create", "namespace", "never"][..],
        &["delete", "namespace", "default"],
        &["label", "namespace", "default", "a=b"],
        &["create", "token", "default"],
        &["get", "--raw", "/api/v1/namespaces/default/services/kubernetes/proxy/"],
    ] {
        let refused = run(cluster, admin, &read_only, arguments);
        assert_ne!(refused.code(), Some(0), "{arguments:?}");
        assert!(text(&refused.stderr).contains("read-only"), "{arguments:?}: {}", text(&refused.stderr));
    }
    let never = run(cluster, admin, &[], &["get", "namespace", "never"]);
    assert_ne!(never.code(), Some(0));
}

// The API server's own refusal arrives as it is.
#[test]
fn a_user_without_rights_is_told_so_by_the_api_server() {
    let cluster = Cluster::shared();
    let refused = run(cluster, cluster.jwt_kubeconfig(), &[], &["delete", "namespace", "default"]);
    assert_ne!(refused.code(), Some(0));
    assert!(text(&refused.stderr).contains("Forbidden"), "{}", text(&refused.stderr));
}
