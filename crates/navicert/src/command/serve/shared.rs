//! What every server has: its configuration, kept alive; its certificate; health, figures and an audit log. And its life,
//! from the first signal to the last.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use navicert_authn::config::migrate::{Flags, Options, migrate};
use navicert_authn::config::{BaseProfile, LoadError, NavicertConfiguration, Origin, Reloader, Sources};
use navicert_authn::jwks::Around;
use navicert_authn::metrics::Metrics;
use navicert_client::transport::{Timer, TokioTimer};
use navicert_server::Limits;
use navicert_server::audit::{Audit, Target};
use navicert_server::descriptors;
use navicert_server::fetch::HttpFetch;
use navicert_server::files::{Following, Follows};
use navicert_server::gateway::hide_memory;
use navicert_server::health::{Configuration, Health, Issuers};
use navicert_server::keeping::{self, Keeping};
use navicert_server::listener::{Handler, Security};
use navicert_server::metrics::{Registry, Traffic};
use navicert_server::serving::{BindError, Bound, Ending, House, Server};
use navicert_server::settings::Servers;
use navicert_server::tls::{Tls, TlsFiles};
use navicert_types::{Clock, SystemClock};
use serde_json::json;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

use super::{bad, logging, usage};
use crate::args;
use crate::args::serve::{CallerArgs, FilesArgs, SharedArgs};
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output, with_sources};

/// What every server has.
pub(super) struct Shared {
    /// `servers` of the NavicertConfiguration; the flags that every server has are put in already.
    pub(super) servers: Servers,
    /// The configuration, and whoever is authenticated by it.
    pub(super) reloader: Arc<Reloader>,
    /// The certificate; `None`: no TLS.
    pub(super) tls: Option<Arc<Tls>>,
    /// Whether requests may be sent here: a server joins with its own conditions.
    pub(super) health: Health,
    /// `/metrics`: a server joins with its own figures.
    pub(super) figures: Registry,
    /// Where decisions are told.
    pub(super) audit: Audit,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) timer: Arc<dyn Timer>,
    listen: SocketAddr,
}

/// The files alone, which `serve --check` looks at too.
pub(super) struct Files {
    pub(super) side_car: NavicertConfiguration,
    pub(super) servers: Servers,
    sources: Sources,
}

impl Files {
    /// Reads what the command line names.
    pub(super) fn read(args: &FilesArgs, output: &mut Output) -> Result<Self, Failure> {
        let (side_car, servers) = side_car(args.navicert_config.as_deref())?;
        let profile = args.profile.map(|profile| match profile {
            args::Profile::Kube => BaseProfile::Kube,
            args::Profile::Hardened => BaseProfile::Hardened,
        });
        let config = origin(args, output)?;
        Ok(Files {
            side_car,
            servers,
            sources: Sources { config, side_car: args.navicert_config.clone(), profile },
        })
    }

    fn fetch(&self, environment: &Environment) -> Result<HttpFetch, Failure> {
        let fetch = crate::command::authn::fetch(&self.side_car, environment);
        fetch.map_err(|failure| match (failure, &self.sources.side_car) {
            (Failure::Sentence { exit, text }, Some(path)) => {
                Failure::Sentence { exit, text: format!("`{}`: {text}", path.display()) }
            }
            (failure, _) => failure,
        })
    }

    /// Puts the configuration to work; nothing is fetched yet.
    pub(super) fn open(self, recorder: Arc<Metrics>, environment: &Environment) -> Result<Reloader, Failure> {
        let around = Around {
            fetch: Arc::new(self.fetch(environment)?),
            clock: Arc::new(SystemClock),
            random: Arc::new(keeping::random),
            recorder,
        };
        let named = match &self.sources.config {
            Origin::File(path) => format!("`{}`", path.display()),
            Origin::Flags { .. } => "the --oidc-* flags".to_owned(),
        };
        let own =
            self.sources.side_car.as_deref().map_or_else(String::new, |path| format!("`{}`", path.display()));
        let config = match &self.sources.config {
            Origin::File(path) => Some(path.clone()),
            Origin::Flags { .. } => None,
        };
        Reloader::open(self.sources, around).map_err(|error| match error {
            // They do not say by themselves which file they are about, or who named it.
            LoadError::Config(error) => Failure::bad_input(format!("{named}: {}", with_sources(&error))),
            LoadError::Mismatch(_) => {
                let told = error.to_string();
                let way_out = "; it has to be an `issuer.url` of that file, to the letter";
                let way_out = if told.contains("issuers[") { way_out } else { "" };
                Failure::bad_input(format!("{own} does not fit {named}: {told}{way_out}"))
            }
            LoadError::Read { path, source } => {
                let flag = if Some(&path) == config.as_ref() { " (--authentication-config)" } else { "" };
                Failure::bad_input(format!("cannot read `{}`{flag}: {source}", path.display()))
            }
            LoadError::Keys { path, source } => Failure::bad_input(format!(
                "`{}` (jwksFile): {source}; it is what the issuer's `jwks_uri` gives",
                path.display()
            )),
            error => bad(&error),
        })
    }
}

impl Shared {
    /// Reads everything that the command line and the files name. `callers`: a server that certain callers may ask only.
    pub(super) fn open(
        args: &SharedArgs,
        callers: Option<&CallerArgs>,
        environment: &Environment,
        output: &mut Output,
    ) -> Result<Self, Failure> {
        let files = Files::read(&args.files, output)?;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let servers = with_flags(files.servers.clone(), args, callers);
        let tls = tls(&servers, args, &clock)?;
        let instance = files.side_car.instance.clone().unwrap_or_else(host_name);
        let metrics = Arc::new(Metrics::new(&instance, Arc::clone(&clock)));
        let reloader = Arc::new(files.open(Arc::clone(&metrics), environment)?);
        let audit = match servers.audit_log_path.as_deref().filter(|_| !args.check) {
            None => Audit::off(),
            Some(path) => Audit::to(Target::of(path), Arc::clone(&clock)).map_err(|error| {
                Failure::bad_input(format!("cannot open the audit log `{}`: {error}", path.display()))
            })?,
        };
        let (health, figures) = (Health::default(), Registry::default());
        figures.join(metrics);
        figures.join(Arc::new(audit.clone()));
        health.join(Arc::new(Configuration(Arc::clone(&reloader))));
        health.join(Arc::new(Issuers::new(Arc::clone(reloader.live()), servers.ready_issuers)));
        if let Some(tls) = &tls {
            health.join(Arc::clone(tls) as _);
            figures.join(Arc::clone(tls) as _);
        }
        let listen = servers.listen.unwrap_or(SocketAddr::from(([0u16; 8], 8443)));
        let timer: Arc<dyn Timer> = Arc::new(TokioTimer);
        Ok(Shared { servers, reloader, tls, health, figures, audit, clock, timer, listen })
    }

    /// Where it is to listen.
    pub(super) fn address(&self) -> SocketAddr {
        self.listen
    }

    /// Serves until it is told to end, within these limits unless others are set. `name` is the server's in figures and
    /// logs; `followers` are files of its own.
    pub(super) fn serve<H: Handler>(
        self,
        (name, limits): (&'static str, Limits),
        args: &SharedArgs,
        handler: Arc<H>,
        mut followers: Vec<Arc<dyn Follows>>,
        output: &mut Output,
    ) -> Result<Exit, Failure> {
        logging::start(args.listener.log_level, args.listener.log_format);
        if let Err(error) = hide_memory() {
            tracing::warn!(%error, "this process's memory may be written to a disk when it crashes");
        }
        let failed = |error: BindError| Failure::Sentence { exit: Exit::No, text: with_sources(&error) };
        let bound = Bound::bind(self.listen).map_err(failed)?;
        let inspection = self.servers.health_listen.map(Bound::bind).transpose().map_err(failed)?;
        followers.extend(self.tls.clone().map(|tls| tls as _));
        let server = Server {
            security: self.tls.as_ref().map_or(Security::Plain, |tls| tls.security()),
            limits: descriptors::provide(self.servers.limits.limits(limits)),
            traffic: Traffic::new(name, Arc::clone(&self.clock)),
            bound,
            handler,
        };
        let runtime = Builder::new_multi_thread().enable_all().build()?;
        let ending = Ending {
            delay: args.listener.shutdown_delay.unwrap_or(self.servers.ending().delay),
            grace: args.listener.shutdown_grace.unwrap_or(self.servers.ending().grace),
        };
        let house =
            House { health: self.health, figures: self.figures, ending, timer: Arc::clone(&self.timer) };
        let outcome = runtime.block_on(async {
            let mut terminate = signal(SignalKind::terminate())?;
            let mut interrupt = signal(SignalKind::interrupt())?;
            let mut hangup = signal(SignalKind::hangup())?;
            let keeping = Keeping::start(self.reloader, Arc::clone(&self.timer));
            let following = Following::start(followers, self.timer);
            announce(name, server.bound.address(), inspection.as_ref(), &self.servers, output)?;
            let stop = async {
                loop {
                    tokio::select! {
                        _ = terminate.recv() => return,
                        _ = interrupt.recv() => return,
                        _ = hangup.recv() => {
                            tracing::info!("told to look at the files");
                            keeping.look_now();
                            following.look_now();
                            self.audit.reopen();
                        }
                    }
                }
            };
            house.serve(server, inspection, stop).await.map_err(Failure::from)
        });
        // Streams may last for ever; they have had their time.
        runtime.shutdown_background();
        outcome.map(|()| Exit::Done)
    }
}

/// Says where it is, for whoever started it. Standard output may be the audit log's.
fn announce(
    name: &str,
    address: SocketAddr,
    inspection: Option<&Bound>,
    servers: &Servers,
    output: &mut Output,
) -> Result<(), Failure> {
    let inspection = inspection.map(Bound::address);
    tracing::info!(server = name, listen = %address, health = ?inspection, "serving");
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

fn side_car(path: Option<&Path>) -> Result<(NavicertConfiguration, Servers), Failure> {
    let Some(path) = path else { return Ok(Default::default()) };
    let name = path.display();
    let text = fs::read(path)
        .map_err(|error| Failure::bad_input(format!("cannot read `{name}` (--navicert-config): {error}")))?;
    let wrong = |wrong: navicert_types::Diagnostics| Failure::bad_input(format!("`{name}`: {wrong}"));
    let side_car = NavicertConfiguration::parse(&text).map_err(wrong)?;
    let servers =
        side_car.servers.as_ref().map(Servers::parse).transpose().map_err(wrong)?.unwrap_or_default();
    let folder = path.parent().unwrap_or(Path::new(""));
    Ok((side_car.in_folder(folder), servers.in_folder(folder)))
}

/// A file or flags, and not both (S198, S199).
fn origin(args: &FilesArgs, output: &mut Output) -> Result<Origin, Failure> {
    let given = args.oidc.given();
    match (&args.authentication_config, given.is_empty()) {
        (Some(path), true) => Ok(Origin::File(path.clone())),
        (Some(_), false) => {
            Err(usage("authentication-config file and oidc-* flags are mutually exclusive; keep one of them"))
        }
        (None, true) => Err(usage(
            "whose tokens are known is not said: name a file with --authentication-config, or use --oidc-issuer-url and \
             --oidc-client-id",
        )),
        (None, false) => from_flags(given, output),
    }
}

fn from_flags(given: Vec<(String, String)>, output: &mut Output) -> Result<Origin, Failure> {
    let flags = Flags { given, ..Flags::default() };
    let authority = flags.value("oidc-ca-file");
    let authority = match authority {
        "" => None,
        path => Some(fs::read_to_string(path).map_err(|error| {
            Failure::bad_input(format!("cannot read `{path}` (--oidc-ca-file): {error}"))
        })?),
    };
    let options = Options { certificate_authority: authority.as_deref(), ..Options::default() };
    let migration = migrate(&flags, &options).map_err(|error| usage(&error.to_string()))?;
    for warning in migration
        .warnings
        .iter()
        .filter(|warning| warning.starts_with("--oidc") || warning.contains("prefix"))
    {
        output.warning(warning);
    }
    Ok(Origin::Flags { text: migration.yaml, algorithms: migration.algorithms })
}

/// The command line's word counts more than the file's.
fn with_flags(mut servers: Servers, args: &SharedArgs, callers: Option<&CallerArgs>) -> Servers {
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

fn tls(servers: &Servers, args: &SharedArgs, clock: &Arc<dyn Clock>) -> Result<Option<Arc<Tls>>, Failure> {
    if args.listener.plain_http {
        return Ok(None);
    }
    let pair: (Option<&PathBuf>, Option<&PathBuf>) =
        (servers.tls_cert_file.as_ref(), servers.tls_private_key_file.as_ref());
    let (Some(certificate), Some(key)) = pair else {
        return Err(usage(
            "TLS needs --tls-cert-file and --tls-private-key-file; --plain-http does without, and tokens travel in the clear",
        ));
    };
    let files = TlsFiles {
        certificate: certificate.clone(),
        key: key.clone(),
        client_authority: servers.client_ca_file.clone(),
    };
    Tls::open(files, Arc::clone(clock)).map(Some).map_err(|error| bad(&error))
}

/// What this machine is called (S196).
fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
