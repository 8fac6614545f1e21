//! Why a plugin gave no credential. The texts are upstream's wherever it has one: people search for them. None holds
//! what a plugin printed, what it was told or what its environment holds (C195).

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use navicert_plugin::{Lost, MalformedCommand, Refusal};
use navicert_types::exec_credential::Version;
use navicert_types::time;
use thiserror::Error;

use super::interactive::InteractiveError;
use super::response::ResponseError;
use crate::kuberc::KubercError;

/// Why a plugin gave no credential.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum ExecError {
    /// The kubeconfig asks for a version that is not spoken (C201).
    #[error("exec plugin: invalid apiVersion {0:?} (known are {known})", known = Known)]
    InvalidVersion(String),

    /// The plugin is to be told about the cluster, and the authority's file cannot be read (C212).
    #[error("failed to load CA bundle for execProvider: cannot read `{path}`")]
    Authority {
        /// The file.
        path: String,
        /// The operating system's word.
        source: Arc<io::Error>,
    },

    /// The plugin has to talk to the user and cannot (C221).
    #[error("exec plugin cannot support interactive mode: {0}")]
    Interactive(#[from] InteractiveError),

    /// What the plugin would be told does not fit into a variable of the environment (C215).
    #[error(
        "what exec plugin {command} would be told is {bytes} bytes long and at most {most} fit into its environment; \
         `provideClusterInfo` is on and the CA bundle has {authority} bytes"
    )]
    QuestionTooLong {
        /// The cleaned command.
        command: String,
        /// How long it is, name and terminator included.
        bytes: usize,
        /// What fits.
        most: usize,
        /// How much of it the certificate authority's bundle is, before base64.
        authority: usize,
    },

    /// The policy says no (C730, C731).
    #[error(transparent)]
    Denied(Refusal),

    /// There is a policy that cannot be read, so nothing may run (C740).
    #[error("exec plugin {command} is not run: {policy}")]
    PolicyUnreadable {
        /// The cleaned command.
        command: String,
        /// What is wrong, with the file and the line.
        #[source]
        policy: Arc<KubercError>,
    },

    /// The command could be passed to no program.
    #[error("exec: {0}")]
    Malformed(#[source] MalformedCommand),

    /// There is no such program (C320, C321 as decided), with a word on how to get it if it is not said too often.
    #[error("exec: executable {command} not found{help}", help = Appended(.help))]
    NotFound {
        /// The cleaned command.
        command: String,
        /// How to install it (C322).
        help: Option<String>,
    },

    /// The operating system would not start it (C321).
    #[error("exec: fork/exec {command}: {reason}")]
    NotStarted {
        /// The cleaned command.
        command: String,
        /// The operating system's word.
        reason: String,
    },

    /// It ended unsuccessfully (C323); the message is what it said in so many words (C327).
    #[error("exec: executable {command} failed with exit code {code}{message}", message = Said(.message))]
    Failed {
        /// The cleaned command.
        command: String,
        /// Its exit code, -1 if it died by a signal.
        code: i32,
        /// The message of the `Status` object that it printed.
        message: Option<String>,
    },

    /// It ran past its limit and was ended (C306).
    #[error("exec: executable {command} timed out after {after}", after = time::Duration::from(*.after))]
    TimedOut {
        /// The cleaned command.
        command: String,
        /// The limit.
        after: Duration,
    },

    /// It printed more than may be read (C305).
    #[error("exec: executable {command} printed more than {cap} bytes")]
    TooTalkative {
        /// The cleaned command.
        command: String,
        /// What may be read.
        cap: usize,
    },

    /// Contact with it was lost (C324).
    #[error("exec: {reason}")]
    Internal {
        /// What happened.
        reason: String,
    },

    /// What it printed is not a credential (§3.4).
    #[error(transparent)]
    Response(#[from] ResponseError),

    /// The thread that was to run it did not come back.
    #[error("exec: {0}")]
    Lost(#[source] Lost),

    /// It failed a moment ago and is not tried again yet (C441).
    #[error("{failure} (next attempt in {wait})", wait = Rounded(*.wait))]
    Waiting {
        /// What it failed with.
        #[source]
        failure: Arc<ExecError>,
        /// How long until the next attempt.
        wait: Duration,
    },
}

impl ExecError {
    /// Whether a policy is the reason.
    pub fn is_denied(&self) -> bool {
        match self {
            ExecError::Denied(_) | ExecError::PolicyUnreadable { .. } => true,
            ExecError::Waiting { failure, .. } => failure.is_denied(),
            _ => false,
        }
    }

    /// How long until another attempt is made, if it is not at once.
    pub fn retry_in(&self) -> Option<Duration> {
        match self {
            ExecError::Waiting { wait, .. } => Some(*wait),
            _ => None,
        }
    }
}

struct Known;

impl fmt::Display for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = Version::ALL.iter().map(|version| version.api_version()).collect();
        f.write_str(&names.join(" and "))
    }
}

struct Appended<'a>(&'a Option<String>);

impl fmt::Display for Appended<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |help| write!(f, "\n\n{help}"))
    }
}

struct Said<'a>(&'a Option<String>);

impl fmt::Display for Said<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |message| write!(f, ": {message}"))
    }
}

/// A wait in tenths of a second, never none.
struct Rounded(Duration);

impl fmt::Display for Rounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = u64::try_from(self.0.as_millis().div_ceil(100)).unwrap_or(u64::MAX).max(1);
        let rounded = Duration::from_millis(tenths.saturating_mul(100));
        write!(f, "{}", time::Duration::from(rounded))
    }
}
