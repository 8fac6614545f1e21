//! The folder of the cache: where it is, and whether it is safe.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use navicert_types::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use zeroize::Zeroizing;

use super::entry::{API_VERSION, Entry, KIND};
use super::file;
use super::lock::{EntryLock, is_read_only};
use super::seal::SealedEntry;
use super::state::LoginState;
use crate::context::LoginContext;
use crate::error::LoginError;
use crate::key::CacheKey;
use crate::keyring::{SealKey, Unlock};
use crate::person::Person;
use crate::request::{LoginRequest, Storage};

/// How long to wait for another process that makes the key of sealed entries.
const KEYRING_WAIT: Duration = Duration::from_secs(20);

/// The cache folder. Nothing is created before the first write.
#[derive(Clone, Debug)]
pub struct CacheFolder {
    path: PathBuf,
    storage: Storage,
    /// The key of sealed entries, if it is known.
    seal_key: Option<SealKey>,
}

impl CacheFolder {
    /// The folder of a request.
    ///
    /// # Errors
    /// There is no home folder, the folder is open to other users, or the keyring that the request names cannot be used.
    pub fn locate(request: &LoginRequest, context: &LoginContext) -> Result<Self, LoginError> {
        let path = match request.storage {
            Storage::None => runtime_folder(context)?,
            _ => default_folder(request.cache_dir.as_deref(), context)?,
        };
        let mut folder = CacheFolder::at(path, request.storage)?;
        if request.storage == Storage::Keyring {
            let may_ask = Person::decide(request, context).may_be_asked;
            let unlock = if may_ask { Unlock::MayAsk } else { Unlock::Never };
            folder.seal_key = folder.find_or_make_key(unlock, context)?;
        }
        Ok(folder)
    }

    /// The key of sealed entries. One process makes it: what another one sealed with its own would be lost.
    fn find_or_make_key(
        &self,
        unlock: Unlock,
        context: &LoginContext,
    ) -> Result<Option<SealKey>, LoginError> {
        let key = |is_made| context.keyring.key(&context.environment, unlock, is_made);
        if let Some(found) = key(false)? {
            return Ok(Some(found));
        }
        self.create()?;
        let lock = EntryLock::open(&self.path.join("keyring.lock")).map_err(|error| self.failed(&error))?;
        let deadline = context.clock.monotonic().saturating_add(KEYRING_WAIT);
        let _held = lock.acquire(context, || (deadline, 0))?;
        key(true)
    }

    /// The folder of verbs that list entries. Sealed entries can be read after [`CacheFolder::unseal`].
    ///
    /// # Errors
    /// There is no home folder, or the folder is open to other users.
    pub fn locate_default(dir: Option<&Path>, context: &LoginContext) -> Result<Self, LoginError> {
        CacheFolder::at(default_folder(dir, context)?, Storage::Disk)
    }

    /// Gets the key of sealed entries from the keyring, if there is such an entry.
    ///
    /// # Errors
    /// The keyring cannot be used. Other entries can still be read.
    pub fn unseal(&mut self, unlock: Unlock, context: &LoginContext) -> Result<(), LoginError> {
        let has_sealed = self.keys().is_ok_and(|keys| keys.iter().any(|key| self.is_sealed(key)));
        if has_sealed && self.seal_key.is_none() {
            self.seal_key = context.keyring.key(&context.environment, unlock, false)?;
        }
        Ok(())
    }

    /// Whether the entry is sealed.
    pub(crate) fn is_sealed(&self, key: &CacheKey) -> bool {
        file::read(&self.file(key, "json")).is_ok_and(|bytes| SealedEntry::read(&bytes).is_some())
    }

    /// A folder that keeps nothing.
    ///
    /// # Errors
    /// The user has no folder for locks.
    #[cfg(feature = "doctor")]
    pub(crate) fn without_entries(context: &LoginContext) -> Result<Self, LoginError> {
        CacheFolder::at(runtime_folder(context)?, Storage::None)
    }

    pub(crate) fn at(path: PathBuf, storage: Storage) -> Result<Self, LoginError> {
        let folder = CacheFolder { path, storage, seal_key: None };
        folder.check()?;
        Ok(folder)
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Rejects a folder that belongs to another user or that others can write to.
    fn check(&self) -> Result<(), LoginError> {
        let unsafe_folder = |why: &str| LoginError::CacheUnsafe {
            path: self.path.display().to_string(),
            why: why.to_owned(),
        };
        match fs::metadata(&self.path) {
            Ok(found) if !found.is_dir() => Err(unsafe_folder("is not a folder")),
            Ok(found) if found.uid() != rustix::process::geteuid().as_raw() => {
                Err(unsafe_folder("belongs to another user"))
            }
            Ok(found) if found.mode() & 0o022 != 0 => Err(unsafe_folder("is writable by other users")),
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(self.failed(&error)),
        }
    }

    fn failed(&self, error: &io::Error) -> LoginError {
        LoginError::CacheFolder(format!(
            "failed to use the cache folder `{}`: {error}; choose another one with --token-cache-dir",
            self.path.display()
        ))
    }

    /// Creates the folder with mode 0700, and its parents.
    ///
    /// # Errors
    /// It cannot be created.
    pub(crate) fn create(&self) -> Result<(), LoginError> {
        if let Some(parent) = self.path.parent() {
            fs::create_dir_all(parent).map_err(|error| self.failed(&error))?;
        }
        match DirBuilder::new().mode(0o700).create(&self.path) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.check(),
            Err(error) => Err(self.failed(&error)),
        }
    }

    fn file(&self, key: &CacheKey, extension: &str) -> PathBuf {
        self.path.join(format!("{}.{extension}", key.as_str()))
    }

    /// The entry, or `None` if there is none or its file is not usable.
    pub fn read(&self, key: &CacheKey) -> Option<Entry> {
        if self.storage == Storage::None {
            return None;
        }
        let path = self.file(key, "json");
        let bytes = match file::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(_) => {
                file::set_aside(&path);
                return None;
            }
        };
        let (bytes, is_sealed) = match (SealedEntry::read(&bytes), &self.seal_key) {
            (None, _) => (Some(bytes), false),
            // The keyring may be locked, or the storage is another one now: the entry may be of use later.
            (Some(_), None) => return None,
            (Some(sealed), Some(seal_key)) => (sealed.open(seal_key, &file_name(&path)), true),
        };
        let entry = bytes.and_then(|bytes| serde_json::from_slice::<Entry>(&bytes).ok());
        let is_ours = |entry: &Entry| {
            entry.api_version == API_VERSION && entry.kind == KIND && entry.key.cache_key() == *key
        };
        let entry = entry.filter(is_ours);
        if entry.is_none() {
            file::set_aside(&path);
        }
        entry.map(|entry| Entry { is_sealed, ..entry })
    }

    /// Replaces the entry: after a crash the file holds the old or the new one.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, entry: &Entry) -> io::Result<()> {
        if self.storage == Storage::None {
            return Ok(());
        }
        let path = self.file(&entry.key.cache_key(), "json");
        // L424: the file has one name, so that the other form is gone when this one is there.
        let Some(seal_key) = self.seal_key.as_ref().filter(|_| self.storage == Storage::Keyring) else {
            return self.write_json(&path, entry);
        };
        let text = Zeroizing::new(serde_json::to_vec(entry).map_err(io::Error::other)?);
        let sealed = SealedEntry::seal(seal_key, &file_name(&path), &text);
        self.write_json(&path, &sealed.ok_or_else(|| io::Error::other("no random numbers"))?)
    }

    /// Removes the entry and its state. The lock's file stays: another process may be waiting for it.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn remove(&self, key: &CacheKey) -> io::Result<()> {
        for extension in ["json", "state", "bad"] {
            match fs::remove_file(self.file(key, extension)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// The keys of all entries, sorted.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn keys(&self) -> io::Result<Vec<CacheKey>> {
        let entries = match fs::read_dir(&self.path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut keys = Vec::new();
        for entry in entries {
            let name = entry?.file_name();
            let key = name.to_str().and_then(|name| name.strip_suffix(".json"));
            keys.extend(key.and_then(CacheKey::from_text));
        }
        keys.sort();
        Ok(keys)
    }

    /// Removes the documents of every provider.
    ///
    /// # Errors
    /// One of them cannot be removed.
    pub(crate) fn remove_provider_files(&self) -> io::Result<()> {
        let Ok(entries) = fs::read_dir(&self.path) else { return Ok(()) };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let key = name.to_str().and_then(|name| name.strip_suffix(".provider.json"));
            if key.and_then(CacheKey::from_text).is_some() {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    /// The API servers that the person has answered for.
    pub(crate) fn known_servers<T: DeserializeOwned + Default>(&self) -> T {
        self.read_json(&self.path.join("servers.json")).unwrap_or_default()
    }

    /// Replaces them.
    ///
    /// # Errors
    /// They cannot be written.
    pub(crate) fn write_known_servers(&self, servers: &impl Serialize) -> io::Result<()> {
        self.write_json(&self.path.join("servers.json"), servers)
    }

    /// Opens the lock of that file.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(crate) fn open_servers_lock(&self) -> io::Result<EntryLock> {
        EntryLock::open(&self.path.join("servers.lock"))
    }

    /// The state of the entry's lock holder.
    pub fn state(&self, key: &CacheKey) -> LoginState {
        self.read_json(&self.file(key, "state")).unwrap_or_default()
    }

    /// Replaces that state.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn write_state(&self, key: &CacheKey, state: &LoginState) -> io::Result<()> {
        self.write_json(&self.file(key, "state"), state)
    }

    /// Opens the entry's lock file. If the folder is read-only and has none, there is one in the user's runtime folder.
    ///
    /// # Errors
    /// It cannot be opened.
    // L405, L834
    pub(crate) fn open_lock(&self, key: &CacheKey, context: &LoginContext) -> io::Result<EntryLock> {
        let opened = EntryLock::open(&self.file(key, "lock"));
        match opened {
            Err(error) if is_read_only(&error) => {
                let elsewhere = runtime_folder(context).and_then(|path| CacheFolder::at(path, Storage::None));
                let Ok(elsewhere) = elsewhere.and_then(|folder| folder.create().map(|()| folder)) else {
                    return Err(error);
                };
                EntryLock::open(&elsewhere.file(key, "lock"))
            }
            opened => opened,
        }
    }

    /// A file of provider documents, or `None` if there is none or it is not usable.
    pub(crate) fn read_provider<T: DeserializeOwned>(&self, key: &CacheKey) -> Option<T> {
        if self.storage == Storage::None { None } else { self.read_json(&self.file(key, "provider.json")) }
    }

    /// Replaces that file. A failure is not reported: the documents are fetched again.
    pub(crate) fn write_provider(&self, key: &CacheKey, documents: &impl Serialize) {
        if self.storage != Storage::None {
            let _ = self.write_json(&self.file(key, "provider.json"), documents);
        }
    }

    fn read_json<T: DeserializeOwned>(&self, path: &Path) -> Option<T> {
        serde_json::from_slice(&file::read(path).ok()?).ok()
    }

    fn write_json(&self, path: &Path, value: &impl Serialize) -> io::Result<()> {
        let text = Zeroizing::new(serde_json::to_vec(value).map_err(io::Error::other)?);
        file::write(path, &text)
    }

    /// Removes temporary files that a killed process left an hour ago.
    pub(crate) fn remove_old_temporary_files(&self, now: Timestamp) {
        file::remove_old_temporary_files(&self.path, now);
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn default_folder(dir: Option<&Path>, context: &LoginContext) -> Result<PathBuf, LoginError> {
    if let Some(dir) = dir {
        return Ok(dir.to_owned());
    }
    let path = |name: &str| context.variable(name).map(PathBuf::from);
    if let Some(dir) = path("NAVICERT_LOGIN_DIR") {
        return Ok(dir);
    }
    if let Some(dir) = path("KUBECACHEDIR") {
        return Ok(dir.join("navicert-login"));
    }
    let state = path("XDG_STATE_HOME").filter(|dir| dir.is_absolute());
    let state = state.or_else(|| {
        let home = context.home.as_ref()?;
        Some(home.join(if cfg!(target_os = "macos") {
            "Library/Application Support"
        } else {
            ".local/state"
        }))
    });
    let missing = "no home folder for the cache; set --token-cache-dir or NAVICERT_LOGIN_DIR";
    state.map(|dir| dir.join("navicert/login")).ok_or_else(|| LoginError::CacheFolder(missing.to_owned()))
}

/// The folder of locks without a cache.
fn runtime_folder(context: &LoginContext) -> Result<PathBuf, LoginError> {
    let variable = |name: &str| context.variable(name);
    let directory = navicert_io::runtime_directory::RuntimeDirectory::locate(&variable);
    let created = directory.create().map_err(|error| LoginError::CacheFolder(error.to_string()))?;
    Ok(created.join("login"))
}
