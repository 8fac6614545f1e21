//! From options to a configuration: locates and loads the kubeconfig, selects the context, and checks everything that a
//! client needs.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use navicert_plugin::Environment;
use navicert_types::{Clock, SystemClock};

use super::Config;
use super::credential::{CredentialPlan, CredentialReader};
use super::error::{ConfigError, ConfigErrorClass, ConfigErrorStage, ConfigErrors, ConfigLocation};
use super::problem::{ClientProblem, Problem};
use super::report::ConfigReport;
use super::transport::TransportReader;
use super::undecoded::UndecodedFields;
use super::warning::{ConfigWarning, warnings};
#[cfg(feature = "exec")]
use crate::context::ClientContext;
#[cfg(feature = "exec")]
use crate::credential::CredentialError;
#[cfg(feature = "signer")]
use crate::credential::ExternalSigner;
use crate::credential::SharedFiles;
#[cfg(feature = "exec")]
use crate::exec::{Authenticator, AuthenticatorRegistry, ExecError, ExecSettings, Plugin, PluginPolicy};
use crate::in_cluster::{self, PodEnvironment};
use crate::kubeconfig::{
    self, Effective, KubeconfigFileError, KubeconfigFileErrorReason, KubeconfigSources, LoadError,
    LoadedKubeconfig, MergedKubeconfig, OsFileSystem, Overrides,
};
#[cfg(feature = "exec")]
use crate::kuberc;
use crate::transport::TransportEnvironment;

/// Where a configuration comes from, and what to change in it.
///
/// ```
/// use navicert_client::Config;
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("config");
/// # std::fs::write(&path, "
/// # clusters: [{name: c, cluster: {server: 'https://127.0.0.1:6443'}}]
/// # users: [{name: u, user: {token: t}}]
/// # contexts: [{name: dev, context: {cluster: c, user: u, namespace: web}}]").unwrap();
/// let config = Config::options().kubeconfig(&path).context("dev").resolve().unwrap();
/// assert_eq!(config.server(), "https://127.0.0.1:6443");
/// assert_eq!(config.namespace(), "web");
/// ```
#[derive(Clone)]
pub struct ConfigOptions {
    kubeconfig: Option<PathBuf>,
    sources: Option<KubeconfigSources>,
    pub(crate) overrides: Overrides,
    pub(crate) environment: Environment,
    current_dir: PathBuf,
    pub(crate) files: SharedFiles,
    pub(crate) clock: Arc<dyn Clock>,
    pod: Option<PodEnvironment>,
    #[cfg(feature = "exec")]
    pub(crate) policy: PluginPolicy,
    #[cfg(feature = "signer")]
    allow_pin: bool,
}

impl ConfigOptions {
    /// An environment and a working directory; the system's files and clock. Every plugin is permitted.
    pub fn new(environment: Environment, current_dir: impl Into<PathBuf>) -> Self {
        ConfigOptions {
            kubeconfig: None,
            sources: None,
            overrides: Overrides::default(),
            environment,
            current_dir: current_dir.into(),
            files: Arc::new(OsFileSystem),
            clock: Arc::new(SystemClock),
            pod: None,
            #[cfg(feature = "exec")]
            policy: PluginPolicy::default(),
            #[cfg(feature = "signer")]
            allow_pin: false,
        }
    }

    /// Uses this kubeconfig alone. It must exist.
    #[must_use]
    pub fn kubeconfig(mut self, path: impl AsRef<Path>) -> Self {
        self.kubeconfig = Some(path.as_ref().to_owned());
        self
    }

    /// Uses these files, whatever the environment says.
    #[must_use]
    pub fn sources(mut self, sources: KubeconfigSources) -> Self {
        self.sources = Some(sources);
        self
    }

    /// Selects a context instead of `current-context`.
    #[must_use]
    pub fn context(mut self, name: impl Into<String>) -> Self {
        self.overrides.context = name.into();
        self
    }

    /// Selects a cluster entry instead of the context's.
    #[must_use]
    pub fn cluster(mut self, name: impl Into<String>) -> Self {
        self.overrides.cluster = name.into();
        self
    }

    /// Selects a user entry instead of the context's.
    #[must_use]
    pub fn user(mut self, name: impl Into<String>) -> Self {
        self.overrides.user = name.into();
        self
    }

    /// Replaces all overrides, including context, cluster and user.
    #[must_use]
    pub fn overrides(mut self, overrides: Overrides) -> Self {
        self.overrides = overrides;
        self
    }

    /// Replaces the environment of this process: where the kubeconfig is, which proxies to use, whether this is a pod,
    /// and what plugins inherit.
    #[must_use]
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = environment;
        self
    }

    /// Replaces the directory that relative paths of kubeconfig files are resolved against.
    #[must_use]
    pub fn current_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.current_dir = path.into();
        self
    }

    /// Replaces the file system.
    #[must_use]
    pub fn files(mut self, files: SharedFiles) -> Self {
        self.files = files;
        self
    }

    /// Replaces the clock.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Replaces the pod's variables, otherwise read from the environment.
    #[must_use]
    pub fn pod(mut self, pod: PodEnvironment) -> Self {
        self.pod = Some(pod);
        self
    }

    /// Sets which plugins and signers may run.
    #[cfg(feature = "exec")]
    #[must_use]
    pub fn plugin_policy(mut self, policy: impl Into<PluginPolicy>) -> Self {
        self.policy = policy.into();
        self
    }

    /// Permits the plugins that the kuberc permits: a given file, or the one that the environment names. A kuberc that
    /// cannot be read permits none.
    // C740
    #[cfg(feature = "exec")]
    #[must_use]
    pub fn kuberc_policy(self, file: Option<&Path>) -> Self {
        let location = kuberc::KubercLocation {
            flag: file,
            variable: self.environment.variable("KUBERC"),
            feature: self.environment.variable("KUBECTL_KUBERC"),
            home: self.home(),
        };
        let policy = kuberc::KubercSource::locate(location)
            .and_then(|source| kuberc::load(&source, &*self.files))
            .into();
        ConfigOptions { policy, ..self }
    }

    /// Passes a `pin` of the kubeconfig to an external signer instead of rejecting it. Only the application may set this,
    /// never a file.
    // X2
    #[cfg(feature = "signer")]
    #[must_use]
    pub fn allow_pin_in_kubeconfig(mut self, allow: bool) -> Self {
        self.allow_pin = allow;
        self
    }

    /// Loads and checks everything that a client needs. Runs no plugin and opens no connection.
    ///
    /// # Errors
    /// [`ConfigErrors`]: every problem that can be known at once.
    pub fn resolve(&self) -> Result<Config, ConfigErrors> {
        self.resolve_in(&self.load_context()?)
    }

    /// Loads and merges the kubeconfig files, for several calls of [`resolve_in`](ConfigOptions::resolve_in).
    ///
    /// # Errors
    /// [`ConfigErrors`]: every error of every file.
    pub fn load(&self) -> Result<MergedKubeconfig, ConfigErrors> {
        let loaded = self.load_files().map_err(|failed| ConfigErrors::from_files(failed.errors))?;
        Ok(MergedKubeconfig::new(loaded))
    }

    /// Like [`load`](ConfigOptions::load), to use the selected context: the errors include those of this context that do
    /// not depend on a field that cannot be decoded.
    ///
    /// # Errors
    /// [`ConfigErrors`]: every error of every file, and of the selected context as far as it can be decoded.
    pub fn load_context(&self) -> Result<MergedKubeconfig, ConfigErrors> {
        let failed = match self.load_files() {
            Ok(loaded) => return Ok(MergedKubeconfig::new(loaded)),
            Err(failed) => failed,
        };
        let known = failed.partial.map(|partial| {
            let undecoded = UndecodedFields::new(&failed.errors, &partial);
            undecoded.retain_known(self.report(&MergedKubeconfig::new(partial)))
        });
        Err(ConfigErrors::from_files(failed.errors).and(known.unwrap_or_default()))
    }

    /// Like [`resolve`](ConfigOptions::resolve), with files that are already loaded.
    ///
    /// # Errors
    /// [`ConfigErrors`]: every problem of the selected context.
    pub fn resolve_in(&self, merged: &MergedKubeconfig) -> Result<Config, ConfigErrors> {
        self.report(merged).into_result()
    }

    /// The files that would be loaded.
    pub fn located(&self) -> KubeconfigSources {
        self.sources.clone().unwrap_or_else(|| {
            let variable = self.environment.variable("KUBECONFIG");
            KubeconfigSources::locate(self.kubeconfig.as_deref(), variable, self.home())
        })
    }

    pub(crate) fn load_files(&self) -> Result<LoadedKubeconfig, LoadError> {
        kubeconfig::load(&self.located(), &self.current_dir, &*self.files)
    }

    /// Like [`resolve_in`](ConfigOptions::resolve_in), with what is known about a configuration that is not usable. Without
    /// a kubeconfig, the pod's service account is used.
    // C190
    pub fn report(&self, merged: &MergedKubeconfig) -> ConfigReport {
        if merged.origins().is_empty()
            && let Some(effective) =
                in_cluster::configuration(&self.pod_environment(), &self.overrides, &*self.files)
        {
            return self.check(merged, effective, true);
        }
        match merged.selection(&self.overrides) {
            Ok(effective) => self.check(merged, effective, false),
            Err(error) => {
                let help = suggestion(merged, &error);
                let errors = vec![ConfigError::new(error).with_help(help)];
                ConfigReport { errors, ..ConfigReport::default() }
            }
        }
    }

    /// Validates the selection as kubectl does, then reads everything that a client needs.
    fn check(&self, merged: &MergedKubeconfig, effective: Effective, in_cluster: bool) -> ConfigReport {
        let mut errors: Vec<ConfigError> = Vec::new();
        for error in kubeconfig::validate(&effective, &*self.files) {
            let (location, help) = (merged.locate_validation_error(&error), suggestion(merged, &error));
            let error = ConfigError::new(error).at(location);
            errors.push(if help.is_some() { error.with_help(help) } else { error });
        }
        let (cluster_is_valid, user_is_valid) = (!concern_cluster(&errors), !concern_user(&errors));
        let environment = TransportEnvironment::read(|name| self.text_variable(name));
        let mut problems = Vec::new();
        let reader =
            TransportReader { effective: &effective, environment: &environment, files: &*self.files };
        let settings = cluster_is_valid.then(|| reader.read(&mut problems));
        let mut plan = None;
        let mut impersonation = None;
        if user_is_valid && cluster_is_valid {
            impersonation = reader.impersonation(&mut problems);
            plan = Some(self.credential(&effective, &mut problems));
        }
        errors.extend(problems.into_iter().map(|problem| {
            let location = merged.locate_client_problem(&problem, &effective);
            ConfigError::new(problem).at(location)
        }));
        let is_usable = errors.is_empty();
        #[cfg(feature = "exec")]
        if let (true, Some(plan)) = (is_usable, &plan) {
            errors.extend(self.denial(plan).map(|error| ConfigError::new(Problem::Denied(error))));
        }
        let warnings: Vec<ConfigWarning> = warnings(&effective)
            .into_iter()
            .map(|kind| ConfigWarning { location: merged.locate_warning(&kind, &effective), kind })
            .collect();
        #[cfg(feature = "exec")]
        let plugin = match &plan {
            Some(CredentialPlan::Exec(plugin)) => Some(Plugin::clone(plugin)),
            _ => None,
        };
        let config = match (is_usable, settings, plan) {
            (true, Some(mut transport), Some(credential)) => {
                transport.impersonation = impersonation;
                Some(Config {
                    effective: effective.clone(),
                    transport,
                    credential,
                    warnings: warnings.clone(),
                    in_cluster,
                    environment: self.environment.clone(),
                    files: Arc::clone(&self.files),
                    clock: Arc::clone(&self.clock),
                    #[cfg(feature = "exec")]
                    policy: self.policy.clone(),
                })
            }
            _ => None,
        };
        ConfigReport {
            effective: Some(effective),
            config,
            errors,
            warnings,
            in_cluster,
            #[cfg(feature = "exec")]
            plugin,
        }
    }

    fn credential(&self, effective: &Effective, problems: &mut Vec<ClientProblem>) -> CredentialPlan {
        let reader = CredentialReader {
            effective,
            files: &*self.files,
            now: self.clock.monotonic(),
            #[cfg(feature = "signer")]
            allow_pin: self.allow_pin,
        };
        reader.read(problems)
    }

    /// Why the policy denies the plugin or signer. A program that is not installed is no denial: running it fails.
    #[cfg(feature = "exec")]
    fn denial(&self, plan: &CredentialPlan) -> Option<CredentialError> {
        let client_context = || ClientContext {
            clock: Arc::clone(&self.clock),
            policy: self.policy.clone(),
            registry: AuthenticatorRegistry::new(),
            ..ClientContext::new(self.environment.clone())
        };
        let denied: CredentialError = match plan {
            CredentialPlan::Exec(plugin) if !self.policy.allows_all() => {
                let plugin =
                    Authenticator::new(Plugin::clone(plugin), ExecSettings::default(), client_context());
                match plugin.check_policy().err()? {
                    ExecError::Denied(navicert_plugin::PolicyDenial::CannotResolve { .. }) => return None,
                    error => error.into(),
                }
            }
            #[cfg(feature = "signer")]
            CredentialPlan::Signer(plan) => {
                ExternalSigner::new(plan, &ExecSettings::default(), &client_context())
                    .check_policy()
                    .err()?
                    .into()
            }
            _ => return None,
        };
        Some(denied).filter(CredentialError::is_denied)
    }

    /// The pod's variables.
    fn pod_environment(&self) -> PodEnvironment {
        let text = |name: &str| self.text_variable(name).unwrap_or_default();
        self.pod.clone().unwrap_or_else(|| PodEnvironment {
            host: text("KUBERNETES_SERVICE_HOST"),
            port: text("KUBERNETES_SERVICE_PORT"),
            namespace: text("POD_NAMESPACE"),
        })
    }

    fn home(&self) -> Option<&Path> {
        self.environment.variable("HOME").filter(|home| !home.is_empty()).map(Path::new)
    }

    fn text_variable(&self, name: &str) -> Option<String> {
        self.environment.variable(name).and_then(OsStr::to_str).map(ToOwned::to_owned)
    }
}

impl fmt::Debug for ConfigOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfigOptions")
            .field("sources", &self.located())
            .field("overrides", &self.overrides)
            .finish_non_exhaustive()
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the default of the options; programs can pass another environment"
)]
pub(super) fn process_environment() -> Environment {
    std::env::vars_os().collect()
}

/// The errors of one file, each with its location.
pub(super) fn file_errors(error: KubeconfigFileError) -> Vec<ConfigError> {
    let path = error.path;
    match error.reason {
        KubeconfigFileErrorReason::Unreadable(source) => {
            vec![ConfigError::new(Problem::Unreadable { path, source })]
        }
        KubeconfigFileErrorReason::Undecodable { diagnostics, text } => diagnostics
            .iter()
            .map(|diagnostic| {
                let location =
                    ConfigLocation { path: path.clone(), span: diagnostic.span, text: text.clone() };
                let diagnostic = diagnostic.clone();
                ConfigError::new(Problem::Malformed { path: path.clone(), diagnostic }).at(Some(location))
            })
            .collect(),
    }
}

/// The entries that exist instead of the missing one.
pub(super) fn suggestion(merged: &MergedKubeconfig, error: &kubeconfig::ValidationError) -> Option<String> {
    const MAX_LISTED: usize = 8;
    use kubeconfig::ValidationError as E;
    let config = &merged.config;
    let (kind, names): (_, Vec<&str>) = match error {
        E::NoSuchContext(_) | E::ContextNotFound(_) => {
            ("context", config.contexts.iter().map(|entry| entry.name.as_str()).collect())
        }
        E::NoSuchUser(_) => ("user", config.users.iter().map(|entry| entry.name.as_str()).collect()),
        E::NoSuchCluster(_) => ("cluster", config.clusters.iter().map(|entry| entry.name.as_str()).collect()),
        E::NoConfiguration if !merged.origins().is_empty() => {
            ("context", config.contexts.iter().map(|entry| entry.name.as_str()).collect())
        }
        _ => return None,
    };
    let quoted: Vec<String> =
        names.iter().map(|name| format!("`{}`", navicert_types::redact::terminal(name))).collect();
    Some(match quoted.split_at_checked(MAX_LISTED) {
        Some((first, rest)) if !rest.is_empty() => {
            format!("select a {kind}: {} or one of {} more", first.join(", "), rest.len())
        }
        _ if quoted.is_empty() => format!("add a {kind} to the kubeconfig: it has none"),
        _ => format!("select an existing {kind}: {}", quoted.join(", ")),
    })
}

fn concern_cluster(errors: &[ConfigError]) -> bool {
    use ConfigErrorClass as C;
    let classes =
        [C::NoConfiguration, C::ContextNotFound, C::ClusterNotFound, C::Server, C::Proxy, C::Authority];
    errors.iter().any(|error| classes.contains(&error.class()))
}

fn concern_user(errors: &[ConfigError]) -> bool {
    use ConfigErrorClass as C;
    let classes = [C::ClientCertificate, C::Token, C::Exec, C::Impersonation];
    errors.iter().any(|error| classes.contains(&error.class()) && error.stage() == ConfigErrorStage::Validate)
}
