//! The certificates that are trusted, as a whole and as the trust anchors they make.

use std::fmt;

use navicert_go::pem;
use rustls_pki_types::{CertificateDer, TrustAnchor};

/// Certificates that are trusted.
#[derive(Clone, Default)]
pub struct TrustedRoots {
    /// As webpki needs them; `certificates` has the same order.
    anchors: Vec<TrustAnchor<'static>>,
    certificates: Vec<CertificateDer<'static>>,
}

impl TrustedRoots {
    /// Trusts no certificate.
    pub fn empty() -> Self {
        TrustedRoots::default()
    }

    /// Trusts the certificates of a PEM text. Those that cannot be parsed or have headers are skipped.
    pub fn from_pem(text: &[u8]) -> Self {
        // Go ignores certificates with headers.
        let certificates =
            pem::blocks(text).into_iter().filter(|block| block.label == "CERTIFICATE" && !block.has_headers);
        certificates.map(|block| CertificateDer::from(block.der.to_vec())).collect()
    }

    /// Whether no certificate is trusted.
    pub fn is_empty(&self) -> bool {
        self.certificates.is_empty()
    }

    /// How many certificates are trusted.
    pub fn len(&self) -> usize {
        self.certificates.len()
    }

    pub(crate) fn anchors(&self) -> &[TrustAnchor<'static>] {
        &self.anchors
    }

    /// Whether this very certificate is trusted.
    pub(crate) fn contains(&self, certificate: &CertificateDer<'_>) -> bool {
        self.certificates.iter().any(|trusted| trusted == certificate)
    }

    /// The certificate that an element of [`TrustedRoots::anchors`] was made of.
    pub(crate) fn certificate_of(&self, anchor: &TrustAnchor<'_>) -> Option<&CertificateDer<'static>> {
        // Two certificates can have the same name and key, so that only the address identifies one.
        let address = std::ptr::from_ref(anchor).cast::<()>();
        let index = self.anchors.iter().position(|each| std::ptr::from_ref(each).cast::<()>() == address)?;
        self.certificates.get(index)
    }
}

/// Certificates that cannot be parsed are skipped.
impl FromIterator<CertificateDer<'static>> for TrustedRoots {
    fn from_iter<I: IntoIterator<Item = CertificateDer<'static>>>(certificates: I) -> Self {
        let mut roots = TrustedRoots::empty();
        for certificate in certificates {
            if let Ok(anchor) = webpki::anchor_from_trusted_cert(&certificate) {
                roots.anchors.push(anchor.to_owned());
                roots.certificates.push(certificate);
            }
        }
        roots
    }
}

impl fmt::Debug for TrustedRoots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrustedRoots").field("certificates", &self.len()).finish()
    }
}
