//! What every server reads from the command line: files, flags and their precedence; and the messages that name them.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use navicert_authn::config::migrate::{MigrateOptions, OidcFlags, migrate};
use navicert_authn::config::{
    AuthnLoadError, AuthnReloader, BaseProfile, ConfigOrigin, NavicertConfigErrorKind,
};
use navicert_authn::metrics::AuthnMetrics;
use navicert_server::audit::{AuditLog, AuditTarget};
use navicert_server::listener::Handler;
use navicert_server::settings::{ServerOverrides, ServerSettings};
use navicert_server::startup::{
    ConfigFiles, ConfigFilesError, ServeEnd, ServeError, ServerInputs, ServerParts, ServerSpec,
};
use navicert_server::tls::{ServerTls, TlsFiles};
use navicert_types::{Clock, SystemClock, error_chain};

use super::{bad_input, logging, usage_error};
use crate::args;
use crate::args::serve::{ClientAuthArgs, FilesArgs, SharedArgs};
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// The configuration that the command line names, which `serve --check` reads too.
pub(super) struct Configuration {
    pub(super) files: ConfigFiles,
    origin: ConfigOrigin,
}

impl Configuration {
    /// Reads the files named on the command line.
    pub(super) fn read(args: &FilesArgs, output: &mut Output) -> Result<Self, Failure> {
        let profile = args.profile.map(|profile| match profile {
            args::Profile::Kube => BaseProfile::Kube,
            args::Profile::Hardened => BaseProfile::Hardened,
        });
        let files =
            ConfigFiles::read(args.navicert_config.clone(), profile, args.kube_version).map_err(|error| {
                match error {
                    ConfigFilesError::Read { path, source } => Failure::bad_input(format!(
                        "failed to read `{}` (--navicert-config): {source}",
                        path.display()
                    )),
                    error @ ConfigFilesError::Invalid { .. } => bad_input(&error),
                }
            })?;
        Ok(Configuration { files, origin: origin(args, output)? })
    }

    /// The same without the files that exist only where the server runs.
    pub(super) fn mappings_only(self) -> Self {
        Configuration { files: self.files.mappings_only(), ..self }
    }

    /// Compiles the configuration; nothing is fetched yet.
    pub(super) fn open(
        self,
        metrics: Arc<AuthnMetrics>,
        environment: &Environment,
    ) -> Result<AuthnReloader, Failure> {
        let Configuration { files, origin } = self;
        let own = files.navicert_config_path.as_ref().map(|path| format!("`{}`", path.display()));
        let fetch = crate::command::authn::fetch(&files.navicert_config, environment);
        let fetch = fetch.map_err(|failure| match (failure, &own) {
            (Failure::Message { exit, text }, Some(own)) => {
                Failure::Message { exit, text: format!("{own}: {text}") }
            }
            (failure, _) => failure,
        })?;
        let named = match &origin {
            ConfigOrigin::File(path) => format!("`{}`", path.display()),
            ConfigOrigin::Flags { .. } => "the --oidc-* flags".to_owned(),
            ConfigOrigin::Text { .. } => "the built-in configuration".to_owned(),
        };
        let config = match &origin {
            ConfigOrigin::File(path) => Some(path.clone()),
            ConfigOrigin::Flags { .. } | ConfigOrigin::Text { .. } => None,
        };
        let opened = files.open(origin, Arc::new(fetch), metrics, Arc::new(SystemClock));
        opened.map_err(|error| match error {
            // These errors do not name the file or the flag that selected it.
            AuthnLoadError::Config(error) => Failure::bad_input(format!("{named}: {}", error_chain(&error))),
            AuthnLoadError::Mismatch(wrong) => {
                let is_url = wrong.iter().any(|one| one.kind == NavicertConfigErrorKind::UnknownIssuer);
                let help = if is_url { "; it must equal an `issuer.url` of that file" } else { "" };
                let own = own.unwrap_or_default();
                let wrong = AuthnLoadError::Mismatch(wrong);
                Failure::bad_input(format!("{own} does not match {named}: {wrong}{help}"))
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

/// Reads all files of a server. `callers` is set for servers that authenticate their clients.
pub(super) fn open(
    args: &SharedArgs,
    callers: Option<&ClientAuthArgs>,
    environment: &Environment,
    output: &mut Output,
) -> Result<ServerParts, Failure> {
    let configuration = Configuration::read(&args.files, output)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let servers = configuration.files.servers.clone().with_overrides(overrides(args, callers));
    let tls = tls(&servers, args, &clock)?;
    let navicert_config = &configuration.files.navicert_config;
    let last_good_copy = navicert_config.last_good_copy.clone();
    let instance = navicert_config.instance.clone().unwrap_or_else(host_name);
    let authn_metrics = Arc::new(AuthnMetrics::new(&instance, Arc::clone(&clock)));
    let reloader = Arc::new(configuration.open(Arc::clone(&authn_metrics), environment)?);
    let audit = match servers.audit_log_path.as_deref().filter(|_| !args.check) {
        None => AuditLog::disabled(),
        Some(path) => AuditLog::open(AuditTarget::from_path(path), Arc::clone(&clock)).map_err(|error| {
            Failure::bad_input(format!("failed to open audit log `{}`: {error}", path.display()))
        })?,
    };
    let inputs = ServerInputs { servers, reloader, authn_metrics, last_good_copy, tls, audit, clock };
    Ok(ServerParts::new(inputs))
}

/// Serves until SIGTERM or SIGINT, and prints where.
pub(super) fn serve<H: Handler>(
    parts: ServerParts,
    spec: ServerSpec<H>,
    args: &SharedArgs,
    output: &mut Output,
) -> Result<Exit, Failure> {
    logging::start(args.listener.log_level, args.listener.log_format);
    let mut print_failure = None;
    let served = parts.serve(spec, |started| {
        let printed = if output.is_json() { output.line(started) } else { output.text(&started.to_string()) };
        printed.map_err(|failure| {
            print_failure = Some(failure);
            io::Error::other("failed to print the address")
        })
    });
    match (print_failure, served) {
        (Some(failure), _) => Err(failure),
        (None, Ok(ServeEnd::Drained)) => Ok(Exit::Done),
        (None, Ok(ServeEnd::Forced)) => Ok(Exit::No),
        (None, Err(ServeError::Io(error))) => Err(error.into()),
        (None, Err(error)) => Err(Failure::Message { exit: Exit::No, text: error_chain(&error) }),
    }
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
    let authority = match flags.value("oidc-ca-file") {
        "" => None,
        path => Some(fs::read_to_string(path).map_err(|error| {
            Failure::bad_input(format!("failed to read `{path}` (--oidc-ca-file): {error}"))
        })?),
    };
    let options = MigrateOptions { certificate_authority: authority.as_deref(), ..MigrateOptions::default() };
    let migration = migrate(&flags, &options).map_err(|error| usage_error(&error.to_string()))?;
    for warning in migration.warnings.iter().filter(|warning| warning.is_about_flags) {
        output.warning(&warning.text);
    }
    Ok(ConfigOrigin::Flags { text: migration.yaml, algorithms: migration.algorithms })
}

/// The command line's flags, which override the file.
fn overrides(args: &SharedArgs, callers: Option<&ClientAuthArgs>) -> ServerOverrides {
    let flags = &args.listener;
    ServerOverrides {
        listen: flags.listen,
        health_listen: flags.health_listen,
        tls_cert_file: flags.tls_cert_file.clone(),
        tls_private_key_file: flags.tls_private_key_file.clone(),
        audit_log_path: flags.audit_log_path.clone(),
        shutdown_delay: flags.shutdown_delay,
        shutdown_grace: flags.shutdown_grace,
        client_ca_file: callers.and_then(|callers| callers.client_ca_file.clone()),
        bearer_token_file: callers.and_then(|callers| callers.bearer_token_file.clone()),
        client_allowed_names: callers.map(|callers| callers.client_allowed_names.clone()).unwrap_or_default(),
    }
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
