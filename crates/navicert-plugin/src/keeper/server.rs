//! The keeper's process: accepts the connections of this user's processes, one thread each, and ends when it is idle.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use navicert_io::private_socket::{BindError, PrivateListener, SocketFile};
use navicert_types::Clock;

use super::kept_outputs::{ConnectionGuard, Flight, Joined, KeptOutputs, Outcome};
use super::wire::{self, KeeperRequest, Reply, Request, RunResult};

/// How long a process may take to send its request or to read the reply.
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(10);
/// How often a waiting process hears that the keeper is alive.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(1);
/// A connection's thread does little.
const STACK_BYTES: usize = 128 * 1024;

/// Keeps outputs for the processes of this user.
#[derive(Debug)]
pub struct KeeperServer {
    listener: PrivateListener,
    outputs: Arc<KeptOutputs>,
}

impl KeeperServer {
    /// Continues with the listening socket that the starting process passes on.
    ///
    /// # Errors
    /// [`BindError`]: the descriptor is not the socket at this path, or the path is not private to the user.
    pub fn take_over(descriptor: OwnedFd, path: &Path, clock: Arc<dyn Clock>) -> Result<Self, BindError> {
        let listener = PrivateListener::take_over(descriptor, path)?;
        Ok(KeeperServer { listener, outputs: Arc::new(KeptOutputs::new(clock)) })
    }

    /// Serves until nothing is kept and nothing is asked for a while, or until a process clears the outputs. Threads of
    /// open connections may outlive it: the caller ends the process.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn serve(self) -> io::Result<()> {
        let KeeperServer { listener, outputs } = self;
        let file = Arc::new(ListeningFile(Mutex::new(Some(listener.file().clone()))));
        let (accepting, listening) = (Arc::clone(&outputs), Arc::clone(&file));
        thread::Builder::new().name("keeper".to_owned()).spawn(move || {
            while let Ok(stream) = listener.accept() {
                // A connection that is not served is closed, and its process runs the program itself.
                if let Some(guard) = accepting.connected() {
                    let (outputs, file) = (Arc::clone(&accepting), Arc::clone(&listening));
                    let handler = thread::Builder::new().stack_size(STACK_BYTES);
                    let _ = handler.spawn(move || handle(stream, &outputs, &file, guard));
                }
            }
            accepting.stop();
        })?;
        outputs.wait_until_idle();
        file.remove();
        Ok(())
    }
}

/// The file at which processes find the keeper. It is removed once: the file of the next keeper may have its inode.
#[derive(Debug)]
struct ListeningFile(Mutex<Option<SocketFile>>);

impl ListeningFile {
    fn remove(&self) {
        let file = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(file) = file {
            file.remove();
        }
    }
}

/// Handles one connection. What fails here fails at the other end too, where the program is then run.
fn handle(mut stream: UnixStream, outputs: &KeptOutputs, file: &ListeningFile, _guard: ConnectionGuard) {
    let _ = exchange(&mut stream, outputs, file);
}

fn exchange(stream: &mut UnixStream, outputs: &KeptOutputs, file: &ListeningFile) -> io::Result<()> {
    stream.set_read_timeout(Some(EXCHANGE_TIMEOUT))?;
    stream.set_write_timeout(Some(EXCHANGE_TIMEOUT))?;
    let request = match Request::read(stream)? {
        Request::Get(request) => request,
        Request::Clear => {
            let count = outputs.clear();
            // Before the reply, so that whatever is started after it finds no keeper that is about to end.
            file.remove();
            let sent = Reply::Cleared(count).write(stream);
            outputs.stop();
            return sent;
        }
    };
    loop {
        match outputs.join(&request) {
            Joined::Kept(output) => return wire::write_kept(stream, &output),
            Joined::Lead(flight) => return lead(stream, outputs, &request, &flight),
            Joined::Follow(flight) => {
                if follow(stream, outputs, &request, &flight)? {
                    return Ok(());
                }
            }
        }
    }
}

/// Waits for the result of the process that runs the program, however long that takes: it may ask its user.
fn lead(
    stream: &mut UnixStream,
    outputs: &KeptOutputs,
    request: &KeeperRequest,
    flight: &Arc<Flight>,
) -> io::Result<()> {
    let result = Reply::Run
        .write(stream)
        .and_then(|()| stream.set_read_timeout(None))
        .and_then(|()| RunResult::read(stream));
    outputs.end(request, flight, result.ok());
    Reply::Done.write(stream)
}

/// Waits for another process's result. Returns whether the request was answered; if not, that process has gone.
fn follow(
    stream: &mut UnixStream,
    outputs: &KeptOutputs,
    request: &KeeperRequest,
    flight: &Flight,
) -> io::Result<bool> {
    loop {
        Reply::Wait.write(stream)?;
        match flight.wait(HEARTBEAT) {
            None => {}
            Some(Outcome::Abandoned) => return Ok(false),
            Some(Outcome::Failure(code)) => return Reply::Failed(code).write(stream).map(|()| true),
            Some(Outcome::Output(output)) => {
                outputs.record_given(request);
                return wire::write_kept(stream, &output).map(|()| true);
            }
        }
    }
}
