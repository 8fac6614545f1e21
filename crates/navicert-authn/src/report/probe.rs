//! The probe of an issuer, as a report.

use std::fmt;

use navicert_types::FieldPath;
use navicert_types::redact::terminal;
use serde::Serialize;

use super::StepVerdict;
use crate::config::CompiledAuthenticator;
use crate::jwks::{IssuerProbe, ProbeResult};

/// The probe of one issuer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IssuerReport {
    /// Field path of the issuer.
    pub path: FieldPath,
    /// Its URL.
    pub issuer: String,
    /// Every step, in order; `null` if its keys are read from a file.
    pub steps: Option<Vec<ProbeStepReport>>,
    /// The conclusion.
    #[serde(skip)]
    pub verdict: IssuerVerdict,
}

/// One step of a probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProbeStepReport {
    /// What the step checks.
    pub step: String,
    /// Its verdict.
    pub verdict: StepVerdict,
    /// Why it failed.
    pub why: Option<String>,
    /// Additional information; may be empty.
    pub note: String,
}

/// What a probe shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IssuerVerdict {
    /// Every step passed, or none was needed.
    #[default]
    Healthy,
    /// The issuer could not be reached: the configuration may still be correct.
    Unreachable,
    /// A later step failed.
    Failed,
}

impl From<&IssuerProbe> for IssuerVerdict {
    fn from(probe: &IssuerProbe) -> Self {
        match probe {
            probe if probe.is_unreachable() => IssuerVerdict::Unreachable,
            probe if probe.is_good() => IssuerVerdict::Healthy,
            _ => IssuerVerdict::Failed,
        }
    }
}

impl From<&ProbeResult> for ProbeStepReport {
    fn from(result: &ProbeResult) -> Self {
        let (verdict, why) = StepVerdict::from_outcome(&result.verdict);
        ProbeStepReport { step: result.probe.title().to_owned(), verdict, why, note: result.note.clone() }
    }
}

impl IssuerReport {
    /// The report of an authenticator's issuer; without a probe if its keys are read from a file.
    pub fn new(authenticator: &CompiledAuthenticator, probe: Option<&IssuerProbe>) -> Self {
        IssuerReport {
            path: authenticator.path.field("issuer"),
            issuer: authenticator.issuer.url.clone(),
            steps: probe.map(|probe| probe.results.iter().map(ProbeStepReport::from).collect()),
            verdict: probe.map(IssuerVerdict::from).unwrap_or_default(),
        }
    }
}

impl fmt::Display for IssuerReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} {}", self.path, self.issuer)?;
        let Some(steps) = &self.steps else { return writeln!(f, "  SKIP  keys are read from a file") };
        for ProbeStepReport { step, verdict, why, note } in steps {
            match verdict {
                StepVerdict::Pass if note.is_empty() => writeln!(f, "  PASS  {step}"),
                StepVerdict::Pass => writeln!(f, "  PASS  {step}: {}", terminal(note)),
                StepVerdict::Skip => writeln!(f, "  SKIP  {step}"),
                StepVerdict::Fail => {
                    let why = why.as_deref().unwrap_or_default();
                    writeln!(f, "  FAIL  {step}\n        {}", terminal(why))
                }
            }?;
        }
        Ok(())
    }
}
