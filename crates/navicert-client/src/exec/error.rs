//! Errors of exec plugins. Messages are client-go's where it has one, so that users can search for them. None contains the
//! plugin's output, input or environment.
// C195

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use navicert_plugin::{JoinError, MalformedCommand, PolicyDenial};
use navicert_types::exec_credential::ExecVersion;
use navicert_types::{error_chain, time};
use thiserror::Error;

use super::interactive::InteractiveError;
use super::response::PluginOutputError;
use crate::kuberc::KubercError;

/// Why an exec plugin returned no credential.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum ExecError {
    /// The kubeconfig configures an unsupported version.
    // C201
    #[error("exec plugin: invalid apiVersion {0:?} (supported: {known})", known = KnownVersions)]
    InvalidVersion(String),

    /// Cluster information is requested, and the CA file cannot be read.
    // C212
    #[error("failed to load CA bundle for execProvider: failed to read `{path}`")]
    Authority {
        /// The file.
        path: String,
        /// I/O error reported by the operating system.
        source: Arc<io::Error>,
    },

    /// The plugin requires interaction that is not available.
    // C221
    #[error("exec plugin cannot support interactive mode")]
    Interactive(#[from] InteractiveError),

    /// The plugin's input does not fit into an environment variable.
    // C215
    #[error(
        "KUBERNETES_EXEC_INFO for exec plugin {command} is too long: {bytes} bytes, at most {limit} fit into an environment variable; \
         `provideClusterInfo` is on and the CA bundle has {authority} bytes"
    )]
    ExecInfoTooLong {
        /// The cleaned command.
        command: String,
        /// Length including name and terminator.
        bytes: usize,
        /// Maximum length.
        limit: usize,
        /// Size of the certificate authority bundle before base64.
        authority: usize,
    },

    /// The plugin policy denies the plugin.
    // C730, C731
    #[error(transparent)]
    Denied(PolicyDenial),

    /// The plugin policy cannot be read, so no plugin may run.
    // C740
    #[error("exec plugin {command} is not allowed to run")]
    PolicyUnreadable {
        /// The cleaned command.
        command: String,
        /// The error, with file and line.
        #[source]
        policy: Arc<KubercError>,
    },

    /// The command contains characters that cannot be passed to a program.
    #[error("exec: {0}")]
    Malformed(MalformedCommand),

    /// The executable was not found. Includes rate-limited installation help.
    // C320, C321
    #[error("exec: executable {command} not found{help}", help = OptionalHelp(.help))]
    NotFound {
        /// The cleaned command.
        command: String,
        /// How to install it.
        // C322
        help: Option<String>,
    },

    /// The operating system failed to start the executable.
    // C321
    #[error("exec: fork/exec {command}: {reason}")]
    NotStarted {
        /// The cleaned command.
        command: String,
        /// I/O error reported by the operating system.
        reason: String,
    },

    /// The plugin exited with an error; the message is from the `Status` object it printed.
    // C323, C327
    #[error("exec: executable {command} failed with exit code {code}{message}", message = OptionalSuffix(.message))]
    Failed {
        /// The cleaned command.
        command: String,
        /// Its exit code; -1 if a signal killed it.
        code: i32,
        /// The message of the `Status` object that it printed.
        message: Option<String>,
    },

    /// The plugin was killed after its timeout.
    // C306
    #[error("exec: executable {command} timed out after {after}", after = time::Duration::from(*.after))]
    TimedOut {
        /// The cleaned command.
        command: String,
        /// The timeout.
        after: Duration,
    },

    /// The plugin printed more than the limit.
    // C305
    #[error("exec: executable {command} printed more than {cap} bytes")]
    OutputTooLarge {
        /// The cleaned command.
        command: String,
        /// The limit in bytes.
        cap: usize,
    },

    /// The run failed for another reason.
    // C324
    #[error("exec: {reason}")]
    Internal {
        /// What happened.
        reason: String,
    },

    /// The plugin's output is not a valid credential.
    // §3.4
    #[error(transparent)]
    Response(#[from] PluginOutputError),

    /// The worker thread panicked.
    #[error("exec: {}", error_chain(.0))]
    Lost(JoinError),

    /// The plugin failed recently and is in back-off.
    // C441
    #[error("{} (next attempt in {wait})", error_chain(&**.failure), wait = Rounded(*.wait))]
    BackingOff {
        /// The last failure.
        failure: Arc<ExecError>,
        /// Time until the next attempt.
        wait: Duration,
    },
}

impl ExecError {
    /// Whether the plugin policy is the cause.
    pub fn is_denied(&self) -> bool {
        match self {
            ExecError::Denied(_) | ExecError::PolicyUnreadable { .. } => true,
            ExecError::BackingOff { failure, .. } => failure.is_denied(),
            _ => false,
        }
    }

    /// Time until the next attempt, if in back-off.
    pub fn retry_in(&self) -> Option<Duration> {
        match self {
            ExecError::BackingOff { wait, .. } => Some(*wait),
            _ => None,
        }
    }
}

struct KnownVersions;

impl fmt::Display for KnownVersions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = ExecVersion::ALL.iter().map(|version| version.api_version()).collect();
        f.write_str(&names.join(" and "))
    }
}

struct OptionalHelp<'a>(&'a Option<String>);

impl fmt::Display for OptionalHelp<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |help| write!(f, "\n\n{help}"))
    }
}

struct OptionalSuffix<'a>(&'a Option<String>);

impl fmt::Display for OptionalSuffix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |message| write!(f, ": {message}"))
    }
}

/// A duration in tenths of a second, at least one tenth.
struct Rounded(Duration);

impl fmt::Display for Rounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = u64::try_from(self.0.as_millis().div_ceil(100)).unwrap_or(u64::MAX).max(1);
        let rounded = Duration::from_millis(tenths.saturating_mul(100));
        write!(f, "{}", time::Duration::from(rounded))
    }
}
