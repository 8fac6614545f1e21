//! Ephemeral TLS certificate of one gateway. The certificate authority signs once and its key is discarded, so a
//! process that later binds the same port has no key that the child's kubeconfig trusts.

use std::net::Ipv4Addr;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, SanType,
};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls_pki_types::PrivatePkcs8KeyDer;

use super::GatewayError;

/// A TLS configuration for loopback, and its certificate authority in PEM.
pub(super) fn ephemeral_tls() -> Result<(Arc<ServerConfig>, String), GatewayError> {
    let mut authority = CertificateParams::default();
    authority.distinguished_name.push(DnType::CommonName, "navicert gateway, for one command");
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let authority = CertifiedIssuer::self_signed(authority, key()?)?;

    let mut leaf = CertificateParams::default();
    leaf.distinguished_name.push(DnType::CommonName, "navicert gateway");
    leaf.subject_alt_names = vec![SanType::IpAddress(Ipv4Addr::LOCALHOST.into())];
    leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let leaf_key = key()?;
    let leaf = leaf.signed_by(&leaf_key, &authority)?;

    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(
            vec![leaf.der().clone()],
            PrivatePkcs8KeyDer::from(leaf_key.serialize_der()).into(),
        )?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok((Arc::new(config), authority.pem()))
}

fn key() -> Result<KeyPair, rcgen::Error> {
    KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)
}
