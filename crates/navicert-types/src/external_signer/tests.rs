use super::*;
use crate::Timestamp;
use proptest::prelude::*;

fn configuration() -> SignerConfiguration {
    let pairs =
        [("objectId", "2"), ("pathExec", "/path/to/externalSigner"), ("pathLib", "/path/to/library.so")];
    let pairs = pairs.into_iter().chain([("pin", "123456"), ("slotId", "0")]);
    SignerConfiguration(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

#[test]
fn messages_equal_the_kep_examples_byte_for_byte() {
    // T40; the examples of KEP-20200507, without their white space.
    let configuration_text = r#"{"objectId":"2","pathExec":"/path/to/externalSigner","pathLib":"/path/to/library.so","pin":"123456","slotId":"0"}"#;
    let certificate =
        v1alpha1::Request::Certificate { configuration: configuration(), kinds: v1alpha1::Kinds::Kep };
    assert_eq!(
        certificate.to_json(),
        format!(
            r#"{{"apiVersion":"external-signer.authentication.k8s.io/v1alpha1","kind":"CertificateRequest","configuration":{configuration_text}}}"#
        )
    );
    let sign = v1alpha1::Request::Sign {
        configuration: configuration(),
        digest: STANDARD.decode("TqRUvJjLvlp3g9B3elpfzfgrSbukXBP5txkBLIkCSs4=").unwrap(),
        options_type: "*rsa.PSSOptions".to_owned(),
        options: r#"{"SaltLength":-1,"Hash":5}"#.to_owned(),
        kinds: v1alpha1::Kinds::Kep,
    };
    assert_eq!(
        sign.to_json(),
        format!(
            r#"{{"apiVersion":"external-signer.authentication.k8s.io/v1alpha1","kind":"SignRequest","digest":"TqRUvJjLvlp3g9B3elpfzfgrSbukXBP5txkBLIkCSs4=","configuration":{configuration_text},"signerOptsType":"*rsa.PSSOptions","signerOpts":"{{\"SaltLength\":-1,\"Hash\":5}}"}}"#
        )
    );
    for request in [certificate, sign] {
        assert_eq!(v1alpha1::Request::from_json(request.to_json().as_bytes()).unwrap(), request);
    }
    assert_eq!(
        v1alpha1::certificate_response(b"\x30\x00", v1alpha1::Kinds::Kep),
        r#"{"apiVersion":"external-signer.authentication.k8s.io/v1alpha1","kind":"CertificateResponse","certificate":"MAA="}"#
    );
    assert_eq!(
        v1alpha1::sign_response(b"\x01\x02", v1alpha1::Kinds::Kep),
        r#"{"apiVersion":"external-signer.authentication.k8s.io/v1alpha1","kind":"SignResponse","signature":"AQI="}"#
    );
}

#[test]
fn prototype_kinds_are_used_only_when_configured() {
    // C820
    use v1alpha1::Kinds::{Kep, Prototype};
    let request = v1alpha1::Request::Certificate { configuration: configuration(), kinds: Prototype };
    assert!(request.to_json().contains(r#""kind":"Certificate""#));
    let (certificate, signature) =
        (v1alpha1::certificate_response(b"x", Prototype), v1alpha1::sign_response(b"x", Prototype));
    assert!(
        certificate.contains(r#""kind":"ExternalPublicKey""#)
            && signature.contains(r#""kind":"ExternalSigner""#)
    );
    assert!(v1alpha1::read_certificate(certificate.as_bytes(), Prototype).is_ok());
    assert!(v1alpha1::read_signature(signature.as_bytes(), Prototype).is_ok());
    assert!(matches!(v1alpha1::read_certificate(certificate.as_bytes(), Kep), Err(MessageError::Kind(..))));
    assert!(matches!(v1alpha1::read_signature(signature.as_bytes(), Kep), Err(MessageError::Kind(..))));
    let kep = v1alpha1::certificate_response(b"x", Kep);
    assert!(
        v1alpha1::read_certificate(kep.as_bytes(), Prototype).is_ok(),
        "either kind is accepted in prototype mode"
    );
}

#[test]
fn rejects_invalid_responses() {
    // C821
    let head = r#""apiVersion":"external-signer.authentication.k8s.io/v1alpha1""#;
    let cases = [
        String::new(),
        "garbage".to_owned(),
        "[]".to_owned(),
        "{}".to_owned(),
        format!(r#"{{{head},"kind":"CertificateResponse"}}"#),
        format!(r#"{{{head},"kind":"CertificateResponse","certificate":"***"}}"#),
        format!(r#"{{{head},"kind":"CertificateResponse","certificate":"MAA"}}"#),
        format!(r#"{{{head},"kind":"CertificateResponse","certificate":7}}"#),
        format!(r#"{{{head},"kind":"SignResponse","certificate":"MAA="}}"#),
        r#"{"apiVersion":"v1","kind":"CertificateResponse","certificate":"MAA="}"#.to_owned(),
    ];
    for text in cases {
        assert!(v1alpha1::read_certificate(text.as_bytes(), v1alpha1::Kinds::Kep).is_err(), "{text}");
    }
    let unknown = format!(r#"{{{head},"kind":"CertificateResponse","certificate":"MAA=","new":1}}"#);
    assert!(v1alpha1::read_certificate(unknown.as_bytes(), v1alpha1::Kinds::Kep).is_ok());
}

#[test]
fn v1_messages_round_trip() {
    // C882–C885, X10
    let messages = [
        v1::Message::Ready { socket: "/run/s".to_owned() },
        v1::Message::Prompt { message: "touch".to_owned(), kind: "touch".to_owned() },
        v1::Message::Certificate {
            chain: vec![vec![1], vec![2]],
            schemes: vec!["ed25519".to_owned()],
            expires: Some(Timestamp::UNIX_EPOCH),
            key_handle: Some("k".to_owned()),
        },
        v1::Message::Signature { signature: vec![3], scheme: "ed25519".to_owned() },
        v1::Message::Error {
            reason: "PinLocked".to_owned(),
            message: "m".to_owned(),
            retry_after_seconds: Some(3),
        },
    ];
    let last: Vec<bool> = messages.iter().map(v1::Message::is_last).collect();
    assert_eq!(last, [false, false, true, true, true]);
    for message in messages {
        let text = message.to_json();
        assert!(!text.contains('\n'));
        assert_eq!(v1::Message::from_json(text.as_bytes()).unwrap(), message, "{text}");
    }
    let sign = v1::Request::Sign(v1::SignRequest {
        configuration: configuration(),
        cluster: Some(v1::SignerCluster { server: "https://c".to_owned(), tls_server_name: String::new() }),
        interactive: true,
        key_handle: None,
        scheme: "ecdsa_secp256r1_sha256".to_owned(),
        message: b"message".to_vec(),
        digest: None,
    });
    assert_eq!(v1::Request::from_json(sign.to_json().as_bytes()).unwrap(), sign);
    let certificate =
        v1::Request::Certificate(v1::CertificateRequest { interactive: true, ..Default::default() });
    assert_eq!(
        certificate.to_json(),
        r#"{"apiVersion":"external-signer.authentication.k8s.io/v1","kind":"CertificateRequest","configuration":{},"interactive":true}"#
    );
    assert_eq!(v1::Request::from_json(certificate.to_json().as_bytes()).unwrap(), certificate);
}

#[test]
fn pin_is_never_printed_and_not_part_of_the_identity() {
    // X2, C841
    let with = configuration();
    let shown = format!(
        "{with:?} {:?}",
        v1alpha1::Request::Certificate { configuration: with.clone(), kinds: v1alpha1::Kinds::Kep }
    );
    assert!(!shown.contains("123456") && shown.contains("pin"), "{shown}");
    assert_eq!(with.identity(), with.without_pin().identity());
    assert!(!with.identity().contains("123456"));
    let malformed = v1alpha1::Request::from_json(br#"{"pin":"123456"}"#).unwrap_err();
    assert!(!format!("{malformed} {malformed:?}").contains("123456"));
}

proptest! {
    #[test]
    fn decoders_never_panic(text in "[\\PC{}\":,a-zA-Z]{0,80}") {
        let _ = (v1alpha1::Request::from_json(text.as_bytes()), v1::Request::from_json(text.as_bytes()));
        let _ = v1::Message::from_json(text.as_bytes());
    }
}
