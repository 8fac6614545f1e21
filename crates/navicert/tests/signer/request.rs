//! `navicert signer request` with SoftHSM: what it prints, submits and stores, and how often it asks for the PIN.

use navicert_testkit::cli::output_schema;
use navicert_testkit::pki::ca::pem;
use navicert_testkit::{Answer, ApiServer, Ca, Canaries, KeyKind, Kubeconfig, Program, SoftHsm, TestContext};
use serde_json::{Value, json};

use super::{PIN, Setup, stdout, times_asked};

const COLLECTION: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const SUBJECT: &str = "--common-name ann --organization developers --organization on-call";

/// What OpenSSL says about a PEM text.
fn openssl(arguments: &[&str], text: &str) -> String {
    stdout(&Program::new("openssl").arguments(arguments).stdin(text).run().unwrap())
}

/// A sandbox whose kubeconfig leads to this server.
fn context_for(setup: &Setup, api: &ApiServer, ca: &Ca) -> TestContext {
    let context = setup.context(PIN);
    let kube = context.home().join(".kube");
    std::fs::create_dir_all(&kube).unwrap();
    api.accept_token("t", "ann", &[]);
    Kubeconfig::new(api.url()).ca(ca).token("t").write(kube.join("config"));
    context
}

#[test]
fn key_is_made_and_its_request_printed() {
    let Some(setup) = Setup::new(KeyKind::EcP256) else { return };
    for (kind, object, size) in [("ec-p256", "curve", "(256 bit)"), ("rsa-2048", "rsa", "(2048 bit)")] {
        let context = setup.context(PIN);
        let command = format!(
            "navicert signer request 'pkcs11:token=my%20token;object={object}' --generate {kind} {SUBJECT}"
        );
        let printed = stdout(&context.run(&command));
        let shown = openssl(&["req", "-verify", "-noout", "-text", "-nameopt", "RFC2253"], &printed);
        assert!(shown.contains("Subject: CN=ann,O=on-call,O=developers"), "{shown}");
        assert!(shown.contains(size), "{shown}");
        assert_eq!(times_asked(&context), 1, "one PIN for key and signature");
        let again = stdout(&context.run(&command));
        let key = |text: &str| openssl(&["req", "-pubkey", "-noout"], text);
        assert_eq!(key(&printed), key(&again), "the key is there already");
        let objects = setup.hsm.objects();
        assert!(objects.contains(&format!("label:      {object}")), "{objects}");
    }
}

#[test]
fn request_is_submitted_and_the_issued_certificate_stored() {
    let Some(setup) = Setup::new(KeyKind::EcP256) else { return };
    let ca = Ca::new("cluster");
    let api = ApiServer::start(&ca);
    let context = context_for(&setup, &api, &ca);
    let key = setup.hsm.generate(KeyKind::EcP256, "07", "requested");
    let issued =
        pem("CERTIFICATE", &ca.client("ann").organization("developers").issue_for(&key.public_key)[0]);
    let object = |status: Value| {
        Answer::json(
            &json!({"kind": "CertificateSigningRequest", "metadata": {"name": "navicert-1"}, "status": status}),
        )
    };
    api.answer(COLLECTION, object(json!({})).with_status(201));
    let command = format!("navicert signer request 'pkcs11:token=my%20token;id=%07' {SUBJECT} --submit");
    let printed = stdout(&context.run(&command));
    assert!(printed.contains("kubectl certificate approve navicert-1"), "{printed}");

    let encoded = Program::new("base64").arguments(["-w0"]).stdin(issued.clone()).run().unwrap();
    api.answer(&format!("{COLLECTION}/navicert-1"), object(json!({"certificate": stdout(&encoded).trim()})));
    let wait = "--name navicert-1 --wait --store -o json";
    let resumed = format!("navicert signer request 'pkcs11:token=my%20token;id=%07' {wait}");
    let report: Value = serde_json::from_str(&stdout(&context.run(&resumed))).unwrap();
    output_schema::check_all("signer-request", [&report]);
    assert_eq!((&report["stored"], &report["keyCreated"]), (&json!(true), &json!(false)));
    assert_eq!(report["certificate"], issued);
    let checked =
        stdout(&context.run(&format!("navicert signer check '{}'", report["uri"].as_str().unwrap())));
    assert!(checked.contains("certificate valid until"), "{checked}");
    let mut canaries = Canaries::new();
    canaries.adopt("the PIN", PIN.as_bytes());
    canaries.assert_absent("the report", report.to_string().as_bytes());
}

#[test]
fn certificate_is_self_signed_or_from_a_file() {
    let Some(setup) = Setup::new(KeyKind::EcP256) else { return };
    let context = setup.context(PIN);
    let uri = "'pkcs11:token=my%20token;id=%01'";
    let printed = stdout(
        &context.run(&format!("navicert signer request {uri} {SUBJECT} --self-signed --valid-for 24h")),
    );
    let shown = openssl(&["x509", "-noout", "-text", "-nameopt", "RFC2253"], &printed);
    assert!(shown.contains("TLS Web Client Authentication"), "{shown}");
    let file = context.directory().join("own.crt");
    std::fs::write(&file, &printed).unwrap();
    let stored =
        stdout(&context.run(&format!("navicert signer request {uri} --certificate own.crt --store")));
    assert!(stored.starts_with("stored the certificate in token my token, valid until"), "{stored}");
    // With its issuers, which a client sends too.
    let requested = setup.hsm.generate(KeyKind::EcP256, "08", "requested");
    let chain = Ca::new("root").intermediate("issuing").client("ann").issue_for(&requested.public_key);
    std::fs::write(&file, chain.iter().map(|der| pem("CERTIFICATE", der)).collect::<String>()).unwrap();
    let uri_with_chain = "'pkcs11:token=my%20token;id=%08'";
    let stored = stdout(
        &context.run(&format!("navicert signer request {uri_with_chain} --certificate own.crt --store")),
    );
    assert!(
        stored.starts_with("stored the certificate and that of its issuer in token my token"),
        "{stored}"
    );
    let checked = stdout(&context.run(&format!("navicert signer check {uri_with_chain}")));
    assert!(checked.contains("certificate chain length 2"), "{checked}");
    let other = SoftHsm::start("other", PIN).map(|hsm| hsm.generate(KeyKind::EcP256, "01", "x")).unwrap();
    let foreign = pem("CERTIFICATE", &Ca::new("root").client("ann").issue_for(&other.public_key)[0]);
    std::fs::write(&file, foreign).unwrap();
    let refused = context.run(&format!("navicert signer request {uri} --certificate own.crt --store"));
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.code() == Some(1) && message.contains("it is for another key"), "{message}");
}
