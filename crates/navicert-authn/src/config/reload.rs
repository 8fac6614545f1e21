//! Reloads a configuration while it is in use: a valid change is applied atomically, an invalid one changes nothing and is
//! reported, and unchanged issuers keep their keys.
// S182–S192, H24

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use navicert_types::authentication_config::AnonymousAuthConfig;
use navicert_types::{Diagnostics, error_chain};
use tokio::sync::Notify;

use super::certificate_authority_files::CertificateAuthorityFileError;
use super::load::{ConfigError, load_excluding_issuers};
use super::navicert_config::{
    BaseProfile, IssuerSettings, NavicertConfigError, NavicertConfiguration, ReloadHealth,
};
use crate::jwks::{JwksContext, JwksRefresher, KeySet, KeySetError, StaticKeys};
use crate::jwt::JwsAlgorithmSet;
use crate::metrics::AuthnEvent;
use crate::profile::{AuthnProfile, Hardening, KubeVersion};
use crate::reloadable::{AuthenticatorSet, ReloadableAuthenticator};
use crate::revocation::{RevocationList, Revocations};

/// How often the files are checked if no change is notified.
// S182
const POLL_INTERVAL: Duration = Duration::from_secs(60);
/// How long the issuers of a new configuration may take to become ready.
// S186
const ISSUER_READY_TIMEOUT: Duration = Duration::from_secs(60);
/// How often pending issuers are checked; the second is upstream's interval.
const PENDING_CHECK_INTERVAL: Duration = Duration::from_secs(1);
const UPSTREAM_PENDING_CHECK_INTERVAL: Duration = Duration::from_secs(10);
/// First interval between checks if another task fetches the keys: most issuers respond within it.
const FIRST_PENDING_CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// A configuration that waits this long for its issuers is reported.
const REPORT_WAITING_AFTER: Duration = Duration::from_secs(3);

/// The origin of an `AuthenticationConfiguration`.
#[derive(Clone, Debug)]
pub enum ConfigOrigin {
    /// A file, which is reloaded.
    File(PathBuf),
    /// Flags, which never change.
    // S190
    Flags {
        /// The result of [`migrate`](super::migrate::migrate).
        text: String,
        /// The algorithms that the flags allow; a file has no field for them.
        algorithms: JwsAlgorithmSet,
    },
    /// A text that the program provides, which never changes.
    Text {
        /// The `AuthenticationConfiguration`.
        text: String,
        /// Settings of its issuers, as in a `NavicertConfiguration`.
        issuers: Vec<IssuerSettings>,
    },
}

impl From<PathBuf> for ConfigOrigin {
    fn from(path: PathBuf) -> Self {
        ConfigOrigin::File(path)
    }
}

/// The sources of a configuration.
#[derive(Clone, Debug)]
pub struct ConfigSources {
    /// The `AuthenticationConfiguration`.
    pub config: ConfigOrigin,
    /// Path of the `NavicertConfiguration`, if any.
    pub navicert_config: Option<PathBuf>,
    /// The profile set on the command line.
    pub profile: Option<BaseProfile>,
    /// The Kubernetes version set on the command line.
    pub kube_version: Option<KubeVersion>,
}

/// Why a configuration cannot be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthnLoadError {
    /// A file cannot be read.
    #[error("failed to read `{}`", path.display())]
    Read {
        /// Its path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The `NavicertConfiguration` is invalid.
    #[error("invalid NavicertConfiguration `{}`: {wrong}", path.display())]
    NavicertConfig {
        /// Its path.
        path: PathBuf,
        /// Every problem.
        wrong: Diagnostics,
    },
    /// The `NavicertConfiguration` does not match the configuration.
    #[error("{}", joined(.0))]
    Mismatch(Vec<NavicertConfigError>),
    /// A key file is invalid.
    #[error("invalid key set `{}`", path.display())]
    Keys {
        /// Its path.
        path: PathBuf,
        /// The cause.
        source: KeySetError,
    },
    /// A file with certificate authorities is invalid.
    #[error(transparent)]
    CertificateAuthority(#[from] CertificateAuthorityFileError),
    /// The revocation list is invalid.
    #[error("invalid revocation list `{}`: {wrong}", path.display())]
    Revocations {
        /// Its path.
        path: PathBuf,
        /// Every problem.
        wrong: Diagnostics,
    },
    /// A file that the process may not use since it confined itself.
    #[error(
        "`{}` is outside the directories that this server may {} since its start; restart it to use the file",
        path.display(), if *is_written { "write" } else { "read" }
    )]
    OutsideScope {
        /// Its path.
        path: PathBuf,
        /// Whether it would be written.
        is_written: bool,
    },
    /// `anonymous` cannot change while the process runs.
    // S185
    #[error("anonymous: Forbidden: changed from initial configuration file")]
    Anonymous,
}

fn joined(errors: &[NavicertConfigError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The files that a process may use after it has confined itself.
pub trait FileScope: fmt::Debug + Send + Sync {
    /// Whether a file may be read.
    fn may_read(&self, file: &Path) -> bool;

    /// Whether a file may be replaced by a new one.
    fn may_replace(&self, file: &Path) -> bool;
}

/// The outcome of a reload check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReloadOutcome {
    /// The files are unchanged.
    Unchanged,
    /// The files changed and are valid; some issuers are not ready yet.
    Waiting,
    /// The change has been applied.
    Applied,
    /// The earlier configuration stays in use, and why.
    Refused(String),
}

/// The outcome of a check, and when to check again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReloadCheck {
    /// The outcome.
    pub reload: ReloadOutcome,
    /// When to check again, if no change is notified before.
    pub pause: Duration,
}

/// Loads configuration files, and applies changes.
///
/// It watches nothing by itself: the caller runs [`AuthnReloader::check`] when a file has changed, and when the pause is
/// over.
#[derive(Debug)]
pub struct AuthnReloader {
    sources: ConfigSources,
    context: JwksContext,
    authenticator: Arc<ReloadableAuthenticator>,
    state: tokio::sync::Mutex<ReloadState>,
    /// Outside of the lock of the state, which is held during requests to issuers.
    problems: Mutex<Problems>,
    /// Outside of the lock of the state as well: a revocation waits for no issuer.
    revocation_file: Mutex<RevocationFile>,
    /// Notified when the configuration names another revocation list.
    list_moved: Notify,
    scope: OnceLock<Arc<dyn FileScope>>,
}

/// The revocation list's file.
#[derive(Debug, Default)]
struct RevocationFile {
    path: Option<PathBuf>,
    /// The contents that were last applied or rejected.
    tracked: Option<Vec<u8>>,
}

#[derive(Debug)]
struct ReloadState {
    /// The files that were last applied or rejected.
    tracked: ConfigFiles,
    /// The configuration in use.
    used: Vec<u8>,
    anonymous: Option<AnonymousAuthConfig>,
    pending: Option<PendingReload>,
}

/// Current problems.
#[derive(Debug, Default)]
struct Problems {
    /// Why the current files are not in use.
    config: Option<String>,
    /// Why the current revocation list is not in use.
    list: Option<String>,
    /// Why the copy of the configuration could not be written.
    copy: Option<String>,
    /// Which issuer a valid configuration waits for.
    waiting: Option<String>,
}

impl Problems {
    /// The most important problem.
    fn worst(&self) -> Option<String> {
        let Problems { config, list, copy, waiting: _ } = self;
        config.as_ref().or(list.as_ref()).or(copy.as_ref()).cloned()
    }
}

/// A valid configuration with issuers that are not ready yet.
#[derive(Debug)]
struct PendingReload {
    set: AuthenticatorSet,
    files: ConfigFiles,
    /// Refreshers that have to become ready.
    awaited: Vec<Arc<JwksRefresher>>,
    since: Duration,
    check_interval: Duration,
}

/// The contents of all files of one configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ConfigFiles {
    config: Vec<u8>,
    navicert_config: Option<Vec<u8>>,
    /// Key files and certificate authorities of issuers, by path.
    of_issuers: BTreeMap<PathBuf, Vec<u8>>,
}

impl AuthnReloader {
    /// Loads the files at startup. Issuers may be offline. If the configuration is invalid and the `NavicertConfiguration`
    /// names a copy of the last good one, the copy is used, and [`AuthnReloader::problem`] says why.
    ///
    /// # Errors
    /// The files are invalid, and no copy can be used instead.
    // S191, S192
    pub fn open(sources: ConfigSources, context: JwksContext) -> Result<Self, AuthnLoadError> {
        let revocations = Arc::new(Revocations::default());
        let changed = Arc::new(Notify::new());
        let InitialConfig { files, used, prepared, problem } = InitialConfig::new(&sources)?;
        let anonymous = prepared.compiled.anonymous.clone();
        let mut revocation_file = RevocationFile::default();
        if let Some(path) = &prepared.navicert_config.revocation_list {
            let text = read(path)?;
            revocations.replace(parse_revocations(path, &text)?);
            revocation_file = RevocationFile { path: Some(path.clone()), tracked: Some(text) };
        }
        let copy = prepared.navicert_config.last_good_copy.clone();
        let set = prepared.set(&context, &changed, None).with_revocations(&revocations);
        let live = Arc::new(ReloadableAuthenticator::new(set, revocations, &context, changed));
        context.recorder.record(&AuthnEvent::Configuration { text: &used });
        let problems =
            Problems { config: problem, copy: keep_copy(&used, copy.as_deref()), ..Problems::default() };
        let state = ReloadState { tracked: files, used, anonymous, pending: None };
        Ok(AuthnReloader {
            sources,
            context,
            authenticator: live,
            state: tokio::sync::Mutex::new(state),
            problems: Mutex::new(problems),
            revocation_file: Mutex::new(revocation_file),
            list_moved: Notify::new(),
            scope: OnceLock::new(),
        })
    }

    /// Says which files the process may use from now on. A new configuration that names others is rejected. Only the first
    /// call counts, as a process cannot undo its confinement.
    pub fn confine(&self, scope: Arc<dyn FileScope>) {
        let _ = self.scope.set(scope);
    }

    /// The authenticator in service.
    pub fn authenticator(&self) -> &Arc<ReloadableAuthenticator> {
        &self.authenticator
    }

    /// The files to watch: run [`AuthnReloader::check`] when one of them, or its folder, changes. The revocation list is one of them.
    pub async fn watched(&self) -> Vec<PathBuf> {
        let state = self.state.lock().await;
        self.files_of(&state)
    }

    /// The same before a runtime exists. Blocks while a check runs.
    pub fn watched_blocking(&self) -> Vec<PathBuf> {
        self.files_of(&self.state.blocking_lock())
    }

    fn files_of(&self, state: &ReloadState) -> Vec<PathBuf> {
        let config = match &self.sources.config {
            ConfigOrigin::File(path) => Some(path),
            ConfigOrigin::Flags { .. } | ConfigOrigin::Text { .. } => None,
        };
        let own = [config, self.sources.navicert_config.as_ref()];
        let mut paths: Vec<PathBuf> = own.into_iter().flatten().cloned().collect();
        paths.extend(state.tracked.of_issuers.keys().cloned());
        paths.extend(self.revocation_list());
        paths
    }

    /// The file of the revocation list in use, if the configuration names one.
    pub fn revocation_list(&self) -> Option<PathBuf> {
        self.revocation_file().path.clone()
    }

    /// Completes when [`AuthnReloader::revocation_list`] has changed since this was last awaited.
    pub async fn revocation_list_moved(&self) {
        self.list_moved.notified().await;
    }

    /// Why the current files are not in use, if they are not.
    pub fn problem(&self) -> Option<String> {
        self.problems().worst()
    }

    /// The issuer that a valid configuration has been waiting for, for some seconds, and why it is not ready.
    pub fn waiting_for(&self) -> Option<String> {
        self.problems().waiting.clone()
    }

    /// Checks the revocation list, then the other files, and applies or rejects a change.
    pub async fn check(&self) -> ReloadCheck {
        let listed = self.check_revocations();
        let checked = self.check_configuration().await;
        let reload = match (checked.reload, listed) {
            (ReloadOutcome::Unchanged, listed) => listed,
            (reload, _) => reload,
        };
        ReloadCheck { reload, ..checked }
    }

    /// Checks all files except the revocation list, and applies or rejects a change.
    pub async fn check_configuration(&self) -> ReloadCheck {
        let mut state = self.state.lock().await;
        let reload = self.check_config(&mut state).await;
        let pause = state.pending.as_ref().map_or(POLL_INTERVAL, |pending| self.pending_pause(pending));
        if let ReloadOutcome::Refused(why) = &reload {
            self.problems().config = Some(why.clone());
        }
        if state.pending.is_none() {
            self.problems().waiting = None;
            self.authenticator.set_pending(Vec::new());
        }
        ReloadCheck { reload, pause }
    }

    /// Checks the revocation list, which changes more often than the configuration and waits for nothing. A change is in force when
    /// this returns.
    pub fn check_revocations(&self) -> ReloadOutcome {
        let outcome = self.read_revocations();
        match &outcome {
            ReloadOutcome::Refused(why) => self.problems().list = Some(why.clone()),
            ReloadOutcome::Applied => self.problems().list = None,
            ReloadOutcome::Unchanged | ReloadOutcome::Waiting => {}
        }
        outcome
    }

    fn read_revocations(&self) -> ReloadOutcome {
        let mut file = self.revocation_file();
        let Some(path) = file.path.clone() else { return ReloadOutcome::Unchanged };
        let text = match read(&path) {
            Ok(text) => text,
            Err(error) => return self.refuse(&self.in_scope(error)),
        };
        if file.tracked.as_ref() == Some(&text) {
            return ReloadOutcome::Unchanged;
        }
        let list = parse_revocations(&path, &text);
        file.tracked = Some(text);
        match list {
            Ok(list) => {
                self.authenticator.revocations().replace(list);
                ReloadOutcome::Applied
            }
            Err(error) => self.refuse(&error),
        }
    }

    /// Uses the revocation list of a new configuration. A configuration without one revokes nothing.
    fn move_revocations(&self, path: Option<PathBuf>) {
        let is_removed = path.is_none();
        {
            let mut file = self.revocation_file();
            if file.path == path {
                return;
            }
            *file = RevocationFile { path, tracked: None };
        }
        if is_removed {
            self.authenticator.revocations().replace(RevocationList::default());
            self.problems().list = None;
        }
        self.check_revocations();
        self.list_moved.notify_one();
    }

    fn problems(&self) -> MutexGuard<'_, Problems> {
        self.problems.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn revocation_file(&self) -> MutexGuard<'_, RevocationFile> {
        self.revocation_file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn check_config(&self, state: &mut ReloadState) -> ReloadOutcome {
        let files = match ConfigFiles::read(&self.sources) {
            Ok(files) => files,
            // Not tracked: the next check tries again (S183).
            Err(error) => return self.refuse(&self.in_scope(error)),
        };
        if files == state.tracked {
            state.pending = None;
            if files.config == state.used {
                self.problems().config = None;
            }
            return ReloadOutcome::Unchanged;
        }
        if state.pending.as_ref().is_none_or(|pending| pending.files != files) {
            let next = self.prepare_next(&files, state);
            match next {
                Ok(pending) => state.pending = Some(pending),
                Err(error) => {
                    // Tracked: the same invalid contents are not tried or counted again (S184).
                    state.tracked = files;
                    state.pending = None;
                    return self.refuse(&error);
                }
            }
        }
        self.try_pending(state).await
    }

    fn prepare_next(
        &self,
        files: &ConfigFiles,
        state: &ReloadState,
    ) -> Result<PendingReload, AuthnLoadError> {
        let prepared = prepare(files, &self.sources)?;
        if prepared.compiled.anonymous != state.anonymous {
            return Err(AuthnLoadError::Anonymous);
        }
        self.check_scope(&prepared.navicert_config)?;
        let (profile, health) = (prepared.compiled.profile, prepared.navicert_config.reload_health);
        let earlier = self.authenticator.current_set();
        let set = prepared.set(&self.context, self.authenticator.changed(), Some(&earlier));
        let set = set.with_revocations(self.authenticator.revocations());
        let is_new = |refresher: &&Arc<JwksRefresher>| {
            !earlier.refreshers().iter().any(|old| Arc::ptr_eq(old, refresher))
        };
        let awaited = match health {
            _ if !profile.has(Hardening::IncrementalReload) => set.refreshers().to_vec(),
            ReloadHealth::All => set.refreshers().to_vec(),
            ReloadHealth::Changed => set.refreshers().iter().filter(is_new).cloned().collect(),
            ReloadHealth::None => Vec::new(),
        };
        let check_interval = if profile.has(Hardening::IncrementalReload) {
            PENDING_CHECK_INTERVAL
        } else {
            UPSTREAM_PENDING_CHECK_INTERVAL
        };
        // A task that drives the refreshers starts at once.
        self.authenticator.set_pending(awaited.clone());
        Ok(PendingReload {
            set,
            files: files.clone(),
            awaited,
            since: self.context.clock.monotonic(),
            check_interval,
        })
    }

    /// Applies the pending configuration if all awaited issuers are ready.
    async fn try_pending(&self, state: &mut ReloadState) -> ReloadOutcome {
        let Some(pending) = &state.pending else { return ReloadOutcome::Unchanged };
        for refresher in pending.awaited.iter().filter(|refresher| !refresher.health().is_ready) {
            if !self.authenticator.is_driven() {
                refresher.run_due().await;
            }
        }
        let not_ready = pending.awaited.iter().find(|refresher| !refresher.health().is_ready);
        if let Some(not_ready) = not_ready {
            let waited = self.context.clock.monotonic().saturating_sub(pending.since);
            let why = not_ready.health().last_error;
            let why = why.as_deref().unwrap_or("it has not responded yet");
            let message = format!("issuer `{}` is not ready: {why}", not_ready.issuer().url);
            if waited < ISSUER_READY_TIMEOUT {
                if waited >= REPORT_WAITING_AFTER {
                    self.problems().waiting = Some(message);
                }
                return ReloadOutcome::Waiting;
            }
            // Not tracked: the next check tries again (S187).
            state.pending = None;
            self.context.recorder.record(&AuthnEvent::Reloaded { is_success: false });
            return ReloadOutcome::Refused(message);
        }
        let Some(pending) = state.pending.take() else { return ReloadOutcome::Unchanged };
        self.context.recorder.record(&AuthnEvent::Reloaded { is_success: true });
        self.context.recorder.record(&AuthnEvent::Configuration { text: &pending.files.config });
        let navicert_config = parse_navicert_config(&pending.files, &self.sources).unwrap_or_default();
        self.move_revocations(navicert_config.revocation_list);
        self.authenticator.replace(pending.set);
        state.used = pending.files.config.clone();
        state.tracked = pending.files;
        let copy = keep_copy(&state.used, navicert_config.last_good_copy.as_deref());
        let mut problems = self.problems();
        (problems.config, problems.copy) = (None, copy);
        ReloadOutcome::Applied
    }

    /// When to check a pending configuration again.
    fn pending_pause(&self, pending: &PendingReload) -> Duration {
        if !self.authenticator.is_driven() {
            return pending.check_interval;
        }
        let waited = self.context.clock.monotonic().saturating_sub(pending.since);
        let longest = pending.check_interval.min(PENDING_CHECK_INTERVAL);
        (waited / 2).clamp(FIRST_PENDING_CHECK_INTERVAL, longest)
    }

    /// A file that is opened only when the configuration is in use has to be in scope before.
    fn check_scope(&self, navicert_config: &NavicertConfiguration) -> Result<(), AuthnLoadError> {
        let Some(scope) = self.scope.get() else { return Ok(()) };
        let outside =
            |path: &PathBuf, is_written| AuthnLoadError::OutsideScope { path: path.clone(), is_written };
        match (&navicert_config.revocation_list, &navicert_config.last_good_copy) {
            (Some(path), _) if !scope.may_read(path) => Err(outside(path, false)),
            (_, Some(path)) if !scope.may_replace(path) => Err(outside(path, true)),
            _ => Ok(()),
        }
    }

    /// Names the confinement as the cause if a file outside of it could not be read.
    fn in_scope(&self, error: AuthnLoadError) -> AuthnLoadError {
        match (error, self.scope.get()) {
            (AuthnLoadError::Read { path, .. }, Some(scope)) if !scope.may_read(&path) => {
                AuthnLoadError::OutsideScope { path, is_written: false }
            }
            (error, _) => error,
        }
    }

    fn refuse(&self, error: &AuthnLoadError) -> ReloadOutcome {
        self.context.recorder.record(&AuthnEvent::Reloaded { is_success: false });
        ReloadOutcome::Refused(error_chain(error))
    }
}

/// Writes a copy of the configuration in use. A failure is returned as a problem and stops nothing.
fn keep_copy(used: &[u8], path: Option<&Path>) -> Option<String> {
    let path = path.filter(|path| fs::read(path).ok().as_deref() != Some(used))?;
    // Atomically: a process that starts meanwhile finds the old copy or the new one.
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let new = PathBuf::from(new);
    let why = fs::write(&new, used).and_then(|()| fs::rename(&new, path)).err()?;
    let path = path.display();
    Some(format!("failed to write a copy of the configuration to `{path}`: {why}"))
}

/// The configuration that a process starts with.
struct InitialConfig {
    /// The current files.
    files: ConfigFiles,
    /// The configuration in use: the current one, or the copy.
    used: Vec<u8>,
    prepared: PreparedConfig,
    /// Why the copy is in use.
    problem: Option<String>,
}

impl InitialConfig {
    fn new(sources: &ConfigSources) -> Result<Self, AuthnLoadError> {
        let (found, error) = match ConfigFiles::read(sources) {
            Err(error) => (None, error),
            Ok(files) => match prepare(&files, sources) {
                Err(error) => (Some(files), error),
                Ok(prepared) => {
                    return Ok(InitialConfig { used: files.config.clone(), files, prepared, problem: None });
                }
            },
        };
        InitialConfig::from_copy(sources, found, &error).ok_or(error)
    }

    /// Loads the copy of the last good configuration with the current `NavicertConfiguration`.
    // S192
    fn from_copy(
        sources: &ConfigSources,
        found: Option<ConfigFiles>,
        error: &AuthnLoadError,
    ) -> Option<Self> {
        let text = fs::read(sources.navicert_config.as_ref()?).ok()?;
        let only = ConfigFiles { navicert_config: Some(text), ..ConfigFiles::default() };
        let copy = parse_navicert_config(&only, sources).ok()?.last_good_copy?;
        let mut files = ConfigFiles::with_related_files(fs::read(&copy).ok()?, sources).ok()?;
        let prepared = prepare(&files, sources).ok()?;
        let used = files.config.clone();
        let problem = format!("{} (using the last good copy `{}`)", error_chain(error), copy.display());
        // The invalid contents are tracked: they are not tried again (S184).
        if let Some(found) = found {
            files = found;
        }
        Some(InitialConfig { files, used, prepared, problem: Some(problem) })
    }
}

impl ConfigFiles {
    fn read(sources: &ConfigSources) -> Result<Self, AuthnLoadError> {
        let config = match &sources.config {
            ConfigOrigin::File(path) => read(path)?,
            ConfigOrigin::Flags { text, .. } | ConfigOrigin::Text { text, .. } => text.clone().into_bytes(),
        };
        ConfigFiles::with_related_files(config, sources)
    }

    /// A configuration with the files it refers to.
    fn with_related_files(config: Vec<u8>, sources: &ConfigSources) -> Result<Self, AuthnLoadError> {
        let mut files = ConfigFiles { config, ..ConfigFiles::default() };
        files.navicert_config = sources.navicert_config.as_deref().map(read).transpose()?;
        // An invalid `NavicertConfiguration` is reported later, with all other problems.
        let navicert_config = parse_navicert_config(&files, sources).unwrap_or_default();
        let of_issuers = navicert_config.issuers.into_iter();
        let of_issuers = of_issuers.flat_map(|issuer| [issuer.jwks_file, issuer.certificate_authority_file]);
        for path in of_issuers.flatten() {
            let text = read(&path)?;
            files.of_issuers.insert(path, text);
        }
        Ok(files)
    }
}

/// A valid configuration, before it is put in service.
struct PreparedConfig {
    compiled: super::CompiledConfig,
    navicert_config: NavicertConfiguration,
    fixed: BTreeMap<String, StaticKeys>,
}

impl PreparedConfig {
    fn set(
        self,
        context: &JwksContext,
        changed: &Arc<Notify>,
        earlier: Option<&AuthenticatorSet>,
    ) -> AuthenticatorSet {
        let fixed = self.fixed;
        AuthenticatorSet::new(
            self.compiled,
            |issuer| fixed.get(&issuer.url).cloned(),
            context,
            changed,
            earlier,
        )
    }
}

fn prepare(files: &ConfigFiles, sources: &ConfigSources) -> Result<PreparedConfig, AuthnLoadError> {
    let navicert_config = parse_navicert_config(files, sources)?;
    let mut profile = navicert_config.profile(sources.profile, sources.kube_version);
    if matches!(sources.config, ConfigOrigin::Flags { .. }) {
        // With flags kube-apiserver restricts the algorithms too (S59).
        profile = profile.with(Hardening::AlgorithmAllowlist, true);
    }
    let mut compiled =
        load_excluding_issuers(&files.config, &profile, &navicert_config.disallowed_issuers)?.compiled;
    navicert_config.apply(&mut compiled).map_err(AuthnLoadError::Mismatch)?;
    navicert_config.apply_certificate_authorities(&mut compiled, |path| {
        files.of_issuers.get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    })?;
    if let ConfigOrigin::Flags { algorithms, .. } = &sources.config {
        for authenticator in &mut compiled.authenticators {
            authenticator.settings.allowed_algorithms.get_or_insert(*algorithms);
        }
    }
    let fixed = static_keys(&navicert_config, files, &profile)?;
    Ok(PreparedConfig { compiled, navicert_config, fixed })
}

fn parse_navicert_config(
    files: &ConfigFiles,
    sources: &ConfigSources,
) -> Result<NavicertConfiguration, AuthnLoadError> {
    let mut navicert_config = match (&files.navicert_config, &sources.navicert_config) {
        (Some(text), Some(path)) => NavicertConfiguration::parse(text)
            .map_err(|wrong| AuthnLoadError::NavicertConfig { path: path.clone(), wrong })?
            .resolve_paths(path.parent().unwrap_or(Path::new("."))),
        _ => NavicertConfiguration::default(),
    };
    if let ConfigOrigin::Text { issuers, .. } = &sources.config {
        navicert_config.issuers.extend(issuers.iter().cloned());
    }
    Ok(navicert_config)
}

fn static_keys(
    navicert_config: &NavicertConfiguration,
    files: &ConfigFiles,
    profile: &AuthnProfile,
) -> Result<BTreeMap<String, StaticKeys>, AuthnLoadError> {
    let mut fixed = BTreeMap::new();
    for issuer in &navicert_config.issuers {
        let Some(path) = &issuer.jwks_file else { continue };
        let text = files.of_issuers.get(path).map(Vec::as_slice).unwrap_or_default();
        let keys = KeySet::parse(text, profile)
            .map_err(|source| AuthnLoadError::Keys { path: path.clone(), source })?;
        fixed.insert(issuer.url.clone(), StaticKeys::new(keys));
    }
    Ok(fixed)
}

fn read(path: &Path) -> Result<Vec<u8>, AuthnLoadError> {
    fs::read(path).map_err(|source| AuthnLoadError::Read { path: path.to_owned(), source })
}

fn parse_revocations(path: &Path, text: &[u8]) -> Result<RevocationList, AuthnLoadError> {
    RevocationList::parse(text).map_err(|wrong| AuthnLoadError::Revocations { path: path.to_owned(), wrong })
}

#[cfg(test)]
mod tests;
