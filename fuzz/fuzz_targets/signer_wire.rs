//! What an external signer sends: certificate chains, signatures, signing options and messages to sign.

#![no_main]

use libfuzzer_sys::fuzz_target;
use navicert_signer::Scheme;
use navicert_signer::remote::wire;

fuzz_target!(|bytes: &[u8]| {
    if let Some(chain) = wire::chain(bytes) {
        assert!(!chain.is_empty());
        // The chain as DER is read back; PEM may hold any bytes as a certificate.
        let der: Vec<u8> = chain.iter().flat_map(|one| one.to_vec()).collect();
        if !bytes.starts_with(b"-----BEGIN") {
            assert_eq!(der, bytes);
        }
    }
    for scheme in Scheme::ALL {
        let once = wire::signature(scheme, bytes.to_vec());
        assert_eq!(wire::signature(scheme, once.clone()), once, "{scheme:?}: not stable");
    }
    if wire::is_client_handshake(bytes) {
        let is_tls_1_3 = bytes.starts_with(&[b' '; 64])
            && bytes.get(64..).is_some_and(|rest| rest.starts_with(b"TLS 1.3, client"));
        assert!(is_tls_1_3 || bytes.first() == Some(&1), "a message that no TLS client signs");
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        for scheme in Scheme::ALL {
            for options_type in ["*rsa.PSSOptions", "crypto.Hash", text] {
                if let Some(read) = wire::scheme_from_go_options(scheme.algorithm(), options_type, text) {
                    assert_eq!(read.algorithm(), scheme.algorithm());
                    assert_eq!(wire::go_options(read).0, options_type);
                }
            }
        }
    }
});
