//! A pseudo-terminal: what a program shows to a person, and what the person types.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::process::Stdio;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, tcgetattr};

/// Seconds after which a text that is not shown fails the test.
const TIME_LIMIT_SECONDS: i64 = 60;

/// Both ends of a terminal. The program gets one of them as a standard stream.
#[derive(Debug)]
pub struct PseudoTerminal {
    controller: File,
    terminal: File,
    shown: String,
}

#[expect(clippy::new_without_default, reason = "it opens a device")]
impl PseudoTerminal {
    /// Opens a terminal.
    ///
    /// # Panics
    /// If the system has none.
    pub fn new() -> Self {
        let controller =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
        grantpt(&controller).expect("a terminal");
        unlockpt(&controller).expect("a terminal");
        let name = ptsname(&controller, Vec::new()).expect("the name of a terminal");
        let path = name.to_str().expect("a path");
        let terminal = OpenOptions::new().read(true).write(true).open(path).expect("a terminal");
        PseudoTerminal { controller: File::from(controller), terminal, shown: String::new() }
    }

    /// The program's end, for one of its streams.
    ///
    /// # Panics
    /// If there are too many open files.
    pub fn stream(&self) -> Stdio {
        self.terminal.try_clone().expect("a descriptor").into()
    }

    /// Types a text.
    ///
    /// # Panics
    /// If the terminal is closed.
    pub fn enter(&mut self, text: &str) {
        self.controller.write_all(text.as_bytes()).expect("a terminal");
    }

    /// Waits until the text is shown, and returns everything that was shown until then.
    ///
    /// # Panics
    /// If the text is not shown in time.
    pub fn wait_for(&mut self, text: &str) -> String {
        loop {
            if let Some(at) = self.shown.find(text) {
                let rest = self.shown.split_off(at + text.len());
                return std::mem::replace(&mut self.shown, rest);
            }
            let mut descriptors = [PollFd::new(&self.controller, PollFlags::IN)];
            let limit = Timespec { tv_sec: TIME_LIMIT_SECONDS, tv_nsec: 0 };
            let ready = poll(&mut descriptors, Some(&limit)).expect("a terminal");
            assert!(ready > 0, "`{text}` is not shown: {}", self.shown);
            self.read();
        }
    }

    /// What is shown by now, and was not returned before.
    ///
    /// # Panics
    /// If the terminal is closed.
    pub fn shown(&mut self) -> String {
        loop {
            let mut descriptors = [PollFd::new(&self.controller, PollFlags::IN)];
            let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
            if poll(&mut descriptors, Some(&at_once)).expect("a terminal") == 0 {
                return std::mem::take(&mut self.shown);
            }
            self.read();
        }
    }

    fn read(&mut self) {
        let mut piece = [0; 1024];
        let count = self.controller.read(&mut piece).expect("a terminal");
        self.shown.push_str(&String::from_utf8_lossy(piece.get(..count).unwrap_or_default()));
    }

    /// Whether the terminal shows what is typed.
    ///
    /// # Panics
    /// If the terminal is closed.
    pub fn has_echo(&self) -> bool {
        tcgetattr(&self.terminal).expect("a terminal").local_modes.contains(LocalModes::ECHO)
    }
}
