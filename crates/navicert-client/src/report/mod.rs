//! Reports: what `whoami`, `doctor`, `kubeconfig check` and `exec-plugin check` found and what verbs write, as values that serialize to the JSON of
//! `-o json` and print as text. No report contains a secret.

#[cfg(feature = "exec")]
mod conformance;
mod context;
#[cfg(feature = "doctor")]
mod doctor;
#[cfg(feature = "exec")]
pub mod exec_batch;
mod file_change;
#[cfg(feature = "exec")]
mod kept_answers;
pub mod kubeconfig_batch;
mod whoami;

#[cfg(feature = "exec")]
pub use conformance::{CaseSummary, ConformanceSummary, ViolationSummary};
pub use context::{ConfigFinding, ContextSummary, FindingSeverity, KubeconfigSummary};
#[cfg(feature = "doctor")]
pub use doctor::DoctorSummary;
pub use file_change::{FileAction, FileChangeReport};
#[cfg(feature = "exec")]
pub use file_change::{ForbiddenPluginReport, PinReport, SignerSetupReport};
#[cfg(feature = "exec")]
pub use kept_answers::ClearedAnswersReport;
pub use whoami::{ReportedStatus, ReportedUserInfo, WhoamiReport};
