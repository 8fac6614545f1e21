//! Reports: what `whoami`, `doctor`, `kubeconfig check` and `exec-plugin check` found, as values that serialize to the JSON of
//! `-o json` and print as text. No report contains a secret.

mod conformance;
mod context;
mod doctor;
mod whoami;

pub use conformance::{CaseSummary, ConformanceSummary, ViolationSummary};
pub use context::{ConfigFinding, ContextSummary, FindingSeverity, KubeconfigSummary};
pub use doctor::DoctorSummary;
pub use whoami::{ReportedStatus, ReportedUserInfo, WhoamiReport};
