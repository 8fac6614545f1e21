//! Opens the user's browser: whether there is one, which program opens it, and how it is started.

mod choose;
mod openable_url;
mod words;

use std::time::Duration;

use navicert_plugin::resolve::resolve;
use navicert_plugin::{Command, Environment, Exit, PermitError, Policy, RunError, foreground};
use thiserror::Error;

use crate::context::LoginContext;
use crate::error::LoginError;
use crate::request::LoginRequest;
use choose::Candidate;

pub use choose::{BrowserContext, Platform};
pub use openable_url::{OpenableUrl, UnsafeUrl};
pub use words::BrowserCommandError;

/// The browser that a request's person has, if there is one.
pub(crate) fn find(request: &LoginRequest, context: &LoginContext) -> Result<Option<Browser>, LoginError> {
    let environment = context.environment.clone();
    let platform = Platform::detect(&environment);
    let command = request.browser.command.clone();
    Browser::detect(&BrowserContext { command, environment, platform })
        .map_err(|error| LoginError::Usage(format!("invalid --browser-command: {error}")))
}

/// An opener that fails within this time has not opened a browser.
pub const OPENER_GRACE: Duration = Duration::from_secs(3);

/// A browser can be opened: which programs to try, in order.
#[derive(Clone, Debug)]
pub struct Browser {
    candidates: Vec<Candidate>,
    environment: Environment,
}

/// No program opened the address.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// No candidate is installed, or all of them would take the terminal.
    #[error("no program to open a browser was found (tried {})", .tried.join(", "))]
    NoProgram {
        /// Their names.
        tried: Vec<String>,
    },
    /// The last candidate may not be started.
    #[error("failed to start `{program}`")]
    Permit {
        /// The program.
        program: String,
        /// Why.
        source: PermitError,
    },
    /// The last candidate could not be started.
    #[error("failed to start `{program}`")]
    Start {
        /// The program.
        program: String,
        /// Why.
        source: RunError,
    },
    /// The last candidate ended with an error within [`OPENER_GRACE`].
    #[error("`{program}` failed to open a browser: {status}")]
    Failed {
        /// The program.
        program: String,
        /// How it ended.
        status: Exit,
    },
}

impl Browser {
    /// The user's browser, if there is one: `--browser-command` or `BROWSER` is set, or this is a desktop session that is
    /// not used through SSH.
    ///
    /// # Errors
    /// `--browser-command` has an open quote or names no program.
    pub fn detect(context: &BrowserContext) -> Result<Option<Self>, BrowserCommandError> {
        let environment = context.environment.clone();
        let candidates = choose::candidates(context)?;
        Ok(candidates.map(|candidates| Browser { candidates, environment }))
    }

    /// Opens the address. Blocks until a program has succeeded or run for [`OPENER_GRACE`]: call it on a thread of its own
    /// (`tokio::task::spawn_blocking`), so that the receiver serves meanwhile. The program outlives this process and has
    /// none of its descriptors.
    ///
    /// # Errors
    /// [`OpenError`] of the last candidate that is installed.
    pub fn open(&self, url: &OpenableUrl) -> Result<(), OpenError> {
        self.open_within(url, OPENER_GRACE)
    }

    fn open_within(&self, url: &OpenableUrl, grace: Duration) -> Result<(), OpenError> {
        let tried = self.candidates.iter().map(|candidate| candidate.program.clone()).collect();
        let mut failed = OpenError::NoProgram { tried };
        for candidate in &self.candidates {
            let resolved = resolve(candidate.program.as_ref(), self.environment.variable("PATH"));
            let Ok(resolved) = resolved else { continue };
            if candidate.is_text_browser(&resolved) {
                continue;
            }
            match self.start(candidate, url, grace) {
                Ok(()) => return Ok(()),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    // L723
    fn start(&self, candidate: &Candidate, url: &OpenableUrl, grace: Duration) -> Result<(), OpenError> {
        let program = || candidate.program.clone();
        let command = Command::new(candidate.program.as_str(), self.environment.clone())
            .args(candidate.arguments_for(url.as_str()))
            // It describes the cluster, and is none of the browser's business.
            .drop_env("KUBERNETES_EXEC_INFO");
        // The user or the system chose the program.
        let command = Policy::AllowAll
            .permit(command)
            .map_err(|source| OpenError::Permit { program: program(), source })?;
        let ended = foreground::leave_behind(command, grace)
            .map_err(|source| OpenError::Start { program: program(), source })?;
        match ended {
            None | Some(Exit::Code(0)) => Ok(()),
            Some(status) => Err(OpenError::Failed { program: program(), status }),
        }
    }
}

#[cfg(test)]
mod tests;
