//! Errors, and what the recorded decisions cannot show: rotten encodings and roots that are skipped.

use std::sync::Arc;
use std::time::Duration;

use navicert_testkit::Ca;
use proptest::prelude::*;
use rustls::CertificateError;
use rustls::crypto::aws_lc_rs;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use crate::certificate::CertificateFields;
use crate::{ServerVerifier, TrustedRoots};

/// A time in 2027.
const NOW: u64 = 1_800_000_000;

fn verify(
    trusted: &CertificateDer<'static>,
    chain: &[CertificateDer<'static>],
) -> Result<(), CertificateError> {
    let roots = Arc::new(TrustedRoots::from_iter([trusted.clone()]));
    let now = UnixTime::since_unix_epoch(Duration::from_secs(NOW));
    let (certificate, intermediates) = chain.split_first().unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    ServerVerifier::new(roots, &aws_lc_rs::default_provider()).verify(certificate, intermediates, &name, now)
}

// C186
#[test]
fn self_signed_certificate_is_accepted_only_if_it_is_the_trusted_one() {
    let (ca, other) = (Ca::self_signed_server("api"), Ca::self_signed_server("api"));
    assert_eq!(verify(ca.der(), &[ca.der().clone()]), Ok(()));
    assert!(verify(other.der(), &[ca.der().clone()]).is_err());
}

#[test]
fn unreadable_certificate_of_a_server_is_an_error() {
    let ca = Ca::new("root");
    let server = ca.server().issue();
    let rotten = CertificateDer::from(vec![0x30, 0x82, 0xff]);
    let chain = [server.leaf().clone(), rotten.clone()];
    assert_eq!(verify(ca.der(), &chain), Err(CertificateError::BadEncoding));
    assert_eq!(verify(ca.der(), &[rotten]), Err(CertificateError::BadEncoding));
}

#[test]
fn certificates_that_cannot_be_parsed_are_not_trusted() {
    let (first, second) = (Ca::new("first"), Ca::new("second"));
    let text = format!(
        "{}\nnot PEM\n-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n{}",
        first.pem(),
        second.pem()
    );
    let roots = TrustedRoots::from_pem(text.as_bytes());
    assert_eq!((roots.len(), roots.is_empty()), (2, false));
    assert!(roots.contains(first.der()) && roots.contains(second.der()));
    for (anchor, ca) in roots.anchors().iter().zip([&first, &second]) {
        assert_eq!(roots.certificate_of(anchor), Some(ca.der()));
    }
    assert!(TrustedRoots::from_pem(b"").is_empty());
    assert_eq!(format!("{roots:?}"), "TrustedRoots { certificates: 2 }");
}

proptest! {
    #[test]
    fn reading_a_certificate_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = CertificateFields::parse(&bytes);
    }

    #[test]
    fn reading_a_changed_certificate_never_panics(position in 0usize..400, octet in any::<u8>()) {
        let mut der = Ca::self_signed_server("api").der().to_vec();
        let position = position % der.len();
        der[position] = octet;
        let _ = CertificateFields::parse(&der);
    }
}
