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
fn software_keys_of_every_kind_keep_the_contract() {
    let ca = Ca::new("root");
    for kind in KINDS {
        let identity = ca.client("ann").key(kind).issue();
        contract::holds(&*software(&identity), true);
    }
}

#[test]
fn only_a_key_and_its_own_certificate_are_an_identity() {
    let ca = Ca::new("root");
    for kind in KINDS {
        let (ann, bob) = (ca.client("ann").key(kind).issue(), ca.client("bob").key(kind).issue());
        assert!(Identity::new(chain(&ann), software(&ann)).is_ok(), "{kind:?}");
        assert_eq!(Identity::new(chain(&bob), software(&ann)).unwrap_err(), IdentityError::Mismatch);
    }
    let ann = ca.client("ann").issue();
    assert_eq!(Identity::new(Vec::new(), software(&ann)).unwrap_err(), IdentityError::NoCertificate);
    let garbage = vec![CertificateDer::from(b"garbage".to_vec())];
    assert!(matches!(Identity::new(garbage, software(&ann)), Err(IdentityError::Certificate(_))));
}

/// A key that signs with another one.
#[derive(Debug)]
struct Liar {
    shown: Arc<SoftwareKey>,
    used: Arc<SoftwareKey>,
}

impl Key for Liar {
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
fn a_signature_by_another_key_does_not_get_out() {
    // C834
    let ca = Ca::new("root");
    for kind in KINDS {
        let (ann, bob) = (ca.client("ann").key(kind).issue(), ca.client("bob").key(kind).issue());
        let liar = Liar { shown: software(&ann), used: software(&bob) };
        let identity = Identity::new(chain(&ann), Arc::new(liar)).unwrap();
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
fn public_keys_survive_being_written_as_der() {
    let ca = Ca::new("root");
    for kind in KINDS {
        let identity = ca.client("ann").key(kind).issue();
        let key = PublicKey::of_certificate(&chain(&identity)[0]).unwrap();
        assert_eq!(key.to_der(), identity.public_key_der(), "{kind:?}");
        assert_eq!(PublicKey::from_der(&key.to_der()).unwrap(), key);
    }
}
