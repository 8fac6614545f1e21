//! The configuration files of a server, which a check without a server reads too.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use navicert_authn::KubeVersion;
use navicert_authn::config::{
    AuthnLoadError, AuthnReloader, BaseProfile, ConfigOrigin, ConfigSources, NavicertConfiguration,
};
use navicert_authn::jwks::{Fetch, JwksContext};
use navicert_authn::metrics::AuthnMetrics;
use navicert_types::backoff::random_fraction;
use navicert_types::{Clock, Diagnostics};

use crate::settings::ServerSettings;

/// The files that configure a server.
#[derive(Debug)]
pub struct ConfigFiles {
    /// The NavicertConfiguration; default if there is none.
    pub navicert_config: NavicertConfiguration,
    /// Its section `servers`.
    pub servers: ServerSettings,
    /// Its path.
    pub navicert_config_path: Option<PathBuf>,
    /// The profile, if it does not come from the file.
    pub profile: Option<BaseProfile>,
    /// The Kubernetes version, if it does not come from the file.
    pub kube_version: Option<KubeVersion>,
}

/// The NavicertConfiguration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigFilesError {
    /// It cannot be read.
    #[error("failed to read `{}`", path.display())]
    Read {
        /// Its path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// It is invalid.
    #[error("`{}`: {wrong}", path.display())]
    Invalid {
        /// Its path.
        path: PathBuf,
        /// Every problem.
        wrong: Diagnostics,
    },
}

impl ConfigFiles {
    /// Reads the NavicertConfiguration, if there is one. The AuthenticationConfiguration is read by
    /// [`open`](ConfigFiles::open).
    ///
    /// # Errors
    /// [`ConfigFilesError`]
    pub fn read(
        navicert_config_path: Option<PathBuf>,
        profile: Option<BaseProfile>,
        kube_version: Option<KubeVersion>,
    ) -> Result<Self, ConfigFilesError> {
        let (navicert_config, servers) = match &navicert_config_path {
            Some(path) => read_navicert_config(path)?,
            None => Default::default(),
        };
        Ok(ConfigFiles { navicert_config, servers, navicert_config_path, profile, kube_version })
    }

    /// The same without the files that the NavicertConfiguration names (keys, revocation list), which may exist only where the
    /// server runs: the mappings do not depend on them.
    #[must_use]
    pub fn mappings_only(mut self) -> Self {
        self.navicert_config_path = None;
        self.profile = self.profile.or(self.navicert_config.profile);
        self.kube_version = self.kube_version.or(self.navicert_config.kube_version);
        self
    }

    /// Compiles the AuthenticationConfiguration; nothing is fetched yet.
    ///
    /// # Errors
    /// [`AuthnLoadError`]
    pub fn open(
        self,
        config: ConfigOrigin,
        fetch: Arc<dyn Fetch>,
        metrics: Arc<AuthnMetrics>,
        clock: Arc<dyn Clock>,
    ) -> Result<AuthnReloader, AuthnLoadError> {
        let context = JwksContext { fetch, clock, random: Arc::new(random_fraction), recorder: metrics };
        let sources = ConfigSources {
            config,
            navicert_config: self.navicert_config_path,
            profile: self.profile,
            kube_version: self.kube_version,
        };
        AuthnReloader::open(sources, context)
    }
}

fn read_navicert_config(path: &Path) -> Result<(NavicertConfiguration, ServerSettings), ConfigFilesError> {
    let text =
        std::fs::read(path).map_err(|source| ConfigFilesError::Read { path: path.to_owned(), source })?;
    let invalid = |wrong| ConfigFilesError::Invalid { path: path.to_owned(), wrong };
    let navicert_config = NavicertConfiguration::parse(&text).map_err(invalid)?;
    let servers = navicert_config.servers.as_ref().map(ServerSettings::parse).transpose();
    let servers = servers.map_err(invalid)?.unwrap_or_default();
    let dir = path.parent().unwrap_or(Path::new(""));
    Ok((navicert_config.resolve_paths(dir), servers.resolve_paths(dir)))
}
