//! Reads a PIN from the controlling terminal, without echo.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::PathBuf;

use navicert_plugin::TerminalLock;
use navicert_types::{Secret, redact};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
use zeroize::Zeroizing;

use super::{PinError, PinPrompt, PinProvider};

const MAX_PIN_BYTES: usize = 256;
pub(super) const CONTROLLING_TERMINAL: &str = "/dev/tty";
/// What Ctrl-C types.
const INTERRUPT: u8 = 3;

/// Asks for the PIN on a terminal. Standard input and output are not used: they may be pipes.
#[derive(Clone, Debug)]
pub struct TerminalPin {
    path: PathBuf,
}

impl TerminalPin {
    /// The controlling terminal, if the process has one.
    pub fn find() -> Option<Self> {
        let path = PathBuf::from(CONTROLLING_TERMINAL);
        let opened = OpenOptions::new().read(true).write(true).open(&path).ok()?;
        tcgetattr(&opened).ok()?;
        Some(TerminalPin { path })
    }

    /// Uses the terminal at this path.
    pub fn with_path(path: impl Into<PathBuf>) -> Self {
        TerminalPin { path: path.into() }
    }
}

impl PinProvider for TerminalPin {
    fn request_pin(&self, prompt: &PinPrompt) -> Result<Secret<String>, PinError> {
        let _turn = TerminalLock::acquire();
        let failed = |error: std::io::Error| PinError::Terminal(error.to_string());
        let mut terminal = OpenOptions::new().read(true).write(true).open(&self.path).map_err(failed)?;
        // The kernel stops a background job that reads from the terminal, and its clients would wait forever.
        if rustix::termios::tcgetpgrp(&terminal).is_ok_and(|front| front != rustix::process::getpgrp()) {
            return Err(PinError::NoProvider);
        }
        let echo_off = EchoOff::start(terminal.try_clone().map_err(failed)?)?;
        let warning = if prompt.last_try { " (last try before it locks itself)" } else { "" };
        let token = redact::terminal(&prompt.token);
        write!(terminal, "PIN for the token \u{201c}{token}\u{201d}{warning}: ").map_err(failed)?;
        let line = read_line(&mut terminal);
        drop(echo_off);
        let _ = terminal.write_all(b"\n");
        line
    }

    fn is_stored(&self) -> bool {
        false
    }
}

/// Reads byte by byte into a buffer that never reallocates, so that no copy of the PIN remains in memory.
fn read_line(terminal: &mut File) -> Result<Secret<String>, PinError> {
    let mut line = Zeroizing::new(Vec::with_capacity(MAX_PIN_BYTES));
    let mut octet = Zeroizing::new([0]);
    loop {
        match terminal.read(octet.as_mut()) {
            Ok(0) => return Err(PinError::Cancelled),
            Ok(_) if octet.as_ref() == [INTERRUPT] => return Err(PinError::Cancelled),
            Ok(_) if octet.as_ref() == b"\n" || octet.as_ref() == b"\r" => break,
            Ok(_) if line.len() < MAX_PIN_BYTES => line.extend_from_slice(octet.as_ref()),
            Ok(_) => return Err(PinError::Terminal("the PIN is too long".to_owned())),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(PinError::Terminal(error.to_string())),
        }
    }
    let text =
        std::str::from_utf8(&line).map_err(|_| PinError::Terminal("the PIN is not UTF-8".to_owned()))?;
    if text.is_empty() {
        return Err(PinError::Empty);
    }
    Ok(Secret::new(text.to_owned()))
}

/// Disables the terminal's echo until dropped.
struct EchoOff {
    terminal: File,
    before: Termios,
}

impl EchoOff {
    fn start(terminal: File) -> Result<Self, PinError> {
        let failed = |error: rustix::io::Errno| PinError::Terminal(error.to_string());
        let before = tcgetattr(&terminal).map_err(failed)?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO | LocalModes::ECHOE | LocalModes::ECHOK | LocalModes::ISIG);
        quiet.local_modes.insert(LocalModes::ICANON);
        // Ctrl-C ends the line instead of this process, which could not turn the echo on again.
        quiet.special_codes[SpecialCodeIndex::VEOL] = INTERRUPT;
        // Discards input typed before the prompt.
        tcsetattr(&terminal, OptionalActions::Flush, &quiet).map_err(failed)?;
        Ok(EchoOff { terminal, before })
    }
}

impl Drop for EchoOff {
    fn drop(&mut self) {
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.before);
    }
}
