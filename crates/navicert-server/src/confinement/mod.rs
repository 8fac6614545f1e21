//! Confinement of a server to what it needs after its start, so that code which an attacker manages to run in it cannot
//! read other files, start programs or load libraries.
//!
//! ```text
//! files read, sockets bound ──▶ ConfinementPlan::apply ──▶ runtime, audit log writer (threads inherit everything)
//!                               no_new_privs ─▶ Landlock (files) ─▶ seccomp (system calls)
//! ```
//!
//! The three measures belong to a thread, not to a process, and a new thread inherits them from its creator. A plan is
//! therefore applied on the main thread before any other thread exists: the runtime and the writer of the audit log start
//! afterwards. [`ConfinementReport::unconfined_threads`] counts threads that existed already, for example one of a
//! preloaded library. None of the measures can be undone.
//!
//! Files are confined by directory, because files are replaced: a new certificate is another file with the same name.
//!
//! A program that the server starts inherits every measure and needs other files. With a credential plugin or an
//! external signer Landlock is therefore off, and the seccomp filter permits starting programs; the report says so.

mod files;
#[cfg(target_os = "linux")]
mod landlock;
#[cfg(target_os = "linux")]
mod seccomp;

use std::fmt;
use std::path::Path;
use std::sync::OnceLock;

use navicert_types::decode::{Decode, Decoder};
use navicert_types::tree::{Node, Value};

pub use files::ConfinedFiles;

/// Whether to use a measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MeasureSetting {
    /// Use it if the system supports it, and report if not.
    #[default]
    Preferred,
    /// Do not start without it.
    Required,
    /// Do not use it.
    Off,
}

/// `servers.confinement` of a `NavicertConfiguration`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConfinementSettings {
    /// No gain of privileges through set-user-ID programs. The others need it.
    pub no_new_privileges: MeasureSetting,
    /// Which files can be opened, by Landlock.
    pub landlock: MeasureSetting,
    /// Which system calls fail, by seccomp.
    pub seccomp: MeasureSetting,
}

/// What a server is confined to.
#[derive(Clone, Debug, Default)]
pub struct ConfinementPlan {
    /// Which measures to use.
    pub settings: ConfinementSettings,
    /// The files that the server uses after its start.
    pub files: ConfinedFiles,
    /// A program that the server starts, in words such as "credential plugin `aws`".
    pub program: Option<String>,
}

/// What became of a measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MeasureState {
    /// In force, in which form.
    Enforced(String),
    /// Not used, and why.
    Off(String),
    /// Not supported or refused by the system, and why.
    Unavailable(String),
}

impl fmt::Display for MeasureState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MeasureState::Enforced(form) => f.write_str(form),
            MeasureState::Off(why) => write!(f, "off: {why}"),
            MeasureState::Unavailable(why) => write!(f, "unavailable: {why}"),
        }
    }
}

/// Which measures are in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfinementReport {
    /// No gain of privileges.
    pub no_new_privileges: MeasureState,
    /// Files.
    pub landlock: MeasureState,
    /// System calls.
    pub seccomp: MeasureState,
    /// Threads that existed before and are not confined; `None` if the system does not tell.
    pub unconfined_threads: Option<usize>,
}

/// A required measure is not in force.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfinementError {
    /// The measure is not in force.
    #[error("failed to confine the server: `confinement.{measure}` is required, but {state}")]
    Missing {
        /// Its field in the configuration.
        measure: &'static str,
        /// What became of it.
        state: MeasureState,
    },
    /// Not all threads are confined.
    #[error(
        "failed to confine the server: `confinement.{measure}` is required, but {threads} threads existed before"
    )]
    Threads {
        /// The field of a required measure.
        measure: &'static str,
        /// How many.
        threads: usize,
    },
}

impl ConfinementPlan {
    /// What applying the plan would report. Changes nothing.
    pub fn preview(&self) -> ConfinementReport {
        ConfinementReport {
            no_new_privileges: self.no_new_privileges(platform::preview_no_new_privileges),
            landlock: self.landlock(|_| platform::preview_landlock()),
            seccomp: self.seccomp(|_| platform::preview_seccomp()),
            unconfined_threads: Some(0),
        }
    }

    /// Confines this thread, and every thread that it starts from now on. Cannot be undone.
    ///
    /// # Errors
    /// A required measure is not in force. Others may be.
    pub fn apply(&self) -> Result<ConfinementReport, ConfinementError> {
        if self.program.is_none() {
            platform::load_name_service();
        }
        let unconfined_threads = platform::other_threads();
        let report = ConfinementReport {
            no_new_privileges: self.no_new_privileges(platform::no_new_privileges),
            landlock: self.landlock(platform::landlock),
            // Last: the filter need not permit what the others use.
            seccomp: self.seccomp(platform::seccomp),
            unconfined_threads,
        };
        self.settings.check(&report)?;
        if report.confines_files() {
            // A second call would confine further; the first scope stays an upper bound.
            let _ = IN_FORCE.set(self.files.clone());
        }
        Ok(report)
    }

    fn no_new_privileges(&self, apply: impl FnOnce() -> MeasureState) -> MeasureState {
        if self.settings.no_new_privileges == MeasureSetting::Off { by_configuration() } else { apply() }
    }

    fn landlock(&self, apply: impl FnOnce(&ConfinedFiles) -> MeasureState) -> MeasureState {
        match &self.program {
            _ if self.settings.landlock == MeasureSetting::Off => by_configuration(),
            Some(program) => MeasureState::Off(format!("{program} would be confined too")),
            None => apply(&self.files),
        }
    }

    fn seccomp(&self, apply: impl FnOnce(bool) -> MeasureState) -> MeasureState {
        if self.settings.seccomp == MeasureSetting::Off {
            return by_configuration();
        }
        match (apply(self.program.is_some()), &self.program) {
            (MeasureState::Enforced(form), Some(program)) => {
                MeasureState::Enforced(format!("{form}, except for starting programs: {program}"))
            }
            (state, _) => state,
        }
    }
}

impl ConfinementSettings {
    fn check(&self, report: &ConfinementReport) -> Result<(), ConfinementError> {
        let measures = [
            ("noNewPrivileges", self.no_new_privileges, &report.no_new_privileges),
            ("landlock", self.landlock, &report.landlock),
            ("seccomp", self.seccomp, &report.seccomp),
        ];
        let required = measures.into_iter().filter(|(_, setting, _)| *setting == MeasureSetting::Required);
        for (measure, _, state) in required {
            if !matches!(state, MeasureState::Enforced(_)) {
                return Err(ConfinementError::Missing { measure, state: state.clone() });
            }
            if let Some(threads) = report.unconfined_threads.filter(|threads| *threads > 0) {
                return Err(ConfinementError::Threads { measure, threads });
            }
        }
        Ok(())
    }
}

impl ConfinementReport {
    /// Whether files are confined.
    pub fn confines_files(&self) -> bool {
        matches!(self.landlock, MeasureState::Enforced(_))
    }

    /// Logs what is in force, and a warning for each measure that the system does not support.
    pub fn log(&self) {
        tracing::info!(
            event = "confinement_applied",
            no_new_privs = %self.no_new_privileges,
            landlock = %self.landlock,
            seccomp = %self.seccomp,
            unconfined_threads = self.unconfined_threads,
            "confined this server"
        );
        let measures = [
            ("noNewPrivileges", &self.no_new_privileges),
            ("landlock", &self.landlock),
            ("seccomp", &self.seccomp),
        ];
        for (measure, state) in measures {
            if let MeasureState::Unavailable(why) = state {
                tracing::warn!(
                    event = "confinement_unavailable",
                    measure,
                    why,
                    "a measure of confinement is not in force"
                );
            }
        }
    }
}

/// The files of the confinement in force, if Landlock is part of it.
static IN_FORCE: OnceLock<ConfinedFiles> = OnceLock::new();

/// What to add to an error about a file: empty unless confinement is why this file cannot be read.
pub(crate) fn read_hint(path: &Path) -> &'static str {
    match IN_FORCE.get() {
        Some(files) if !files.may_read(path) => {
            "; the file is outside the directories that this server may read since its start, restart it to use the file"
        }
        _ => "",
    }
}

fn by_configuration() -> MeasureState {
    MeasureState::Off("by configuration".to_owned())
}

impl Decode for ConfinementSettings {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let settings = decoder.object(node, |fields| ConfinementSettings {
            no_new_privileges: fields.default("noNewPrivileges"),
            landlock: fields.default("landlock"),
            seccomp: fields.default("seccomp"),
        })?;
        let others = [settings.landlock, settings.seccomp];
        if settings.no_new_privileges == MeasureSetting::Off && others != [MeasureSetting::Off; 2] {
            let why = "`landlock` and `seccomp` need `noNewPrivileges`; set them to `off` as well";
            decoder.report_invalid_value(node, why);
        }
        Some(settings)
    }
}

impl Decode for MeasureSetting {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        // YAML parses an unquoted `off` as a boolean.
        if matches!(node.value, Value::Bool(false)) {
            return Some(MeasureSetting::Off);
        }
        let words = [
            ("preferred", MeasureSetting::Preferred),
            ("required", MeasureSetting::Required),
            ("off", MeasureSetting::Off),
        ];
        decoder.one_of(node, &words)
    }
}

#[cfg(target_os = "linux")]
mod platform {
    use std::net::ToSocketAddrs as _;

    use super::MeasureState;
    pub(super) use super::landlock::{apply as landlock, preview as preview_landlock};
    pub(super) use super::seccomp::{apply as seccomp, preview as preview_seccomp};

    pub(super) fn preview_no_new_privileges() -> MeasureState {
        MeasureState::Enforced("enforced".to_owned())
    }

    pub(super) fn no_new_privileges() -> MeasureState {
        match rustix::thread::set_no_new_privs(true) {
            Ok(()) => preview_no_new_privileges(),
            Err(error) => MeasureState::Unavailable(error.to_string()),
        }
    }

    /// Threads besides this one.
    pub(super) fn other_threads() -> Option<usize> {
        let threads = std::fs::read_dir("/proc/self/task").ok()?.count();
        threads.checked_sub(1)
    }

    /// Makes the C library load its modules for name resolution while libraries can be loaded: older versions have even
    /// DNS in a library of its own. A label of 64 bytes cannot be sent, so this ends without a query.
    pub(super) fn load_name_service() {
        let _ = ("x".repeat(64), 443).to_socket_addrs();
    }
}

#[cfg(not(target_os = "linux"))]
mod platform {
    use super::{ConfinedFiles, MeasureState};

    fn unsupported() -> MeasureState {
        MeasureState::Unavailable("this system is not Linux".to_owned())
    }

    pub(super) fn preview_no_new_privileges() -> MeasureState {
        unsupported()
    }

    pub(super) fn no_new_privileges() -> MeasureState {
        unsupported()
    }

    pub(super) fn preview_landlock() -> MeasureState {
        unsupported()
    }

    pub(super) fn landlock(_: &ConfinedFiles) -> MeasureState {
        unsupported()
    }

    pub(super) fn preview_seccomp() -> MeasureState {
        unsupported()
    }

    pub(super) fn seccomp(_: bool) -> MeasureState {
        unsupported()
    }

    pub(super) fn other_threads() -> Option<usize> {
        None
    }

    pub(super) fn load_name_service() {}
}

#[cfg(test)]
mod tests;
