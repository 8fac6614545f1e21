//! Which user is at the other end of a private socket.

use std::io;
use std::os::unix::net::UnixStream;

/// Checks that the peer of a Unix socket runs as the same user. Both ends do: a socket in a shared directory could be
/// another user's.
///
/// # Errors
/// The peer runs as another user, or the system does not report the peer's user.
// C885
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
