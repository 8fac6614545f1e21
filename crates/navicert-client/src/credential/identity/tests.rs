//! Which pairs become an identity. What upstream makes of every odd one is in the vectors (exec-output.jsonl).

use super::*;

fn pair() -> (String, String) {
    let made = rcgen::generate_simple_self_signed(vec!["a.example".to_owned()]).unwrap();
    (made.cert.pem(), made.signing_key.serialize_pem())
}

#[test]
fn a_pair_that_matches_is_an_identity_and_its_key_is_not_shown() {
    let (certificate, key) = pair();
    let identity = Identity::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap();
    assert_eq!(identity.chain().len(), 1);
    assert!(identity.validity().not_before < identity.validity().not_after);
    let shown = format!("{identity:?} {:?}", identity.expose_key().unwrap());
    let line = key.lines().nth(1).unwrap();
    assert!(!shown.contains(line), "{shown}");
}

// C335
#[test]
fn pairs_that_do_not_belong_together_are_told_apart() {
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
        assert_eq!(Identity::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap_err(), expected);
    }
    assert!(Identity::from_pem(both.as_bytes(), both.as_bytes()).is_ok(), "both in both fields will do");
}

// C464
#[test]
fn identities_are_compared_by_their_chains() {
    let ((certificate, key), (other, other_key)) = (pair(), pair());
    let identity =
        |certificate: &str, key: &str| Identity::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap();
    let (one, again) = (identity(&certificate, &key), identity(&certificate, &key));
    assert!(one.is_same(&again));
    assert!(!one.is_same(&identity(&other, &other_key)));
    assert!(
        !one.is_same(&identity(&format!("{certificate}{other}"), &key)),
        "an intermediate more is another chain"
    );
}
