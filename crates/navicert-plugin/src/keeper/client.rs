//! A process that asks the keeper, and starts it if none is running. Every failure means that the program is run as if
//! there were no keeper.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use navicert_io::private_socket::{self, BindError, PrivateListener};
use navicert_io::runtime_directory::RuntimeDirectory;
use navicert_types::{Secret, Timestamp};

use super::server::HEARTBEAT;
use super::wire::{KeeperRequest, MAX_KEPT_BYTES, Reply, Request, RunResult};

/// The name of the socket in the user's runtime directory.
const SOCKET_NAME: &str = "exec-plugin.sock";
/// How long a keeper may take to reply. One that is stopped or hangs delays a process by this much.
const REPLY_TIMEOUT: Duration = Duration::from_secs(2);
/// A waiting process gives up after this many heartbeats that did not come.
const MISSED_HEARTBEATS: u32 = 5;
/// A waiting process gives up after this many heartbeats: the other one may ask a user who has gone.
const MAX_HEARTBEATS: u32 = 60;

/// Starts the keeper's process, which [takes over](super::KeeperServer::take_over) the listening socket at the path.
pub type StartKeeper<'a> = &'a dyn Fn(OwnedFd, &Path) -> io::Result<()>;

/// Asks the keeper of this user.
pub struct KeeperClient<'a> {
    directory: RuntimeDirectory,
    start: StartKeeper<'a>,
}

/// What the keeper says.
#[derive(Debug)]
pub enum KeeperReply {
    /// The kept output.
    Kept(Secret<Vec<u8>>),
    /// Nothing is kept. Run the program and give its output to the lease; other processes wait for it.
    Run(RunLease),
    /// Another process ran the program for this request, and it failed with this exit code.
    Failed(i32),
}

/// The task to run the program once for all that wait. If it is dropped, another process gets the task.
#[derive(Debug)]
pub struct RunLease(UnixStream);

impl<'a> KeeperClient<'a> {
    /// A client for the keeper in this runtime directory.
    pub fn new(directory: RuntimeDirectory, start: StartKeeper<'a>) -> Self {
        KeeperClient { directory, start }
    }

    /// Asks for an output. Starts the keeper if there is none, and waits while another process runs the program.
    ///
    /// # Errors
    /// The keeper cannot be started or does not reply: run the program without it.
    pub fn ask(&self, request: &KeeperRequest) -> io::Result<KeeperReply> {
        match self.connect().and_then(|stream| ask(stream, request)) {
            // It was about to end when this process connected.
            Err(error) if is_gone(&error) => ask(self.start_and_connect()?, request),
            answer => answer,
        }
    }

    /// Removes every output and ends the keeper. Returns how many there were; `None` if no keeper is running.
    ///
    /// # Errors
    /// The keeper does not reply.
    pub fn clear(&self) -> io::Result<Option<u32>> {
        let cleared = self.connect().and_then(|mut stream| {
            Request::Clear.write(&mut stream)?;
            Reply::read(&mut stream)
        });
        match cleared {
            Ok(Reply::Cleared(count)) => Ok(Some(count)),
            Ok(_) => Err(unexpected()),
            Err(error) if is_gone(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn connect(&self) -> io::Result<UnixStream> {
        let path = self.directory.file(SOCKET_NAME).ok_or(io::ErrorKind::NotFound)?;
        connect(&path)
    }

    /// Listens in place of the keeper, so that other processes can connect at once, and passes the socket on.
    fn start_and_connect(&self) -> io::Result<UnixStream> {
        let path = self.directory.create()?.join(SOCKET_NAME);
        match PrivateListener::bind(&path) {
            Ok(listener) => {
                let (descriptor, file) = listener.hand_over()?;
                (self.start)(descriptor, &path).inspect_err(|_| file.remove())?;
            }
            // Another process was faster.
            Err(BindError::AlreadyListening) => {}
            Err(BindError::Io(error)) => return Err(error),
            Err(error) => return Err(io::Error::other(error)),
        }
        connect(&path)
    }
}

impl fmt::Debug for KeeperClient<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeeperClient").field("directory", &self.directory).finish_non_exhaustive()
    }
}

fn connect(path: &Path) -> io::Result<UnixStream> {
    let stream = private_socket::connect(path, REPLY_TIMEOUT)?;
    stream.set_read_timeout(Some(REPLY_TIMEOUT))?;
    Ok(stream)
}

fn ask(mut stream: UnixStream, request: &KeeperRequest) -> io::Result<KeeperReply> {
    Request::Get(*request).write(&mut stream)?;
    let mut heartbeats = 0_u32;
    loop {
        match Reply::read(&mut stream)? {
            Reply::Kept(output) => return Ok(KeeperReply::Kept(output)),
            Reply::Run => return Ok(KeeperReply::Run(RunLease(stream))),
            Reply::Failed(code) => return Ok(KeeperReply::Failed(code)),
            Reply::Wait if heartbeats >= MAX_HEARTBEATS => return Err(io::ErrorKind::TimedOut.into()),
            Reply::Wait => {
                stream.set_read_timeout(Some(HEARTBEAT.saturating_mul(MISSED_HEARTBEATS)))?;
                heartbeats = heartbeats.saturating_add(1);
            }
            Reply::Cleared(_) | Reply::Done => return Err(unexpected()),
        }
    }
}

/// Whether there is no keeper, or it has just ended.
fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, NotFound, UnexpectedEof};
    matches!(error.kind(), NotFound | ConnectionRefused | ConnectionReset | BrokenPipe | UnexpectedEof)
}

fn unexpected() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "unexpected reply")
}

impl RunLease {
    /// Gives the output, which may be used until then, to the keeper and to the processes that wait. An output that is too
    /// long is not kept; one of the waiting processes then runs the program.
    ///
    /// # Errors
    /// The keeper has gone. The output itself can be used.
    pub fn finish(self, output: Secret<Vec<u8>>, fresh_until: Timestamp) -> io::Result<()> {
        if output.expose().len() > MAX_KEPT_BYTES {
            return Ok(());
        }
        self.give(&RunResult::Output { fresh_until, output })
    }

    /// Tells the processes that wait that the program failed with this exit code.
    ///
    /// # Errors
    /// The keeper has gone.
    pub fn fail(self, code: i32) -> io::Result<()> {
        self.give(&RunResult::Failure(code))
    }

    /// Waits until the keeper has the result: a failure is for those who wait now, and not for a request that comes when this
    /// process has ended.
    fn give(mut self, result: &RunResult) -> io::Result<()> {
        result.write(&mut self.0)?;
        self.0.set_read_timeout(Some(REPLY_TIMEOUT))?;
        Reply::read(&mut self.0).map(|_| ())
    }
}
