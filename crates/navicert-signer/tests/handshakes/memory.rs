//! A TLS client and server that exchange bytes in memory.

use std::sync::Arc;

use navicert_signer::SigningIdentity;
use navicert_signer::tls::ClientCertificate;
use navicert_testkit::Ca;
use rustls::server::WebPkiClientVerifier;
use rustls::{
    ClientConfig, ClientConnection, ProtocolVersion, ServerConfig, ServerConnection, SupportedProtocolVersion,
};
use rustls_pki_types::ServerName;

/// The result of a handshake.
#[derive(Debug)]
pub(crate) enum HandshakeResult {
    /// Both sides completed; with the client certificate the server received.
    Both { client_certificate: Option<Vec<u8>> },
    /// The client failed; `sent_proof` says whether its remaining bytes authenticate it.
    Client { error: rustls::Error, sent_proof: bool },
    /// The server failed.
    #[expect(dead_code, reason = "read when a test fails, in its Debug form")]
    Server(rustls::Error),
}

/// Performs a handshake with a server that requires a certificate of this authority.
pub(crate) fn handshake(
    ca: &Ca,
    identity: Arc<SigningIdentity>,
    version: &'static SupportedProtocolVersion,
) -> HandshakeResult {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier =
        WebPkiClientVerifier::builder_with_provider(ca.root_store(), Arc::clone(&provider)).build().unwrap();
    let issued = ca.server().issue();
    let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[version])
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(issued.chain().to_vec(), issued.rustls_key())
        .unwrap();
    let client = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(ca.root_store())
        .with_client_cert_resolver(Arc::new(ClientCertificate::new(identity)));
    let name = ServerName::try_from("localhost").unwrap();
    let mut client = ClientConnection::new(Arc::new(client), name).unwrap();
    let mut server = ServerConnection::new(Arc::new(server)).unwrap();
    loop {
        let mut bytes = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut bytes).unwrap();
        }
        server.read_tls(&mut bytes.as_slice()).unwrap();
        if let Err(error) = server.process_new_packets() {
            return HandshakeResult::Server(error);
        }
        let mut bytes = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut bytes).unwrap();
        }
        let idle = bytes.is_empty();
        client.read_tls(&mut bytes.as_slice()).unwrap();
        if let Err(error) = client.process_new_packets() {
            return HandshakeResult::Client {
                error,
                sent_proof: sends_proof(&mut client, &mut server, version),
            };
        }
        if idle && !client.wants_write() && !client.is_handshaking() && !server.is_handshaking() {
            let seen = server.peer_certificates().and_then(|chain| chain.first());
            return HandshakeResult::Both { client_certificate: seen.map(|leaf| leaf.as_ref().to_vec()) };
        }
    }
}

/// Passes the client's remaining bytes to the server. In TLS 1.2 the certificate may have been sent already, which is not
/// secret; a CertificateVerify (15), a ChangeCipherSpec (record type 20) or a completed handshake would be proof.
fn sends_proof(
    client: &mut ClientConnection,
    server: &mut ServerConnection,
    version: &SupportedProtocolVersion,
) -> bool {
    let mut bytes = Vec::new();
    while client.wants_write() {
        client.write_tls(&mut bytes).unwrap();
    }
    let mut rest = bytes.as_slice();
    while let [kind, _, _, high, low, after @ ..] = rest {
        let (body, next) = after.split_at(usize::from(u16::from_be_bytes([*high, *low])));
        let is_verify = *kind == 22 && body.first() == Some(&15);
        // TLS 1.3 sends a ChangeCipherSpec for compatibility only.
        let changes = *kind == 20 && version.version == ProtocolVersion::TLSv1_2;
        if changes || is_verify {
            return true;
        }
        rest = next;
    }
    server.read_tls(&mut bytes.as_slice()).unwrap();
    let _ = server.process_new_packets();
    !server.is_handshaking()
}
