//! Sockets with a deadline for resolving, connecting, reading and writing.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use navicert_go::host_port;
use navicert_types::Clock;

use super::{HttpError, http_error_from_io};

/// Minimum connect timeout; zero would be rejected.
const MIN_CONNECT_TIMEOUT: Duration = Duration::from_millis(1);

/// A point in time at which an operation times out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline<'a> {
    clock: &'a dyn Clock,
    at: Duration,
    limit: Duration,
}

impl<'a> Deadline<'a> {
    pub(super) fn new(clock: &'a dyn Clock, limit: Duration) -> Self {
        Deadline { clock, at: clock.monotonic().saturating_add(limit), limit }
    }

    pub(super) fn limit(&self) -> Duration {
        self.limit
    }

    fn remaining(&self) -> io::Result<Duration> {
        let left = self.at.saturating_sub(self.clock.monotonic());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
    }
}

/// A connection: a socket, or TLS on another connection.
pub(crate) trait Stream: Read + Write {}

impl<S: Read + Write> Stream for S {}

/// A connection whose reads and writes fail after the deadline, even if the peer sends slowly.
#[derive(Debug)]
struct DeadlineStream<'a> {
    stream: TcpStream,
    deadline: Deadline<'a>,
}

impl Read for DeadlineStream<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(self.deadline.remaining()?))?;
        self.stream.read(buffer)
    }
}

impl Write for DeadlineStream<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(self.deadline.remaining()?))?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Connects to a host, or to this address of it.
pub(super) fn connect<'a>(
    name: &str,
    port: u16,
    address: Option<IpAddr>,
    deadline: Deadline<'a>,
) -> Result<Box<dyn Stream + 'a>, HttpError> {
    let host = host_port::join(name, port);
    let addresses = match address {
        Some(address) => vec![SocketAddr::new(address, port)],
        None => resolve(name, port, &host, deadline)?,
    };
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    let mut untried = u32::try_from(addresses.len()).unwrap_or(u32::MAX);
    for address in addresses {
        let left =
            deadline.remaining().map_err(|error| http_error_from_io(error, host.clone(), deadline.limit))?;
        // Divide the remaining time, so that one unresponsive address does not prevent trying the others.
        let share = (left / untried.max(1)).max(MIN_CONNECT_TIMEOUT);
        untried = untried.saturating_sub(1);
        match TcpStream::connect_timeout(&address, share) {
            Ok(stream) => {
                let _ = stream.set_nodelay(true);
                return Ok(Box::new(DeadlineStream { stream, deadline }));
            }
            Err(error) => last = error,
        }
    }
    if last.kind() == io::ErrorKind::TimedOut {
        return Err(HttpError::TimedOut { host, limit: deadline.limit });
    }
    Err(HttpError::Connect { host, source: last })
}

/// Resolves a name. The system resolver has no timeout, so it runs in a thread that is abandoned at the deadline.
fn resolve(name: &str, port: u16, host: &str, deadline: Deadline<'_>) -> Result<Vec<SocketAddr>, HttpError> {
    if let Ok(address) = name.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let timed_out = || HttpError::TimedOut { host: host.to_owned(), limit: deadline.limit };
    let left = deadline.remaining().map_err(|_| timed_out())?;
    let (sender, receiver) = mpsc::channel();
    let target = (name.to_owned(), port);
    let started = thread::Builder::new().name("resolve".to_owned()).spawn(move || {
        // Sending fails only if the receiver has timed out.
        let _ = sender.send(target.to_socket_addrs().map(Iterator::collect));
    });
    let failed = |source| HttpError::Resolve { host: host.to_owned(), source };
    started.map_err(failed)?;
    receiver.recv_timeout(left).map_err(|_| timed_out())?.map_err(failed)
}
