//! Certificate authorities of issuers in files of their own (`certificateAuthorityFile`), such as a cluster trust bundle
//! that the kubelet keeps up to date. Kubernetes' file has room for the certificates only, not for a path.

use std::io;
use std::path::{Path, PathBuf};

use super::certificates;
use super::compile::CompiledConfig;
use super::navicert_config::NavicertConfiguration;

/// A `certificateAuthorityFile` cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateAuthorityFileError {
    /// It cannot be read.
    #[error("failed to read `{}`", path.display())]
    Read {
        /// Its path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// It holds no usable certificates.
    #[error("invalid certificate authority `{}`: {message}", path.display())]
    Invalid {
        /// Its path.
        path: PathBuf,
        /// What is wrong with it.
        message: &'static str,
    },
}

impl NavicertConfiguration {
    /// Sets the certificate authorities of issuers that have them in a file, after
    /// [`apply`](NavicertConfiguration::apply). `read` returns the contents of a file.
    ///
    /// # Errors
    /// The first file that cannot be read, or has no valid certificates.
    pub fn apply_certificate_authorities(
        &self,
        compiled: &mut CompiledConfig,
        read: impl Fn(&Path) -> io::Result<Vec<u8>>,
    ) -> Result<(), CertificateAuthorityFileError> {
        for settings in &self.issuers {
            let Some(path) = &settings.certificate_authority_file else { continue };
            let failed = |source| CertificateAuthorityFileError::Read { path: path.clone(), source };
            let text = read(path).map_err(failed)?;
            let found = certificates::parse(&String::from_utf8_lossy(&text))
                .map_err(|message| CertificateAuthorityFileError::Invalid { path: path.clone(), message })?;
            let mut authenticators = compiled.authenticators.iter_mut();
            if let Some(authenticator) = authenticators.find(|one| one.issuer.url == settings.url) {
                authenticator.issuer.certificate_authority = found;
            }
        }
        Ok(())
    }
}
