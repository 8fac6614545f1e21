//! The verifier: webpki's paths, checked once more, and certificates that are trusted themselves.
// C186, C187

use std::cell::Cell;
use std::net::IpAddr;
use std::sync::Arc;

use rustls::client::danger::{ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms};
use rustls::{CertificateError, ExtendedKeyPurpose, OtherError};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use webpki::{Cert, EndEntityCert, Error, KeyUsage, RequiredEkuNotFoundContext, VerifiedPath};

use crate::certificate::CertificateFields;
use crate::handshake_signatures::handshake_signatures;
use crate::roots::TrustedRoots;

/// The certificate authority that a server's certificate leads to cannot be used now. rustls reports it as
/// [`CertificateError::Other`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RootProblem {
    /// It has expired.
    #[error("certificate authority has expired")]
    Expired,
    /// It is not valid yet.
    #[error("certificate authority is not valid yet")]
    NotValidYet,
}

/// Verifies that a server's certificate is trusted, currently valid, and made for the server's name.
#[derive(Clone, Debug)]
pub struct ServerVerifier {
    roots: Arc<TrustedRoots>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerVerifier {
    /// A verifier that trusts `roots` and the signature algorithms of `provider`.
    pub fn new(roots: Arc<TrustedRoots>, provider: &CryptoProvider) -> Self {
        ServerVerifier { roots, algorithms: provider.signature_verification_algorithms }
    }

    /// Verifies a certificate with the other certificates that its server sent.
    ///
    /// # Errors
    /// The certificate is not trusted, not valid now, not for servers, or not for this name.
    pub fn verify(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), CertificateError> {
        let end_entity = EndEntityCert::try_from(certificate).map_err(certificate_error)?;
        let fields = CertificateFields::parse(certificate).ok_or(CertificateError::BadEncoding)?;
        if intermediates.iter().any(|each| CertificateFields::parse(each).is_none()) {
            return Err(CertificateError::BadEncoding);
        }
        if self.is_trusted_itself(certificate, &end_entity, &fields) {
            check_usable(&fields, now).map_err(certificate_error)?;
        } else {
            self.check_chain(&end_entity, intermediates, now)?;
        }
        check_name(&end_entity, name).map_err(certificate_error)
    }

    /// Whether the certificate is self-signed and one of the trusted ones, byte by byte.
    // C186
    fn is_trusted_itself(
        &self,
        certificate: &CertificateDer<'_>,
        end_entity: &EndEntityCert<'_>,
        fields: &CertificateFields<'_>,
    ) -> bool {
        let mut algorithms =
            self.algorithms.all.iter().filter(|each| *each.signature_alg_id() == *fields.signature_algorithm);
        self.roots.contains(certificate)
            && fields.issuer == fields.subject
            && algorithms
                .any(|each| end_entity.verify_signature(*each, fields.signed, fields.signature).is_ok())
    }

    fn check_chain(
        &self,
        end_entity: &EndEntityCert<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), CertificateError> {
        let root_problem = Cell::new(None);
        let check = |path: &VerifiedPath<'_>| self.check_path(path, now, &root_problem);
        let found = end_entity.verify_for_usage(
            self.algorithms.all,
            self.roots.anchors(),
            intermediates,
            now,
            KeyUsage::server_auth(),
            None,
            Some(&check),
        );
        match (found, root_problem.take()) {
            (Ok(_), _) => Ok(()),
            (Err(Error::CertExpired { .. } | Error::CertNotValidYet { .. }), Some(problem)) => {
                Err(CertificateError::Other(OtherError(Arc::new(problem))))
            }
            (Err(error), _) => Err(certificate_error(error)),
        }
    }

    /// Checks what webpki takes for granted: that the trust anchor may sign for servers at this time, the key usage of every
    /// issuer, and critical extensions.
    // C187
    fn check_path(
        &self,
        path: &VerifiedPath<'_>,
        now: UnixTime,
        root_problem: &Cell<Option<RootProblem>>,
    ) -> Result<(), Error> {
        let anchor = self.roots.certificate_of(path.anchor()).ok_or(Error::UnknownIssuer)?;
        let anchor = CertificateFields::parse(anchor).ok_or(Error::BadDer)?;
        check_issuer(&anchor)?;
        check_usable(&anchor, now).inspect_err(|error| match error {
            Error::CertExpired { .. } => root_problem.set(Some(RootProblem::Expired)),
            Error::CertNotValidYet { .. } => root_problem.set(Some(RootProblem::NotValidYet)),
            _ => {}
        })?;
        check_below(&anchor, path.end_entity())?;
        let mut intermediates = 0;
        for intermediate in path.intermediate_certificates() {
            intermediates += 1;
            check_below(&anchor, intermediate)?;
            let der = intermediate.der();
            check_issuer(&CertificateFields::parse(&der).ok_or(Error::BadDer)?)?;
        }
        if anchor.path_length().is_some_and(|limit| intermediates > limit) {
            return Err(Error::PathLenConstraintViolated);
        }
        Ok(())
    }
}

/// Checks that a certificate may sign others.
fn check_issuer(certificate: &CertificateFields<'_>) -> Result<(), Error> {
    if certificate.may_sign_certificates() { Ok(()) } else { Err(Error::EndEntityUsedAsCa) }
}

/// Checks a certificate below an anchor: it is not another certificate of the anchor, and its critical extensions are known.
fn check_below(anchor: &CertificateFields<'_>, certificate: &Cert<'_>) -> Result<(), Error> {
    let der = certificate.der();
    let fields = CertificateFields::parse(&der).ok_or(Error::BadDer)?;
    if fields.has_same_subject(anchor) {
        return Err(Error::UnknownIssuer);
    }
    if fields.has_unknown_critical_extension {
        return Err(Error::UnsupportedCriticalExtension);
    }
    Ok(())
}

/// Checks that a trusted certificate is valid now, for servers, and has no unknown critical extension.
fn check_usable(certificate: &CertificateFields<'_>, now: UnixTime) -> Result<(), Error> {
    let seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let unix_time = |seconds: i64| {
        UnixTime::since_unix_epoch(std::time::Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
    };
    if certificate.has_unknown_critical_extension {
        return Err(Error::UnsupportedCriticalExtension);
    }
    if seconds < certificate.not_before {
        return Err(Error::CertNotValidYet { time: now, not_before: unix_time(certificate.not_before) });
    }
    if seconds > certificate.not_after {
        return Err(Error::CertExpired { time: now, not_after: unix_time(certificate.not_after) });
    }
    if !certificate.permits_servers() {
        let context = RequiredEkuNotFoundContext { required: KeyUsage::server_auth(), present: Vec::new() };
        return Err(Error::RequiredEkuNotFoundContext(context));
    }
    Ok(())
}

/// Checks the alternative names. An IPv4 address and the IPv6 address that stands for it are the same.
fn check_name(certificate: &EndEntityCert<'_>, name: &ServerName<'_>) -> Result<(), Error> {
    let same = match name {
        ServerName::IpAddress(address) => match IpAddr::from(*address) {
            IpAddr::V4(address) => Some(IpAddr::V6(address.to_ipv6_mapped())),
            IpAddr::V6(address) => address.to_ipv4_mapped().map(IpAddr::V4),
        },
        _ => None,
    };
    certificate.verify_is_valid_for_subject_name(name).or_else(|error| match same {
        Some(same) => certificate
            .verify_is_valid_for_subject_name(&ServerName::IpAddress(same.into()))
            .map_err(|_| error),
        None => Err(error),
    })
}

/// The error as rustls reports it.
fn certificate_error(error: Error) -> CertificateError {
    match error {
        Error::BadDer | Error::BadDerTime | Error::TrailingData(_) => CertificateError::BadEncoding,
        Error::CertNotValidYet { time, not_before } => {
            CertificateError::NotValidYetContext { time, not_before }
        }
        Error::CertExpired { time, not_after } => CertificateError::ExpiredContext { time, not_after },
        Error::InvalidCertValidity => CertificateError::Expired,
        Error::UnknownIssuer => CertificateError::UnknownIssuer,
        Error::CertNotValidForName(context) => CertificateError::NotValidForNameContext {
            expected: context.expected,
            presented: context.presented,
        },
        Error::InvalidSignatureForPublicKey => CertificateError::BadSignature,
        Error::UnsupportedSignatureAlgorithmContext(context) => {
            CertificateError::UnsupportedSignatureAlgorithmContext {
                signature_algorithm_id: context.signature_algorithm_id,
                supported_algorithms: context.supported_algorithms,
            }
        }
        Error::UnsupportedSignatureAlgorithmForPublicKeyContext(context) => {
            CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext {
                signature_algorithm_id: context.signature_algorithm_id,
                public_key_algorithm_id: context.public_key_algorithm_id,
            }
        }
        Error::RequiredEkuNotFoundContext(context) => CertificateError::InvalidPurposeContext {
            required: ExtendedKeyPurpose::ServerAuth,
            presented: context.present.into_iter().map(purpose).collect(),
        },
        error => CertificateError::Other(OtherError(Arc::new(error))),
    }
}

fn purpose(oid: Vec<usize>) -> ExtendedKeyPurpose {
    match oid.as_slice() {
        KeyUsage::SERVER_AUTH_REPR => ExtendedKeyPurpose::ServerAuth,
        KeyUsage::CLIENT_AUTH_REPR => ExtendedKeyPurpose::ClientAuth,
        _ => ExtendedKeyPurpose::Other(oid),
    }
}

impl ServerCertVerifier for ServerVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.verify(end_entity, intermediates, server_name, now)?;
        Ok(ServerCertVerified::assertion())
    }

    handshake_signatures!(algorithms);
}
