//! Replaces a file: under client-go's lock, atomically, with its mode and owner, and with a copy of the previous content.
// C127, L1112

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown,
};
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use super::FileEditError;
use crate::kubeconfig::{FileSystem as _, OsFileSystem};

/// Mode of a new file and of a copy.
const PRIVATE_FILE: u32 = 0o600;
/// Mode of a new directory.
const PRIVATE_DIRECTORY: u32 = 0o700;
/// As many symbolic links as Linux follows.
const MAX_LINKS: usize = 40;

/// Writes `after` if the file still has the content `before`. Returns the path of the copy.
pub(super) fn replace(
    path: &Path,
    before: Option<&[u8]>,
    after: &[u8],
) -> Result<Option<PathBuf>, FileEditError> {
    let target = follow_links(path)?;
    create_directory(&target)?;
    let _locks = Locks::acquire(path, &target)?;
    let current = read(&target)?;
    if current.as_deref().map(Vec::as_slice) != before {
        return Err(FileEditError::Changed { path: path.to_owned() });
    }
    let backup = match before {
        Some(content) => {
            let copy = with_suffix(&target, ".bak");
            let temporary = TemporaryFile::write(&copy, content, None)?;
            temporary.rename(&copy)?;
            Some(copy)
        }
        None => None,
    };
    let temporary = TemporaryFile::write(&target, after, before.is_some().then_some(&target))?;
    temporary.rename(&target)?;
    Ok(backup)
}

/// Reads a file of at most the size that every kubeconfig may have; `None` if there is none.
pub(super) fn read(path: &Path) -> Result<Option<Zeroizing<Vec<u8>>>, FileEditError> {
    match OsFileSystem.read(path) {
        Ok(content) => Ok(Some(Zeroizing::new(content))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(FileEditError::io("read", path)(error)),
    }
}

/// The file that a path leads to, which need not exist.
fn follow_links(path: &Path) -> Result<PathBuf, FileEditError> {
    let mut target = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&target) {
            Ok(next) => target = target.parent().unwrap_or(Path::new("/")).join(next),
            Err(_) => return Ok(target),
        }
    }
    let error = io::Error::other("too many symbolic links");
    Err(FileEditError::io("follow", path)(error))
}

fn create_directory(target: &Path) -> Result<(), FileEditError> {
    let Some(directory) = target.parent().filter(|parent| !parent.as_os_str().is_empty()) else {
        return Ok(());
    };
    let created = DirBuilder::new().recursive(true).mode(PRIVATE_DIRECTORY).create(directory);
    created.map_err(FileEditError::io("create the directory", directory))
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

/// The lock files of a path and of what it leads to: kubectl locks the path that it was given.
struct Locks(Vec<PathBuf>);

impl Locks {
    fn acquire(path: &Path, target: &Path) -> Result<Self, FileEditError> {
        // In the same order in every process.
        let mut paths = vec![with_suffix(path, ".lock"), with_suffix(target, ".lock")];
        paths.sort();
        paths.dedup();
        let mut locks = Locks(Vec::new());
        for lock in paths {
            match OpenOptions::new().write(true).create_new(true).mode(0o000).open(&lock) {
                Ok(_) => locks.0.push(lock),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    return Err(FileEditError::Locked { lock });
                }
                Err(error) => return Err(FileEditError::io("create the lock", &lock)(error)),
            }
        }
        Ok(locks)
    }
}

impl Drop for Locks {
    fn drop(&mut self) {
        for lock in &self.0 {
            let _ = fs::remove_file(lock);
        }
    }
}

/// A complete file beside the one that it replaces; removed unless it is renamed.
struct TemporaryFile {
    path: PathBuf,
    is_renamed: bool,
}

impl TemporaryFile {
    /// Writes the content, with mode and owner of `like`, and reads it back.
    fn write(target: &Path, content: &[u8], like: Option<&PathBuf>) -> Result<Self, FileEditError> {
        let temporary = TemporaryFile { path: temporary_path(target)?, is_renamed: false };
        let path = &temporary.path;
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).mode(PRIVATE_FILE).open(path);
        let mut file = file.map_err(FileEditError::io("create", path))?;
        file.write_all(content).map_err(FileEditError::io("write", path))?;
        if let Some(like) = like {
            keep_owner_and_mode(&file, like).map_err(FileEditError::io("keep mode and owner of", like))?;
        }
        file.sync_all().map_err(FileEditError::io("write", path))?;
        let mut found = Zeroizing::new(Vec::with_capacity(content.len() + 1));
        file.rewind().and_then(|()| file.read_to_end(&mut found)).map_err(FileEditError::io("read", path))?;
        if *found != content {
            return Err(FileEditError::NotWritten { path: target.to_owned() });
        }
        Ok(temporary)
    }

    fn rename(mut self, target: &Path) -> Result<(), FileEditError> {
        fs::rename(&self.path, target).map_err(FileEditError::io("replace", target))?;
        self.is_renamed = true;
        // The new name is on disk too.
        let directory = target.parent().filter(|parent| !parent.as_os_str().is_empty());
        let synced =
            File::open(directory.unwrap_or(Path::new("."))).and_then(|directory| directory.sync_all());
        synced.map_err(FileEditError::io("write the directory of", target))
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if !self.is_renamed {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn temporary_path(target: &Path) -> Result<PathBuf, FileEditError> {
    let mut random = [0; 8];
    let filled = aws_lc_rs::rand::fill(&mut random);
    filled.map_err(|_| FileEditError::io("write", target)(io::Error::other("no random numbers")))?;
    let digits: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut name = OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(format!(".{digits}"));
    Ok(target.with_file_name(name))
}

fn keep_owner_and_mode(file: &File, like: &Path) -> io::Result<()> {
    let (found, wanted) = (file.metadata()?, fs::metadata(like)?);
    if (found.uid(), found.gid()) != (wanted.uid(), wanted.gid()) {
        fchown(file, Some(wanted.uid()), Some(wanted.gid()))?;
    }
    file.set_permissions(Permissions::from_mode(wanted.mode() & 0o7777))
}
