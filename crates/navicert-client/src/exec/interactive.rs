//! Decides whether a plugin may interact with the user: for every run, from standard input only.
// C220–C226

use std::fmt;
use std::io::{self, IsTerminal};

use navicert_types::kubeconfig::InteractiveMode;
use thiserror::Error;

/// The terminal of this process, if any.
pub trait Terminal: fmt::Debug + Send + Sync {
    /// Whether standard input is a terminal. Standard output and error are irrelevant.
    // C224, C226
    fn stdin_is_terminal(&self) -> bool;

    /// Whether the process has a controlling terminal, so that Ctrl-C must reach the plugin.
    // C308
    fn has_controlling_terminal(&self) -> bool;
}

/// The terminal of this process.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessTerminal;

impl Terminal for ProcessTerminal {
    fn stdin_is_terminal(&self) -> bool {
        io::stdin().is_terminal()
    }

    /// Opening `/dev/tty` succeeds exactly if there is a controlling terminal. It is closed immediately without reading.
    // C226
    fn has_controlling_terminal(&self) -> bool {
        use rustix::fs::{Mode, OFlags};
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        rustix::fs::open("/dev/tty", flags, Mode::empty()).is_ok()
    }
}

/// What standard input is used for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum StdinUse {
    /// Unused: a plugin may use it.
    #[default]
    Free,
    /// Used by something else, which the message names, such as kubectl's `used by stdin resource manifest reader`.
    // C223
    Taken(String),
}

/// Why a plugin that requires interaction cannot have it. The plugin is not started.
// C221
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum InteractiveError {
    /// There is no terminal.
    #[error("standard input is not a terminal")]
    NotATerminal,
    /// Standard input is used by something else.
    #[error("standard input is unavailable{}", Reason(.0))]
    Unavailable(String),
    /// The mode is not one of the three; empty for a configuration that was not read from a file.
    // C225
    #[error("unknown interactiveMode: {0:?}")]
    UnknownMode(String),
}

struct Reason<'a>(&'a str);

impl fmt::Display for Reason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, ": {}", self.0) }
    }
}

/// Decides whether the plugin gets standard input, and thus the value of `spec.interactive`.
///
/// # Errors
/// [`InteractiveError`]: the plugin requires interaction that is not available.
// C220, C222
pub fn decide(
    mode: &InteractiveMode,
    terminal: &dyn Terminal,
    stdin: &StdinUse,
) -> Result<bool, InteractiveError> {
    match mode {
        InteractiveMode::Never => Ok(false),
        InteractiveMode::IfAvailable => Ok(*stdin == StdinUse::Free && terminal.stdin_is_terminal()),
        InteractiveMode::Always if !terminal.stdin_is_terminal() => Err(InteractiveError::NotATerminal),
        InteractiveMode::Always => match stdin {
            StdinUse::Free => Ok(true),
            StdinUse::Taken(message) => Err(InteractiveError::Unavailable(message.clone())),
        },
        _ => Err(InteractiveError::UnknownMode(mode.as_str().to_owned())),
    }
}

/// A terminal for tests.
#[cfg(any(test, feature = "test-util"))]
#[derive(Clone, Copy, Debug, Default)]
pub struct FixedTerminal {
    /// Whether standard input is a terminal.
    pub stdin: bool,
    /// Whether there is a controlling terminal.
    pub controlling: bool,
}

#[cfg(any(test, feature = "test-util"))]
impl Terminal for FixedTerminal {
    fn stdin_is_terminal(&self) -> bool {
        self.stdin
    }

    fn has_controlling_terminal(&self) -> bool {
        self.controlling
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // C220, C221, C225, T12: every row of the table; the processes are in tests/.
    #[test]
    fn modes_decide_about_standard_input() {
        let taken = || StdinUse::Taken("used by stdin resource manifest reader".to_owned());
        let not_a_terminal = Err("standard input is not a terminal");
        let unavailable = Err("standard input is unavailable: used by stdin resource manifest reader");
        let rows = [
            ("Never", true, StdinUse::Free, Ok(false)),
            ("Never", false, taken(), Ok(false)),
            ("IfAvailable", true, StdinUse::Free, Ok(true)),
            ("IfAvailable", true, taken(), Ok(false)),
            ("IfAvailable", false, StdinUse::Free, Ok(false)),
            ("Always", false, StdinUse::Free, not_a_terminal),
            ("Always", false, taken(), not_a_terminal),
            ("Always", true, taken(), unavailable),
            ("Always", true, StdinUse::Taken(String::new()), Err("standard input is unavailable")),
            ("Always", true, StdinUse::Free, Ok(true)),
            ("", true, StdinUse::Free, Err("unknown interactiveMode: \"\"")),
            ("never", true, StdinUse::Free, Err("unknown interactiveMode: \"never\"")),
        ];
        for (mode, terminal, stdin, expected) in rows {
            let terminal = FixedTerminal { stdin: terminal, controlling: false };
            let decided = decide(&mode.into(), &terminal, &stdin).map_err(|error| error.to_string());
            assert_eq!(decided, expected.map_err(str::to_owned), "{mode} {terminal:?} {stdin:?}");
        }
    }
}
