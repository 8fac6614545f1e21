//! Reports: what the verbs of `navicert image` found, as values that serialize to the JSON of `-o json` and print as text.
//! Passwords are redacted unless the caller asks for them.

pub mod batch;
mod explain;
mod lookup;
mod offline;

pub use explain::{
    DaemonCacheLine, ExplainReport, PatternReport, ProviderOutcomeReport, ProviderReport, RunTimes,
};
pub use lookup::{AttemptReport, AuthFileReport, GetReport, InvalidateReport};
pub use offline::{
    CheckReport, ConformanceReport, KeyringCredential, KeyringReport, LintReport, MatchReport,
    ResponseReport, RuleReport,
};
