//! Client of a signer server: one connection, one line of JSON per request.
// C885

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use navicert_io::private_socket::{check_path, check_peer};
use navicert_types::external_signer::v1;

use super::exec::show_prompt;
use crate::error::SignError;

/// The longest line: enough for a TLS 1.2 handshake with long chains in base64.
pub(super) const MAX_LINE_BYTES: u64 = 1 << 20;

/// A signer server on a Unix socket of the same user.
pub struct SocketSigner {
    path: PathBuf,
    name: String,
    connection: Mutex<Option<BufReader<UnixStream>>>,
}

impl SocketSigner {
    /// Uses the socket at this path; connects on the first request.
    pub fn new(path: PathBuf, name: &str) -> Self {
        SocketSigner { path, name: name.to_owned(), connection: Mutex::new(None) }
    }

    /// The socket path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Sends a request and returns the final message. Concurrent requests are serialized.
    ///
    /// # Errors
    /// [`SignError::Socket`] if no server listens or the socket is not safe to use; [`SignError::TimedOut`] after the
    /// limit.
    pub fn request(
        &self,
        request: &v1::Request,
        limit: Duration,
        show: &Arc<dyn Fn(&str) + Send + Sync>,
    ) -> Result<v1::Message, SignError> {
        let mut line = request.to_json();
        line.push('\n');
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        // An idle connection may have been closed: retry once with a new one.
        if let Some(mut open) = connection.take()
            && send(&mut open, &line, limit).is_ok()
            && let Some(answer) = self.read_response(&mut open, limit, show).transpose()
        {
            *connection = answer.is_ok().then_some(open);
            return answer;
        }
        let mut open = self.open()?;
        send(&mut open, &line, limit).map_err(|error| self.unusable(&error))?;
        let answer = self.read_response(&mut open, limit, show)?;
        *connection = Some(open);
        answer.ok_or_else(|| self.invalid("empty response"))
    }

    /// Reads messages up to the final one; `None` if the peer closed the connection.
    fn read_response(
        &self,
        connection: &mut BufReader<UnixStream>,
        limit: Duration,
        show: &Arc<dyn Fn(&str) + Send + Sync>,
    ) -> Result<Option<v1::Message>, SignError> {
        loop {
            let mut line = Vec::new();
            let read = connection.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line);
            match read {
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    return Err(SignError::TimedOut { signer: self.name.clone(), after: limit });
                }
                Ok(0) | Err(_) => return Ok(None),
                Ok(_) => {}
            }
            let message = v1::Message::from_json(&line).map_err(|error| self.invalid(&error.to_string()))?;
            match message {
                v1::Message::Prompt { message, .. } => show_prompt(&self.name, &message, show),
                v1::Message::Ready { .. } => {}
                last => return Ok(Some(last)),
            }
        }
    }

    fn open(&self) -> Result<BufReader<UnixStream>, SignError> {
        check_path(&self.path).map_err(|problem| self.unusable(&problem))?;
        let stream = UnixStream::connect(&self.path).map_err(|error| self.unusable(&error))?;
        check_peer(&stream).map_err(|error| self.unusable(&error))?;
        Ok(BufReader::new(stream))
    }

    fn unusable(&self, error: &dyn std::error::Error) -> SignError {
        SignError::Socket { path: self.path.display().to_string(), problem: error.to_string() }
    }

    fn invalid(&self, problem: &str) -> SignError {
        SignError::InvalidResponse { signer: self.name.clone(), problem: problem.to_owned() }
    }
}

impl fmt::Debug for SocketSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SocketSigner").field("path", &self.path).finish_non_exhaustive()
    }
}

fn send(connection: &mut BufReader<UnixStream>, line: &str, limit: Duration) -> io::Result<()> {
    let stream = connection.get_mut();
    stream.set_read_timeout(Some(limit))?;
    stream.set_write_timeout(Some(limit))?;
    stream.write_all(line.as_bytes())
}
