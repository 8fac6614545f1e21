//! The messages between a process and the keeper: one byte for the kind, then fields of fixed length, then bytes with their
//! length.

use std::io::{self, Read, Write};
use std::time::Duration;

use navicert_types::{Secret, Timestamp};
use zeroize::Zeroizing;

use super::command_key::CommandKey;

/// The longest output that is kept. Longer ones are used and forgotten.
pub const MAX_KEPT_BYTES: usize = 256 * 1024;

/// The version of the protocol, the first byte of a connection. A keeper closes a connection of another version.
const VERSION: u8 = 1;

const GET: u8 = 1;
const CLEAR: u8 = 2;
const OUTPUT: u8 = 1;
const FAILURE: u8 = 2;
const KEPT: u8 = 1;
const RUN: u8 = 2;
const WAIT: u8 = 3;
const FAILED: u8 = 4;
const CLEARED: u8 = 5;
const DONE: u8 = 6;

/// What a process asks the keeper for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeeperRequest {
    /// Which output.
    pub key: CommandKey,
    /// The oldest output that is accepted.
    pub max_age: Duration,
    /// The process that uses the output. A process that asks for the same output again was not served by it, so that the
    /// program runs again. `None` if that says nothing.
    pub client: Option<u32>,
}

/// The first message of a connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Request {
    Get(KeeperRequest),
    Clear,
}

/// The message of a process that ran the program.
#[derive(Debug, PartialEq)]
pub(super) enum RunResult {
    /// It printed this, which may be used until then.
    Output { fresh_until: Timestamp, output: Secret<Vec<u8>> },
    /// It exited with this code.
    Failure(i32),
}

/// A message of the keeper.
#[derive(Debug, PartialEq)]
pub(super) enum Reply {
    /// The kept output.
    Kept(Secret<Vec<u8>>),
    /// Nothing is kept: run the program, and give its output on this connection.
    Run,
    /// Another process runs the program. Repeated, so that a keeper that hangs is noticed.
    Wait,
    /// The other process's run failed with this code.
    Failed(i32),
    /// So many outputs were removed.
    Cleared(u32),
    /// The result of a run was received: no later request gets it as one that it waited for.
    Done,
}

impl Request {
    pub(super) fn write(&self, stream: &mut impl Write) -> io::Result<()> {
        let mut message = vec![VERSION];
        match self {
            Request::Get(request) => {
                message.push(GET);
                message.extend_from_slice(request.key.as_bytes());
                let age = u64::try_from(request.max_age.as_millis()).unwrap_or(u64::MAX);
                message.extend_from_slice(&age.to_be_bytes());
                message.extend_from_slice(&request.client.unwrap_or_default().to_be_bytes());
            }
            Request::Clear => message.push(CLEAR),
        }
        stream.write_all(&message)
    }

    pub(super) fn read(stream: &mut impl Read) -> io::Result<Self> {
        let [version, kind] = array(stream)?;
        match (version, kind) {
            (VERSION, GET) => Ok(Request::Get(KeeperRequest {
                key: CommandKey::from_bytes(array(stream)?),
                max_age: Duration::from_millis(u64::from_be_bytes(array(stream)?)),
                client: Some(u32::from_be_bytes(array(stream)?)).filter(|client| *client > 0),
            })),
            (VERSION, CLEAR) => Ok(Request::Clear),
            _ => Err(unknown()),
        }
    }
}

impl RunResult {
    pub(super) fn write(&self, stream: &mut impl Write) -> io::Result<()> {
        match self {
            RunResult::Output { fresh_until, output } => {
                let head = [&[OUTPUT][..], &fresh_until.as_millisecond().to_be_bytes()].concat();
                stream.write_all(&head)?;
                write_bytes(stream, output)
            }
            RunResult::Failure(code) => stream.write_all(&[&[FAILURE][..], &code.to_be_bytes()].concat()),
        }
    }

    pub(super) fn read(stream: &mut impl Read) -> io::Result<Self> {
        let [kind] = array(stream)?;
        match kind {
            OUTPUT => {
                let moment = Timestamp::from_millisecond(i64::from_be_bytes(array(stream)?));
                let fresh_until = moment.map_err(|_| unknown())?;
                Ok(RunResult::Output { fresh_until, output: read_bytes(stream)? })
            }
            FAILURE => Ok(RunResult::Failure(i32::from_be_bytes(array(stream)?))),
            _ => Err(unknown()),
        }
    }
}

impl Reply {
    pub(super) fn write(&self, stream: &mut impl Write) -> io::Result<()> {
        match self {
            Reply::Kept(output) => write_kept(stream, output),
            Reply::Run => stream.write_all(&[RUN]),
            Reply::Wait => stream.write_all(&[WAIT]),
            Reply::Done => stream.write_all(&[DONE]),
            Reply::Failed(code) => stream.write_all(&[&[FAILED][..], &code.to_be_bytes()].concat()),
            Reply::Cleared(count) => stream.write_all(&[&[CLEARED][..], &count.to_be_bytes()].concat()),
        }
    }

    pub(super) fn read(stream: &mut impl Read) -> io::Result<Self> {
        let [kind] = array(stream)?;
        match kind {
            KEPT => Ok(Reply::Kept(read_bytes(stream)?)),
            RUN => Ok(Reply::Run),
            WAIT => Ok(Reply::Wait),
            DONE => Ok(Reply::Done),
            FAILED => Ok(Reply::Failed(i32::from_be_bytes(array(stream)?))),
            CLEARED => Ok(Reply::Cleared(u32::from_be_bytes(array(stream)?))),
            _ => Err(unknown()),
        }
    }
}

/// Writes [`Reply::Kept`] without a copy of the output.
pub(super) fn write_kept(stream: &mut impl Write, output: &Secret<Vec<u8>>) -> io::Result<()> {
    stream.write_all(&[KEPT])?;
    write_bytes(stream, output)
}

fn write_bytes(stream: &mut impl Write, bytes: &Secret<Vec<u8>>) -> io::Result<()> {
    let length = u32::try_from(bytes.expose().len()).map_err(|_| unknown())?;
    stream.write_all(&length.to_be_bytes())?;
    stream.write_all(bytes.expose())
}

fn read_bytes(stream: &mut impl Read) -> io::Result<Secret<Vec<u8>>> {
    let length = usize::try_from(u32::from_be_bytes(array(stream)?)).map_err(|_| unknown())?;
    if length > MAX_KEPT_BYTES {
        return Err(unknown());
    }
    let mut bytes = Zeroizing::new(vec![0; length]);
    stream.read_exact(&mut bytes)?;
    Ok(Secret::new(std::mem::take(&mut *bytes)))
}

fn array<const N: usize>(stream: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn unknown() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "unknown message")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(text: &str) -> Secret<Vec<u8>> {
        Secret::new(text.as_bytes().to_vec())
    }

    #[test]
    fn messages_are_read_as_they_were_written() {
        let get = |client| {
            Request::Get(KeeperRequest {
                key: CommandKey::from_bytes([7; 32]),
                max_age: Duration::from_secs(90),
                client,
            })
        };
        for request in [get(None), get(Some(4_194_303)), Request::Clear] {
            let mut bytes = Vec::new();
            request.write(&mut bytes).unwrap();
            assert_eq!(Request::read(&mut bytes.as_slice()).unwrap(), request);
        }
        let fresh_until = Timestamp::from_second(1_900_000_000).unwrap();
        for result in [RunResult::Output { fresh_until, output: secret("t0ken") }, RunResult::Failure(-1)] {
            let mut bytes = Vec::new();
            result.write(&mut bytes).unwrap();
            assert_eq!(RunResult::read(&mut bytes.as_slice()).unwrap(), result);
        }
        let replies = [
            Reply::Kept(secret("")),
            Reply::Run,
            Reply::Wait,
            Reply::Failed(255),
            Reply::Cleared(3),
            Reply::Done,
        ];
        for reply in replies {
            let mut bytes = Vec::new();
            reply.write(&mut bytes).unwrap();
            assert_eq!(Reply::read(&mut bytes.as_slice()).unwrap(), reply);
        }
    }

    #[test]
    fn other_versions_unknown_kinds_and_long_outputs_are_errors() {
        assert!(Request::read(&mut [2, GET].as_slice()).is_err());
        assert!(Request::read(&mut [VERSION, 9].as_slice()).is_err());
        assert!(Request::read(&mut [VERSION, GET, 1].as_slice()).is_err());
        assert!(Reply::read(&mut [0].as_slice()).is_err());
        let long = u32::try_from(MAX_KEPT_BYTES + 1).unwrap().to_be_bytes();
        assert!(Reply::read(&mut [&[KEPT][..], &long].concat().as_slice()).is_err());
    }
}
