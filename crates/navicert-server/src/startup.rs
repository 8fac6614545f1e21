//! From configuration files to a running server: reads them, assembles the parts that every server shares, and serves until a
//! signal.
//!
//! ```text
//! ConfigFiles ──▶ AuthnReloader ──▶ ServerParts ──▶ ServerParts::serve ──▶ ServeEnd
//! (two files)     + ServerSettings  health, metrics,  sockets, confinement, runtime,
//!                                   audit log         SIGHUP reloads, SIGTERM drains
//! ```

mod config_files;
mod run;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use navicert_authn::config::AuthnReloader;
use navicert_authn::metrics::AuthnMetrics;
use navicert_client::transport::{Timer, TokioTimer};
use navicert_types::Clock;

use crate::audit::{AuditLog, AuditTarget};
use crate::confinement::{ConfinedFiles, ConfinementPlan};
use crate::health::{ConfigurationCheck, Health, IssuersCheck};
use crate::limits::ServerLimits;
use crate::memory::{self, EffectiveLimits};
use crate::metrics::Registry;
use crate::proxy::upstream_access::UpstreamAccess;
use crate::reload::Reloadable;
use crate::settings::ServerSettings;
use crate::tls::ServerTls;

pub use config_files::{ConfigFiles, ConfigFilesError};
pub use run::{ServeEnd, ServeError};

/// The address to listen on, unless another is configured: port 8443 of all interfaces.
const DEFAULT_LISTEN_PORT: u16 = 8443;

/// The parts every server shares.
pub struct ServerParts {
    /// The settings, with everything that overrides the file applied.
    pub servers: ServerSettings,
    /// The reloadable authentication configuration.
    pub reloader: Arc<AuthnReloader>,
    /// Certificate and key; `None` without TLS.
    pub tls: Option<Arc<ServerTls>>,
    /// Readiness checks; each server registers its own.
    pub health: Health,
    /// Metrics registry; each server registers its own metrics.
    pub metrics: Registry,
    /// Audit log of decisions.
    pub audit: AuditLog,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The timer.
    pub timer: Arc<dyn Timer>,
    listen: SocketAddr,
    /// The copy of the last good configuration, if one is kept.
    last_good_copy: Option<PathBuf>,
}

/// What the parts of a server are assembled from.
pub struct ServerInputs {
    /// The settings, with everything that overrides the file applied.
    pub servers: ServerSettings,
    /// The reloadable authentication configuration.
    pub reloader: Arc<AuthnReloader>,
    /// Its metrics.
    pub authn_metrics: Arc<AuthnMetrics>,
    /// The path of the copy of the last good configuration, if one is kept.
    pub last_good_copy: Option<PathBuf>,
    /// Certificate and key; `None` without TLS.
    pub tls: Option<Arc<ServerTls>>,
    /// Audit log of decisions.
    pub audit: AuditLog,
    /// The clock.
    pub clock: Arc<dyn Clock>,
}

/// How one server differs from the others.
pub struct ServerSpec<H> {
    /// Name in metrics and logs.
    pub name: &'static str,
    /// Limits, unless others are configured.
    pub limits: ServerLimits,
    /// The request handler.
    pub handler: Arc<H>,
    /// Additional files to reload.
    pub reloadables: Vec<Arc<dyn Reloadable>>,
    /// Checked periodically.
    pub upstream_access: Option<Arc<UpstreamAccess>>,
    /// What the process is confined to before a second thread exists.
    pub confinement: ConfinementPlan,
}

impl ServerParts {
    /// Assembles the parts: registers the readiness checks and metrics that every server has.
    pub fn new(inputs: ServerInputs) -> Self {
        let ServerInputs { servers, reloader, authn_metrics, last_good_copy, tls, audit, clock } = inputs;
        let (health, metrics) = (Health::default(), Registry::default());
        metrics.register(authn_metrics);
        metrics.register(Arc::new(audit.clone()));
        health.register(Arc::new(ConfigurationCheck(Arc::clone(&reloader))));
        let authenticator = Arc::clone(reloader.authenticator());
        health.register(Arc::new(IssuersCheck::new(authenticator, servers.ready_issuers)));
        if let Some(tls) = &tls {
            health.register(Arc::clone(tls) as _);
            metrics.register(Arc::clone(tls) as _);
        }
        let listen = servers.listen.unwrap_or(SocketAddr::from(([0u16; 8], DEFAULT_LISTEN_PORT)));
        let timer: Arc<dyn Timer> = Arc::new(TokioTimer);
        ServerParts { servers, reloader, tls, health, metrics, audit, clock, timer, listen, last_good_copy }
    }

    /// The address to listen on.
    pub fn address(&self) -> SocketAddr {
        self.listen
    }

    /// What the server is confined to: these files besides its own, and the program it starts, if any.
    pub fn confinement(&self, other_files: &[PathBuf], program: Option<String>) -> ConfinementPlan {
        let mut files = ConfinedFiles::of_system();
        let own = self.tls.iter().flat_map(|tls| tls.watched_files());
        for file in self.reloader.watched_blocking().into_iter().chain(own) {
            files.allow_reading(&file);
        }
        for file in other_files {
            files.allow_reading(file);
        }
        if let Some(AuditTarget::File(path)) =
            self.servers.audit_log_path.as_deref().map(AuditTarget::from_path)
        {
            files.allow_appending(&path);
        }
        if let Some(path) = &self.last_good_copy {
            files.allow_replacing(path);
        }
        ConfinementPlan { settings: self.servers.confinement, files, program }
    }

    /// The limits of a server: those of the configuration, else `default` as far as the memory permits.
    pub fn limits(&self, default: ServerLimits) -> EffectiveLimits {
        let memory = memory::limit(Path::new("/"));
        let fitted = default.fit_to_memory(memory.map(|memory| memory.bytes));
        EffectiveLimits { limits: self.servers.limits.apply_to(fitted), memory }
    }
}
