//! Runs the user's command in the foreground: it uses the terminal, receives signals, and its exit status becomes this
//! process's. For `navicert run`; plugins use [`Runner`](crate::Runner).
//!
//! The child stays in this process group, as with `env` or `nice`: the terminal sends Ctrl-C, Ctrl-\, Ctrl-Z and window
//! size changes to it directly, and job control stops and continues both processes. Signals sent to this process only
//! (`kill`) are forwarded.

use std::io;
use std::process::Stdio;
use std::sync::Arc;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;

use crate::command::{Command, ProcessGroup, Stderr, Stdin};
use crate::error::RunError;
use crate::platform::{self, SignalTarget};
use crate::policy::Permitted;
use crate::process::start;
use crate::runner::Exit;

/// Signals forwarded to the child.
const FORWARDED_SIGNALS: [i32; 6] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];
/// Forwarded signals that the terminal sends to the whole process group, including the child.
const KEYBOARD_SIGNALS: [i32; 2] = [SIGINT, SIGQUIT];

/// Runs a command to its end with this process's standard streams; calls `started` as soon as it runs.
///
/// From then on the forwarded signals no longer end this process. Signals that were ignored at start stay ignored, in the
/// child too.
///
/// # Errors
/// The command could not be started, or its exit status is unavailable.
pub fn run(command: Permitted<Command>, started: impl FnOnce()) -> Result<Exit, RunError> {
    let (command, program) = command.into_parts();
    let command = command.stdin(Stdin::Inherit).stderr(Stderr::Inherit).process_group(ProcessGroup::Inherit);
    let path = program.path.clone();
    let io_error = |source| RunError::Io { program: path.clone(), source: Arc::new(source) };
    // Register before starting the child, so that no signal is lost.
    let ignored = platform::ignored_signals();
    let forwarded = FORWARDED_SIGNALS.into_iter().filter(|signal| !ignored.contains(signal));
    let mut signals = Signals::new(forwarded).map_err(io_error)?;
    let mut child = start(&command, &program, Stdio::inherit())?;
    let recipient = SignalTarget::from_child(&child);
    let handle = signals.handle();
    let forwarder = std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            if !(KEYBOARD_SIGNALS.contains(&signal) && platform::is_foreground()) {
                recipient.send(signal);
            }
        }
    });
    started();
    let ended = child.wait();
    handle.close();
    if let Ok(thread) = forwarder {
        let _ = thread.join();
    }
    ended
        .map(platform::exit_from_status)
        .map_err(|source| RunError::StatusLost { program: path.clone(), source: Arc::new(source) })
}

/// Starts a command that outlives this process, without terminal or output, in its own process group.
///
/// # Errors
/// The command could not be started.
pub fn spawn_detached(command: Permitted<Command>) -> Result<(), RunError> {
    let (command, program) = command.into_parts();
    let command = command.stdin(Stdin::Null).stderr(Stderr::Tail(0)).process_group(ProcessGroup::New);
    // The child is not reaped, so it may remain a zombie until this process ends, which it waits for.
    let _ = start(&command, &program, Stdio::null())?;
    Ok(())
}

/// Ends this process with the signal that ended the child, so that a shell sees the same status: a loop stops after
/// Ctrl-C. Returns only on failure.
///
/// # Errors
/// The signal does not end the process.
pub fn exit_by_signal(signal: i32) -> io::Result<()> {
    signal_hook::low_level::emulate_default_handler(signal)
}

/// Makes this process survive Ctrl-C and Ctrl-\, for a program that stays while another one uses the terminal. Programs
/// that it starts are not affected.
///
/// # Errors
/// The signals cannot be registered.
pub fn survive_keyboard_signals() -> io::Result<()> {
    for signal in KEYBOARD_SIGNALS {
        signal_hook::flag::register(signal, Arc::default())?;
    }
    Ok(())
}

/// Catches the termination signals SIGHUP, SIGINT and SIGTERM while it exists.
#[derive(Debug)]
pub struct TerminationSignals(Signals);

impl TerminationSignals {
    /// Registers the signals, except those that were ignored at start.
    ///
    /// # Errors
    /// The signals cannot be registered.
    pub fn register() -> io::Result<Self> {
        let ignored = platform::ignored_signals();
        let wanted = [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|signal| !ignored.contains(signal));
        Signals::new(wanted).map(TerminationSignals)
    }

    /// Waits for the first signal.
    pub fn wait(mut self) {
        self.0.forever().next();
    }
}
