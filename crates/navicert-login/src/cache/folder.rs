//! The folder of the cache: where it is, and whether it is safe.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use navicert_types::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use zeroize::Zeroizing;

use super::entry::{API_VERSION, Entry, KIND};
use super::file;
use super::lock::EntryLock;
use super::state::LoginState;
use crate::context::LoginContext;
use crate::error::LoginError;
use crate::key::CacheKey;
use crate::request::{LoginRequest, Storage};

/// The cache folder. Nothing is created before the first write.
#[derive(Clone, Debug)]
pub struct CacheFolder {
    path: PathBuf,
    storage: Storage,
}

impl CacheFolder {
    /// The folder of a request.
    ///
    /// # Errors
    /// There is no home folder, or the folder is open to other users.
    pub fn locate(request: &LoginRequest, context: &LoginContext) -> Result<Self, LoginError> {
        let path = match request.storage {
            Storage::None => runtime_folder(context)?,
            _ => default_folder(request.cache_dir.as_deref(), context)?,
        };
        CacheFolder::at(path, request.storage)
    }

    /// The folder of verbs that list entries.
    ///
    /// # Errors
    /// As [`CacheFolder::locate`].
    pub fn locate_default(dir: Option<&Path>, context: &LoginContext) -> Result<Self, LoginError> {
        CacheFolder::at(default_folder(dir, context)?, Storage::Disk)
    }

    pub(crate) fn at(path: PathBuf, storage: Storage) -> Result<Self, LoginError> {
        let folder = CacheFolder { path, storage };
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
        let entry = serde_json::from_slice::<Entry>(&bytes).ok();
        let is_ours = |entry: &Entry| {
            entry.api_version == API_VERSION && entry.kind == KIND && entry.key.cache_key() == *key
        };
        let entry = entry.filter(is_ours);
        if entry.is_none() {
            file::set_aside(&path);
        }
        entry
    }

    /// Replaces the entry: after a crash the file holds the old or the new one.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, entry: &Entry) -> io::Result<()> {
        if self.storage == Storage::None {
            return Ok(());
        }
        self.write_json(&self.file(&entry.key.cache_key(), "json"), entry)
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

    /// Opens the entry's lock file.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(crate) fn open_lock(&self, key: &CacheKey) -> io::Result<EntryLock> {
        EntryLock::open(&self.file(key, "lock"))
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
