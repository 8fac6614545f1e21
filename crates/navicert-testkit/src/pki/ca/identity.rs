//! A certificate chain with its private key, in the forms tests need it: DER, PEM, files, rustls.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_lc_rs::signature::Ed25519KeyPair;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{KeyPair, PublicKeyData};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use super::KeyKind;

/// A certificate chain, leaf first, and the key of its leaf.
///
/// ```
/// use navicert_testkit::Ca;
///
/// let directory = tempfile::tempdir().unwrap();
/// let files = Ca::new("root").client("ann").issue().write_to(directory.path(), "ann");
/// assert!(files.certificate.ends_with("ann.crt"));
/// assert!(std::fs::read_to_string(files.key).unwrap().contains("PRIVATE KEY"));
/// ```
#[derive(Clone)]
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: Vec<u8>,
    kind: KeyKind,
}

/// Where [`Identity::write_to`] put the two halves.
#[derive(Clone, Debug)]
pub struct IdentityFiles {
    /// The chain as PEM.
    pub certificate: PathBuf,
    /// The key as PKCS#8 PEM.
    pub key: PathBuf,
}

impl Identity {
    pub(super) fn new(chain: Vec<CertificateDer<'static>>, key: &KeyPair, kind: KeyKind) -> Self {
        Identity { chain, key: key.serialized_der().to_vec(), kind }
    }

    /// The chain, leaf first, without the root.
    pub fn chain(&self) -> &[CertificateDer<'static>] {
        &self.chain
    }

    /// The leaf alone.
    pub fn leaf(&self) -> &CertificateDer<'static> {
        &self.chain[0]
    }

    /// The chain as PEM: what goes into `client-certificate-data`.
    pub fn chain_pem(&self) -> String {
        self.chain.iter().map(|certificate| pem("CERTIFICATE", certificate)).collect()
    }

    /// The key as PKCS#8 DER.
    pub fn key_der(&self) -> &[u8] {
        &self.key
    }

    /// The key as PKCS#8 PEM: what goes into `client-key-data`.
    pub fn key_pem(&self) -> String {
        pem("PRIVATE KEY", &self.key)
    }

    /// Key and chain in one PEM text, as the kubelet writes `credentialBundlePath` of a pod certificate.
    pub fn credential_bundle_pem(&self) -> String {
        self.key_pem() + &self.chain_pem()
    }

    /// The kind of key.
    pub fn key_kind(&self) -> KeyKind {
        self.kind
    }

    /// The public key as DER SubjectPublicKeyInfo.
    pub fn public_key_der(&self) -> Vec<u8> {
        self.key_pair().subject_public_key_info()
    }

    /// The key in rustls' type.
    pub fn rustls_key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.key.clone()))
    }

    /// A TLS server configuration with this identity and these protocols, without client certificates.
    ///
    /// # Panics
    /// If the key is not the certificate's.
    pub fn server_config(&self, protocols: &[&str]) -> Arc<ServerConfig> {
        let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .expect("TLS versions the crypto provider has")
            .with_no_client_auth()
            .with_single_cert(self.chain().to_vec(), self.rustls_key())
            .expect("a server certificate and its key");
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        Arc::new(config)
    }

    /// Writes `<name>.crt` and `<name>.key` into `directory`.
    ///
    /// # Panics
    /// If a file cannot be written.
    pub fn write_to(&self, directory: &Path, name: &str) -> IdentityFiles {
        let files = IdentityFiles {
            certificate: directory.join(format!("{name}.crt")),
            key: directory.join(format!("{name}.key")),
        };
        for (path, text) in [(&files.certificate, self.chain_pem()), (&files.key, self.key_pem())] {
            std::fs::write(path, text)
                .unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
        }
        files
    }

    pub(super) fn key_pair(&self) -> KeyPair {
        load(&self.key, self.kind)
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Identity").field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// PEM text of one DER value, lines of 64 characters.
pub fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines: Vec<&str> =
        text.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).expect("base64 is ASCII")).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

/// SubjectPublicKeyInfo of a bare public key: an uncompressed point, or Ed25519's 32 octets.
pub(crate) fn subject_public_key_info(kind: KeyKind, raw: &[u8]) -> Vec<u8> {
    struct Bare<'a>(KeyKind, &'a [u8]);
    impl PublicKeyData for Bare<'_> {
        fn der_bytes(&self) -> &[u8] {
            self.1
        }
        fn algorithm(&self) -> &'static rcgen::SignatureAlgorithm {
            algorithm(self.0)
        }
    }
    Bare(kind, raw).subject_public_key_info()
}

pub(super) fn generate(kind: KeyKind) -> KeyPair {
    if kind == KeyKind::Ed25519 {
        // PKCS#8 v1: OpenSSL 3.0, which SoftHSM's importer goes through, does not read the v2 form rcgen writes.
        let key = Ed25519KeyPair::generate_pkcs8v1(&aws_lc_rs::rand::SystemRandom::new())
            .expect("the system's random generator");
        return load(key.as_ref(), kind);
    }
    KeyPair::generate_for(algorithm(kind)).expect("aws-lc-rs makes every kind of key we name")
}

fn load(pkcs8: &[u8], kind: KeyKind) -> KeyPair {
    KeyPair::from_pkcs8_der_and_sign_algo(&PrivatePkcs8KeyDer::from(pkcs8), algorithm(kind))
        .expect("a key the test kit made itself")
}

fn algorithm(kind: KeyKind) -> &'static rcgen::SignatureAlgorithm {
    match kind {
        KeyKind::Rsa2048 => &rcgen::PKCS_RSA_SHA256,
        KeyKind::EcP256 => &rcgen::PKCS_ECDSA_P256_SHA256,
        KeyKind::EcP384 => &rcgen::PKCS_ECDSA_P384_SHA384,
        KeyKind::EcP521 => &rcgen::PKCS_ECDSA_P521_SHA512,
        KeyKind::Ed25519 => &rcgen::PKCS_ED25519,
    }
}
