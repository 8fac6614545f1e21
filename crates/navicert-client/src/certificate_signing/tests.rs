use std::sync::Arc;

use navicert_testkit::{Answer, ApiServer, Ca, wait as within};
use serde_json::Value;

use super::*;
use crate::context::ClientContext;
use crate::credential::{Credential, StaticCredential};
use crate::transport::{TokioTimer, TransportSettings, Trust};

const PEM: &str = "-----BEGIN CERTIFICATE REQUEST-----\nAA==\n-----END CERTIFICATE REQUEST-----\n";
const NAME: &str = "navicert-abcde";

fn server() -> (ApiServer, Transport) {
    let ca = Ca::new("root");
    let api = ApiServer::start(&ca);
    api.accept_everyone();
    let settings =
        TransportSettings { trust: Trust::Pem(ca.pem().into_bytes()), ..TransportSettings::new(api.url()) };
    let credential = Arc::new(StaticCredential::new(Credential::anonymous()));
    let transport = Transport::new(settings, credential, ClientContext::system()).unwrap();
    (api, transport)
}

fn object(status: &Value) -> Answer {
    Answer::json(&json!({"kind": "CertificateSigningRequest", "metadata": {"name": NAME}, "status": status}))
}

fn condition(kind: &str) -> Value {
    json!({"type": kind, "status": "True", "reason": "Reviewed", "message": "by \u{1b}[31mbob"})
}

fn request(name: Option<&str>) -> SigningRequest {
    SigningRequest {
        request_pem: PEM.to_owned(),
        name: name.map(ToOwned::to_owned),
        signer_name: KUBE_APISERVER_CLIENT.to_owned(),
        expiration: Some(Duration::from_secs(3600)),
    }
}

#[tokio::test]
async fn request_names_signer_usage_and_validity() {
    let (api, transport) = server();
    api.answer(COLLECTION, object(&json!({})).with_status(201));
    assert_eq!(submit(&transport, &request(None)).await.unwrap(), NAME);
    let sent: Value = serde_json::from_slice(&api.requests().pop().unwrap().body).unwrap();
    assert_eq!(
        sent,
        json!({
            "apiVersion": "certificates.k8s.io/v1",
            "kind": "CertificateSigningRequest",
            "metadata": {"generateName": "navicert-"},
            "spec": {
                "request": STANDARD.encode(PEM),
                "signerName": "kubernetes.io/kube-apiserver-client",
                "usages": ["client auth"],
                "expirationSeconds": 3600,
            },
        })
    );
    submit(&transport, &request(Some("ann-laptop"))).await.unwrap();
    let sent: Value = serde_json::from_slice(&api.requests().pop().unwrap().body).unwrap();
    assert_eq!(sent["metadata"], json!({"name": "ann-laptop"}));
}

#[tokio::test]
async fn state_is_that_of_the_object() {
    let (api, transport) = server();
    let path = format!("{COLLECTION}/{NAME}");
    for (status, expected) in [
        (json!({}), SigningState::Pending),
        (json!({"conditions": [condition("Approved")]}), SigningState::Approved),
        (
            json!({"conditions": [condition("Approved")], "certificate": STANDARD.encode("chain")}),
            SigningState::Issued("chain".to_owned()),
        ),
    ] {
        api.answer(&path, object(&status));
        assert_eq!(state(&transport, NAME).await.unwrap(), expected);
    }
    for (kind, text) in [
        ("Denied", "CertificateSigningRequest `navicert-abcde` was denied: Reviewed: by "),
        (
            "Failed",
            "the signer failed to issue a certificate for CertificateSigningRequest `navicert-abcde`: Reviewed: by ",
        ),
    ] {
        api.answer(&path, object(&json!({"conditions": [condition(kind)]})));
        let error = state(&transport, NAME).await.unwrap_err().to_string();
        assert!(error.starts_with(text) && !error.contains('\u{1b}'), "{error}");
    }
}

#[tokio::test]
async fn rejections_and_strange_responses_are_errors() {
    let (api, transport) = server();
    api.answer(COLLECTION, Answer::failure(403, "Forbidden", "ann cannot create that"));
    let error = submit(&transport, &request(None)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "server rejected the CertificateSigningRequest: 403 Forbidden: ann cannot create that"
    );
    assert!(!error.is_unreachable());
    api.answer(COLLECTION, Answer::json(&json!({"kind": "Status"})));
    assert!(matches!(submit(&transport, &request(None)).await, Err(SigningRequestError::Unexpected)));
    for name in ["", "..", "a/b", "A", "a b", &"a".repeat(254)] {
        let refused = submit(&transport, &request(Some(name))).await;
        assert!(matches!(refused, Err(SigningRequestError::Name(_))), "{name}: {refused:?}");
    }
    api.refuse_connections();
    assert!(submit(&transport, &request(None)).await.unwrap_err().is_unreachable());
}

#[tokio::test]
async fn waiting_ends_with_the_certificate_or_the_time_limit() {
    let (api, transport) = server();
    let path = format!("{COLLECTION}/{NAME}");
    api.answer(&path, object(&json!({"conditions": [condition("Approved")]})));
    let error = wait(&transport, &TokioTimer, NAME, Duration::ZERO).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "CertificateSigningRequest `navicert-abcde` was not issued within 0 seconds"
    );
    let (waiting, issuing) = tokio::join!(
        within::within("a certificate", wait(&transport, &TokioTimer, NAME, Duration::from_secs(60))),
        async { api.answer(&path, object(&json!({"certificate": STANDARD.encode("chain")}))) },
    );
    let () = issuing;
    assert_eq!(waiting.unwrap(), "chain");
}
