//! The three streams of a child: what is still to be written, what was read, and what is thrown away.

use std::io;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use std::sync::Arc;
use std::time::Duration;

use navicert_types::Secret;
use zeroize::{Zeroize, Zeroizing};

use crate::command::{Command, Stderr, StderrReceiver, StdoutReceiver};
use crate::platform::{self, Moved, Ready, Watched};
use crate::runner::StderrTail;

/// How much is read at a time. Most answers of a plugin fit.
const CHUNK: usize = 4 * 1024;
/// How much of a last word on stderr is listened to once the child is gone: as much as a pipe holds.
const LAST_WORDS: usize = 64 * 1024;

pub(super) struct Streams<'a> {
    stdin: Option<ChildStdin>,
    to_write: &'a [u8],
    stdout: Option<ChildStdout>,
    /// Cleared whatever becomes of the run: it may be a token.
    output: Zeroizing<Vec<u8>>,
    cap: usize,
    shown: Option<StdoutReceiver>,
    discarding: bool,
    stderr: Option<ChildStderr>,
    said: Said,
    chunk: Vec<u8>,
}

impl<'a> Streams<'a> {
    /// Takes the child's ends.
    pub(super) fn of(child: &mut Child, command: &'a Command) -> Self {
        Streams {
            stdin: child.stdin.take(),
            to_write: command.stdin_bytes().map_or(&[], |bytes| bytes.expose()),
            stdout: child.stdout.take(),
            output: Zeroizing::default(),
            cap: command.stdout_cap,
            shown: command.stdout_receiver.clone(),
            discarding: false,
            stderr: child.stderr.take(),
            said: match &command.stderr {
                Stderr::Inherit => Said::Elsewhere,
                Stderr::Tail(keep) => Said::Kept { tail: Vec::new(), keep: *keep, dropped: false },
                Stderr::Forward(receiver) => Said::Forwarded(Arc::clone(receiver)),
            },
            chunk: Vec::new(),
        }
    }

    /// From here on no read or write waits.
    pub(super) fn prepare(&mut self) -> io::Result<()> {
        self.stdin.iter().try_for_each(platform::set_nonblocking)?;
        self.stdout.iter().try_for_each(platform::set_nonblocking)?;
        self.stderr.iter().try_for_each(platform::set_nonblocking)?;
        self.close_stdin_when_done();
        Ok(())
    }

    /// Waits until a stream can move, the child has ended, or the time is up.
    pub(super) fn wait(&self, child: Option<&Watched>, at_most: Duration) -> io::Result<Ready> {
        platform::wait(self.stdin.as_ref(), self.stdout.as_ref(), self.stderr.as_ref(), child, at_most)
    }

    /// One step on every stream that is ready.
    pub(super) fn move_bytes(&mut self, ready: Ready) -> io::Result<()> {
        if ready.stdin {
            self.write_stdin()?;
        }
        if ready.stdout {
            self.read_stdout()?;
        }
        if ready.stderr {
            self.read_stderr()?;
        }
        Ok(())
    }

    /// The child is gone: takes what is in the pipes, and no more than that.
    pub(super) fn drain(&mut self) -> io::Result<()> {
        self.stdin = None;
        while !self.is_stdout_too_large() && matches!(self.read_stdout()?, Moved::Bytes(_)) {}
        let mut heard = 0;
        while heard < LAST_WORDS
            && let Moved::Bytes(count) = self.read_stderr()?
        {
            heard = heard.saturating_add(count);
        }
        Ok(())
    }

    pub(super) fn is_stdout_closed(&self) -> bool {
        self.stdout.is_none()
    }

    pub(super) fn is_stdout_too_large(&self) -> bool {
        self.output.len() > self.cap
    }

    /// Forgets what was printed and goes on reading only so that the child can end in its own way.
    pub(super) fn discard_stdout(&mut self) {
        self.discarding = true;
        self.output.zeroize();
    }

    /// What was printed, whether that was all, and what was said.
    pub(super) fn finish(mut self) -> (Secret<Vec<u8>>, bool, Option<StderrTail>) {
        let closed = self.is_stdout_closed();
        let stderr = match self.said {
            Said::Kept { tail, keep, dropped } => Some(StderrTail::of(tail, keep, dropped)),
            Said::Elsewhere | Said::Forwarded(_) => None,
        };
        (Secret::new(std::mem::take(&mut *self.output)), closed, stderr)
    }

    fn write_stdin(&mut self) -> io::Result<()> {
        let Some(stdin) = &self.stdin else { return Ok(()) };
        match platform::write(stdin, self.to_write)? {
            Moved::Bytes(count) => self.to_write = self.to_write.get(count..).unwrap_or_default(),
            Moved::Nothing => {}
            Moved::Closed => self.to_write = &[],
        }
        self.close_stdin_when_done();
        Ok(())
    }

    fn close_stdin_when_done(&mut self) {
        if self.to_write.is_empty() {
            self.stdin = None;
        }
    }

    /// Reads at most one byte more than may be kept: that one says that it is too much.
    fn read_stdout(&mut self) -> io::Result<Moved> {
        let Some(stdout) = &self.stdout else { return Ok(Moved::Closed) };
        make_room(&mut self.output, self.cap.saturating_add(1));
        let before = self.output.len();
        let moved = platform::read(stdout, &mut self.output)?;
        if let (Some(receiver), Some(new)) = (&self.shown, self.output.get(before..))
            && !self.discarding
            && !new.is_empty()
        {
            receiver(new);
        }
        if self.discarding {
            self.output.zeroize();
        }
        if moved == Moved::Closed {
            self.stdout = None;
        }
        Ok(moved)
    }

    fn read_stderr(&mut self) -> io::Result<Moved> {
        let Some(stderr) = &self.stderr else { return Ok(Moved::Closed) };
        self.chunk.clear();
        self.chunk.reserve(CHUNK);
        let moved = platform::read(stderr, &mut self.chunk)?;
        match moved {
            Moved::Bytes(_) => self.said.hear(&self.chunk),
            Moved::Nothing => {}
            Moved::Closed => self.stderr = None,
        }
        Ok(moved)
    }
}

/// Where stderr goes.
enum Said {
    Elsewhere,
    Kept { tail: Vec<u8>, keep: usize, dropped: bool },
    Forwarded(StderrReceiver),
}

impl Said {
    fn hear(&mut self, bytes: &[u8]) {
        match self {
            Said::Elsewhere => {}
            Said::Forwarded(receiver) => receiver(bytes),
            Said::Kept { tail, keep, dropped } => {
                tail.extend_from_slice(bytes);
                // Cut off rarely rather than with every piece.
                if tail.len() > keep.saturating_mul(2).saturating_add(CHUNK) {
                    let excess = tail.len().saturating_sub(*keep);
                    tail.drain(..excess);
                    *dropped = true;
                }
            }
        }
    }
}

/// Makes sure there is room to read into, up to `most` bytes in all. Grows by hand: the standard library would leave
/// the old copy of what may be a token in freed memory.
fn make_room(buffer: &mut Vec<u8>, most: usize) {
    if buffer.len() < buffer.capacity() {
        return;
    }
    let capacity =
        buffer.capacity().saturating_mul(2).max(CHUNK).min(most).max(buffer.len().saturating_add(1));
    let mut larger = Vec::with_capacity(capacity);
    larger.extend_from_slice(buffer);
    buffer.zeroize();
    *buffer = larger;
}
