//! The parts every server shares: reloadable configuration, certificate, health checks, metrics and audit log; and the
//! server's lifecycle with its signals.

use std::fs;
use std::mem;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use navicert_authn::config::migrate::{MigrateOptions, OidcFlags, migrate};
use navicert_authn::config::{
    AuthnLoadError, AuthnReloader, BaseProfile, ConfigOrigin, ConfigSources, NavicertConfiguration,
};
use navicert_authn::jwks::JwksContext;
use navicert_authn::metrics::AuthnMetrics;
use navicert_client::transport::{Timer, TokioTimer};
use navicert_io::process_memory::hide_memory;
use navicert_server::ServerLimits;
use navicert_server::audit::{AuditLog, AuditTarget};
use navicert_server::background_tasks::BackgroundTasks;
use navicert_server::confinement::{ConfinedFiles, ConfinementPlan};
use navicert_server::descriptors;
use navicert_server::fetch::HttpFetch;
use navicert_server::health::{ConfigurationCheck, Health, IssuersCheck};
use navicert_server::listener::{Handler, Security};
use navicert_server::memory::{self, MemoryLimit};
use navicert_server::metrics::{ListenerMetrics, Registry};
use navicert_server::proxy::upstream_access::{AccessCheckTask, UpstreamAccess};
use navicert_server::reload::{ReloadTask, Reloadable};
use navicert_server::serving::{BindError, BoundListener, Server, ServerRuntime, ShutdownTiming};
use navicert_server::settings::ServerSettings;
use navicert_server::tls::{ServerTls, TlsFiles};
use navicert_types::backoff::random_fraction;
use navicert_types::{Clock, SystemClock, error_chain};
use serde_json::json;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

use super::{bad_input, logging, usage_error};
use crate::args;
use crate::args::serve::{ClientAuthArgs, FilesArgs, SharedArgs};
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// The parts every server shares.
pub(super) struct ServerParts {
    /// `servers` of the NavicertConfiguration, with the command line's flags applied.
    pub(super) servers: ServerSettings,
    /// The reloadable authentication configuration.
    pub(super) reloader: Arc<AuthnReloader>,
    /// Certificate and key; `None` without TLS.
    pub(super) tls: Option<Arc<ServerTls>>,
    /// Readiness checks; each server registers its own.
    pub(super) health: Health,
    /// Metrics registry; each server registers its own metrics.
    pub(super) metrics: Registry,
    /// Audit log of decisions.
    pub(super) audit: AuditLog,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) timer: Arc<dyn Timer>,
    listen: SocketAddr,
    /// The copy of the last good configuration, if one is kept.
    last_good_copy: Option<PathBuf>,
}

/// How one server differs from the others.
pub(super) struct ServerSpec<H> {
    /// Name in metrics and logs.
    pub(super) name: &'static str,
    /// Limits, unless others are configured.
    pub(super) limits: ServerLimits,
    pub(super) handler: Arc<H>,
    /// Additional files to reload.
    pub(super) reloadables: Vec<Arc<dyn Reloadable>>,
    /// Checked periodically.
    pub(super) upstream_access: Option<Arc<UpstreamAccess>>,
    pub(super) confinement: ConfinementPlan,
}

/// The limits of a server, and the memory they were derived from.
#[derive(Clone, Copy, Debug)]
pub(super) struct EffectiveLimits {
    pub(super) limits: ServerLimits,
    pub(super) memory: Option<MemoryLimit>,
}

/// The configuration files, which `serve --check` reads too.
pub(super) struct ConfigFiles {
    pub(super) navicert_config: NavicertConfiguration,
    pub(super) servers: ServerSettings,
    sources: ConfigSources,
}

impl ConfigFiles {
    /// Reads the files named on the command line.
    pub(super) fn read(args: &FilesArgs, output: &mut Output) -> Result<Self, Failure> {
        let (navicert_config, servers) = read_navicert_config(args.navicert_config.as_deref())?;
        let profile = args.profile.map(|profile| match profile {
            args::Profile::Kube => BaseProfile::Kube,
            args::Profile::Hardened => BaseProfile::Hardened,
        });
        let config = origin(args, output)?;
        Ok(ConfigFiles {
            navicert_config,
            servers,
            sources: ConfigSources { config, navicert_config: args.navicert_config.clone(), profile },
        })
    }

    /// The same without the files that the NavicertConfiguration names (keys, revocation list), which may exist only where the
    /// server runs: the mappings do not depend on them.
    pub(super) fn mappings_only(mut self) -> Self {
        self.sources.navicert_config = None;
        self.sources.profile = self.sources.profile.or(self.navicert_config.profile);
        self
    }

    fn fetch(&self, environment: &Environment) -> Result<HttpFetch, Failure> {
        let fetch = crate::command::authn::fetch(&self.navicert_config, environment);
        fetch.map_err(|failure| match (failure, &self.sources.navicert_config) {
            (Failure::Message { exit, text }, Some(path)) => {
                Failure::Message { exit, text: format!("`{}`: {text}", path.display()) }
            }
            (failure, _) => failure,
        })
    }

    /// Compiles the configuration; nothing is fetched yet.
    pub(super) fn open(
        self,
        recorder: Arc<AuthnMetrics>,
        environment: &Environment,
    ) -> Result<AuthnReloader, Failure> {
        let around = JwksContext {
            fetch: Arc::new(self.fetch(environment)?),
            clock: Arc::new(SystemClock),
            random: Arc::new(random_fraction),
            recorder,
        };
        let named = match &self.sources.config {
            ConfigOrigin::File(path) => format!("`{}`", path.display()),
            ConfigOrigin::Flags { .. } => "the --oidc-* flags".to_owned(),
            ConfigOrigin::Text { .. } => "the built-in configuration".to_owned(),
        };
        let own = self
            .sources
            .navicert_config
            .as_deref()
            .map_or_else(String::new, |path| format!("`{}`", path.display()));
        let config = match &self.sources.config {
            ConfigOrigin::File(path) => Some(path.clone()),
            ConfigOrigin::Flags { .. } | ConfigOrigin::Text { .. } => None,
        };
        AuthnReloader::open(self.sources, around).map_err(|error| match error {
            // These errors do not name the file or the flag that selected it.
            AuthnLoadError::Config(error) => Failure::bad_input(format!("{named}: {}", error_chain(&error))),
            AuthnLoadError::Mismatch(_) => {
                let told = error.to_string();
                let way_out = "; it must equal an `issuer.url` of that file";
                let way_out = if told.contains("].url: ") { way_out } else { "" };
                Failure::bad_input(format!("{own} does not match {named}: {told}{way_out}"))
            }
            AuthnLoadError::Read { path, source } => {
                let flag = if Some(&path) == config.as_ref() { " (--authentication-config)" } else { "" };
                Failure::bad_input(format!("failed to read `{}`{flag}: {source}", path.display()))
            }
            AuthnLoadError::Keys { path, source } => Failure::bad_input(format!(
                "`{}` (jwksFile): {source}; expected the document served at the issuer's `jwks_uri`",
                path.display()
            )),
            error => bad_input(&error),
        })
    }
}

impl ServerParts {
    /// Reads all files. `callers` is set for servers that authenticate their clients.
    pub(super) fn open(
        args: &SharedArgs,
        callers: Option<&ClientAuthArgs>,
        environment: &Environment,
        output: &mut Output,
    ) -> Result<Self, Failure> {
        let files = ConfigFiles::read(&args.files, output)?;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let servers = with_flags(files.servers.clone(), args, callers);
        let tls = tls(&servers, args, &clock)?;
        let last_good_copy = files.navicert_config.last_good_copy.clone();
        let instance = files.navicert_config.instance.clone().unwrap_or_else(host_name);
        let metrics = Arc::new(AuthnMetrics::new(&instance, Arc::clone(&clock)));
        let reloader = Arc::new(files.open(Arc::clone(&metrics), environment)?);
        let audit = match servers.audit_log_path.as_deref().filter(|_| !args.check) {
            None => AuditLog::disabled(),
            Some(path) => {
                AuditLog::open(AuditTarget::from_path(path), Arc::clone(&clock)).map_err(|error| {
                    Failure::bad_input(format!("failed to open audit log `{}`: {error}", path.display()))
                })?
            }
        };
        let (health, figures) = (Health::default(), Registry::default());
        figures.register(metrics);
        figures.register(Arc::new(audit.clone()));
        health.register(Arc::new(ConfigurationCheck(Arc::clone(&reloader))));
        health.register(Arc::new(IssuersCheck::new(
            Arc::clone(reloader.authenticator()),
            servers.ready_issuers,
        )));
        if let Some(tls) = &tls {
            health.register(Arc::clone(tls) as _);
            figures.register(Arc::clone(tls) as _);
        }
        let listen = servers.listen.unwrap_or(SocketAddr::from(([0u16; 8], 8443)));
        let timer: Arc<dyn Timer> = Arc::new(TokioTimer);
        let metrics = figures;
        Ok(ServerParts {
            servers,
            reloader,
            tls,
            health,
            metrics,
            audit,
            clock,
            timer,
            listen,
            last_good_copy,
        })
    }

    /// What the server is confined to: these files besides its own, and the program it starts, if any.
    pub(super) fn confinement(&self, other_files: &[PathBuf], program: Option<String>) -> ConfinementPlan {
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

    /// Confines this process. Every thread is started later and inherits it.
    fn confine(&self, plan: &ConfinementPlan) -> Result<(), Failure> {
        let report =
            plan.apply().map_err(|error| Failure::Message { exit: Exit::No, text: error.to_string() })?;
        report.log();
        if report.confines_files() {
            self.reloader.confine(Arc::new(plan.files.clone()));
        }
        Ok(())
    }

    /// The limits of a server: those of the configuration, else `default` as far as the memory permits. Prints nothing.
    pub(super) fn limits(&self, default: ServerLimits) -> EffectiveLimits {
        let memory = memory::limit(Path::new("/"));
        let fitted = default.fit_to_memory(memory.map(|memory| memory.bytes));
        EffectiveLimits { limits: self.servers.limits.apply_to(fitted), memory }
    }

    /// The address to listen on.
    pub(super) fn address(&self) -> SocketAddr {
        self.listen
    }

    /// Serves until SIGTERM or SIGINT, then drains requests; a second signal ends at once.
    pub(super) fn serve<H: Handler>(
        self,
        spec: ServerSpec<H>,
        args: &SharedArgs,
        output: &mut Output,
    ) -> Result<Exit, Failure> {
        let ServerSpec { name, limits, handler, mut reloadables, upstream_access, confinement } = spec;
        logging::start(args.listener.log_level, args.listener.log_format);
        if let Err(error) = hide_memory() {
            tracing::warn!(event = "memory_protection_failed", %error, "failed to disable core dumps and memory access by other processes");
        }
        let failed = |error: BindError| Failure::Message { exit: Exit::No, text: error_chain(&error) };
        let bound = BoundListener::bind(self.listen).map_err(failed)?;
        let inspection = self.servers.health_listen.map(BoundListener::bind).transpose().map_err(failed)?;
        reloadables.extend(self.tls.clone().map(|tls| tls as _));
        let EffectiveLimits { limits, memory } = self.limits(limits);
        let limits = descriptors::raise_limit(limits);
        tracing::info!(
            event = "limits",
            connections = limits.connections,
            requests = limits.requests,
            unfinished_bytes = limits.unfinished_bytes,
            memory_bytes = memory.map(|memory| memory.bytes),
            memory_source = memory.map(|memory| memory.source.name()),
            "limits of this server"
        );
        let server = Server {
            security: self.tls.as_ref().map_or(Security::Plain, |tls| tls.security()),
            limits,
            metrics: ListenerMetrics::new(name, Arc::clone(&self.clock)),
            bound,
            handler,
        };
        // A confined process cannot read how many processors its control group may use.
        let threads = thread::available_parallelism().map_or(1, usize::from);
        self.confine(&confinement)?;
        let runtime = Builder::new_multi_thread().worker_threads(threads).enable_all().build()?;
        self.audit.start()?;
        let shutdown = ShutdownTiming {
            delay: args.listener.shutdown_delay.unwrap_or(self.servers.shutdown().delay),
            grace: args.listener.shutdown_grace.unwrap_or(self.servers.shutdown().grace),
        };
        let server_runtime = ServerRuntime {
            health: self.health,
            metrics: self.metrics,
            shutdown,
            timer: Arc::clone(&self.timer),
        };
        let outcome = runtime.block_on(async {
            let mut terminate = signal(SignalKind::terminate())?;
            let mut interrupt = signal(SignalKind::interrupt())?;
            let mut hangup = signal(SignalKind::hangup())?;
            let tasks = BackgroundTasks::start(self.reloader, Arc::clone(&self.timer));
            let reload = ReloadTask::start(reloadables, self.timer);
            let access_check = upstream_access.map(AccessCheckTask::start);
            announce(name, server.bound.address(), inspection.as_ref(), &self.servers, output)?;
            let stop = Notify::new();
            let second_signal = async {
                let mut is_stopping = false;
                loop {
                    tokio::select! {
                        _ = terminate.recv() => {}
                        _ = interrupt.recv() => {}
                        _ = hangup.recv() => {
                            tracing::info!(event = "reload_requested", "received SIGHUP, reloading files");
                            tasks.reload_now();
                            reload.reload_now();
                            if let Some(access_check) = &access_check {
                                access_check.check_now();
                            }
                            self.audit.reopen();
                            continue;
                        }
                    }
                    if mem::replace(&mut is_stopping, true) {
                        return;
                    }
                    stop.notify_one();
                }
            };
            tokio::select! {
                served = server_runtime.serve(server, inspection, stop.notified()) => {
                    served.map(|()| Exit::Done).map_err(Failure::from)
                }
                () = second_signal => {
                    tracing::warn!(event = "shutdown_forced", "received a second signal, ended without draining requests");
                    Ok(Exit::No)
                }
            }
        });
        // Open streams may never end; their grace period is over.
        runtime.shutdown_background();
        self.audit.close();
        outcome
    }
}

/// Prints the listen addresses, unless standard output is the audit log.
fn announce(
    name: &str,
    address: SocketAddr,
    inspection: Option<&BoundListener>,
    servers: &ServerSettings,
    output: &mut Output,
) -> Result<(), Failure> {
    let inspection = inspection.map(BoundListener::address);
    tracing::info!(event = "server_started", server = name, listen = %address, health = ?inspection, "server started");
    if servers.audit_log_path.as_deref() == Some(Path::new("-")) {
        return Ok(());
    }
    if output.is_json() {
        let health = inspection.map(|address| address.to_string());
        return output.line(&json!({"server": name, "listen": address.to_string(), "health": health}));
    }
    let health = inspection.map(|address| format!(", health on {address}")).unwrap_or_default();
    output.text(&format!("{name} listening on {address}{health}\n"))
}

fn read_navicert_config(path: Option<&Path>) -> Result<(NavicertConfiguration, ServerSettings), Failure> {
    let Some(path) = path else { return Ok(Default::default()) };
    let name = path.display();
    let text = fs::read(path).map_err(|error| {
        Failure::bad_input(format!("failed to read `{name}` (--navicert-config): {error}"))
    })?;
    let wrong = |wrong: navicert_types::Diagnostics| Failure::bad_input(format!("`{name}`: {wrong}"));
    let navicert_config = NavicertConfiguration::parse(&text).map_err(wrong)?;
    let servers = navicert_config
        .servers
        .as_ref()
        .map(ServerSettings::parse)
        .transpose()
        .map_err(wrong)?
        .unwrap_or_default();
    let dir = path.parent().unwrap_or(Path::new(""));
    Ok((navicert_config.resolve_paths(dir), servers.resolve_paths(dir)))
}

/// The configuration file or the `--oidc-*` flags, which are mutually exclusive.
// S198, S199
fn origin(args: &FilesArgs, output: &mut Output) -> Result<ConfigOrigin, Failure> {
    let given = args.oidc.given();
    match (&args.authentication_config, given.is_empty()) {
        (Some(path), true) => Ok(ConfigOrigin::File(path.clone())),
        (Some(_), false) => Err(usage_error(
            "authentication-config file and oidc-* flags are mutually exclusive; keep one of them",
        )),
        (None, true) => Err(usage_error(
            "no issuer configured: set --authentication-config, or --oidc-issuer-url and --oidc-client-id",
        )),
        (None, false) => from_flags(given, output),
    }
}

fn from_flags(given: Vec<(String, String)>, output: &mut Output) -> Result<ConfigOrigin, Failure> {
    let flags = OidcFlags { given, ..OidcFlags::default() };
    let authority = flags.value("oidc-ca-file");
    let authority = match authority {
        "" => None,
        path => Some(fs::read_to_string(path).map_err(|error| {
            Failure::bad_input(format!("failed to read `{path}` (--oidc-ca-file): {error}"))
        })?),
    };
    let options = MigrateOptions { certificate_authority: authority.as_deref(), ..MigrateOptions::default() };
    let migration = migrate(&flags, &options).map_err(|error| usage_error(&error.to_string()))?;
    for warning in migration
        .warnings
        .iter()
        .filter(|warning| warning.starts_with("--oidc") || warning.contains("prefix"))
    {
        output.warning(warning);
    }
    Ok(ConfigOrigin::Flags { text: migration.yaml, algorithms: migration.algorithms })
}

/// Applies the command line's flags, which override the file.
fn with_flags(
    mut servers: ServerSettings,
    args: &SharedArgs,
    callers: Option<&ClientAuthArgs>,
) -> ServerSettings {
    fn set<T: Clone>(to: &mut Option<T>, from: Option<&T>) {
        if from.is_some() {
            *to = from.cloned();
        }
    }
    let flags = &args.listener;
    set(&mut servers.listen, flags.listen.as_ref());
    set(&mut servers.health_listen, flags.health_listen.as_ref());
    set(&mut servers.tls_cert_file, flags.tls_cert_file.as_ref());
    set(&mut servers.tls_private_key_file, flags.tls_private_key_file.as_ref());
    set(&mut servers.audit_log_path, flags.audit_log_path.as_ref());
    if let Some(callers) = callers {
        set(&mut servers.client_ca_file, callers.client_ca_file.as_ref());
        set(&mut servers.bearer_token_file, callers.bearer_token_file.as_ref());
        if !callers.client_allowed_names.is_empty() {
            servers.client_allowed_names.clone_from(&callers.client_allowed_names);
        }
    }
    servers
}

fn tls(
    servers: &ServerSettings,
    args: &SharedArgs,
    clock: &Arc<dyn Clock>,
) -> Result<Option<Arc<ServerTls>>, Failure> {
    if args.listener.plain_http {
        return Ok(None);
    }
    let pair: (Option<&PathBuf>, Option<&PathBuf>) =
        (servers.tls_cert_file.as_ref(), servers.tls_private_key_file.as_ref());
    let (Some(certificate), Some(key)) = pair else {
        return Err(usage_error(
            "missing --tls-cert-file or --tls-private-key-file; --plain-http serves without TLS and sends tokens unencrypted",
        ));
    };
    let files = TlsFiles {
        certificate: certificate.clone(),
        key: key.clone(),
        client_authority: servers.client_ca_file.clone(),
    };
    ServerTls::open(files, Arc::clone(clock)).map(Some).map_err(|error| bad_input(&error))
}

/// The host name.
// S196
fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
