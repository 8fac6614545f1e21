//! The keeper's process: accepts the connections of this user's processes, one thread each, and ends when it is idle.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use navicert_io::private_socket::{BindError, PrivateListener};
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
        let file = listener.file().clone();
        let accepting = Arc::clone(&outputs);
        thread::Builder::new().name("keeper".to_owned()).spawn(move || {
            while let Ok(stream) = listener.accept() {
                // A connection that is not served is closed, and its process runs the program itself.
                if let Some(guard) = accepting.connected() {
                    let outputs = Arc::clone(&accepting);
                    let handler = thread::Builder::new().stack_size(STACK_BYTES);
                    let _ = handler.spawn(move || handle(stream, &outputs, guard));
                }
            }
            accepting.stop();
        })?;
        outputs.wait_until_idle();
        file.remove();
        Ok(())
    }
}

/// Handles one connection. What fails here fails at the other end too, where the program is then run.
fn handle(mut stream: UnixStream, outputs: &KeptOutputs, _guard: ConnectionGuard) {
    let _ = exchange(&mut stream, outputs);
}

fn exchange(stream: &mut UnixStream, outputs: &KeptOutputs) -> io::Result<()> {
    stream.set_read_timeout(Some(EXCHANGE_TIMEOUT))?;
    stream.set_write_timeout(Some(EXCHANGE_TIMEOUT))?;
    let request = match Request::read(stream)? {
        Request::Get(request) => request,
        Request::Clear => {
            let sent = Reply::Cleared(outputs.clear()).write(stream);
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
