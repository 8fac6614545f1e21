//! Running the command a person typed, as if we were not there: it has the terminal, its signals reach it, and its end is
//! ours. For `navicert run`; plugins go through [`Runner`](crate::Runner).
//!
//! The child stays in our process group, as under `env` or `nice`: Ctrl-C, Ctrl-\, Ctrl-Z and a resized window reach it from
//! the terminal without our doing, and job control stops and continues both of us together. What is sent to us alone
//! (`kill`) is passed on.

use std::io;
use std::process::Stdio;
use std::sync::Arc;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;

use crate::command::{Command, ProcessGroup, Stderr, Stdin};
use crate::error::RunError;
use crate::platform::{self, Recipient};
use crate::policy::Permitted;
use crate::process::start;
use crate::runner::Exit;

/// Signals that are the child's, when they are sent to us.
const PASSED_ON: [i32; 6] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];
/// Those of them that a terminal sends to the whole group, the child included.
const FROM_KEYBOARD: [i32; 2] = [SIGINT, SIGQUIT];

/// Runs a command to its end with our standard input, output and error; `started` is called as soon as it runs.
///
/// From the call on, the signals above no longer end this process, except those it was started to ignore: they stay
/// ignored, by the child too.
///
/// # Errors
/// It could not be started, or its end could not be learned.
pub fn run(command: Permitted<Command>, started: impl FnOnce()) -> Result<Exit, RunError> {
    let (command, program) = command.into_parts();
    let command = command.stdin(Stdin::Inherit).stderr(Stderr::Inherit).process_group(ProcessGroup::Inherit);
    let path = program.path.clone();
    let contact = |source| RunError::Contact { program: path.clone(), source: Arc::new(source) };
    // Before the start, so that no signal falls between.
    let ignored = platform::ignored_signals();
    let wanted = PASSED_ON.into_iter().filter(|signal| !ignored.contains(signal));
    let mut signals = Signals::new(wanted).map_err(contact)?;
    let mut child = start(&command, &program, Stdio::inherit())?;
    let recipient = Recipient::of(&child);
    let handle = signals.handle();
    let passing_on = std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            if !(FROM_KEYBOARD.contains(&signal) && platform::is_foreground()) {
                recipient.send(signal);
            }
        }
    });
    started();
    let ended = child.wait();
    handle.close();
    if let Ok(thread) = passing_on {
        let _ = thread.join();
    }
    ended
        .map(platform::exit_of)
        .map_err(|source| RunError::StatusLost { program: path.clone(), source: Arc::new(source) })
}

/// Starts a command that is to outlive us, with no terminal, no output and a process group of its own, and forgets it.
///
/// # Errors
/// It could not be started.
pub fn leave_behind(command: Permitted<Command>) -> Result<(), RunError> {
    let (command, program) = command.into_parts();
    let command = command.stdin(Stdin::Null).stderr(Stderr::Tail(0)).process_group(ProcessGroup::New);
    // Whoever does not wait for a child leaves a zombie, but only until its own end, which this one waits for.
    let _ = start(&command, &program, Stdio::null())?;
    Ok(())
}

/// Ends this process by the signal that ended the child, so that a shell sees what it would have seen: a loop stops
/// after Ctrl-C. Returns only if that is not possible.
///
/// # Errors
/// The signal does not end a process.
pub fn end_by(signal: i32) -> io::Result<()> {
    signal_hook::low_level::emulate_default_handler(signal)
}

/// The signals that ask a long-running program to end, caught from the moment this exists.
#[derive(Debug)]
pub struct Ends(Signals);

impl Ends {
    /// Catches them, except those that this process was started to ignore.
    ///
    /// # Errors
    /// They cannot be caught.
    pub fn catch() -> io::Result<Self> {
        let ignored = platform::ignored_signals();
        let wanted = [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|signal| !ignored.contains(signal));
        Signals::new(wanted).map(Ends)
    }

    /// Waits for the first one.
    pub fn wait(mut self) {
        self.0.forever().next();
    }
}
