//! A server's certificate and key, and whose clients' certificates it believes: read from files, and read again when they
//! change. A pair that does not belong together, or cannot be read, changes nothing and is told.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use navicert_types::{Clock, Timestamp};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use x509_parser::prelude::{FromDer as _, X509Certificate};
use zeroize::Zeroizing;

use crate::health::Check;
use crate::listener::Security;
use crate::metrics::{Figures, Page};

/// Which files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, and those between it and a root: PEM.
    pub certificate: PathBuf,
    /// Its key: PEM.
    pub key: PathBuf,
    /// The roots of clients' certificates: PEM. `None`: clients are not asked for one.
    pub client_authority: Option<PathBuf>,
}

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It holds none of what it should.
    #[error("`{}` holds no {what} in PEM form", path.display())]
    Nothing {
        /// Which one.
        path: PathBuf,
        /// What should be there.
        what: &'static str,
    },
    /// The two are no pair, or TLS cannot use them.
    #[error("`{}` and `{}` cannot be used together", certificate.display(), key.display())]
    Pair {
        /// The certificate.
        certificate: PathBuf,
        /// The key.
        key: PathBuf,
        /// Why.
        source: rustls::Error,
    },
    /// The roots of clients cannot be used.
    #[error("`{}` cannot be used to check clients' certificates: {why}", path.display())]
    Authority {
        /// Which file.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

/// TLS that follows its files.
pub struct Tls {
    files: TlsFiles,
    config: Arc<ArcSwap<ServerConfig>>,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// What the files held when they were last dealt with, for good or ill.
    content: Content,
    expires: Option<Timestamp>,
    problem: Option<String>,
    /// Failure, success.
    reloads: [u64; 2],
}

#[derive(Clone, Default, PartialEq, Eq)]
struct Content {
    certificate: Vec<u8>,
    key: Zeroizing<Vec<u8>>,
    client_authority: Option<Vec<u8>>,
}

impl Tls {
    /// Reads the files for the first time.
    ///
    /// # Errors
    /// They cannot be used, and there is nothing to fall back on.
    pub fn open(files: TlsFiles, clock: Arc<dyn Clock>) -> Result<Arc<Self>, TlsError> {
        let content = Content::read(&files)?;
        let (config, expires) = content.config(&files)?;
        let config = Arc::new(ArcSwap::from_pointee(config));
        let state = State { content, expires, ..State::default() };
        Ok(Arc::new(Tls { files, config, clock, state: Mutex::new(state) }))
    }

    /// For a listener; it follows every change.
    pub fn security(&self) -> Security {
        Security::Tls(Arc::clone(&self.config))
    }

    /// The files to watch.
    pub fn watched(&self) -> Vec<PathBuf> {
        let TlsFiles { certificate, key, client_authority } = &self.files;
        [Some(certificate), Some(key), client_authority.as_ref()].into_iter().flatten().cloned().collect()
    }

    /// Looks at the files, and does what follows from it. Connections that are open go on as they are.
    pub fn look(&self) {
        let mut state = self.state();
        let outcome = Content::read(&self.files).and_then(|content| {
            if content == state.content {
                return Ok(None);
            }
            // The same bad pair is not tried and not told again.
            state.content = content;
            state.content.config(&self.files).map(Some)
        });
        match outcome {
            Ok(None) => {}
            Ok(Some((config, expires))) => {
                self.config.store(Arc::new(config));
                let [_, successes] = &mut state.reloads;
                *successes += 1;
                (state.expires, state.problem) = (expires, None);
                tracing::info!(certificate = %self.files.certificate.display(), "the TLS certificate has been replaced");
            }
            Err(error) => {
                let why = with_source(&error);
                if state.problem.as_ref() != Some(&why) {
                    tracing::error!(why, "the earlier TLS certificate stays in use");
                    let [failures, _] = &mut state.reloads;
                    *failures += 1;
                    state.problem = Some(why);
                }
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Content {
    fn read(files: &TlsFiles) -> Result<Self, TlsError> {
        let read = |path: &Path| {
            std::fs::read(path).map_err(|source| TlsError::Read { path: path.to_owned(), source })
        };
        Ok(Content {
            certificate: read(&files.certificate)?,
            key: Zeroizing::new(read(&files.key)?),
            client_authority: files.client_authority.as_deref().map(read).transpose()?,
        })
    }

    fn config(&self, files: &TlsFiles) -> Result<(ServerConfig, Option<Timestamp>), TlsError> {
        let chain = certificates(&self.certificate, &files.certificate)?;
        let expires = chain.first().and_then(expiry);
        let no_key = |_| TlsError::Nothing { path: files.key.clone(), what: "private key" };
        let key = PrivateKeyDer::from_pem_slice(&self.key).map_err(no_key)?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let pair = |source| TlsError::Pair {
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
                    // Whoever shows none is told so in HTTP, where it can be read.
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
        _ => Err(TlsError::Nothing { path: path.to_owned(), what: "certificate" }),
    }
}

fn expiry(certificate: &CertificateDer<'_>) -> Option<Timestamp> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    Timestamp::from_second(parsed.validity().not_after.timestamp()).ok()
}

fn with_source(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}

/// A certificate that has expired helps nobody; one that could not be replaced still does.
impl Check for Tls {
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

impl Figures for Tls {
    fn write(&self, page: &mut Page) {
        let state = self.state();
        let name = "navicert_tls_certificate_expiry_timestamp_seconds";
        page.head(name, "gauge", "When the certificate of the listener ends");
        if let Some(expires) = state.expires {
            page.line(name, &[], expires.as_second());
        }
        let name = "navicert_tls_certificate_reloads_total";
        page.head(name, "counter", "Changed certificates by whether they took over");
        for (status, count) in ["failure", "success"].iter().zip(state.reloads) {
            page.line(name, &[("status", status)], count);
        }
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("files", &self.files).finish_non_exhaustive()
    }
}
