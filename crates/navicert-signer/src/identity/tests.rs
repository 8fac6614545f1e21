use super::*;
use crate::SoftwareKey;
use crate::contract;
use navicert_testkit::{Ca, KeyKind};

const KINDS: [KeyKind; 5] =
    [KeyKind::Rsa2048, KeyKind::EcP256, KeyKind::EcP384, KeyKind::EcP521, KeyKind::Ed25519];

fn software(identity: &navicert_testkit::Identity) -> Arc<SoftwareKey> {
    Arc::new(SoftwareKey::from_der(identity.key_der()).unwrap())
}

fn chain(identity: &navicert_testkit::Identity) -> Vec<CertificateDer<'static>> {
    vec![CertificateDer::from(identity.leaf().to_vec())]
}

#[test]
fn software_keys_of_every_kind_satisfy_the_contract() {
    let ca = Ca::new("root");
    for kind in KINDS {
        let identity = ca.client("ann").key(kind).issue();
        contract::check_key(&*software(&identity), true);
    }
}

#[test]
fn identity_requires_matching_key_and_certificate() {
    let ca = Ca::new("root");
    for kind in KINDS {
        let (ann, bob) = (ca.client("ann").key(kind).issue(), ca.client("bob").key(kind).issue());
        assert!(SigningIdentity::new(chain(&ann), software(&ann)).is_ok(), "{kind:?}");
        assert_eq!(SigningIdentity::new(chain(&bob), software(&ann)).unwrap_err(), IdentityError::Mismatch);
    }
    let ann = ca.client("ann").issue();
    assert_eq!(SigningIdentity::new(Vec::new(), software(&ann)).unwrap_err(), IdentityError::NoCertificate);
    let garbage = vec![CertificateDer::from(b"garbage".to_vec())];
    assert!(matches!(SigningIdentity::new(garbage, software(&ann)), Err(IdentityError::Certificate(_))));
}

/// A key that signs with another key.
#[derive(Debug)]
struct WrongKey {
    shown: Arc<SoftwareKey>,
    used: Arc<SoftwareKey>,
}

impl Key for WrongKey {
    fn public_key(&self) -> &PublicKey {
        self.shown.public_key()
    }

    fn schemes(&self) -> &[Scheme] {
        self.shown.schemes()
    }

    fn sign(&self, scheme: Scheme, input: Input<'_>) -> Result<Vec<u8>, SignError> {
        self.used.sign(scheme, input)
    }
}

#[test]
fn rejects_signature_by_another_key() {
    // C834
    let ca = Ca::new("root");
    for kind in KINDS {
        let (ann, bob) = (ca.client("ann").key(kind).issue(), ca.client("bob").key(kind).issue());
        let wrong_key = WrongKey { shown: software(&ann), used: software(&bob) };
        let identity = SigningIdentity::new(chain(&ann), Arc::new(wrong_key)).unwrap();
        for scheme in identity.schemes().to_vec() {
            let error = identity.sign(scheme, Input::Message(b"message")).unwrap_err();
            assert!(matches!(error, SignError::WrongSignature { .. }), "{error:?}");
        }
        let foreign = Scheme::ALL.into_iter().find(|scheme| !identity.schemes().contains(scheme)).unwrap();
        let error = identity.sign(foreign, Input::Message(b"message")).unwrap_err();
        assert!(matches!(error, SignError::UnsupportedScheme { .. }), "{error:?}");
    }
}

#[test]
fn public_keys_round_trip_through_der() {
    let ca = Ca::new("root");
    for kind in KINDS {
        let identity = ca.client("ann").key(kind).issue();
        let key = PublicKey::from_certificate(&chain(&identity)[0]).unwrap();
        assert_eq!(key.to_der(), identity.public_key_der(), "{kind:?}");
        assert_eq!(PublicKey::from_der(&key.to_der()).unwrap(), key);
    }
}
