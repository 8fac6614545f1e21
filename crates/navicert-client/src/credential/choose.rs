//! Chooses the credential source of a selected user.

use std::sync::Arc;

use thiserror::Error;

use super::{CredentialSource, SharedFiles};
use crate::config::{ClientProblem, CredentialReader};
use crate::exec::{ExecSettings, Surroundings};
use crate::kubeconfig::Effective;

/// Why a user entry gives no credential source.
#[derive(Debug, Error)]
#[error(transparent)]
pub struct ChooseError(ClientProblem);

/// Chooses the credential source for the selected user. Runs no plugin.
///
/// # Errors
/// [`ChooseError`]: a combination that is not allowed, or a file that cannot be used.
pub fn choose(
    effective: &Effective,
    files: &SharedFiles,
    settings: &ExecSettings,
    around: &Surroundings,
) -> Result<Arc<dyn CredentialSource>, ChooseError> {
    let reader = CredentialReader {
        effective,
        files: &**files,
        now: around.clock.monotonic(),
        allow_pin: settings.allow_pin_in_kubeconfig,
    };
    let mut problems = Vec::new();
    let plan = reader.read(&mut problems);
    match problems.into_iter().next() {
        Some(problem) => Err(ChooseError(problem)),
        None => Ok(plan.source(files, settings, around, None)),
    }
}
