//! Signer server: many requests on a Unix socket with one login.
// C885

use std::fs::DirBuilder;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use navicert_io::private_socket::check_peer;
use navicert_types::external_signer::v1;

use super::request_handler::{KeyStore, handle_request};
use super::socket::{MAX_LINE_BYTES, check_socket_path};
use crate::error::SignError;

/// A listening socket. Its file is removed on drop.
#[derive(Debug)]
pub struct SignerServer {
    path: PathBuf,
    listener: UnixListener,
}

impl SignerServer {
    /// Listens at this path. Creates the directory with mode 0700 if needed, and rejects one that other users can access.
    /// Replaces a stale socket, but not one of a running signer.
    ///
    /// # Errors
    /// [`SignError::Socket`].
    pub fn bind(path: &Path) -> Result<Self, SignError> {
        let refuse = |problem: String| SignError::Socket { path: path.display().to_string(), problem };
        let failed = |error: io::Error| refuse(error.to_string());
        let dir = path.parent().ok_or_else(|| refuse("the path has no parent directory".to_owned()))?;
        DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed)?;
        if path.symlink_metadata().is_ok() {
            if UnixStream::connect(path).is_ok() {
                return Err(refuse("a signer is already listening".to_owned()));
            }
            check_socket_path(path).map_err(|problem| refuse(problem.to_owned()))?;
            std::fs::remove_file(path).map_err(failed)?;
        }
        let listener = UnixListener::bind(path).map_err(failed)?;
        // Other users cannot enter the directory, so they cannot connect before the mode is set.
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
        let server = SignerServer { path: path.to_owned(), listener };
        check_socket_path(path).map_err(|problem| refuse(problem.to_owned()))?;
        Ok(server)
    }

    /// The socket path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Serves until the listener fails. Each connection has a thread; requests to a device that does one operation at a
    /// time are serialized.
    ///
    /// # Errors
    /// [`SignError::Socket`].
    pub fn serve(&self, store: &Arc<dyn KeyStore>) -> Result<(), SignError> {
        for stream in self.listener.incoming() {
            let failed = |error: io::Error| SignError::Socket {
                path: self.path.display().to_string(),
                problem: error.to_string(),
            };
            let (stream, store) = (stream.map_err(failed)?, Arc::clone(store));
            // If no thread can be started, the connection is closed and the client reports an error.
            let _ = thread::Builder::new().name("signer-connection".to_owned()).spawn(move || {
                let _ = handle_connection(&stream, &*store);
            });
        }
        Ok(())
    }
}

impl SignerServer {
    /// Removes the socket file; open connections continue.
    pub fn close(&self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Drop for SignerServer {
    fn drop(&mut self) {
        self.close();
    }
}

/// Responds to one line with one line until the client closes the connection.
fn handle_connection(stream: &UnixStream, store: &dyn KeyStore) -> io::Result<()> {
    check_peer(stream)?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = Vec::new();
        if reader.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let message = match v1::Request::from_json(&line) {
            Ok(request) => handle_request(store, &request),
            Err(error) => v1::Message::Error {
                reason: "Internal".to_owned(),
                message: format!("invalid request: {error}"),
                retry_after_seconds: None,
            },
        };
        let mut text = message.to_json();
        text.push('\n');
        (&*stream).write_all(text.as_bytes())?;
    }
}
