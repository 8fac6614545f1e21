//! The protocol between helper and daemon: one request and one reply per connection, between processes of one user.
//!
//! ```text
//! request: one byte verb, UTF-8 text, end of stream
//! reply:   one byte exit code, four bytes length of stdout, stdout, then stderr until end of stream
//! ```

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use navicert_io::private_socket::check_peer;
use zeroize::Zeroizing;

/// Read timeout for a reply; longer than the one-minute limit of a plugin run.
const REPLY_TIMEOUT: Duration = Duration::from_secs(75);
/// Maximum size of a request.
const MAX_REQUEST_BYTES: u64 = 64 << 10;
/// Maximum size of a reply.
const MAX_REPLY_BYTES: u64 = 4 << 20;

/// The verbs of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DaemonVerb {
    /// The helper's `get`.
    Get,
    /// The helper's `list`.
    List,
    /// The helper's `erase`.
    Erase,
    /// Removes an image's cached credentials.
    Invalidate,
    /// Renders the metrics.
    Metrics,
    /// Lists the cached responses of an image, one per line, without secrets.
    Cached,
}

impl DaemonVerb {
    const ALL: [DaemonVerb; 6] = [
        DaemonVerb::Get,
        DaemonVerb::List,
        DaemonVerb::Erase,
        DaemonVerb::Invalidate,
        DaemonVerb::Metrics,
        DaemonVerb::Cached,
    ];

    fn byte(self) -> u8 {
        match self {
            DaemonVerb::Get => b'g',
            DaemonVerb::List => b'l',
            DaemonVerb::Erase => b'e',
            DaemonVerb::Invalidate => b'i',
            DaemonVerb::Metrics => b'm',
            DaemonVerb::Cached => b'r',
        }
    }
}

/// A reply: what the client program prints, and its exit code.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct DaemonReply {
    /// The exit code.
    pub code: u8,
    /// For standard output.
    pub stdout: Zeroizing<Vec<u8>>,
    /// For standard error.
    pub stderr: String,
}

impl std::fmt::Debug for DaemonReply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DaemonReply")
            .field("code", &self.code)
            .field("stderr", &self.stderr)
            .finish_non_exhaustive()
    }
}

/// Sends a request to the daemon; `None` if it is not running.
///
/// # Errors
/// The daemon does not reply, or the socket belongs to another user.
pub fn call(path: &Path, verb: DaemonVerb, text: &str) -> io::Result<Option<DaemonReply>> {
    let mut stream = match UnixStream::connect(path) {
        Ok(stream) => stream,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    check_peer(&stream)?;
    stream.set_read_timeout(Some(REPLY_TIMEOUT))?;
    let mut request = Vec::with_capacity(text.len() + 1);
    request.push(verb.byte());
    request.extend_from_slice(text.as_bytes());
    stream.write_all(&request)?;
    stream.shutdown(Shutdown::Write)?;
    let mut reply = Zeroizing::new(Vec::with_capacity(4 << 10));
    stream.take(MAX_REPLY_BYTES).read_to_end(&mut reply)?;
    DaemonReply::decode(&reply).map(Some).ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))
}

/// Reads a request from a client, which the listener has found to be the same user.
///
/// # Errors
/// The request is too long or invalid.
pub fn read_request(stream: &UnixStream) -> io::Result<(DaemonVerb, String)> {
    let mut request = Vec::new();
    stream.take(MAX_REQUEST_BYTES + 1).read_to_end(&mut request)?;
    let invalid = || io::Error::from(io::ErrorKind::InvalidData);
    if u64::try_from(request.len()).is_ok_and(|length| length > MAX_REQUEST_BYTES) {
        return Err(invalid());
    }
    let (first, text) = request.split_first().ok_or_else(invalid)?;
    let verb = DaemonVerb::ALL.into_iter().find(|verb| verb.byte() == *first).ok_or_else(invalid)?;
    Ok((verb, String::from_utf8(text.to_vec()).map_err(|_| invalid())?))
}

impl DaemonReply {
    /// A successful reply.
    pub fn success(stdout: &[u8]) -> Self {
        DaemonReply { code: 0, stdout: Zeroizing::new(stdout.to_vec()), stderr: String::new() }
    }

    /// A failed reply. The message goes to standard output, as the helper protocol requires.
    // I222
    pub fn failure(message: &str) -> Self {
        DaemonReply {
            code: 1,
            stdout: Zeroizing::new(format!("{message}\n").into_bytes()),
            stderr: String::new(),
        }
    }

    /// Sends the reply.
    ///
    /// # Errors
    /// The client has disconnected.
    pub fn send(&self, mut stream: &UnixStream) -> io::Result<()> {
        let mut reply = Zeroizing::new(Vec::with_capacity(self.stdout.len() + self.stderr.len() + 5));
        reply.push(self.code);
        reply.extend_from_slice(&u32::try_from(self.stdout.len()).unwrap_or(u32::MAX).to_be_bytes());
        reply.extend_from_slice(&self.stdout);
        reply.extend_from_slice(self.stderr.as_bytes());
        stream.write_all(&reply)
    }

    fn decode(reply: &[u8]) -> Option<Self> {
        let (&code, rest) = reply.split_first()?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let (stdout, stderr) = rest.split_at_checked(length)?;
        let stderr = String::from_utf8_lossy(stderr).into_owned();
        Some(DaemonReply { code, stdout: Zeroizing::new(stdout.to_vec()), stderr })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_sent_reply() {
        let (here, there) = UnixStream::pair().unwrap();
        let reply = DaemonReply { code: 1, stdout: Zeroizing::new(b"out\n".to_vec()), stderr: "err".into() };
        reply.send(&there).unwrap();
        drop(there);
        let mut bytes = Vec::new();
        (&here).read_to_end(&mut bytes).unwrap();
        assert_eq!(DaemonReply::decode(&bytes), Some(reply));
        for end in 0..bytes.len().min(9) {
            assert_eq!(DaemonReply::decode(&bytes[..end]), None, "cut short after {end}");
        }
    }

    #[test]
    fn rejects_invalid_requests() {
        for bytes in [&b""[..], b"x", b"g\xff", &vec![b'g'; 70_000]] {
            let (here, mut there) = UnixStream::pair().unwrap();
            let bytes = bytes.to_vec();
            let writer = std::thread::spawn(move || there.write_all(&bytes));
            assert!(read_request(&here).is_err());
            drop(here);
            let _ = writer.join().unwrap();
        }
    }

    #[test]
    fn missing_daemon_is_not_an_error() {
        assert!(call(Path::new("/no/such/socket"), DaemonVerb::List, "").unwrap().is_none());
    }

    #[test]
    fn debug_does_not_show_stdout() {
        assert!(!format!("{:?}", DaemonReply::success(b"canary")).contains("canary"));
    }
}
