//! A signer that stays: many questions at a socket, one login (C885).

use std::fs::DirBuilder;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use navicert_types::external_signer::v1;

use super::answer::{KeyRing, answer};
use super::socket::{LONGEST_LINE, check_peer, check_place};
use crate::error::SignError;

/// A listening socket. It is removed when dropped.
#[derive(Debug)]
pub struct Server {
    path: PathBuf,
    listener: UnixListener,
}

impl Server {
    /// Listens at this path. Its folder is made if need be, with mode 0700; one that others can use is refused. What a
    /// dead signer left there is replaced, a living one is not.
    ///
    /// # Errors
    /// [`SignError::Socket`].
    pub fn bind(path: &Path) -> Result<Self, SignError> {
        let refuse = |problem: String| SignError::Socket { path: path.display().to_string(), problem };
        let failed = |error: io::Error| refuse(error.to_string());
        let folder = path.parent().ok_or_else(|| refuse("it is in no folder".to_owned()))?;
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        if path.symlink_metadata().is_ok() {
            if UnixStream::connect(path).is_ok() {
                return Err(refuse("a signer is already there".to_owned()));
            }
            check_place(path).map_err(|problem| refuse(problem.to_owned()))?;
            std::fs::remove_file(path).map_err(failed)?;
        }
        let listener = UnixListener::bind(path).map_err(failed)?;
        // Nobody else gets into the folder, so there is no moment at which they could connect.
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
        let server = Server { path: path.to_owned(), listener };
        check_place(path).map_err(|problem| refuse(problem.to_owned()))?;
        Ok(server)
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Answers until the listener fails. Every connection has a thread; a device that does one thing at a time makes
    /// them wait for each other.
    ///
    /// # Errors
    /// [`SignError::Socket`].
    pub fn serve(&self, ring: &Arc<dyn KeyRing>) -> Result<(), SignError> {
        for stream in self.listener.incoming() {
            let failed = |error: io::Error| SignError::Socket {
                path: self.path.display().to_string(),
                problem: error.to_string(),
            };
            let (stream, ring) = (stream.map_err(failed)?, Arc::clone(ring));
            // A connection for which there is no thread is dropped; whoever asks hears that.
            let _ = thread::Builder::new().name("signer-connection".to_owned()).spawn(move || {
                let _ = converse(&stream, &*ring);
            });
        }
        Ok(())
    }
}

impl Server {
    /// Takes the socket away; who is connected stays so.
    pub fn close(&self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.close();
    }
}

/// One line in, one line out, until the other side is done.
fn converse(stream: &UnixStream, ring: &dyn KeyRing) -> io::Result<()> {
    check_peer(stream)?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = Vec::new();
        if reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let message = match v1::Request::from_json(&line) {
            Ok(request) => answer(ring, &request),
            Err(error) => v1::Message::Error {
                reason: "Internal".to_owned(),
                message: format!("the request cannot be used: {error}"),
                retry_after_seconds: None,
            },
        };
        let mut text = message.to_json();
        text.push('\n');
        (&*stream).write_all(text.as_bytes())?;
    }
}
