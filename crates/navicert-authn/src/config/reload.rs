//! A configuration that may change while it is in use: the new one takes over in one step, one that is bad changes
//! nothing and says why, and what did not change keeps its keys (S182–S192, H24).

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use navicert_types::Diagnostics;
use navicert_types::authentication_config::AnonymousAuthConfig;
use tokio::sync::Notify;

use super::load::{ConfigError, load_beside};
use super::side_car::{BaseProfile, NavicertConfiguration, ReloadHealth, SideCarError};
use crate::jwks::{Around, FixedKeys, Keeper, KeySet, KeySetError};
use crate::jwt::Algorithms;
use crate::live::{Live, Set};
use crate::metrics::Event;
use crate::profile::{Profile, Rule};
use crate::revocation::{RevocationList, Revocations};

/// Between two looks at the files, if nothing says that they have changed (S182).
const POLL: Duration = Duration::from_secs(60);
/// How long the issuers of a new configuration may take to become ready (S186).
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at them; without H24 it is upstream's ten seconds.
const SOON: Duration = Duration::from_secs(1);
const UPSTREAM_SOON: Duration = Duration::from_secs(10);

/// Where an `AuthenticationConfiguration` comes from.
#[derive(Clone, Debug)]
pub enum Origin {
    /// A file, which may change.
    File(PathBuf),
    /// Flags, which do not (S190).
    Flags {
        /// What [`migrate`](super::migrate::migrate) made of them.
        text: String,
        /// The only algorithms that they allow; a file has no place for that.
        algorithms: Algorithms,
    },
}

impl From<PathBuf> for Origin {
    fn from(path: PathBuf) -> Self {
        Origin::File(path)
    }
}

/// Which files.
#[derive(Clone, Debug)]
pub struct Sources {
    /// The `AuthenticationConfiguration`.
    pub config: Origin,
    /// Our own file, if there is one.
    pub side_car: Option<PathBuf>,
    /// What the command line says about the profile.
    pub profile: Option<BaseProfile>,
}

/// Why files are not used.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A file cannot be read.
    #[error("read `{}`", path.display())]
    Read {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The configuration is bad.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Our own file is bad.
    #[error("`{}`: {wrong}", path.display())]
    SideCar {
        /// Which one.
        path: PathBuf,
        /// Everything that is wrong.
        wrong: Diagnostics,
    },
    /// Our own file does not go with the configuration.
    #[error("{}", joined(.0))]
    Mismatch(Vec<SideCarError>),
    /// A file with keys is bad.
    #[error("`{}`", path.display())]
    Keys {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: KeySetError,
    },
    /// The list of revoked tokens is bad.
    #[error("`{}`: {wrong}", path.display())]
    Revocations {
        /// Which one.
        path: PathBuf,
        /// Everything that is wrong.
        wrong: Diagnostics,
    },
    /// `anonymous` cannot change while the process runs (S185).
    #[error("anonymous: Forbidden: changed from initial configuration file")]
    Anonymous,
}

fn joined(errors: &[SideCarError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// What came of looking at the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reload {
    /// They are as they were.
    Unchanged,
    /// They have changed and are good; some issuers are not ready yet.
    Waiting,
    /// They have changed, and are in use.
    Applied,
    /// The earlier configuration stays, and why.
    Refused(String),
}

/// A look at the files, and when to look again at the latest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tended {
    /// What came of it.
    pub reload: Reload,
    /// When to come back, if nothing changes before.
    pub pause: Duration,
}

/// Reads files, and puts them to work when they change.
///
/// It watches nothing by itself: whoever has a runtime calls [`Reloader::tend`] when something has changed, and when the
/// pause is over.
#[derive(Debug)]
pub struct Reloader {
    sources: Sources,
    around: Around,
    live: Arc<Live>,
    state: tokio::sync::Mutex<State>,
    /// The worst of the state's, outside of it: that is held while issuers are asked.
    problem: Mutex<Option<String>>,
}

#[derive(Debug)]
struct State {
    /// The files as they were when they were last dealt with, for good or ill.
    tracked: Files,
    /// The configuration that is in use.
    used: Vec<u8>,
    revocations: Option<Vec<u8>>,
    anonymous: Option<AnonymousAuthConfig>,
    pending: Option<Pending>,
    problems: Problems,
}

/// What is wrong at the moment.
#[derive(Debug, Default)]
struct Problems {
    /// Why the files are not in use.
    config: Option<String>,
    /// Why the list of revoked tokens is not.
    list: Option<String>,
    /// Why there is no copy of what is in use.
    copy: Option<String>,
}

impl Problems {
    /// The one to speak of.
    fn worst(&self) -> Option<String> {
        let Problems { config, list, copy } = self;
        config.as_ref().or(list.as_ref()).or(copy.as_ref()).cloned()
    }
}

/// A good configuration whose issuers are not ready yet.
#[derive(Debug)]
struct Pending {
    set: Set,
    files: Files,
    /// Who has to be ready.
    awaited: Vec<Arc<Keeper>>,
    since: Duration,
    soon: Duration,
}

/// The files that one configuration consists of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Files {
    config: Vec<u8>,
    side_car: Option<Vec<u8>>,
    /// Keys by file.
    keys: BTreeMap<PathBuf, Vec<u8>>,
}

impl Reloader {
    /// Reads the files for the first time. Issuers may be offline (S191). If the configuration is bad and our own file
    /// names a copy of the last good one, that is used, and [`Reloader::problem`] says why (S192).
    ///
    /// # Errors
    /// The files are bad, and there is nothing to fall back on.
    pub fn open(sources: Sources, around: Around) -> Result<Self, LoadError> {
        let revocations = Arc::new(Revocations::default());
        let changed = Arc::new(Notify::new());
        let Opened { files, used, prepared, problem } = Opened::new(&sources)?;
        let anonymous = prepared.compiled.anonymous.clone();
        let text = match &prepared.side_car.revocation_list {
            None => None,
            Some(path) => {
                let text = read(path)?;
                revocations.replace(parse_revocations(path, &text)?);
                Some(text)
            }
        };
        let copy = prepared.side_car.last_good_copy.clone();
        let set = prepared.set(&around, &changed, None).with_revocations(&revocations);
        let live = Arc::new(Live::new(set, revocations, &around, changed));
        around.recorder.record(&Event::Configuration { text: &used });
        let problems = Problems { config: problem, ..Problems::default() };
        let mut state = State { tracked: files, used, revocations: text, anonymous, pending: None, problems };
        state.keep_copy(copy.as_deref());
        let problem = Mutex::new(state.problems.worst());
        Ok(Reloader { sources, around, live, state: tokio::sync::Mutex::new(state), problem })
    }

    /// The authenticators in service.
    pub fn live(&self) -> &Arc<Live> {
        &self.live
    }

    /// The files to watch: a change of any of them, or of the folder it is in, is worth a [`Reloader::tend`].
    pub async fn watched(&self) -> Vec<PathBuf> {
        let state = self.state.lock().await;
        let config = match &self.sources.config {
            Origin::File(path) => Some(path),
            Origin::Flags { .. } => None,
        };
        let own = [config, self.sources.side_car.as_ref()];
        let mut paths: Vec<PathBuf> = own.into_iter().flatten().cloned().collect();
        paths.extend(state.tracked.keys.keys().cloned());
        paths.extend(self.revocation_list(&state.tracked));
        paths
    }

    /// Why the files that are there now are not in use, if they are not.
    pub fn problem(&self) -> Option<String> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Looks at the files, and does what follows from it.
    pub async fn tend(&self) -> Tended {
        let mut state = self.state.lock().await;
        let reload = self.look(&mut state).await;
        let listed = self.look_at_revocations(&mut state);
        let pause = state.pending.as_ref().map_or(POLL, |pending| pending.soon);
        if let Reload::Refused(why) = &reload {
            state.problems.config = Some(why.clone());
        }
        match &listed {
            Some(Reload::Refused(why)) => state.problems.list = Some(why.clone()),
            Some(_) => state.problems.list = None,
            None => {}
        }
        let reload = match (reload, listed) {
            (Reload::Unchanged, Some(listed)) => listed,
            (reload, _) => reload,
        };
        *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = state.problems.worst();
        Tended { reload, pause }
    }

    async fn look(&self, state: &mut State) -> Reload {
        let files = match Files::read(&self.sources) {
            Ok(files) => files,
            // Not tracked: the next look tries again (S183).
            Err(error) => return self.refuse(&error),
        };
        if files == state.tracked {
            state.pending = None;
            if files.config == state.used {
                state.problems.config = None;
            }
            return Reload::Unchanged;
        }
        if state.pending.as_ref().is_none_or(|pending| pending.files != files) {
            let next = self.prepare_next(&files, state);
            match next {
                Ok(pending) => state.pending = Some(pending),
                Err(error) => {
                    // Tracked: the same bad content is not tried and not counted again (S184).
                    state.tracked = files;
                    state.pending = None;
                    return self.refuse(&error);
                }
            }
        }
        self.try_pending(state).await
    }

    fn prepare_next(&self, files: &Files, state: &State) -> Result<Pending, LoadError> {
        let prepared = prepare(files, &self.sources)?;
        if prepared.compiled.anonymous != state.anonymous {
            return Err(LoadError::Anonymous);
        }
        let (profile, health) = (prepared.compiled.profile, prepared.side_car.reload_health);
        let earlier = self.live.set();
        let set = prepared.set(&self.around, self.live.changed(), Some(&earlier));
        let set = set.with_revocations(self.live.revocations());
        let is_new = |keeper: &&Arc<Keeper>| !earlier.keepers().iter().any(|old| Arc::ptr_eq(old, keeper));
        let awaited = match health {
            _ if !profile.has(Rule::H24) => set.keepers().to_vec(),
            ReloadHealth::All => set.keepers().to_vec(),
            ReloadHealth::Changed => set.keepers().iter().filter(is_new).cloned().collect(),
            ReloadHealth::None => Vec::new(),
        };
        let soon = if profile.has(Rule::H24) { SOON } else { UPSTREAM_SOON };
        Ok(Pending { set, files: files.clone(), awaited, since: self.around.clock.monotonic(), soon })
    }

    /// Takes over if everybody who is waited for is ready.
    async fn try_pending(&self, state: &mut State) -> Reload {
        let Some(pending) = &state.pending else { return Reload::Unchanged };
        for keeper in pending.awaited.iter().filter(|keeper| !keeper.health().is_ready) {
            keeper.tend().await;
        }
        let late = pending.awaited.iter().find(|keeper| !keeper.health().is_ready);
        if let Some(late) = late {
            let waited = self.around.clock.monotonic().saturating_sub(pending.since);
            if waited < PATIENCE {
                return Reload::Waiting;
            }
            let why = late.health().last_error.unwrap_or_default();
            let message = format!("issuer `{}` is not ready: {why}", late.issuer().url);
            // Not tracked: tried again at the next look (S187).
            state.pending = None;
            self.around.recorder.record(&Event::Reloaded { is_success: false });
            return Reload::Refused(message);
        }
        let Some(pending) = state.pending.take() else { return Reload::Unchanged };
        self.around.recorder.record(&Event::Reloaded { is_success: true });
        self.around.recorder.record(&Event::Configuration { text: &pending.files.config });
        self.live.swap(pending.set);
        state.used = pending.files.config.clone();
        state.tracked = pending.files;
        state.problems.config = None;
        state
            .keep_copy(side_car(&state.tracked, &self.sources).unwrap_or_default().last_good_copy.as_deref());
        Reload::Applied
    }

    /// The list has a life of its own: it changes more often than anything else.
    fn look_at_revocations(&self, state: &mut State) -> Option<Reload> {
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
                self.live.revocations().replace(list);
                Reload::Applied
            }
            Err(error) => self.refuse(&error),
        })
    }

    fn revocation_list(&self, files: &Files) -> Option<PathBuf> {
        side_car(files, &self.sources).ok()?.revocation_list
    }

    fn refuse(&self, error: &LoadError) -> Reload {
        self.around.recorder.record(&Event::Reloaded { is_success: false });
        Reload::Refused(described(error))
    }
}

fn described(error: &LoadError) -> String {
    let source = std::error::Error::source(error).map(|source| format!(": {source}")).unwrap_or_default();
    format!("{error}{source}")
}

impl State {
    /// Keeps a copy of the configuration that is in use. A copy that cannot be kept is a problem, and stops nothing.
    fn keep_copy(&mut self, path: Option<&Path>) {
        self.problems.copy = None;
        let Some(path) = path.filter(|path| fs::read(path).ok().as_ref() != Some(&self.used)) else { return };
        // In one step: whoever starts meanwhile finds the old copy or the new one.
        let mut new = path.as_os_str().to_owned();
        new.push(".new");
        let new = PathBuf::from(new);
        if let Err(why) = fs::write(&new, &self.used).and_then(|()| fs::rename(&new, path)) {
            let path = path.display();
            self.problems.copy = Some(format!("cannot keep a copy of the configuration in `{path}`: {why}"));
        }
    }
}

/// What a start found.
struct Opened {
    /// As they are.
    files: Files,
    /// The configuration that is used, theirs or the copy's.
    used: Vec<u8>,
    prepared: Prepared,
    /// Why it is the copy's.
    problem: Option<String>,
}

impl Opened {
    fn new(sources: &Sources) -> Result<Self, LoadError> {
        let (found, error) = match Files::read(sources) {
            Err(error) => (None, error),
            Ok(files) => match prepare(&files, sources) {
                Err(error) => (Some(files), error),
                Ok(prepared) => {
                    return Ok(Opened { used: files.config.clone(), files, prepared, problem: None });
                }
            },
        };
        Opened::from_copy(sources, found, &error).ok_or(error)
    }

    /// S192: the last configuration that was good, with our own file as it is now.
    fn from_copy(sources: &Sources, found: Option<Files>, error: &LoadError) -> Option<Self> {
        let text = fs::read(sources.side_car.as_ref()?).ok()?;
        let only = Files { side_car: Some(text), ..Files::default() };
        let copy = side_car(&only, sources).ok()?.last_good_copy?;
        let mut files = Files::around(fs::read(&copy).ok()?, sources).ok()?;
        let prepared = prepare(&files, sources).ok()?;
        let used = files.config.clone();
        let problem = format!("{} (in use is the copy `{}`)", described(error), copy.display());
        // What is bad is tracked: the same content is not tried again (S184).
        if let Some(found) = found {
            files = found;
        }
        Some(Opened { files, used, prepared, problem: Some(problem) })
    }
}

impl Files {
    fn read(sources: &Sources) -> Result<Self, LoadError> {
        let config = match &sources.config {
            Origin::File(path) => read(path)?,
            Origin::Flags { text, .. } => text.clone().into_bytes(),
        };
        Files::around(config, sources)
    }

    /// A configuration with the files that go with it.
    fn around(config: Vec<u8>, sources: &Sources) -> Result<Self, LoadError> {
        let mut files = Files { config, ..Files::default() };
        files.side_car = sources.side_car.as_deref().map(read).transpose()?;
        // A bad side-car is reported later, with everything else.
        let side_car = side_car(&files, sources).unwrap_or_default();
        for path in side_car.issuers.into_iter().filter_map(|issuer| issuer.jwks_file) {
            let text = read(&path)?;
            files.keys.insert(path, text);
        }
        Ok(files)
    }
}

/// A good configuration, before it is put to work.
struct Prepared {
    compiled: super::Compiled,
    side_car: NavicertConfiguration,
    fixed: BTreeMap<String, FixedKeys>,
}

impl Prepared {
    fn set(self, around: &Around, changed: &Arc<Notify>, earlier: Option<&Set>) -> Set {
        let fixed = self.fixed;
        Set::new(self.compiled, |issuer| fixed.get(&issuer.url).cloned(), around, changed, earlier)
    }
}

fn prepare(files: &Files, sources: &Sources) -> Result<Prepared, LoadError> {
    let side_car = side_car(files, sources)?;
    let mut profile = side_car.profile(sources.profile);
    if matches!(sources.config, Origin::Flags { .. }) {
        // With flags kube-apiserver narrows the algorithms too (S59).
        profile = profile.with(Rule::H25, true);
    }
    let mut compiled = load_beside(&files.config, &profile, &side_car.disallowed_issuers)?.compiled;
    side_car.apply(&mut compiled).map_err(LoadError::Mismatch)?;
    if let Origin::Flags { algorithms, .. } = &sources.config {
        for authenticator in &mut compiled.authenticators {
            authenticator.settings.allowed_algorithms.get_or_insert(*algorithms);
        }
    }
    let fixed = fixed_keys(&side_car, files, &profile)?;
    Ok(Prepared { compiled, side_car, fixed })
}

fn side_car(files: &Files, sources: &Sources) -> Result<NavicertConfiguration, LoadError> {
    let (Some(text), Some(path)) = (&files.side_car, &sources.side_car) else {
        return Ok(NavicertConfiguration::default());
    };
    let side_car = NavicertConfiguration::parse(text)
        .map_err(|wrong| LoadError::SideCar { path: path.clone(), wrong })?;
    Ok(side_car.in_folder(path.parent().unwrap_or(Path::new("."))))
}

fn fixed_keys(
    side_car: &NavicertConfiguration,
    files: &Files,
    profile: &Profile,
) -> Result<BTreeMap<String, FixedKeys>, LoadError> {
    let mut fixed = BTreeMap::new();
    for issuer in &side_car.issuers {
        let Some(path) = &issuer.jwks_file else { continue };
        let text = files.keys.get(path).map(Vec::as_slice).unwrap_or_default();
        let keys =
            KeySet::parse(text, profile).map_err(|source| LoadError::Keys { path: path.clone(), source })?;
        fixed.insert(issuer.url.clone(), FixedKeys::new(keys));
    }
    Ok(fixed)
}

fn read(path: &Path) -> Result<Vec<u8>, LoadError> {
    fs::read(path).map_err(|source| LoadError::Read { path: path.to_owned(), source })
}

fn parse_revocations(path: &Path, text: &[u8]) -> Result<RevocationList, LoadError> {
    RevocationList::parse(text).map_err(|wrong| LoadError::Revocations { path: path.to_owned(), wrong })
}

#[cfg(test)]
mod tests;
