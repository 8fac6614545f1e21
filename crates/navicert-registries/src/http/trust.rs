//! TLS trust: root certificates, loaded with the first connection.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use navicert_plugin::Environment;
use navicert_tls::{ServerVerifier, TrustedRoots};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use super::HttpError;
use super::dial::Stream;

/// Bundle files of system root certificates. `rustls-native-certs` would also read the directory with one file per
/// certificate, which takes longer than a whole run.
const BUNDLES: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The system root certificates, or those of one file.
#[derive(Debug, Default)]
pub(super) struct TlsTrust {
    bundle: Option<PathBuf>,
    config: OnceCell<Arc<ClientConfig>>,
}

impl TlsTrust {
    /// Trusts the certificates of `AWS_CA_BUNDLE`, of `SSL_CERT_FILE` and `SSL_CERT_DIR`, or the system's.
    pub(super) fn from_environment(environment: &Environment) -> Self {
        let variable = |name| environment.variable(name).filter(|value| !value.is_empty());
        let overridden = variable("SSL_CERT_FILE").or_else(|| variable("SSL_CERT_DIR")).is_some();
        let system = || BUNDLES.iter().map(PathBuf::from).find(|path| !overridden && path.exists());
        let bundle = variable("AWS_CA_BUNDLE").map(PathBuf::from).or_else(system);
        TlsTrust { bundle, config: OnceCell::new() }
    }

    /// Wraps a connection in TLS. The handshake happens with the first read or write.
    pub(super) fn connect<'a>(
        &self,
        host: &str,
        authorities: Option<&Path>,
        stream: Box<dyn Stream + 'a>,
    ) -> Result<Box<dyn Stream + 'a>, HttpError> {
        let failed = |source| HttpError::Tls { host: host.to_owned(), source };
        let config = match authorities {
            Some(path) => configure(Some(path)).map_err(failed)?,
            None => self.config().map_err(failed)?,
        };
        let name = host.trim_end_matches('.').to_owned();
        let name = ServerName::try_from(name).map_err(|error| failed(io::Error::other(error)))?;
        let connection =
            ClientConnection::new(config, name).map_err(|error| failed(io::Error::other(error)))?;
        Ok(Box::new(StreamOwned::new(connection, stream)))
    }

    fn config(&self) -> io::Result<Arc<ClientConfig>> {
        if let Some(config) = self.config.get() {
            return Ok(Arc::clone(config));
        }
        let config = configure(self.bundle.as_deref())?;
        Ok(Arc::clone(self.config.get_or_init(|| config)))
    }
}

fn configure(bundle: Option<&Path>) -> io::Result<Arc<ClientConfig>> {
    let roots: TrustedRoots = match bundle {
        Some(path) => {
            let read = fs::read(path);
            let text =
                read.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
            TrustedRoots::from_pem(&text)
        }
        None => rustls_native_certs::load_native_certs().certs.into_iter().collect(),
    };
    if roots.is_empty() {
        let hint = "no system root certificates found; install ca-certificates or set SSL_CERT_FILE";
        return Err(io::Error::other(hint));
    }
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = Arc::new(ServerVerifier::new(Arc::new(roots), &provider));
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().map_err(io::Error::other)?;
    let mut config = builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
