//! The client's side of a signer that stays (C885): one connection, one line of JSON per question.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use navicert_types::external_signer::v1;

use super::exec::show_prompt;
use crate::error::SignError;

/// No line is longer: a TLS 1.2 handshake with long chains, in base64.
pub(super) const LONGEST_LINE: u64 = 1 << 20;

/// A signer behind a socket of the same user's.
pub struct SocketSigner {
    path: PathBuf,
    name: String,
    connection: Mutex<Option<BufReader<UnixStream>>>,
}

impl SocketSigner {
    /// At this path; nothing is opened yet.
    pub fn new(path: PathBuf, name: &str) -> Self {
        SocketSigner { path, name: name.to_owned(), connection: Mutex::new(None) }
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// One question and its last word. Others wait their turn.
    ///
    /// # Errors
    /// [`SignError::Socket`] if there is nobody there, or it is not safe to ask; [`SignError::Slow`] after the limit.
    pub fn ask(
        &self,
        request: &v1::Request,
        limit: Duration,
        show: &Arc<dyn Fn(&str) + Send + Sync>,
    ) -> Result<v1::Message, SignError> {
        let mut line = request.to_json();
        line.push('\n');
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        // A connection that lay idle may be dead: then once more with a new one.
        if let Some(mut open) = connection.take()
            && send(&mut open, &line, limit).is_ok()
            && let Some(answer) = self.hear(&mut open, limit, show).transpose()
        {
            *connection = answer.is_ok().then_some(open);
            return answer;
        }
        let mut open = self.open()?;
        send(&mut open, &line, limit).map_err(|error| self.unusable(&error))?;
        let answer = self.hear(&mut open, limit, show)?;
        *connection = Some(open);
        answer.ok_or_else(|| self.garbage("nothing"))
    }

    /// Messages until the last one; `None` if the other side hung up instead.
    fn hear(
        &self,
        connection: &mut BufReader<UnixStream>,
        limit: Duration,
        show: &Arc<dyn Fn(&str) + Send + Sync>,
    ) -> Result<Option<v1::Message>, SignError> {
        loop {
            let mut line = Vec::new();
            let read = connection.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line);
            match read {
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    return Err(SignError::Slow { signer: self.name.clone(), after: limit });
                }
                Ok(0) | Err(_) => return Ok(None),
                Ok(_) => {}
            }
            let message = v1::Message::from_json(&line).map_err(|error| self.garbage(&error.to_string()))?;
            match message {
                v1::Message::Prompt { message, .. } => show_prompt(&self.name, &message, show),
                v1::Message::Ready { .. } => {}
                last => return Ok(Some(last)),
            }
        }
    }

    fn open(&self) -> Result<BufReader<UnixStream>, SignError> {
        let refuse = |problem: &str| SignError::Socket {
            path: self.path.display().to_string(),
            problem: problem.to_owned(),
        };
        check_place(&self.path).map_err(refuse)?;
        let stream = UnixStream::connect(&self.path).map_err(|error| self.unusable(&error))?;
        check_peer(&stream).map_err(|error| self.unusable(&error))?;
        Ok(BufReader::new(stream))
    }

    fn unusable(&self, error: &io::Error) -> SignError {
        SignError::Socket { path: self.path.display().to_string(), problem: error.to_string() }
    }

    fn garbage(&self, problem: &str) -> SignError {
        SignError::Garbage { signer: self.name.clone(), problem: problem.to_owned() }
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

/// A socket of ours with mode 0600 in a folder of ours with mode 0700 (C885).
pub(super) fn check_place(path: &Path) -> Result<(), &'static str> {
    let me = rustix::process::geteuid().as_raw();
    let facts = path.symlink_metadata().map_err(|_| "there is none")?;
    if !facts.file_type().is_socket() {
        return Err("it is no socket");
    }
    if facts.uid() != me || facts.mode() & 0o077 != 0 {
        return Err("it belongs to another user, or others may use it");
    }
    let folder = path.parent().ok_or("it is in no folder")?;
    let facts = folder.symlink_metadata().map_err(|_| "its folder cannot be looked at")?;
    if !facts.is_dir() || facts.uid() != me || facts.mode() & 0o077 != 0 {
        return Err("its folder belongs to another user, or others may use it (mode 0700 is needed)");
    }
    Ok(())
}

/// Both ends look who is there.
pub(super) fn check_peer(stream: &UnixStream) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        let peer = rustix::net::sockopt::socket_peercred(stream)?;
        if peer.uid != rustix::process::geteuid() {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "another user is at the other end"));
        }
    }
    let _ = stream;
    Ok(())
}
