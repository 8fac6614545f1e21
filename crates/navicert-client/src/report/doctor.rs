//! A diagnosis, as a report.

use std::fmt;

use serde::Serialize;

use crate::doctor::{DoctorReport, StepResult};

/// The result of `doctor`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DoctorSummary<'r> {
    /// Whether no step failed.
    pub healthy: bool,
    /// Every step, in order.
    pub steps: &'r [StepResult],
    /// The one thing to do.
    pub to_do: Option<&'r str>,
    /// The name of the authenticated user, if the server returned one.
    pub username: Option<&'r str>,
}

impl<'r> From<&'r DoctorReport> for DoctorSummary<'r> {
    fn from(report: &'r DoctorReport) -> Self {
        DoctorSummary {
            healthy: report.failure().is_none(),
            steps: &report.results,
            to_do: report.to_do(),
            username: report.user.as_ref().map(|user| user.username.as_str()),
        }
    }
}

/// What to fix, in one line.
impl fmt::Display for DoctorReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.failure(), self.to_do()) {
            (Some(_), Some(to_do)) => write!(f, "to do: {to_do}"),
            (Some(failure), None) => write!(f, "to do: fix `{}`", failure.step.name()),
            (None, Some(to_do)) => write!(f, "no errors; recommended: {to_do}"),
            (None, None) => f.write_str("no problems found"),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::doctor::{DoctorStep, StepStatus};

    #[test]
    fn serialized_names_are_those_of_the_types() {
        for step in DoctorStep::ALL {
            assert_eq!(serde_json::to_value(step).unwrap(), step.name());
        }
        for status in [StepStatus::Pass, StepStatus::Warn, StepStatus::Fail, StepStatus::Skip] {
            assert_eq!(serde_json::to_value(status).unwrap(), status.to_string());
        }
    }
}
