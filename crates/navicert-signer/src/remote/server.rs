//! Signer server: many requests on a Unix socket with one login.
// C885

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use navicert_io::private_socket::{BindError, PrivateListener};
use navicert_types::external_signer::v1;

use super::request_handler::{KeyStore, handle_request};
use super::socket::MAX_LINE_BYTES;
use crate::error::SignError;

/// A listening socket. Its file is removed on drop.
#[derive(Debug)]
pub struct SignerServer {
    listener: PrivateListener,
}

impl SignerServer {
    /// Listens at this path. Creates the directory with mode 0700 if needed, and rejects one that other users can access.
    /// Replaces a stale socket, but not one of a running signer.
    ///
    /// # Errors
    /// [`SignError::Socket`].
    pub fn bind(path: &Path) -> Result<Self, SignError> {
        let refuse = |error: BindError| SignError::Socket {
            path: path.display().to_string(),
            problem: match error {
                BindError::AlreadyListening => "a signer is already listening".to_owned(),
                other => other.to_string(),
            },
        };
        Ok(SignerServer { listener: PrivateListener::bind(path).map_err(refuse)? })
    }

    /// The socket path.
    pub fn path(&self) -> &Path {
        self.listener.file().path()
    }

    /// Serves until the listener fails. Each connection has a thread; requests to a device that does one operation at a
    /// time are serialized.
    ///
    /// # Errors
    /// [`SignError::Socket`].
    pub fn serve(&self, store: &Arc<dyn KeyStore>) -> Result<(), SignError> {
        loop {
            let failed = |error: io::Error| SignError::Socket {
                path: self.path().display().to_string(),
                problem: error.to_string(),
            };
            let (stream, store) = (self.listener.accept().map_err(failed)?, Arc::clone(store));
            // If no thread can be started, the connection is closed and the client reports an error.
            let _ = thread::Builder::new().name("signer-connection".to_owned()).spawn(move || {
                let _ = handle_connection(&stream, &*store);
            });
        }
    }

    /// Removes the socket file; open connections continue.
    pub fn close(&self) {
        self.listener.file().remove();
    }
}

/// Responds to one line with one line until the client closes the connection.
fn handle_connection(stream: &UnixStream, store: &dyn KeyStore) -> io::Result<()> {
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
