//! Unix sockets between processes of one user: a directory that only the user can enter, a socket that only the user can
//! open, and a check on both ends that the peer is the same user. Every check fails closed: what the system does not
//! report is an error.
// C885, I240

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why a socket path is not private to the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathProblem {
    /// There is no such file.
    #[error("no such file")]
    Missing,
    /// The file is not a socket.
    #[error("not a socket")]
    NotASocket,
    /// Another user owns the socket or can open it.
    #[error("owned by another user, or accessible to other users")]
    SharedSocket,
    /// The directory cannot be inspected.
    #[error("cannot inspect its directory")]
    UnknownDirectory,
    /// Another user owns the directory or can enter it.
    #[error("its directory is owned by another user, or accessible to other users (mode 0700 is required)")]
    SharedDirectory,
}

/// Why a socket cannot be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// A process is listening on it.
    #[error("another process is already listening")]
    AlreadyListening,
    /// The path is not private to the user, or something else than a socket exists there.
    #[error(transparent)]
    Path(#[from] PathProblem),
    /// I/O error reported by the operating system.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A listening socket that accepts only connections of the same user. Its file is removed on drop.
#[derive(Debug)]
pub struct PrivateListener {
    listener: UnixListener,
    file: SocketFile,
    removes_file: bool,
}

impl PrivateListener {
    /// Listens at this path. Creates the directory with mode 0700 if needed, and rejects one that other users can access.
    /// Replaces the socket of a process that has ended, and nothing else. Of several processes that do this at once, one
    /// listens; for the others it is [`BindError::AlreadyListening`].
    ///
    /// # Errors
    /// [`BindError`].
    pub fn bind(path: &Path) -> Result<Self, BindError> {
        let directory = directory_of(path);
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        check_directory(directory)?;
        // Released when the directory is closed: without it, one process could remove the new socket of another.
        let lock = File::open(directory)?;
        lock.lock()?;
        if let Ok(found) = path.symlink_metadata() {
            if UnixStream::connect(path).is_ok() {
                return Err(BindError::AlreadyListening);
            }
            // Its mode does not matter: a process may have ended before it set the mode.
            if !found.file_type().is_socket() {
                return Err(PathProblem::NotASocket.into());
            }
            fs::remove_file(path)?;
        }
        let listener = UnixListener::bind(path)?;
        let file = SocketFile::find(path)?;
        let private = PrivateListener { listener, file, removes_file: true };
        // Other users cannot enter the directory, so they cannot connect before the mode is set.
        fs::set_permissions(path, Permissions::from_mode(0o600))?;
        check_path(path)?;
        Ok(private)
    }

    /// Waits for the next connection of the same user. Connections of others are closed.
    ///
    /// # Errors
    /// I/O error reported by the operating system.
    pub fn accept(&self) -> io::Result<UnixStream> {
        loop {
            let (stream, _) = self.listener.accept()?;
            if check_peer(&stream).is_ok() {
                return Ok(stream);
            }
        }
    }

    /// Gives the socket away, for another process: the file stays. Connections wait until that process accepts them.
    ///
    /// # Errors
    /// I/O error reported by the operating system.
    pub fn hand_over(mut self) -> io::Result<(OwnedFd, SocketFile)> {
        let descriptor = self.listener.try_clone()?.into();
        self.removes_file = false;
        Ok((descriptor, self.file.clone()))
    }

    /// Continues with a socket that another process of the user [has handed over](PrivateListener::hand_over).
    ///
    /// # Errors
    /// The descriptor is not the socket at this path, or the path is not private to the user.
    pub fn take_over(descriptor: OwnedFd, path: &Path) -> Result<Self, BindError> {
        check_path(path)?;
        let listener = UnixListener::from(descriptor);
        if listener.local_addr()?.as_pathname() != Some(path) {
            return Err(PathProblem::NotASocket.into());
        }
        Ok(PrivateListener { listener, file: SocketFile::find(path)?, removes_file: true })
    }

    /// The socket file, for signal handlers that remove it.
    pub fn file(&self) -> &SocketFile {
        &self.file
    }
}

impl Drop for PrivateListener {
    fn drop(&mut self) {
        if self.removes_file {
            self.file.remove();
        }
    }
}

/// Connects to the socket of another process of this user. Waits at most `timeout` for a process that accepts no
/// connections.
///
/// # Errors
/// The path is not private to the user, nothing listens there, or the peer runs as another user.
pub fn connect(path: &Path, timeout: Duration) -> io::Result<UnixStream> {
    let mut checked = check_path(path);
    if matches!(checked, Err(PathProblem::SharedSocket)) {
        // A process that is binding it sets the mode before it releases this lock.
        File::open(directory_of(path))?.lock_shared()?;
        checked = check_path(path);
    }
    checked.map_err(|problem| {
        let kind = match problem {
            PathProblem::Missing => io::ErrorKind::NotFound,
            _ => io::ErrorKind::PermissionDenied,
        };
        io::Error::new(kind, problem)
    })?;
    let stream = connect_within(path, timeout)?;
    check_peer(&stream)?;
    Ok(stream)
}

#[cfg(target_os = "linux")]
fn connect_within(path: &Path, timeout: Duration) -> io::Result<UnixStream> {
    use rustix::net::sockopt::{Timeout, set_socket_timeout};
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    set_socket_timeout(&socket, Timeout::Send, Some(timeout))?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(UnixStream::from(socket))
}

#[cfg(not(target_os = "linux"))]
fn connect_within(path: &Path, timeout: Duration) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(path)?;
    stream.set_write_timeout(Some(timeout))?;
    Ok(stream)
}

/// The file of a listening socket.
#[derive(Clone, Debug)]
pub struct SocketFile {
    path: PathBuf,
    /// Device and inode of the file.
    identity: (u64, u64),
}

impl SocketFile {
    fn find(path: &Path) -> io::Result<Self> {
        let found = path.symlink_metadata()?;
        Ok(SocketFile { path: path.to_owned(), identity: (found.dev(), found.ino()) })
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the file, unless another process has replaced it. Open connections continue.
    pub fn remove(&self) {
        if SocketFile::find(&self.path).is_ok_and(|found| found.identity == self.identity) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Checks that the socket has mode 0600, its directory mode 0700, and both are owned by this user.
///
/// # Errors
/// [`PathProblem`].
pub fn check_path(path: &Path) -> Result<(), PathProblem> {
    let found = path.symlink_metadata().map_err(|_| PathProblem::Missing)?;
    if !found.file_type().is_socket() {
        return Err(PathProblem::NotASocket);
    }
    if !is_private(&found) {
        return Err(PathProblem::SharedSocket);
    }
    check_directory(directory_of(path))
}

fn check_directory(directory: &Path) -> Result<(), PathProblem> {
    let found = directory.symlink_metadata().map_err(|_| PathProblem::UnknownDirectory)?;
    if found.is_dir() && is_private(&found) { Ok(()) } else { Err(PathProblem::SharedDirectory) }
}

/// The directory of a file; the current one for a name alone.
fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Whether this user owns the file and others have no access.
pub(crate) fn is_private(found: &fs::Metadata) -> bool {
    found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o077 == 0
}

/// Checks that the peer of a Unix socket runs as the same user. Both ends do: a socket in a shared directory could be
/// another user's.
///
/// # Errors
/// The peer runs as another user, or the system does not report the peer's user.
pub fn check_peer(stream: &UnixStream) -> io::Result<()> {
    require_same_user(peer_user(stream), rustix::process::geteuid().as_raw())
}

fn require_same_user(peer: io::Result<u32>, me: u32) -> io::Result<()> {
    match peer {
        Ok(user) if user == me => Ok(()),
        Ok(_) => Err(io::Error::new(io::ErrorKind::PermissionDenied, "the peer runs as another user")),
        Err(error) => {
            let message = format!("failed to find out which user the peer runs as: {error}");
            Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
        }
    }
}

#[cfg(target_os = "linux")]
fn peer_user(stream: &UnixStream) -> io::Result<u32> {
    Ok(rustix::net::sockopt::socket_peercred(stream)?.uid.as_raw())
}

#[cfg(not(target_os = "linux"))]
fn peer_user(_: &UnixStream) -> io::Result<u32> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "not supported on this system"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    fn mode(path: &Path) -> u32 {
        path.symlink_metadata().unwrap().mode() & 0o777
    }

    #[test]
    fn socket_and_directory_are_private_and_connections_arrive() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("private/s.sock");
        let listener = PrivateListener::bind(&path).unwrap();
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        let _client = UnixStream::connect(&path).unwrap();
        assert!(listener.accept().is_ok());
        assert!(matches!(PrivateListener::bind(&path), Err(BindError::AlreadyListening)));
        drop(listener);
        assert!(!path.exists());
    }

    #[test]
    fn replaces_a_stale_socket_whatever_its_mode_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        set_mode(dir.path(), 0o700);
        let path = dir.path().join("s.sock");
        drop(UnixListener::bind(&path).unwrap());
        set_mode(&path, 0o755);
        drop(PrivateListener::bind(&path).unwrap());
        fs::write(&path, "data").unwrap();
        let refused = PrivateListener::bind(&path);
        assert!(matches!(refused, Err(BindError::Path(PathProblem::NotASocket))), "{refused:?}");
        assert_eq!(fs::read(&path).unwrap(), b"data");
    }

    #[test]
    fn rejects_a_directory_that_others_can_enter_or_that_is_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let (open, private, link) =
            (dir.path().join("open"), dir.path().join("private"), dir.path().join("link"));
        fs::create_dir(&open).unwrap();
        set_mode(&open, 0o755);
        fs::create_dir(&private).unwrap();
        set_mode(&private, 0o700);
        std::os::unix::fs::symlink(&private, &link).unwrap();
        for directory in [open, link] {
            let refused = PrivateListener::bind(&directory.join("s"));
            assert!(matches!(refused, Err(BindError::Path(PathProblem::SharedDirectory))), "{refused:?}");
        }
        assert!(PrivateListener::bind(&private.join("s")).is_ok());
    }

    #[test]
    fn removes_only_its_own_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("private/s.sock");
        let first = PrivateListener::bind(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let second = PrivateListener::bind(&path).unwrap();
        drop(first);
        assert!(path.exists(), "the second socket stays");
        drop(second);
        assert!(!path.exists());
    }

    #[test]
    fn socket_that_is_handed_over_keeps_the_connections_that_wait() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("private/s.sock");
        let (descriptor, file) = PrivateListener::bind(&path).unwrap().hand_over().unwrap();
        assert!(path.exists());
        let _waiting = connect(&path, Duration::from_secs(1)).unwrap();
        let other = dir.path().join("private/other.sock");
        let _other = PrivateListener::bind(&other).unwrap();
        let mistaken = PrivateListener::take_over(descriptor.try_clone().unwrap(), &other);
        assert!(matches!(mistaken, Err(BindError::Path(PathProblem::NotASocket))), "{mistaken:?}");
        let listener = PrivateListener::take_over(descriptor, &path).unwrap();
        assert_eq!(listener.file().path(), file.path());
        assert!(listener.accept().is_ok());
        drop(listener);
        assert!(!path.exists());
    }

    #[test]
    fn connects_only_to_a_private_socket() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("private/s.sock");
        let kind = || connect(&path, Duration::from_secs(1)).map(drop).map_err(|error| error.kind());
        assert_eq!(kind(), Err(io::ErrorKind::NotFound));
        let listener = PrivateListener::bind(&path).unwrap();
        assert_eq!(kind(), Ok(()));
        set_mode(path.parent().unwrap(), 0o755);
        assert_eq!(kind(), Err(io::ErrorKind::PermissionDenied));
        set_mode(path.parent().unwrap(), 0o700);
        let _ = listener.hand_over().unwrap();
        assert_eq!(kind(), Err(io::ErrorKind::ConnectionRefused));
    }

    #[test]
    fn one_of_many_processes_that_bind_at_once_listens() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("private/s.sock");
        DirBuilder::new().mode(0o700).create(path.parent().unwrap()).unwrap();
        drop(UnixListener::bind(&path).unwrap());
        let bind = || PrivateListener::bind(&path);
        let bound: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(bind)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(bound.iter().filter(|result| result.is_ok()).count(), 1, "{bound:?}");
        assert!(bound.iter().all(|result| matches!(result, Ok(_) | Err(BindError::AlreadyListening))));
    }

    #[test]
    fn accepts_only_a_peer_known_to_be_this_user() {
        let (here, _there) = UnixStream::pair().unwrap();
        assert!(check_peer(&here).is_ok());
        let me = rustix::process::geteuid().as_raw();
        assert!(require_same_user(Ok(me), me).is_ok());
        assert!(require_same_user(Ok(me.wrapping_add(1)), me).is_err());
        let unknown = require_same_user(Err(io::ErrorKind::Unsupported.into()), me).unwrap_err();
        assert_eq!(unknown.kind(), io::ErrorKind::PermissionDenied);
    }
}
