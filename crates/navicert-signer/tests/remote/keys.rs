//! The contract over every transport to a signer program.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use navicert_signer::remote::{KeyStore, SignerProtocol, SignerServer, SocketSigner};
use navicert_signer::{Input, Key, SignError, SigningIdentity, SoftwareKey, contract};
use navicert_testkit::{Ca, KeyKind};
use navicert_types::external_signer::{SignerConfiguration, v1, v1alpha1};

use crate::support::{FakeSigner, V1ALPHA1};

const KINDS: [KeyKind; 5] =
    [KeyKind::Rsa2048, KeyKind::EcP256, KeyKind::EcP384, KeyKind::EcP521, KeyKind::Ed25519];

#[test]
fn v1alpha1_signer_satisfies_the_contract() {
    // T40, T41
    for kind in KINDS {
        let fake = FakeSigner::new(kind);
        let identity = fake.connect(V1ALPHA1).unwrap();
        contract::check_key(&VerifyingKey(&identity), kind != KeyKind::Ed25519);
        let asked = fake.asked();
        assert!(asked[0].contains(r#""kind":"CertificateRequest""#), "{}", asked[0]);
        assert_eq!(asked.iter().filter(|line| line.contains("CertificateRequest")).count(), 1, "C840: once");
    }
}

#[test]
fn prototype_signer_gets_the_prototypes_kinds() {
    // C820
    let fake = FakeSigner::new(KeyKind::EcP256);
    let identity = fake.connect(SignerProtocol::V1Alpha1(v1alpha1::Kinds::Prototype)).unwrap();
    contract::check_key(&VerifyingKey(&identity), true);
    assert!(fake.asked()[0].contains(r#""kind":"Certificate""#));
    assert!(fake.asked()[1].contains(r#""kind":"Sign""#));
}

#[test]
fn v1_signer_satisfies_the_contract() {
    // C881, C882, C883
    for kind in KINDS {
        let fake = FakeSigner::new(kind);
        let identity = fake.connect(SignerProtocol::V1).unwrap();
        contract::check_key(&VerifyingKey(&identity), false);
        assert!(fake.environment().contains("EXTERNAL_SIGNER_REQUEST_FD=0"), "on a pipe");
        assert!(
            !fake.environment().contains("EXTERNAL_SIGNER_PLUGIN_CONFIG"),
            "and not in an environment variable"
        );
    }
}

/// Uses an identity as a key, so that its signatures are verified.
#[derive(Debug)]
struct VerifyingKey<'a>(&'a SigningIdentity);

impl Key for VerifyingKey<'_> {
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
struct SingleKeyStore(Arc<SigningIdentity>);

impl KeyStore for SingleKeyStore {
    fn find(&self, _: &SignerConfiguration, _: bool) -> Result<Arc<SigningIdentity>, SignError> {
        Ok(Arc::clone(&self.0))
    }
}

/// Runs a signer server in a thread of this process.
fn serve(dir: &std::path::Path) -> (PathBuf, navicert_testkit::Identity) {
    let issued = Ca::new("root").client("ann").issue();
    let key = SoftwareKey::from_der(issued.key_der()).unwrap();
    let identity = Arc::new(SigningIdentity::new(issued.chain().to_vec(), Arc::new(key)).unwrap());
    let path = dir.join("private/signer.sock");
    let server = SignerServer::bind(&path).unwrap();
    std::thread::spawn(move || server.serve(&(Arc::new(SingleKeyStore(identity)) as Arc<dyn KeyStore>)));
    (path, issued)
}

fn ignore_prompts() -> Arc<dyn Fn(&str) + Send + Sync> {
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
fn server_handles_many_requests_and_signs_only_handshakes() {
    // C885, X8
    let dir = tempfile::tempdir().unwrap();
    let (path, issued) = serve(dir.path());
    let socket = SocketSigner::new(path, "test");
    let ask =
        |request: &v1::Request| socket.request(request, Duration::from_secs(30), &ignore_prompts()).unwrap();
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
    assert!(message.contains("not a TLS client handshake"), "{message}");
}

#[test]
fn rejects_socket_accessible_to_other_users() {
    // C885
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let (path, _) = serve(dir.path());
    let ask = || {
        SocketSigner::new(path.clone(), "test").request(
            &sign_request(b"x"),
            Duration::from_secs(30),
            &ignore_prompts(),
        )
    };
    assert!(ask().is_ok());
    let chmod = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let parent = path.parent().unwrap().to_owned();
    for (entry, loose, tight) in [(&path, 0o660, 0o600), (&parent, 0o755, 0o700)] {
        chmod(entry, loose);
        let error = ask().unwrap_err();
        assert!(matches!(error, SignError::Socket { .. }), "{error:?}");
        chmod(entry, tight);
        assert!(ask().is_ok());
    }
    assert!(
        matches!(SignerServer::bind(&path), Err(SignError::Socket { .. })),
        "a running signer is not replaced"
    );
}
