//! What a run uses of its process: clock, waits, environment, terminal and messages. Tests pass other values.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use navicert_client::transport::{Timer, TokioTimer};
use navicert_plugin::Environment;
use navicert_types::{Clock, SystemClock};

use crate::keyring::{DesktopKeyring, Keyring};

/// Waits on the calling thread, before there is a runtime.
pub trait Pause: fmt::Debug + Send + Sync {
    /// Returns after this time.
    fn pause(&self, duration: Duration);
}

/// Suspends the thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadPause;

impl Pause for ThreadPause {
    #[expect(clippy::disallowed_methods, reason = "the only place where the lock's waiters wait for time")]
    fn pause(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

/// Shows messages to the person, on standard error.
pub trait Messages: fmt::Debug + Send + Sync {
    /// Shows one message. The text is escaped here or by the implementation.
    fn show(&self, text: &str);
}

/// Which standard streams are terminals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terminals {
    /// Standard input.
    pub stdin: bool,
    /// Standard output.
    pub stdout: bool,
    /// Standard error.
    pub stderr: bool,
}

/// How the run was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invocation {
    /// By a Kubernetes client, which says whether standard input is the person's.
    Exec {
        /// `spec.interactive`.
        is_interactive: bool,
    },
    /// By a person.
    ByHand,
}

/// Dependencies of a run.
#[derive(Clone, Debug)]
pub struct LoginContext {
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Waits of asynchronous code.
    pub timer: Arc<dyn Timer>,
    /// Waits before there is a runtime.
    pub pause: Arc<dyn Pause>,
    /// The environment.
    pub environment: Environment,
    /// The home folder.
    pub home: Option<PathBuf>,
    /// Which streams are terminals.
    pub terminals: Terminals,
    /// How the run was started.
    pub invocation: Invocation,
    /// The API server that the client sends the token to, if it says so.
    pub server: Option<String>,
    /// The desktop's keyring.
    pub keyring: Arc<dyn Keyring>,
    /// Messages to the person.
    pub messages: Arc<dyn Messages>,
}

impl LoginContext {
    /// The system's clock and waits.
    pub fn new(
        environment: Environment,
        home: Option<PathBuf>,
        invocation: Invocation,
        messages: Arc<dyn Messages>,
    ) -> Self {
        use std::io::IsTerminal as _;
        let terminals = Terminals {
            stdin: std::io::stdin().is_terminal(),
            stdout: std::io::stdout().is_terminal(),
            stderr: std::io::stderr().is_terminal(),
        };
        LoginContext {
            clock: Arc::new(SystemClock),
            timer: Arc::new(TokioTimer),
            pause: Arc::new(ThreadPause),
            environment,
            home,
            terminals,
            invocation,
            server: None,
            keyring: Arc::new(DesktopKeyring),
            messages,
        }
    }

    /// The value of a variable that is set and not empty.
    pub(crate) fn variable(&self, name: &str) -> Option<OsString> {
        self.environment.variable(name).filter(|value| !value.is_empty()).map(ToOwned::to_owned)
    }

    /// The same as text.
    pub(crate) fn text_variable(&self, name: &str) -> Option<String> {
        self.variable(name).and_then(|value| value.into_string().ok())
    }

    /// This machine's name.
    pub(crate) fn host_name() -> String {
        rustix::system::uname().nodename().to_string_lossy().into_owned()
    }
}
