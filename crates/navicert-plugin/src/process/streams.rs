//! The standard streams of a child: pending input and captured output.

use std::io;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use std::sync::Arc;
use std::time::Duration;

use navicert_types::Secret;
use zeroize::{Zeroize, Zeroizing};

use crate::command::{Command, Stderr, StderrReceiver, StdoutReceiver};
use crate::platform::{self, ChildHandle, IoProgress, Ready};
use crate::runner::StderrTail;

/// Bytes read at a time. Most plugin output fits.
const CHUNK_BYTES: usize = 4 * 1024;
/// Bytes of stderr read after the child has exited: the capacity of a pipe.
const MAX_STDERR_DRAIN_BYTES: usize = 64 * 1024;

pub(super) struct Streams<'a> {
    stdin: Option<ChildStdin>,
    to_write: &'a [u8],
    stdout: Option<ChildStdout>,
    /// Always zeroized: it may be a token.
    output: Zeroizing<Vec<u8>>,
    cap: usize,
    stdout_receiver: Option<StdoutReceiver>,
    discarding: bool,
    stderr: Option<ChildStderr>,
    stderr_sink: StderrSink,
    chunk: Vec<u8>,
}

impl<'a> Streams<'a> {
    /// Takes the pipes of the child.
    pub(super) fn from_child(child: &mut Child, command: &'a Command) -> Self {
        Streams {
            stdin: child.stdin.take(),
            to_write: command.stdin_bytes().map_or(&[], |bytes| bytes.expose()),
            stdout: child.stdout.take(),
            output: Zeroizing::default(),
            cap: command.stdout_cap,
            stdout_receiver: command.stdout_receiver.clone(),
            discarding: false,
            stderr: child.stderr.take(),
            stderr_sink: match &command.stderr {
                Stderr::Inherit | Stderr::Null => StderrSink::Inherited,
                Stderr::Tail(keep) => StderrSink::Kept { tail: Vec::new(), keep: *keep, dropped: false },
                Stderr::Forward(receiver) => StderrSink::Forwarded(Arc::clone(receiver)),
            },
            chunk: Vec::new(),
        }
    }

    /// Makes all pipes non-blocking.
    pub(super) fn prepare(&mut self) -> io::Result<()> {
        self.stdin.iter().try_for_each(platform::set_nonblocking)?;
        self.stdout.iter().try_for_each(platform::set_nonblocking)?;
        self.stderr.iter().try_for_each(platform::set_nonblocking)?;
        self.close_stdin_when_done();
        Ok(())
    }

    /// Waits until a stream is ready, the child has exited, or the time is up.
    pub(super) fn wait(&self, child: Option<&ChildHandle>, at_most: Duration) -> io::Result<Ready> {
        platform::wait(self.stdin.as_ref(), self.stdout.as_ref(), self.stderr.as_ref(), child, at_most)
    }

    /// Reads or writes once on every ready stream.
    pub(super) fn transfer(&mut self, ready: Ready) -> io::Result<()> {
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

    /// Reads what is left in the pipes after the child has exited.
    pub(super) fn drain(&mut self) -> io::Result<()> {
        self.stdin = None;
        while !self.is_stdout_too_large() && matches!(self.read_stdout()?, IoProgress::Bytes(_)) {}
        let mut drained = 0;
        while drained < MAX_STDERR_DRAIN_BYTES
            && let IoProgress::Bytes(count) = self.read_stderr()?
        {
            drained = drained.saturating_add(count);
        }
        Ok(())
    }

    pub(super) fn is_stdout_closed(&self) -> bool {
        self.stdout.is_none()
    }

    pub(super) fn is_stdout_too_large(&self) -> bool {
        self.output.len() > self.cap
    }

    /// Discards the output, and continues reading only so that the child does not block.
    pub(super) fn discard_stdout(&mut self) {
        self.discarding = true;
        self.output.zeroize();
    }

    /// Stdout, whether it reached end of file, and the tail of stderr.
    pub(super) fn finish(mut self) -> (Secret<Vec<u8>>, bool, Option<StderrTail>) {
        let closed = self.is_stdout_closed();
        let stderr = match self.stderr_sink {
            StderrSink::Kept { tail, keep, dropped } => Some(StderrTail::from_bytes(tail, keep, dropped)),
            StderrSink::Inherited | StderrSink::Forwarded(_) => None,
        };
        (Secret::new(std::mem::take(&mut *self.output)), closed, stderr)
    }

    fn write_stdin(&mut self) -> io::Result<()> {
        let Some(stdin) = &self.stdin else { return Ok(()) };
        match platform::write(stdin, self.to_write)? {
            IoProgress::Bytes(count) => self.to_write = self.to_write.get(count..).unwrap_or_default(),
            IoProgress::Nothing => {}
            IoProgress::Closed => self.to_write = &[],
        }
        self.close_stdin_when_done();
        Ok(())
    }

    fn close_stdin_when_done(&mut self) {
        if self.to_write.is_empty() {
            self.stdin = None;
        }
    }

    /// Reads at most one byte more than the cap, which shows that the output is too large.
    fn read_stdout(&mut self) -> io::Result<IoProgress> {
        let Some(stdout) = &self.stdout else { return Ok(IoProgress::Closed) };
        reserve_zeroizing(&mut self.output, self.cap.saturating_add(1));
        let before = self.output.len();
        let moved = platform::read(stdout, &mut self.output)?;
        if let (Some(receiver), Some(new)) = (&self.stdout_receiver, self.output.get(before..))
            && !self.discarding
            && !new.is_empty()
        {
            receiver(new);
        }
        if self.discarding {
            self.output.zeroize();
        }
        if moved == IoProgress::Closed {
            self.stdout = None;
        }
        Ok(moved)
    }

    fn read_stderr(&mut self) -> io::Result<IoProgress> {
        let Some(stderr) = &self.stderr else { return Ok(IoProgress::Closed) };
        self.chunk.clear();
        self.chunk.reserve(CHUNK_BYTES);
        let moved = platform::read(stderr, &mut self.chunk)?;
        match moved {
            IoProgress::Bytes(_) => self.stderr_sink.write(&self.chunk),
            IoProgress::Nothing => {}
            IoProgress::Closed => self.stderr = None,
        }
        Ok(moved)
    }
}

/// The destination of stderr.
enum StderrSink {
    Inherited,
    Kept { tail: Vec<u8>, keep: usize, dropped: bool },
    Forwarded(StderrReceiver),
}

impl StderrSink {
    fn write(&mut self, bytes: &[u8]) {
        match self {
            StderrSink::Inherited => {}
            StderrSink::Forwarded(receiver) => receiver(bytes),
            StderrSink::Kept { tail, keep, dropped } => {
                tail.extend_from_slice(bytes);
                // Truncate rarely rather than with every chunk.
                if tail.len() > keep.saturating_mul(2).saturating_add(CHUNK_BYTES) {
                    let excess = tail.len().saturating_sub(*keep);
                    tail.drain(..excess);
                    *dropped = true;
                }
            }
        }
    }
}

/// Reserves capacity for a read, up to `max` bytes in total. Grows manually and zeroizes the old buffer: `Vec` would leave
/// a copy of a possible token in freed memory.
fn reserve_zeroizing(buffer: &mut Vec<u8>, max: usize) {
    if buffer.len() < buffer.capacity() {
        return;
    }
    let capacity =
        buffer.capacity().saturating_mul(2).max(CHUNK_BYTES).min(max).max(buffer.len().saturating_add(1));
    let mut larger = Vec::with_capacity(capacity);
    larger.extend_from_slice(buffer);
    buffer.zeroize();
    *buffer = larger;
}
