//! Reads what a person types on standard input. The terminal's mode is restored on every way out.

use std::io::{self, PipeReader, PipeWriter, Write as _};
use std::thread::JoinHandle;
use std::time::Duration;

use navicert_plugin::TerminalLock;
use navicert_types::Secret;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use zeroize::Zeroizing;

use crate::context::LoginContext;
use crate::error::LoginError;

/// The longest text.
const MAX_BYTES: usize = 16 * 1024;
const INTERRUPT: u8 = 3;
const END_OF_INPUT: u8 = 4;
const BACKSPACE: [u8; 2] = [8, 127];
/// How often the limit is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Reads a line that the person sees.
pub(crate) fn read_line(
    prompt: &str,
    context: &LoginContext,
    limit: Duration,
) -> Result<Secret<String>, LoginError> {
    read(prompt, true, context, limit)
}

/// Reads a line without echo.
pub(super) fn read_hidden(
    prompt: &str,
    context: &LoginContext,
    limit: Duration,
) -> Result<Secret<String>, LoginError> {
    read(prompt, false, context, limit)
}

fn read(
    prompt: &str,
    has_echo: bool,
    context: &LoginContext,
    limit: Duration,
) -> Result<Secret<String>, LoginError> {
    read_until(prompt, has_echo, context, limit, None)
}

/// Reads a line, unless the other end of `cancelled` is closed first.
fn read_until(
    prompt: &str,
    has_echo: bool,
    context: &LoginContext,
    limit: Duration,
    cancelled: Option<&PipeReader>,
) -> Result<Secret<String>, LoginError> {
    let _turn = TerminalLock::acquire();
    let mode = RawMode::start().map_err(|error| failed(&error))?;
    write(prompt.as_bytes());
    let result = read_bytes(has_echo, context, limit, cancelled);
    drop(mode);
    write(b"\n");
    let bytes = result?;
    let text = std::str::from_utf8(&bytes).map_err(|_| LoginError::Pasted)?;
    Ok(Secret::new(text.to_owned()))
}

/// Reads until the end of the line. Not in the terminal's line mode, which cuts lines at 4,095 bytes.
fn read_bytes(
    has_echo: bool,
    context: &LoginContext,
    limit: Duration,
    cancelled: Option<&PipeReader>,
) -> Result<Zeroizing<Vec<u8>>, LoginError> {
    let deadline = context.clock.monotonic().saturating_add(limit);
    let mut line = Zeroizing::new(Vec::with_capacity(MAX_BYTES));
    let mut byte = Zeroizing::new([0]);
    loop {
        if !wait_for_input(context, deadline, limit, cancelled)? {
            continue;
        }
        // Not through the standard library's buffer, which would keep what `poll` waits for.
        match rustix::io::read(io::stdin(), byte.as_mut_slice()) {
            Ok(0) => return Err(LoginError::Interrupted { signal: None }),
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(failed(&error.into())),
        }
        let [typed] = *byte;
        match typed {
            INTERRUPT => return Err(LoginError::Interrupted { signal: Some(2) }),
            END_OF_INPUT => return Err(LoginError::Interrupted { signal: None }),
            b'\n' | b'\r' => return Ok(line),
            typed if BACKSPACE.contains(&typed) => {
                if line.pop().is_some() && has_echo {
                    write(b"\x08 \x08");
                }
            }
            typed if line.len() < MAX_BYTES => {
                line.push(typed);
                if has_echo && (typed.is_ascii_graphic() || typed == b' ' || !typed.is_ascii()) {
                    write(&[typed]);
                }
            }
            _ => return Err(LoginError::Pasted),
        }
    }
}

/// Whether there is input; an error after the deadline.
fn wait_for_input(
    context: &LoginContext,
    deadline: Duration,
    limit: Duration,
    cancelled: Option<&PipeReader>,
) -> Result<bool, LoginError> {
    if context.clock.monotonic() >= deadline {
        return Err(LoginError::TimedOut { limit });
    }
    let stdin = io::stdin();
    let mut descriptors = vec![PollFd::new(&stdin, PollFlags::IN)];
    descriptors.extend(cancelled.map(|pipe| PollFd::new(pipe, PollFlags::IN)));
    let interval = Timespec { tv_sec: 0, tv_nsec: i64::from(POLL_INTERVAL.subsec_nanos()) };
    match poll(&mut descriptors, Some(&interval)) {
        Ok(_) if descriptors.get(1).is_some_and(|pipe| !pipe.revents().is_empty()) => {
            Err(LoginError::Interrupted { signal: None })
        }
        Ok(count) => Ok(count > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(failed(&error.into())),
    }
}

fn failed(error: &io::Error) -> LoginError {
    LoginError::Internal(format!("failed to read from the terminal: {error}"))
}

/// Writes to standard error; without a reader there is no prompt to see.
fn write(bytes: &[u8]) {
    let mut stderr = io::stderr();
    let _ = stderr.write_all(bytes);
    let _ = stderr.flush();
}

/// Reads lines on a thread of its own, while the caller waits for something else too. The terminal is restored when this is dropped.
pub(super) struct BackgroundPrompt {
    lines: UnboundedReceiver<Result<Secret<String>, LoginError>>,
    /// Closed to end the thread.
    cancel: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

impl BackgroundPrompt {
    pub(super) fn start(prompt: &'static str, context: &LoginContext, limit: Duration) -> io::Result<Self> {
        let (cancelled, cancel) = io::pipe()?;
        let (sender, lines) = unbounded_channel();
        let context = context.clone();
        let thread = std::thread::Builder::new().spawn(move || {
            loop {
                let line = read_until(prompt, true, &context, limit, Some(&cancelled));
                let is_last = line.is_err();
                if sender.send(line).is_err() || is_last {
                    return;
                }
            }
        })?;
        Ok(BackgroundPrompt { lines, cancel: Some(cancel), thread: Some(thread) })
    }

    /// The next line, or why there is none.
    pub(super) async fn line(&mut self) -> Result<Secret<String>, LoginError> {
        self.lines.recv().await.unwrap_or(Err(LoginError::Interrupted { signal: None }))
    }
}

impl Drop for BackgroundPrompt {
    fn drop(&mut self) {
        drop(self.cancel.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Turns off echo, line mode and signals by keys until dropped.
struct RawMode {
    before: Termios,
}

impl RawMode {
    fn start() -> io::Result<Self> {
        let stdin = io::stdin();
        let before = tcgetattr(&stdin)?;
        let mut raw = before.clone();
        raw.local_modes.remove(LocalModes::ECHO | LocalModes::ECHONL | LocalModes::ICANON | LocalModes::ISIG);
        raw.special_codes[SpecialCodeIndex::VMIN] = 1;
        raw.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(&stdin, OptionalActions::Now, &raw)?;
        Ok(RawMode { before })
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}
