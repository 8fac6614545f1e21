//! Reloads a configuration while it is in use: a valid change is applied atomically, an invalid one changes nothing and is
//! reported, and unchanged issuers keep their keys.
// S182–S192, H24

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use navicert_types::authentication_config::AnonymousAuthConfig;
use navicert_types::{Diagnostics, error_chain};
use tokio::sync::Notify;

use super::load::{ConfigError, load_excluding_issuers};
use super::navicert_config::{BaseProfile, NavicertConfigError, NavicertConfiguration, ReloadHealth};
use crate::jwks::{JwksContext, JwksRefresher, KeySet, KeySetError, StaticKeys};
use crate::jwt::JwsAlgorithmSet;
use crate::metrics::AuthnEvent;
use crate::profile::{AuthnProfile, Hardening};
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
}

/// Why a configuration cannot be loaded.
#[derive(Debug, thiserror::Error)]
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
    /// The revocation list is invalid.
    #[error("invalid revocation list `{}`: {wrong}", path.display())]
    Revocations {
        /// Its path.
        path: PathBuf,
        /// Every problem.
        wrong: Diagnostics,
    },
    /// `anonymous` cannot change while the process runs.
    // S185
    #[error("anonymous: Forbidden: changed from initial configuration file")]
    Anonymous,
}

fn joined(errors: &[NavicertConfigError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
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
    /// The most important problem of the state, outside of its lock, which is held during requests to issuers.
    problem: Mutex<Option<String>>,
}

#[derive(Debug)]
struct ReloadState {
    /// The files that were last applied or rejected.
    tracked: ConfigFiles,
    /// The configuration in use.
    used: Vec<u8>,
    revocations: Option<Vec<u8>>,
    anonymous: Option<AnonymousAuthConfig>,
    pending: Option<PendingReload>,
    problems: Problems,
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
}

impl Problems {
    /// The most important problem.
    fn worst(&self) -> Option<String> {
        let Problems { config, list, copy } = self;
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
    /// Key files by path.
    keys: BTreeMap<PathBuf, Vec<u8>>,
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
        let text = match &prepared.navicert_config.revocation_list {
            None => None,
            Some(path) => {
                let text = read(path)?;
                revocations.replace(parse_revocations(path, &text)?);
                Some(text)
            }
        };
        let copy = prepared.navicert_config.last_good_copy.clone();
        let set = prepared.set(&context, &changed, None).with_revocations(&revocations);
        let live = Arc::new(ReloadableAuthenticator::new(set, revocations, &context, changed));
        context.recorder.record(&AuthnEvent::Configuration { text: &used });
        let problems = Problems { config: problem, ..Problems::default() };
        let mut state =
            ReloadState { tracked: files, used, revocations: text, anonymous, pending: None, problems };
        state.keep_copy(copy.as_deref());
        let problem = Mutex::new(state.problems.worst());
        Ok(AuthnReloader {
            sources,
            context,
            authenticator: live,
            state: tokio::sync::Mutex::new(state),
            problem,
        })
    }

    /// The authenticator in service.
    pub fn authenticator(&self) -> &Arc<ReloadableAuthenticator> {
        &self.authenticator
    }

    /// The files to watch: run [`AuthnReloader::check`] when one of them, or its folder, changes.
    pub async fn watched(&self) -> Vec<PathBuf> {
        let state = self.state.lock().await;
        let config = match &self.sources.config {
            ConfigOrigin::File(path) => Some(path),
            ConfigOrigin::Flags { .. } => None,
        };
        let own = [config, self.sources.navicert_config.as_ref()];
        let mut paths: Vec<PathBuf> = own.into_iter().flatten().cloned().collect();
        paths.extend(state.tracked.keys.keys().cloned());
        paths.extend(self.revocation_list(&state.tracked));
        paths
    }

    /// Why the current files are not in use, if they are not.
    pub fn problem(&self) -> Option<String> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Checks the files and applies or rejects a change.
    pub async fn check(&self) -> ReloadCheck {
        let mut state = self.state.lock().await;
        let reload = self.check_config(&mut state).await;
        let listed = self.check_revocations(&mut state);
        let pause = state.pending.as_ref().map_or(POLL_INTERVAL, |pending| pending.check_interval);
        if let ReloadOutcome::Refused(why) = &reload {
            state.problems.config = Some(why.clone());
        }
        match &listed {
            Some(ReloadOutcome::Refused(why)) => state.problems.list = Some(why.clone()),
            Some(_) => state.problems.list = None,
            None => {}
        }
        let reload = match (reload, listed) {
            (ReloadOutcome::Unchanged, Some(listed)) => listed,
            (reload, _) => reload,
        };
        *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = state.problems.worst();
        ReloadCheck { reload, pause }
    }

    async fn check_config(&self, state: &mut ReloadState) -> ReloadOutcome {
        let files = match ConfigFiles::read(&self.sources) {
            Ok(files) => files,
            // Not tracked: the next check tries again (S183).
            Err(error) => return self.refuse(&error),
        };
        if files == state.tracked {
            state.pending = None;
            if files.config == state.used {
                state.problems.config = None;
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
            refresher.run_due().await;
        }
        let not_ready = pending.awaited.iter().find(|refresher| !refresher.health().is_ready);
        if let Some(not_ready) = not_ready {
            let waited = self.context.clock.monotonic().saturating_sub(pending.since);
            if waited < ISSUER_READY_TIMEOUT {
                return ReloadOutcome::Waiting;
            }
            let why = not_ready.health().last_error.unwrap_or_default();
            let message = format!("issuer `{}` is not ready: {why}", not_ready.issuer().url);
            // Not tracked: the next check tries again (S187).
            state.pending = None;
            self.context.recorder.record(&AuthnEvent::Reloaded { is_success: false });
            return ReloadOutcome::Refused(message);
        }
        let Some(pending) = state.pending.take() else { return ReloadOutcome::Unchanged };
        self.context.recorder.record(&AuthnEvent::Reloaded { is_success: true });
        self.context.recorder.record(&AuthnEvent::Configuration { text: &pending.files.config });
        self.authenticator.replace(pending.set);
        state.used = pending.files.config.clone();
        state.tracked = pending.files;
        state.problems.config = None;
        state.keep_copy(
            parse_navicert_config(&state.tracked, &self.sources)
                .unwrap_or_default()
                .last_good_copy
                .as_deref(),
        );
        ReloadOutcome::Applied
    }

    /// The revocation list is checked separately: it changes more often than the configuration.
    fn check_revocations(&self, state: &mut ReloadState) -> Option<ReloadOutcome> {
        let path = self.revocation_list(&state.tracked)?;
        let text = match read(&path) {
            Ok(text) => text,
            Err(error) => return Some(self.refuse(&error)),
        };
        if state.revocations.as_ref() == Some(&text) {
            return None;
        }
        let list = parse_revocations(&path, &text);
        state.revocations = Some(text);
        Some(match list {
            Ok(list) => {
                self.authenticator.revocations().replace(list);
                ReloadOutcome::Applied
            }
            Err(error) => self.refuse(&error),
        })
    }

    fn revocation_list(&self, files: &ConfigFiles) -> Option<PathBuf> {
        parse_navicert_config(files, &self.sources).ok()?.revocation_list
    }

    fn refuse(&self, error: &AuthnLoadError) -> ReloadOutcome {
        self.context.recorder.record(&AuthnEvent::Reloaded { is_success: false });
        ReloadOutcome::Refused(error_chain(error))
    }
}

impl ReloadState {
    /// Writes a copy of the configuration in use. A failure is reported as a problem and stops nothing.
    fn keep_copy(&mut self, path: Option<&Path>) {
        self.problems.copy = None;
        let Some(path) = path.filter(|path| fs::read(path).ok().as_ref() != Some(&self.used)) else { return };
        // Atomically: a process that starts meanwhile finds the old copy or the new one.
        let mut new = path.as_os_str().to_owned();
        new.push(".new");
        let new = PathBuf::from(new);
        if let Err(why) = fs::write(&new, &self.used).and_then(|()| fs::rename(&new, path)) {
            let path = path.display();
            self.problems.copy =
                Some(format!("failed to write a copy of the configuration to `{path}`: {why}"));
        }
    }
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
            ConfigOrigin::Flags { text, .. } => text.clone().into_bytes(),
        };
        ConfigFiles::with_related_files(config, sources)
    }

    /// A configuration with the files it refers to.
    fn with_related_files(config: Vec<u8>, sources: &ConfigSources) -> Result<Self, AuthnLoadError> {
        let mut files = ConfigFiles { config, ..ConfigFiles::default() };
        files.navicert_config = sources.navicert_config.as_deref().map(read).transpose()?;
        // An invalid `NavicertConfiguration` is reported later, with all other problems.
        let navicert_config = parse_navicert_config(&files, sources).unwrap_or_default();
        for path in navicert_config.issuers.into_iter().filter_map(|issuer| issuer.jwks_file) {
            let text = read(&path)?;
            files.keys.insert(path, text);
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
    let mut profile = navicert_config.profile(sources.profile);
    if matches!(sources.config, ConfigOrigin::Flags { .. }) {
        // With flags kube-apiserver restricts the algorithms too (S59).
        profile = profile.with(Hardening::AlgorithmAllowlist, true);
    }
    let mut compiled =
        load_excluding_issuers(&files.config, &profile, &navicert_config.disallowed_issuers)?.compiled;
    navicert_config.apply(&mut compiled).map_err(AuthnLoadError::Mismatch)?;
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
    let (Some(text), Some(path)) = (&files.navicert_config, &sources.navicert_config) else {
        return Ok(NavicertConfiguration::default());
    };
    let navicert_config = NavicertConfiguration::parse(text)
        .map_err(|wrong| AuthnLoadError::NavicertConfig { path: path.clone(), wrong })?;
    Ok(navicert_config.resolve_paths(path.parent().unwrap_or(Path::new("."))))
}

fn static_keys(
    navicert_config: &NavicertConfiguration,
    files: &ConfigFiles,
    profile: &AuthnProfile,
) -> Result<BTreeMap<String, StaticKeys>, AuthnLoadError> {
    let mut fixed = BTreeMap::new();
    for issuer in &navicert_config.issuers {
        let Some(path) = &issuer.jwks_file else { continue };
        let text = files.keys.get(path).map(Vec::as_slice).unwrap_or_default();
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
