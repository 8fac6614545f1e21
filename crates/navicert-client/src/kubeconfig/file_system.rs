//! Reads the files a kubeconfig names. A trait, because batch commands provide file contents in their input.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Maximum size of a kubeconfig and of every file that it names.
pub(crate) const MAX_FILE_BYTES: u64 = 16 << 20;

/// A source of files.
pub trait FileSystem {
    /// Reads a whole file.
    ///
    /// # Errors
    /// The I/O error the operating system would report.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
}

/// The file system of the operating system. Files larger than 16 MiB are not read.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsFileSystem;

impl FileSystem for OsFileSystem {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let file = File::open(path)?;
        let size = file.metadata()?.len();
        let too_large = || io::Error::new(io::ErrorKind::FileTooLarge, TooLarge);
        if size > MAX_FILE_BYTES {
            return Err(too_large());
        }
        // A device or a pipe has no size.
        let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or_default().saturating_add(1));
        let read = file.take(MAX_FILE_BYTES + 1).read_to_end(&mut content)?;
        if u64::try_from(read).is_ok_and(|read| read <= MAX_FILE_BYTES) {
            Ok(content)
        } else {
            Err(too_large())
        }
    }
}

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
#[error("file is larger than the limit of {} MiB", MAX_FILE_BYTES >> 20)]
struct TooLarge;

/// A directory that exists only in memory; other paths are read from the operating system.
#[derive(Clone, Debug)]
pub struct MemoryFileSystem {
    root: PathBuf,
    files: BTreeMap<PathBuf, Vec<u8>>,
}

impl MemoryFileSystem {
    /// A directory at `root` (an absolute path that should not exist on disk) with these files, named relative to it.
    pub fn new(root: impl Into<PathBuf>, files: impl IntoIterator<Item = (PathBuf, Vec<u8>)>) -> Self {
        let root = root.into();
        let files = files.into_iter().map(|(name, content)| (clean(&root.join(name)), content)).collect();
        MemoryFileSystem { root, files }
    }
}

impl FileSystem for MemoryFileSystem {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let path = clean(path);
        if let Some(content) = self.files.get(&path) {
            return Ok(content.clone());
        }
        if !path.starts_with(&self.root) {
            return OsFileSystem.read(&path);
        }
        let is_directory = path == self.root || self.files.keys().any(|name| name.starts_with(&path));
        Err(if is_directory { io::ErrorKind::IsADirectory } else { io::ErrorKind::NotFound }.into())
    }
}

fn clean(path: &Path) -> PathBuf {
    PathBuf::from(super::paths::clean(&path.to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_up_to_the_limit() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let file = File::create(&path).unwrap();
        for (size, is_read) in [(0, true), (MAX_FILE_BYTES, true), (MAX_FILE_BYTES + 1, false)] {
            file.set_len(size).unwrap();
            let read = OsFileSystem.read(&path);
            assert_eq!(read.is_ok(), is_read, "{size}");
            if let Err(error) = read {
                assert_eq!(error.to_string(), "file is larger than the limit of 16 MiB");
            }
        }
        let endless = OsFileSystem.read(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(endless.kind(), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn memory_file_system_returns_the_errors_of_a_real_one() {
        let file_system = MemoryFileSystem::new("/no-such-root", [(PathBuf::from("sub/a"), b"x".to_vec())]);
        assert_eq!(file_system.read(Path::new("/no-such-root/sub/../sub/a")).unwrap(), b"x");
        for (path, kind) in [
            ("/no-such-root/b", io::ErrorKind::NotFound),
            ("/no-such-root/sub", io::ErrorKind::IsADirectory),
            ("/no-such-root", io::ErrorKind::IsADirectory),
            ("/no-such-place/a", io::ErrorKind::NotFound),
        ] {
            assert_eq!(file_system.read(Path::new(path)).unwrap_err().kind(), kind, "{path}");
        }
    }
}
