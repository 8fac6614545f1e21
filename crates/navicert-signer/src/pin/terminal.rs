//! A PIN typed at the controlling terminal, without echo.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::PathBuf;

use navicert_plugin::TerminalTurn;
use navicert_types::{Secret, redact};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use zeroize::Zeroizing;

use super::{AskPin, PinError, Question};

const LONGEST: usize = 256;

/// Asks at a terminal. Standard input and output are left alone: they may be pipes.
#[derive(Clone, Debug)]
pub struct TerminalPin {
    path: PathBuf,
}

impl TerminalPin {
    /// The controlling terminal, if there is one.
    pub fn find() -> Option<Self> {
        let path = PathBuf::from("/dev/tty");
        let opened = OpenOptions::new().read(true).write(true).open(&path).ok()?;
        tcgetattr(&opened).ok()?;
        Some(TerminalPin { path })
    }

    /// This terminal.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        TerminalPin { path: path.into() }
    }
}

impl AskPin for TerminalPin {
    fn ask(&self, question: &Question) -> Result<Secret<String>, PinError> {
        let _turn = TerminalTurn::take();
        let failed = |error: std::io::Error| PinError::Terminal(error.to_string());
        let mut terminal = OpenOptions::new().read(true).write(true).open(&self.path).map_err(failed)?;
        // A background job that reads is stopped by the system, and its clients would wait for ever.
        if rustix::termios::tcgetpgrp(&terminal).is_ok_and(|front| front != rustix::process::getpgrp()) {
            return Err(PinError::NobodyToAsk);
        }
        let quiet = Quiet::start(terminal.try_clone().map_err(failed)?)?;
        let warning = if question.last_try { " (last try before it locks itself)" } else { "" };
        let token = redact::terminal(&question.token);
        write!(terminal, "PIN for the token \u{201c}{token}\u{201d}{warning}: ").map_err(failed)?;
        let line = read_line(&mut terminal);
        drop(quiet);
        let _ = terminal.write_all(b"\n");
        line
    }

    fn is_stored(&self) -> bool {
        false
    }
}

/// Reads octet by octet into one buffer that is never moved: no copy of the PIN stays behind.
fn read_line(terminal: &mut File) -> Result<Secret<String>, PinError> {
    let mut line = Zeroizing::new(Vec::with_capacity(LONGEST));
    let mut octet = Zeroizing::new([0]);
    loop {
        match terminal.read(octet.as_mut()) {
            Ok(0) => return Err(PinError::Cancelled),
            Ok(_) if octet.as_ref() == b"\n" || octet.as_ref() == b"\r" => break,
            Ok(_) if line.len() < LONGEST => line.extend_from_slice(octet.as_ref()),
            Ok(_) => return Err(PinError::Terminal("that is too long for a PIN".to_owned())),
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

/// The terminal without echo, until dropped.
struct Quiet {
    terminal: File,
    before: Termios,
}

impl Quiet {
    fn start(terminal: File) -> Result<Self, PinError> {
        let failed = |error: rustix::io::Errno| PinError::Terminal(error.to_string());
        let before = tcgetattr(&terminal).map_err(failed)?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO | LocalModes::ECHOE | LocalModes::ECHOK);
        quiet.local_modes.insert(LocalModes::ICANON | LocalModes::ISIG);
        // What was typed before the question is not the answer.
        tcsetattr(&terminal, OptionalActions::Flush, &quiet).map_err(failed)?;
        Ok(Quiet { terminal, before })
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.before);
    }
}
