//! Reports: what checking, evaluating, explaining, testing and migrating found, as values that serialize to the JSON of
//! `navicert authn … -o json` and print as its text. Claim values stay out of them unless the caller asks for them.

mod check;
mod diagnosis_text;
mod diff;
mod explain;
mod outcome;
mod probe;
mod suite;

pub use check::{CheckFinding, CheckReport, ConfigCheckResult, ConfigStage, FieldError, check_config};
pub use diagnosis_text::DiagnosisText;
pub use diff::{Change, ChangeKind, DiffReport, DiffSideReport, ExampleToken, Replay, SideDecision};
pub use explain::{ExplainReport, ExpressionReport, StepReport, StepVerdict, SubexpressionReport};
pub use outcome::{OutcomeReport, ReportedUser};
pub use probe::{IssuerReport, IssuerVerdict, ProbeStepReport};
pub use suite::{CaseResult, SuiteResult, TestReport};

use serde::Serialize;

use crate::config::migrate::Migration;

/// The result of `authn migrate`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MigrateReport {
    /// The AuthenticationConfiguration, as a YAML file.
    pub configuration: String,
    /// A NavicertConfiguration that keeps the restricted algorithms, as a YAML file; `null` if all nine are allowed.
    pub navicert_configuration: Option<String>,
    /// Changes in behaviour that an operator should know.
    pub warnings: Vec<String>,
    /// The flags to remove.
    pub obsolete_flags: Vec<String>,
}

impl From<Migration> for MigrateReport {
    fn from(migration: Migration) -> Self {
        MigrateReport {
            configuration: migration.yaml,
            navicert_configuration: migration.navicert_config,
            warnings: migration.warnings.into_iter().map(|warning| warning.text).collect(),
            obsolete_flags: migration.obsolete,
        }
    }
}
