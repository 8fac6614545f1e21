//! The directory of a user's sockets and short-lived private files, also where no runtime directory is set: for root, after
//! `su`, in cron jobs and containers.

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::private_socket;

/// The name of the directory below the user's runtime directory.
const NAME: &str = "navicert";
/// Shared memory, which is not written to disk.
const SHARED_MEMORY: &str = "/dev/shm";

/// The private directories that a user's programs may use, best first:
///
/// 1. `$XDG_RUNTIME_DIR/navicert`, if the runtime directory belongs to this user and to no other;
/// 2. `/dev/shm/navicert-<uid>`;
/// 3. `$TMPDIR/navicert-<uid>`, by default in `/tmp`.
///
/// A directory that belongs to another user, is open to others or is a symbolic link is left out. Programs create the
/// first one, and look for files of other programs in all of them: one of two programs may lack the variable.
///
/// ```
/// use navicert_io::runtime_directory::RuntimeDirectory;
///
/// let directory = RuntimeDirectory::locate(&|_| None);
/// assert!(directory.file("signer.sock").is_some_and(|path| path.is_absolute()));
/// ```
#[derive(Clone, Debug)]
pub struct RuntimeDirectory {
    candidates: Vec<PathBuf>,
}

impl RuntimeDirectory {
    /// Reads the environment. Creates nothing.
    pub fn locate(variable: &dyn Fn(&str) -> Option<OsString>) -> Self {
        let path = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let temporary = path("TMPDIR").unwrap_or_else(|| PathBuf::from("/tmp"));
        RuntimeDirectory::from_paths(
            path("XDG_RUNTIME_DIR").as_deref(),
            &[Path::new(SHARED_MEMORY), &temporary],
        )
    }

    /// Uses a runtime directory and directories that all users share.
    fn from_paths(runtime: Option<&Path>, shared: &[&Path]) -> Self {
        let own = format!("{NAME}-{}", rustix::process::geteuid().as_raw());
        let runtime = runtime.filter(|path| is_private(path.metadata())).map(|path| path.join(NAME));
        let shared = shared.iter().filter(|path| is_usable_parent(path)).map(|path| path.join(&own));
        let is_usable = |path: &PathBuf| match path.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            found => is_private(found),
        };
        RuntimeDirectory { candidates: runtime.into_iter().chain(shared).filter(is_usable).collect() }
    }

    /// Creates the directory with mode 0700, or returns the existing one.
    ///
    /// # Errors
    /// No directory can be created.
    pub fn create(&self) -> io::Result<PathBuf> {
        let none = "no private directory; set `XDG_RUNTIME_DIR` to a directory of mode 0700";
        let mut failure = io::Error::new(io::ErrorKind::NotFound, none);
        for path in &self.candidates {
            match DirBuilder::new().mode(0o700).create(path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => failure = error,
                // Checked after creation: another user may have been faster.
                _ if is_private(path.symlink_metadata()) => return Ok(path.clone()),
                _ => {}
            }
        }
        Err(failure)
    }

    /// The existing directories, best first.
    pub fn existing(&self) -> impl Iterator<Item = &Path> {
        self.candidates.iter().map(PathBuf::as_path).filter(|path| path.is_dir())
    }

    /// The path of a file: where it exists, or else where it would be created. `None` if there is no directory for it.
    pub fn file(&self, name: &str) -> Option<PathBuf> {
        let mut paths = self.candidates.iter().map(|path| path.join(name));
        let found = paths.clone().find(|path| path.symlink_metadata().is_ok());
        found.or_else(|| paths.next())
    }
}

/// Whether this user owns the directory and others have no access.
fn is_private(metadata: io::Result<fs::Metadata>) -> bool {
    metadata.is_ok_and(|found| found.is_dir() && private_socket::is_private(&found))
}

/// Whether other users cannot rename or remove what this user creates in the directory: it is this user's own, or it has
/// the sticky bit.
fn is_usable_parent(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| {
        let is_own = found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o022 == 0;
        found.is_dir() && (is_own || found.mode() & 0o1002 == 0o1002)
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    /// A directory with this mode.
    fn directory(mode: u32) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        set_mode(dir.path(), mode);
        dir
    }

    fn own(parent: &Path) -> PathBuf {
        parent.join(format!("navicert-{}", rustix::process::geteuid().as_raw()))
    }

    #[test]
    fn uses_the_runtime_directory_only_if_it_is_private() {
        let (runtime, shared) = (directory(0o755), directory(0o1777));
        let create =
            || RuntimeDirectory::from_paths(Some(runtime.path()), &[shared.path()]).create().unwrap();
        assert_eq!(create(), own(shared.path()));
        set_mode(runtime.path(), 0o700);
        let created = create();
        assert_eq!(created, runtime.path().join("navicert"));
        assert_eq!(fs::metadata(&created).unwrap().mode() & 0o777, 0o700);
        assert_eq!(create(), created, "and again");
        fs::remove_dir(&created).unwrap();
        std::os::unix::fs::symlink("/", &created).unwrap();
        assert_eq!(create(), own(shared.path()), "a symbolic link is not used");
    }

    #[test]
    fn without_a_runtime_directory_creates_a_private_one_below_a_shared_one() {
        let (first, second) = (directory(0o1777), directory(0o1777));
        let missing = first.path().join("missing");
        for runtime in [None, Some(missing.as_path())] {
            let created =
                RuntimeDirectory::from_paths(runtime, &[first.path(), second.path()]).create().unwrap();
            assert_eq!(created, own(first.path()));
            assert_eq!(fs::metadata(&created).unwrap().mode() & 0o777, 0o700);
        }
    }

    #[test]
    fn leaves_out_directories_that_others_can_access() {
        let (open, writable, good) = (directory(0o1777), directory(0o777), directory(0o1777));
        fs::create_dir(own(open.path())).unwrap();
        set_mode(&own(open.path()), 0o755);
        let directories = [open.path(), writable.path(), good.path()];
        let found = RuntimeDirectory::from_paths(None, &directories);
        assert_eq!(found.create().unwrap(), own(good.path()));
        assert_eq!(found.file("s").unwrap(), own(good.path()).join("s"));
        let none = RuntimeDirectory::from_paths(None, &directories[..2]);
        assert_eq!(none.file("s"), None);
        assert!(none.create().unwrap_err().to_string().contains("XDG_RUNTIME_DIR"));
    }

    #[test]
    fn programs_with_and_without_the_variable_find_the_same_file() {
        let (runtime, shared) = (directory(0o700), directory(0o1777));
        let without = RuntimeDirectory::from_paths(None, &[shared.path()]);
        let with = RuntimeDirectory::from_paths(Some(runtime.path()), &[shared.path()]);
        assert_eq!(with.file("signer.sock").unwrap(), runtime.path().join("navicert/signer.sock"));
        let socket = without.create().unwrap().join("signer.sock");
        fs::write(&socket, "").unwrap();
        assert_eq!(with.file("signer.sock").unwrap(), socket);
        assert_eq!(with.existing().collect::<Vec<_>>(), [own(shared.path())]);
    }

    #[test]
    fn reads_the_environment() {
        let (runtime, temporary) = (directory(0o700), directory(0o1777));
        let directory = RuntimeDirectory::locate(&|name| match name {
            "XDG_RUNTIME_DIR" => Some(runtime.path().into()),
            "TMPDIR" => Some(temporary.path().into()),
            _ => None,
        });
        assert_eq!(directory.candidates.first().unwrap(), &runtime.path().join("navicert"));
        assert_eq!(directory.candidates.last().unwrap(), &own(temporary.path()));
        let unset = RuntimeDirectory::locate(&|name| (name == "XDG_RUNTIME_DIR").then(OsString::new));
        assert!(unset.candidates.iter().all(|path| path.starts_with("/dev/shm") || path.starts_with("/tmp")));
    }
}
