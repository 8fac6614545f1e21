//! Conversions of the wire format: schemes to Go's signer options, the encodings of certificates and signatures, and the
//! check that a message is a TLS client handshake.
// client-credentials.md §8.4, X8
// C821, C831

use navicert_types::external_signer::v1alpha1::read_pss_options;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use crate::der;
use crate::scheme::{Hash, KeyAlgorithm, Padding, Scheme};

/// `signerOptsType` and `signerOpts` of a scheme: Go's type name and the JSON of Go's value.
// X6, X7
pub fn go_options(scheme: Scheme) -> (&'static str, String) {
    match (scheme.padding(), scheme.hash()) {
        (Some(Padding::Pss), Some(hash)) => {
            ("*rsa.PSSOptions", format!(r#"{{"SaltLength":-1,"Hash":{}}}"#, go_number(hash)))
        }
        (_, Some(hash)) => ("crypto.Hash", go_number(hash).to_string()),
        (_, None) => ("crypto.Hash", "0".to_owned()),
    }
}

/// The scheme of Go's options for a key algorithm. PKCS#1 v1.5 and ECDSA have the same options, so the key decides.
// C830
pub fn scheme_from_go_options(algorithm: KeyAlgorithm, options_type: &str, options: &str) -> Option<Scheme> {
    let is_pss = match options_type {
        "*rsa.PSSOptions" => true,
        "crypto.Hash" => false,
        _ => return None,
    };
    let matches = |scheme: &Scheme| {
        let (own_type, _) = go_options(*scheme);
        own_type == options_type && (scheme.padding() == Some(Padding::Pss)) == is_pss
    };
    let mut candidates = Scheme::for_key(algorithm).filter(matches);
    if is_pss {
        let (salt_length, hash) = read_pss_options(options)?;
        return candidates.find(|scheme| {
            let length = scheme.hash().map(Hash::length).and_then(|length| i64::try_from(length).ok());
            let salted = salt_length == -1 || Some(salt_length) == length;
            salted && scheme.hash().map(go_number) == Some(hash)
        });
    }
    let number: u64 = options.trim().parse().ok()?;
    candidates.find(|scheme| scheme.hash().map_or(0, go_number) == number)
}

/// The value of Go's `crypto.Hash`.
fn go_number(hash: Hash) -> u64 {
    match hash {
        Hash::Sha256 => 5,
        Hash::Sha384 => 6,
        Hash::Sha512 => 7,
    }
}

/// Parses a signer's certificate chain: DER of the leaf, concatenated DER, or PEM.
// C821
pub fn chain(bytes: &[u8]) -> Option<Vec<CertificateDer<'static>>> {
    let chain: Vec<CertificateDer<'static>> = if bytes.starts_with(b"-----BEGIN") {
        CertificateDer::pem_slice_iter(bytes).collect::<Result<_, _>>().ok()?
    } else {
        der::sequences(bytes)?.into_iter().map(|one| CertificateDer::from(one.to_vec())).collect()
    };
    (!chain.is_empty()).then_some(chain)
}

/// Converts a signer's signature to TLS's encoding. Accepts `r ‖ s` for ECDSA, which devices produce and old signers may
/// pass on. The caller verifies the signature.
// C831
pub fn signature(scheme: Scheme, bytes: Vec<u8>) -> Vec<u8> {
    let raw = match scheme {
        Scheme::EcdsaP256Sha256 => 64,
        Scheme::EcdsaP384Sha384 => 96,
        Scheme::EcdsaP521Sha512 => 132,
        _ => return bytes,
    };
    // DER of exactly this length begins with 0x30 and its length; a raw signature does so once in 65,536 times.
    let is_der = der::split(0x30, &bytes).is_some_and(|(_, rest)| rest.is_empty());
    if bytes.len() == raw && !is_der { der::ecdsa_signature(&bytes) } else { bytes }
}

/// Whether a message is one that a TLS client signs, so that a signer cannot be used to sign other documents.
///
/// TLS 1.3: 64 spaces, the client's context string, a zero byte and a hash. TLS 1.2: the handshake messages from
/// `ClientHello` to `ClientKeyExchange`.
// C832, X8
pub fn is_client_handshake(message: &[u8]) -> bool {
    const CONTEXT: &[u8] = b"TLS 1.3, client CertificateVerify\0";
    if let Some(rest) = message.strip_prefix(&[b' '; 64]) {
        return rest.strip_prefix(CONTEXT).is_some_and(|hash| matches!(hash.len(), 32 | 48 | 64));
    }
    let mut kinds = Vec::new();
    let mut rest = message;
    while let [kind, high, middle, low, after @ ..] = rest {
        let length = u32::from_be_bytes([0, *high, *middle, *low]);
        let Some((_, next)) = usize::try_from(length).ok().and_then(|length| after.split_at_checked(length))
        else {
            return false;
        };
        kinds.push(*kind);
        rest = next;
    }
    let (hello, server_hello, key_exchange) = (1, 2, 16);
    rest.is_empty() && kinds.starts_with(&[hello, server_hello]) && kinds.last() == Some(&key_exchange)
}

/// A message as a TLS 1.3 client signs it, to test keys (`navicert signer check`).
pub fn sample_message(number: u8) -> Vec<u8> {
    let mut message = vec![b' '; 64];
    message.extend_from_slice(b"TLS 1.3, client CertificateVerify\0");
    message.extend_from_slice(&[number; 32]);
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_options_match_the_specification() {
        // §8.4, C830, X6, X7, T40
        let table = [
            ("rsa_pss_rsae_sha256", "*rsa.PSSOptions", r#"{"SaltLength":-1,"Hash":5}"#),
            ("rsa_pss_rsae_sha384", "*rsa.PSSOptions", r#"{"SaltLength":-1,"Hash":6}"#),
            ("rsa_pss_rsae_sha512", "*rsa.PSSOptions", r#"{"SaltLength":-1,"Hash":7}"#),
            ("rsa_pkcs1_sha256", "crypto.Hash", "5"),
            ("rsa_pkcs1_sha384", "crypto.Hash", "6"),
            ("rsa_pkcs1_sha512", "crypto.Hash", "7"),
            ("ecdsa_secp256r1_sha256", "crypto.Hash", "5"),
            ("ecdsa_secp384r1_sha384", "crypto.Hash", "6"),
            ("ecdsa_secp521r1_sha512", "crypto.Hash", "7"),
            ("ed25519", "crypto.Hash", "0"),
        ];
        assert_eq!(table.len(), Scheme::ALL.len());
        for (name, options_type, options) in table {
            let scheme = Scheme::by_name(name).unwrap();
            assert_eq!(go_options(scheme), (options_type, options.to_owned()), "{name}");
            assert_eq!(
                scheme_from_go_options(scheme.algorithm(), options_type, options),
                Some(scheme),
                "{name}"
            );
        }
    }

    #[test]
    fn rejects_unknown_options() {
        let rsa = |options_type, options| scheme_from_go_options(KeyAlgorithm::Rsa, options_type, options);
        assert_eq!(rsa("*rsa.PSSOptions", r#"{"SaltLength":32,"Hash":5}"#), Some(Scheme::RsaPssSha256));
        for (options_type, options) in [
            ("*rsa.PSSOptions", r#"{"SaltLength":20,"Hash":5}"#),
            ("*rsa.PSSOptions", r#"{"SaltLength":-1,"Hash":3}"#),
            ("*rsa.PSSOptions", "5"),
            ("*rsa.PSSOptions", ""),
            ("crypto.Hash", "3"),
            ("crypto.Hash", "0"),
            ("crypto.Hash", "{}"),
            ("", "5"),
        ] {
            assert_eq!(rsa(options_type, options), None, "{options_type} {options}");
        }
        assert_eq!(scheme_from_go_options(KeyAlgorithm::P256, "crypto.Hash", "6"), None);
        assert_eq!(
            scheme_from_go_options(KeyAlgorithm::P256, "*rsa.PSSOptions", r#"{"SaltLength":-1,"Hash":5}"#),
            None
        );
    }

    #[test]
    fn recognizes_only_client_handshakes() {
        // C832, X8
        assert!(is_client_handshake(&sample_message(7)));
        let mut server = sample_message(7);
        server.splice(64.., b"TLS 1.3, server CertificateVerify\0".iter().copied().chain([0; 32]));
        assert!(!is_client_handshake(&server));
        let part =
            |kind: u8, body: &[u8]| [&[kind, 0, 0, u8::try_from(body.len()).unwrap()][..], body].concat();
        let old =
            [part(1, b"hello"), part(2, b"hello"), part(11, b""), part(14, b""), part(16, b"key")].concat();
        assert!(is_client_handshake(&old));
        let cut = &old[..old.len() - 1];
        for message in [b"".as_slice(), b"a contract", cut, &part(1, b"hello"), &[b' '; 64]] {
            assert!(!is_client_handshake(message));
        }
    }

    #[test]
    fn converts_raw_ecdsa_signatures_to_der() {
        // C831
        let raw = [[1; 32], [0x80; 32]].concat();
        let encoded = signature(Scheme::EcdsaP256Sha256, raw);
        assert_eq!(encoded[..4], [0x30, 69, 2, 32]);
        assert_eq!(signature(Scheme::EcdsaP256Sha256, encoded.clone()), encoded);
        assert_eq!(signature(Scheme::Ed25519, vec![7; 64]), vec![7; 64]);
    }

    #[test]
    fn parses_chain_in_three_encodings() {
        // C821
        let ca = navicert_testkit::Ca::new("root").intermediate("middle");
        let issued = ca.client("ann").issue();
        let wanted = issued.chain().to_vec();
        assert_eq!(wanted.len(), 2);
        assert_eq!(chain(&wanted[0]).unwrap(), wanted[..1]);
        assert_eq!(chain(&[wanted[0].as_ref(), wanted[1].as_ref()].concat()).unwrap(), wanted);
        assert_eq!(chain(issued.chain_pem().as_bytes()).unwrap(), wanted);
        for garbage in [b"".as_slice(), b"garbage", b"\x30\x05\x01"] {
            assert!(chain(garbage).is_none());
        }
    }
}
