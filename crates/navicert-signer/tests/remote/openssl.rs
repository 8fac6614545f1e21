//! OpenSSL verifies every signature scheme, signed by a SoftHSM key over protocol v1alpha1.
// T40, T44

use std::path::Path;

use navicert_signer::remote::wire::sample_message;
use navicert_signer::scheme::Padding;
use navicert_signer::{Hash, Input, Scheme};
use navicert_testkit::cli::tools;
use navicert_testkit::pki::ca::pem;
use navicert_testkit::{KeyKind, Program};

use crate::softhsm::{PIN, Token};
use crate::support::V1ALPHA1;

#[test]
fn openssl_verifies_every_scheme() {
    let Some(_) = tools::installed("openssl", "openssl") else { return };
    let mut verified = Vec::new();
    for kind in [KeyKind::Rsa2048, KeyKind::EcP256, KeyKind::EcP384, KeyKind::EcP521, KeyKind::Ed25519] {
        let Some(token) = Token::new(kind) else { return };
        let identity = token.connect(V1ALPHA1, PIN).unwrap();
        let dir = token.dir.path();
        std::fs::write(dir.join("key.pem"), pem("PUBLIC KEY", &identity.public_key().to_der())).unwrap();
        for scheme in identity.schemes().to_vec() {
            let message = sample_message(9);
            std::fs::write(dir.join("message"), &message).unwrap();
            std::fs::write(dir.join("other"), sample_message(8)).unwrap();
            let signature = identity.sign(scheme, Input::Message(&message)).unwrap();
            std::fs::write(dir.join("signature"), signature).unwrap();
            assert!(openssl_verifies(scheme, dir, "message"), "{scheme}");
            assert!(!openssl_verifies(scheme, dir, "other"), "{scheme}: of another message");
            verified.push(scheme);
        }
    }
    assert_eq!(verified, Scheme::ALL, "every row");
}

fn openssl_verifies(scheme: Scheme, dir: &Path, message: &str) -> bool {
    let arguments: Vec<&str> = match scheme.hash() {
        None => {
            let rest = ["-sigfile", "signature", "-rawin", "-in", message];
            [["pkeyutl", "-verify", "-pubin", "-inkey", "key.pem"], rest].concat()
        }
        Some(hash) => {
            let name = match hash {
                Hash::Sha256 => "-sha256",
                Hash::Sha384 => "-sha384",
                Hash::Sha512 => "-sha512",
            };
            let padding: &[&str] = match scheme.padding() {
                Some(Padding::Pss) => {
                    &["-sigopt", "rsa_padding_mode:pss", "-sigopt", "rsa_pss_saltlen:digest"]
                }
                _ => &[],
            };
            [&["dgst", name, "-verify", "key.pem"], padding, &["-signature", "signature", message]].concat()
        }
    };
    Program::new("openssl").arguments(arguments).directory(dir).run().unwrap().status.success()
}
