//! Which pairs become an identity. Upstream's results for unusual pairs are in the vectors (exec-output.jsonl).

use super::*;

fn pair() -> (String, String) {
    let made = rcgen::generate_simple_self_signed(vec!["a.example".to_owned()]).unwrap();
    (made.cert.pem(), made.signing_key.serialize_pem())
}

#[test]
fn matching_pair_is_an_identity_and_debug_output_hides_its_key() {
    let (certificate, key) = pair();
    let identity = ClientIdentity::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap();
    assert_eq!(identity.chain().len(), 1);
    assert!(identity.validity().not_before < identity.validity().not_after);
    let shown = format!("{identity:?} {:?}", identity.expose_key().unwrap());
    let line = key.lines().nth(1).unwrap();
    assert!(!shown.contains(line), "{shown}");
}

// C335
#[test]
fn each_invalid_pair_has_its_own_error() {
    let ((certificate, key), (other, other_key)) = (pair(), pair());
    let both = format!("{key}{certificate}");
    let encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let legacy = "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES\n\nAAAA\n-----END EC PRIVATE KEY-----\n";
    let cases = [
        (certificate.as_str(), other_key.as_str(), IdentityError::Mismatch),
        ("", &key, IdentityError::NoPemInCertificate),
        (&key, &key, IdentityError::KeyInCertificate),
        (&certificate, "junk", IdentityError::NoPemInKey),
        (&certificate, &other, IdentityError::CertificateInKey),
        (&certificate, encrypted, IdentityError::EncryptedKey),
        (&certificate, legacy, IdentityError::EncryptedKey),
        (
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
            &key,
            IdentityError::MalformedCertificate,
        ),
    ];
    for (certificate, key, expected) in cases {
        assert_eq!(ClientIdentity::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap_err(), expected);
    }
    assert!(
        ClientIdentity::from_pem(both.as_bytes(), both.as_bytes()).is_ok(),
        "certificate and key in both inputs is fine"
    );
}

// C464
#[test]
fn identities_are_compared_by_their_chains() {
    let ((certificate, key), (other, other_key)) = (pair(), pair());
    let identity = |certificate: &str, key: &str| {
        ClientIdentity::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap()
    };
    let (one, again) = (identity(&certificate, &key), identity(&certificate, &key));
    assert!(one.has_same_chain(&again));
    assert!(!one.has_same_chain(&identity(&other, &other_key)));
    assert!(
        !one.has_same_chain(&identity(&format!("{certificate}{other}"), &key)),
        "an additional intermediate is another chain"
    );
}
