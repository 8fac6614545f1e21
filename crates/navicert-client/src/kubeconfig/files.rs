//! Reading the files a kubeconfig names. A trait, so that the batch form can answer for files that are only in its input.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// Somewhere files are read from.
pub trait Files {
    /// The whole content of a file.
    ///
    /// # Errors
    /// As the operating system would report it.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
}

/// The machine's own files.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

impl Files for Disk {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        std::fs::read(path)
    }
}

/// A folder that exists only in memory; paths outside of it are read from disk.
#[derive(Debug)]
pub struct MemoryFolder {
    root: PathBuf,
    files: BTreeMap<PathBuf, Vec<u8>>,
}

impl MemoryFolder {
    /// A folder at `root` (an absolute path that should not exist on disk) holding these files, named relative to it.
    pub fn new(root: impl Into<PathBuf>, files: impl IntoIterator<Item = (PathBuf, Vec<u8>)>) -> Self {
        let root = root.into();
        let files = files.into_iter().map(|(name, content)| (clean(&root.join(name)), content)).collect();
        MemoryFolder { root, files }
    }
}

impl Files for MemoryFolder {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let path = clean(path);
        if let Some(content) = self.files.get(&path) {
            return Ok(content.clone());
        }
        if !path.starts_with(&self.root) {
            return Disk.read(&path);
        }
        let is_folder = path == self.root || self.files.keys().any(|name| name.starts_with(&path));
        Err(if is_folder { io::ErrorKind::IsADirectory } else { io::ErrorKind::NotFound }.into())
    }
}

fn clean(path: &Path) -> PathBuf {
    PathBuf::from(super::paths::clean(&path.to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_folder_answers_as_a_disk_would() {
        let folder = MemoryFolder::new("/no-such-root", [(PathBuf::from("sub/a"), b"x".to_vec())]);
        assert_eq!(folder.read(Path::new("/no-such-root/sub/../sub/a")).unwrap(), b"x");
        for (path, kind) in [
            ("/no-such-root/b", io::ErrorKind::NotFound),
            ("/no-such-root/sub", io::ErrorKind::IsADirectory),
            ("/no-such-root", io::ErrorKind::IsADirectory),
            ("/no-such-place/a", io::ErrorKind::NotFound),
        ] {
            assert_eq!(folder.read(Path::new(path)).unwrap_err().kind(), kind, "{path}");
        }
    }
}
