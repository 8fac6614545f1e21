//! The contract, over every way there is to another program.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use navicert_signer::remote::{KeyRing, Protocol, Server, SocketSigner};
use navicert_signer::{Identity, Input, Key, SignError, SoftwareKey, contract};
use navicert_testkit::{Ca, KeyKind};
use navicert_types::external_signer::{Configuration, v1, v1alpha1};

use crate::support::{Fake, V1ALPHA1};

const KINDS: [KeyKind; 5] =
    [KeyKind::Rsa2048, KeyKind::EcP256, KeyKind::EcP384, KeyKind::EcP521, KeyKind::Ed25519];

#[test]
fn a_signer_of_the_first_version_keeps_the_contract() {
    // T40, T41
    for kind in KINDS {
        let fake = Fake::new(kind);
        let identity = fake.connect(V1ALPHA1).unwrap();
        contract::holds(&Checked(&identity), kind != KeyKind::Ed25519);
        let asked = fake.asked();
        assert!(asked[0].contains(r#""kind":"CertificateRequest""#), "{}", asked[0]);
        assert_eq!(asked.iter().filter(|line| line.contains("CertificateRequest")).count(), 1, "C840: once");
    }
}

#[test]
fn a_signer_of_the_prototype_is_asked_in_its_own_words() {
    // C820
    let fake = Fake::new(KeyKind::EcP256);
    let identity = fake.connect(Protocol::V1Alpha1(v1alpha1::Kinds::Prototype)).unwrap();
    contract::holds(&Checked(&identity), true);
    assert!(fake.asked()[0].contains(r#""kind":"Certificate""#));
    assert!(fake.asked()[1].contains(r#""kind":"Sign""#));
}

#[test]
fn a_signer_of_the_second_version_keeps_the_contract() {
    // C881, C882, C883
    for kind in KINDS {
        let fake = Fake::new(kind);
        let identity = fake.connect(Protocol::V1).unwrap();
        contract::holds(&Checked(&identity), false);
        assert!(fake.environment().contains("EXTERNAL_SIGNER_REQUEST_FD=0"), "on a pipe");
        assert!(!fake.environment().contains("EXTERNAL_SIGNER_PLUGIN_CONFIG"), "and not in a variable");
    }
}

/// An identity as a key whose signatures were checked.
#[derive(Debug)]
struct Checked<'a>(&'a Identity);

impl Key for Checked<'_> {
    fn public_key(&self) -> &navicert_signer::PublicKey {
        self.0.public_key()
    }

    fn schemes(&self) -> &[navicert_signer::Scheme] {
        self.0.schemes()
    }

    fn sign(&self, scheme: navicert_signer::Scheme, input: Input<'_>) -> Result<Vec<u8>, SignError> {
        self.0.sign(scheme, input)
    }
}

#[derive(Debug)]
struct One(Arc<Identity>);

impl KeyRing for One {
    fn find(&self, _: &Configuration, _: bool) -> Result<Arc<Identity>, SignError> {
        Ok(Arc::clone(&self.0))
    }
}

/// A signer that stays, in a thread of this process.
fn serve(folder: &std::path::Path) -> (PathBuf, navicert_testkit::Identity) {
    let issued = Ca::new("root").client("ann").issue();
    let key = SoftwareKey::from_der(issued.key_der()).unwrap();
    let identity = Arc::new(Identity::new(issued.chain().to_vec(), Arc::new(key)).unwrap());
    let path = folder.join("private/signer.sock");
    let server = Server::bind(&path).unwrap();
    std::thread::spawn(move || server.serve(&(Arc::new(One(identity)) as Arc<dyn KeyRing>)));
    (path, issued)
}

fn quiet() -> Arc<dyn Fn(&str) + Send + Sync> {
    Arc::new(|_| {})
}

fn sign_request(message: &[u8]) -> v1::Request {
    v1::Request::Sign(v1::SignRequest {
        scheme: "ecdsa_secp256r1_sha256".to_owned(),
        message: message.to_vec(),
        ..v1::SignRequest::default()
    })
}

#[test]
fn a_signer_that_stays_answers_many_questions_and_signs_only_handshakes() {
    // C885, X8
    let folder = tempfile::tempdir().unwrap();
    let (path, issued) = serve(folder.path());
    let socket = SocketSigner::new(path, "test");
    let ask = |request: &v1::Request| socket.ask(request, Duration::from_secs(30), &quiet()).unwrap();
    let v1::Message::Certificate { chain, schemes, .. } = ask(&v1::Request::Certificate(Default::default()))
    else {
        panic!("no certificate")
    };
    assert_eq!(
        (chain[0].as_slice(), schemes),
        (issued.leaf().as_ref(), vec!["ecdsa_secp256r1_sha256".to_owned()])
    );
    for number in 0..20 {
        let message = navicert_signer::remote::wire::sample_message(number);
        assert!(matches!(ask(&sign_request(&message)), v1::Message::Signature { .. }));
    }
    let refused = ask(&sign_request(b"a contract"));
    let v1::Message::Error { message, .. } = refused else { panic!("{refused:?}") };
    assert!(message.contains("no TLS client's handshake"), "{message}");
}

#[test]
fn a_socket_that_others_could_use_is_not_used() {
    // C885
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let (path, _) = serve(folder.path());
    let ask = || {
        SocketSigner::new(path.clone(), "test").ask(&sign_request(b"x"), Duration::from_secs(30), &quiet())
    };
    assert!(ask().is_ok());
    let chmod = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let parent = path.parent().unwrap().to_owned();
    for (place, loose, tight) in [(&path, 0o660, 0o600), (&parent, 0o755, 0o700)] {
        chmod(place, loose);
        let error = ask().unwrap_err();
        assert!(matches!(error, SignError::Socket { .. }), "{error:?}");
        chmod(place, tight);
        assert!(ask().is_ok());
    }
    assert!(matches!(Server::bind(&path), Err(SignError::Socket { .. })), "a living signer is not replaced");
}
