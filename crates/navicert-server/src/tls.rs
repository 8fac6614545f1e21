//! Server certificate, key and client certificate authorities, loaded from files and reloaded when they change.
//! Unreadable files or a mismatched key are logged and the previous configuration stays in use.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use navicert_types::exposition::MetricKind::{Counter, Gauge};
use navicert_types::{Clock, Timestamp, error_chain};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use x509_parser::prelude::{FromDer as _, X509Certificate};
use zeroize::Zeroizing;

use crate::confinement;
use crate::health::Check;
use crate::listener::Security;
use crate::metrics::{Collector, Exposition};

/// TLS files of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// Certificate chain, leaf first, in PEM.
    pub certificate: PathBuf,
    /// Private key in PEM.
    pub key: PathBuf,
    /// Certificate authorities for client certificates, in PEM. `None`: clients are not asked for a certificate.
    pub client_authority: Option<PathBuf>,
}

/// The TLS files cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read.
    #[error("failed to read TLS file `{}`{}", path.display(), confinement::read_hint(path))]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// I/O error reported by the operating system.
        source: io::Error,
    },
    /// The file contains no item of the expected kind.
    #[error("missing {what} in `{}`: expected PEM", path.display())]
    MissingPem {
        /// Path of the file.
        path: PathBuf,
        /// The expected kind.
        what: &'static str,
    },
    /// Certificate and key do not match, or rustls does not support them.
    #[error("invalid TLS key pair: certificate `{}`, key `{}`", certificate.display(), key.display())]
    KeyPair {
        /// Path of the certificate.
        certificate: PathBuf,
        /// Path of the key.
        key: PathBuf,
        /// Error of rustls.
        source: rustls::Error,
    },
    /// The client certificate authorities cannot be used.
    #[error("invalid client certificate authority `{}`: {why}", path.display())]
    Authority {
        /// Path of the file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
}

/// TLS configuration that follows its files.
pub struct ServerTls {
    files: TlsFiles,
    config: Arc<ArcSwap<ServerConfig>>,
    clock: Arc<dyn Clock>,
    state: Mutex<TlsState>,
}

#[derive(Default)]
struct TlsState {
    /// Contents when the files were last loaded, successfully or not.
    contents: FileContents,
    expires: Option<Timestamp>,
    problem: Option<String>,
    /// Number of failed and successful reloads.
    reloads: [u64; 2],
}

#[derive(Clone, Default, PartialEq, Eq)]
struct FileContents {
    /// May contain the key as well.
    certificate: Zeroizing<Vec<u8>>,
    key: Zeroizing<Vec<u8>>,
    client_authority: Option<Vec<u8>>,
}

impl ServerTls {
    /// Loads the files.
    ///
    /// # Errors
    /// The files cannot be used.
    pub fn open(files: TlsFiles, clock: Arc<dyn Clock>) -> Result<Arc<Self>, TlsError> {
        let content = FileContents::read(&files)?;
        let (config, expires) = content.config(&files)?;
        let config = Arc::new(ArcSwap::from_pointee(config));
        let state = TlsState { contents: content, expires, ..TlsState::default() };
        Ok(Arc::new(ServerTls { files, config, clock, state: Mutex::new(state) }))
    }

    /// Transport security for a listener; follows every reload.
    pub fn security(&self) -> Security {
        Security::Tls(Arc::clone(&self.config))
    }

    /// The files to watch.
    pub fn watched_files(&self) -> Vec<PathBuf> {
        let TlsFiles { certificate, key, client_authority } = &self.files;
        [Some(certificate), Some(key), client_authority.as_ref()].into_iter().flatten().cloned().collect()
    }

    /// Reloads the files if they changed. Open connections are not affected.
    pub(crate) fn reload_if_changed(&self) {
        let mut state = self.state();
        let outcome = FileContents::read(&self.files).and_then(|content| {
            if content == state.contents {
                return Ok(None);
            }
            // Invalid contents are tried and logged only once.
            state.contents = content;
            state.contents.config(&self.files).map(Some)
        });
        match outcome {
            Ok(None) => {}
            Ok(Some((config, expires))) => {
                self.config.store(Arc::new(config));
                let [_, successes] = &mut state.reloads;
                *successes += 1;
                (state.expires, state.problem) = (expires, None);
                tracing::info!(
                    event = "tls_certificate_reloaded",
                    certificate = %self.files.certificate.display(),
                    "reloaded TLS certificate"
                );
            }
            Err(error) => {
                let why = error_chain(&error);
                if state.problem.as_ref() != Some(&why) {
                    tracing::error!(
                        event = "tls_certificate_reload_failed",
                        error = why,
                        "failed to reload TLS certificate, previous certificate stays in use"
                    );
                    let [failures, _] = &mut state.reloads;
                    *failures += 1;
                    state.problem = Some(why);
                }
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, TlsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FileContents {
    fn read(files: &TlsFiles) -> Result<Self, TlsError> {
        let read = |path: &Path| {
            std::fs::read(path).map_err(|source| TlsError::Read { path: path.to_owned(), source })
        };
        let certificate = Zeroizing::new(read(&files.certificate)?);
        // One file with both is read once, so that both are of the same version.
        let key = match files.certificate == files.key {
            true => certificate.clone(),
            false => Zeroizing::new(read(&files.key)?),
        };
        Ok(FileContents {
            certificate,
            key,
            client_authority: files.client_authority.as_deref().map(read).transpose()?,
        })
    }

    fn config(&self, files: &TlsFiles) -> Result<(ServerConfig, Option<Timestamp>), TlsError> {
        let chain = certificates(&self.certificate, &files.certificate)?;
        let expires = chain.first().and_then(expiry);
        let no_key = |_| TlsError::MissingPem { path: files.key.clone(), what: "private key" };
        let key = PrivateKeyDer::from_pem_slice(&self.key).map_err(no_key)?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let pair = |source| TlsError::KeyPair {
            certificate: files.certificate.clone(),
            key: files.key.clone(),
            source,
        };
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(pair)?;
        let builder = match (&self.client_authority, &files.client_authority) {
            (Some(pem), Some(path)) => {
                let why = |why: String| TlsError::Authority { path: path.clone(), why };
                let mut roots = RootCertStore::empty();
                for root in certificates(pem, path)? {
                    roots.add(root).map_err(|error| why(error.to_string()))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                    // A client without a certificate gets a readable HTTP response instead of a TLS alert.
                    .allow_unauthenticated()
                    .build()
                    .map_err(|error| why(error.to_string()))?;
                builder.with_client_cert_verifier(verifier)
            }
            _ => builder.with_no_client_auth(),
        };
        let mut config = builder.with_single_cert(chain, key).map_err(pair)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok((config, expires))
    }
}

fn certificates(pem: &[u8], path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err(TlsError::MissingPem { path: path.to_owned(), what: "certificate" }),
    }
}

fn expiry(certificate: &CertificateDer<'_>) -> Option<Timestamp> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    Timestamp::from_second(parsed.validity().not_after.timestamp()).ok()
}

/// Fails when the certificate has expired, not when a reload failed.
impl Check for ServerTls {
    fn name(&self) -> &'static str {
        "tls-certificate"
    }

    fn check(&self) -> Result<(), String> {
        let state = self.state();
        match state.expires {
            Some(expires) if expires <= self.clock.now() => {
                let why = state.problem.as_deref().map(|why| format!("; {why}")).unwrap_or_default();
                Err(format!("expired at {expires}{why}"))
            }
            _ => Ok(()),
        }
    }
}

impl Collector for ServerTls {
    fn collect(&self, exposition: &mut Exposition) {
        let state = self.state();
        let name = "navicert_tls_certificate_expiry_timestamp_seconds";
        exposition.describe(name, Gauge, "Expiry of the listener's TLS certificate");
        if let Some(expires) = state.expires {
            exposition.sample(name, &[], expires.as_second());
        }
        let name = "navicert_tls_certificate_reloads_total";
        exposition.describe(name, Counter, "TLS certificate reloads by result");
        for (status, count) in ["failure", "success"].iter().zip(state.reloads) {
            exposition.sample(name, &[("status", status)], count);
        }
    }
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("files", &self.files).finish_non_exhaustive()
    }
}
