//! Whether a plugin may talk to the user: decided anew for every run, from standard input and nothing else
//! (client-credentials.md C220–C226).

use std::fmt;
use std::io::{self, IsTerminal};

use thiserror::Error;

/// The terminal this process has, or has not.
pub trait Terminal: fmt::Debug + Send + Sync {
    /// Whether standard input is a terminal. Standard output and error do not matter (C224, C226).
    fn stdin_is_terminal(&self) -> bool;

    /// Whether the process has a controlling terminal, so that Ctrl-C has to reach the plugin (C308).
    fn is_controlling(&self) -> bool;
}

/// The process's own.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessTerminal;

impl Terminal for ProcessTerminal {
    fn stdin_is_terminal(&self) -> bool {
        io::stdin().is_terminal()
    }

    /// Opening the terminal works exactly if there is one. It is closed again at once: nothing is read from it (C226).
    fn is_controlling(&self) -> bool {
        use rustix::fs::{Mode, OFlags};
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        rustix::fs::open("/dev/tty", flags, Mode::empty()).is_ok()
    }
}

/// What standard input is being used for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Stdin {
    /// Nothing: a plugin may have it.
    #[default]
    Free,
    /// Something else, which the message names; kubectl says `used by stdin resource manifest reader` (C223).
    Taken(String),
}

/// Why a plugin that has to talk to the user cannot. The plugin is not started (C221).
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum InteractiveError {
    /// There is nobody to talk to.
    #[error("standard input is not a terminal")]
    NotATerminal,
    /// Somebody else reads what the user types.
    #[error("standard input is unavailable{}", Reason(.0))]
    Unavailable(String),
    /// The mode is none of the three; an empty one for a configuration that no file was read for (C225).
    #[error("unknown interactiveMode: {0:?}")]
    UnknownMode(String),
}

struct Reason<'a>(&'a str);

impl fmt::Display for Reason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, ": {}", self.0) }
    }
}

/// Decides: whether the plugin gets standard input, and so whether `spec.interactive` is true (C220, C222).
///
/// # Errors
/// [`InteractiveError`]: the plugin must talk to the user and cannot.
pub fn decide(mode: &str, terminal: &dyn Terminal, stdin: &Stdin) -> Result<bool, InteractiveError> {
    match mode {
        "Never" => Ok(false),
        "IfAvailable" => Ok(*stdin == Stdin::Free && terminal.stdin_is_terminal()),
        "Always" if !terminal.stdin_is_terminal() => Err(InteractiveError::NotATerminal),
        "Always" => match stdin {
            Stdin::Free => Ok(true),
            Stdin::Taken(message) => Err(InteractiveError::Unavailable(message.clone())),
        },
        _ => Err(InteractiveError::UnknownMode(mode.to_owned())),
    }
}

/// A terminal that is there or not as the test says.
#[cfg(any(test, feature = "test-util"))]
#[derive(Clone, Copy, Debug, Default)]
pub struct FixedTerminal {
    /// Whether standard input is one.
    pub stdin: bool,
    /// Whether there is a controlling one.
    pub controlling: bool,
}

#[cfg(any(test, feature = "test-util"))]
impl Terminal for FixedTerminal {
    fn stdin_is_terminal(&self) -> bool {
        self.stdin
    }

    fn is_controlling(&self) -> bool {
        self.controlling
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // C220, C221, C225, T12: every row of the table; the processes are in tests/.
    #[test]
    fn the_table_of_modes_holds() {
        let taken = || Stdin::Taken("used by stdin resource manifest reader".to_owned());
        let not_a_terminal = Err("standard input is not a terminal");
        let unavailable = Err("standard input is unavailable: used by stdin resource manifest reader");
        let rows = [
            ("Never", true, Stdin::Free, Ok(false)),
            ("Never", false, taken(), Ok(false)),
            ("IfAvailable", true, Stdin::Free, Ok(true)),
            ("IfAvailable", true, taken(), Ok(false)),
            ("IfAvailable", false, Stdin::Free, Ok(false)),
            ("Always", false, Stdin::Free, not_a_terminal),
            ("Always", false, taken(), not_a_terminal),
            ("Always", true, taken(), unavailable),
            ("Always", true, Stdin::Taken(String::new()), Err("standard input is unavailable")),
            ("Always", true, Stdin::Free, Ok(true)),
            ("", true, Stdin::Free, Err("unknown interactiveMode: \"\"")),
            ("never", true, Stdin::Free, Err("unknown interactiveMode: \"never\"")),
        ];
        for (mode, terminal, stdin, expected) in rows {
            let terminal = FixedTerminal { stdin: terminal, controlling: false };
            let decided = decide(mode, &terminal, &stdin).map_err(|error| error.to_string());
            assert_eq!(decided, expected.map_err(str::to_owned), "{mode} {terminal:?} {stdin:?}");
        }
    }
}
