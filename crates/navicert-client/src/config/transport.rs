//! Transport settings of the selected cluster and user, with every problem.
// C148, C160, C161, C170, C180

use std::io;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use navicert_go::base64::STANDARD;
use navicert_types::redact;

use super::error::ConfigErrorStage as Stage;
use super::problem::ClientProblem;
use crate::kubeconfig::{Effective, FileSystem, base_address};
use crate::transport::{
    BuildError, Impersonation, Proxy, ProxyChoice, TransportEnvironment, TransportSettings, Trust,
    has_certificate,
};

/// What reading the transport settings needs.
pub(super) struct TransportReader<'a> {
    pub(super) effective: &'a Effective,
    pub(super) environment: &'a TransportEnvironment,
    pub(super) files: &'a dyn FileSystem,
}

impl TransportReader<'_> {
    /// The cluster's settings. They are usable only if no problem was found.
    pub(super) fn read(&self, problems: &mut Vec<ClientProblem>) -> TransportSettings {
        let (effective, environment) = (self.effective, self.environment);
        let mut settings = TransportSettings {
            tls_server_name: effective.cluster.tls_server_name.clone(),
            compression: !effective.cluster.disable_compression,
            http2: !environment.disable_http2,
            http2_read_idle: environment.http2_read_idle,
            http2_ping_timeout: environment.http2_ping_timeout,
            ..TransportSettings::new(effective.server())
        };
        let proxy = self.proxy().unwrap_or_else(|problem| {
            problems.push(problem);
            ProxyChoice::None
        });
        settings.proxy = proxy;
        problems.extend(self.server_problem(&settings));
        settings.trust = self.trust().unwrap_or_else(|problem| {
            problems.push(problem);
            Trust::System
        });
        settings
    }

    /// Impersonation, which belongs to the user.
    pub(super) fn impersonation(&self, problems: &mut Vec<ClientProblem>) -> Option<Impersonation> {
        Impersonation::from_user(&self.effective.user).unwrap_or_else(|error| {
            let field = if let BuildError::Impersonate { field } = error { field } else { "as" };
            problems.push(ClientProblem::Impersonation(field));
            None
        })
    }

    fn proxy(&self) -> Result<ProxyChoice, ClientProblem> {
        let url = &self.effective.cluster.proxy_url;
        if url.is_empty() {
            return Ok(ProxyChoice::Environment(self.environment.proxies.clone()));
        }
        Proxy::parse(url).map(ProxyChoice::Always).map_err(|source| ClientProblem::Proxy {
            url: redact::url(url).into_owned(),
            cluster: self.effective.cluster_name.clone(),
            source,
        })
    }

    fn server_problem(&self, settings: &TransportSettings) -> Option<ClientProblem> {
        let written = &self.effective.cluster.server;
        let server = || redact::url(written).into_owned();
        if let Err(reason) = base_address(written) {
            return Some(ClientProblem::Server { server: server(), reason, stage: Stage::Build });
        }
        let reason = match settings.proxy_in_use().err()? {
            BuildError::Proxy(source) => {
                let variable = if self.effective.is_https() { "HTTPS_PROXY" } else { "HTTP_PROXY" };
                return Some(ClientProblem::ProxyEnvironment { variable, source });
            }
            BuildError::ServerName(name) if !settings.tls_server_name.is_empty() => {
                return Some(ClientProblem::ServerName(name));
            }
            BuildError::ServerName(_) => "the host is neither a DNS name nor an IP address".to_owned(),
            BuildError::Uri(_) => "the host contains characters that are not allowed".to_owned(),
            BuildError::Server(reason) => reason,
            other => other.to_string(),
        };
        Some(ClientProblem::Server { server: server(), reason, stage: Stage::Request })
    }

    fn trust(&self) -> Result<Trust, ClientProblem> {
        let cluster = &self.effective.cluster;
        let (data, file) = (&cluster.certificate_authority_data, &cluster.certificate_authority);
        if !self.effective.is_https() {
            return Ok(Trust::System); // Unused: there is no TLS (C160).
        }
        if cluster.insecure_skip_tls_verify {
            return match data.is_empty() && file.is_empty() {
                true => Ok(Trust::Insecure),
                false => Err(ClientProblem::AuthorityAndInsecure),
            };
        }
        if !data.is_empty() {
            check_authority(data)?;
            return Ok(Trust::Pem(data.clone()));
        }
        if file.is_empty() {
            return Ok(Trust::System);
        }
        // An empty file, which trusts no certificate, is allowed (C180). Validation reports an unreadable one, except for a
        // directory, which kubectl's validation accepts.
        let text = match self.files.read(Path::new(file)) {
            Err(error) if error.kind() == io::ErrorKind::IsADirectory => {
                return Err(ClientProblem::AuthorityIsDirectory(file.clone()));
            }
            read => read.unwrap_or_default(),
        };
        if !text.is_empty() {
            check_authority(&text)?;
        }
        Ok(Trust::File(PathBuf::from(file)))
    }
}

fn check_authority(text: &[u8]) -> Result<(), ClientProblem> {
    const BEGIN: &[u8] = b"-----BEGIN ";
    let has_pem = |text: &[u8]| text.windows(BEGIN.len()).any(|window| window == BEGIN);
    if has_certificate(text) {
        return Ok(());
    }
    if has_pem(text) {
        return Err(ClientProblem::InvalidAuthority);
    }
    let compact: Vec<u8> = text.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let encoded_twice = STANDARD.decode(compact).is_ok_and(|decoded| has_pem(&decoded));
    Err(ClientProblem::NoAuthority { encoded_twice })
}
