//! Credentials that come from neither a file nor an exec plugin's run: an external signer, an identity provider, a token
//! file.

use std::sync::Arc;

use navicert_plugin::resolve::resolve;
use navicert_types::error_chain;
use navicert_types::external_signer::PROVIDER;

use super::DoctorInputs;
use super::connection::printable;
use super::kubeconfig::quoted;
use super::login;
use super::plugin::{ObtainedCredential, kuberc_to_do};
use super::report::{DoctorStep, ReportBuilder};
use crate::credential::{CredentialError, CredentialSource, RequestOrigin, SignerError};
use crate::kubeconfig::Effective;

/// Gets the credential from its source. A source that runs a program is used only if the server is reachable.
pub(super) async fn obtain(
    inputs: &DoctorInputs,
    effective: &Effective,
    source: Arc<dyn CredentialSource>,
    reached: bool,
    report: &mut ReportBuilder<'_>,
) -> Option<ObtainedCredential> {
    let provider = effective.user.auth_provider.as_ref().filter(|_| effective.is_https());
    let signer = provider.filter(|provider| provider.name == PROVIDER);
    let Some(signer) = signer else {
        login::check_auth_provider(inputs, effective, report);
        report.skip_before(DoctorStep::Run, "no exec plugin is used");
        if provider.is_some() && !reached {
            report.skip_before(DoctorStep::Expiry, "not run: the server is unreachable");
            return None;
        }
        let outcome = source.get(RequestOrigin::Foreground).await;
        return report_outcome(effective, source, outcome, report);
    };
    let program = signer.config.get("pathExec").map(|value| value.expose().clone()).unwrap_or_default();
    match resolve(program.as_ref(), inputs.client_context.environment.variable("PATH")) {
        Ok(found) => report.pass(DoctorStep::Plugin, quoted(&found.display().to_string())),
        Err(error) => {
            let to_do = format!("install the external signer {}, or correct `pathExec`", quoted(&program));
            report.fail(DoctorStep::Plugin, error_chain(&error), to_do);
        }
    }
    if report.has_failed() {
        report.skip_before(DoctorStep::Expiry, "not run");
        return None;
    }
    let outcome = source.get(RequestOrigin::Foreground).await;
    report_outcome(effective, source, outcome, report)
}

/// Reports the steps from `policy` (or `run`, if no program is used) to `versions`.
fn report_outcome(
    effective: &Effective,
    source: Arc<dyn CredentialSource>,
    outcome: Result<Arc<crate::credential::Credential>, CredentialError>,
    report: &mut ReportBuilder<'_>,
) -> Option<ObtainedCredential> {
    let has_program = report.next_step() == Some(DoctorStep::Policy);
    match outcome {
        Ok(credential) if has_program => {
            report.pass(DoctorStep::Policy, "permitted by the kuberc");
            report.skip(DoctorStep::Login, "not a login plugin");
            report.pass(DoctorStep::Run, "returned a certificate");
            report.skip(DoctorStep::Versions, "not an exec plugin");
            Some(ObtainedCredential { source, credential, from_plugin: false })
        }
        Ok(credential) => {
            report.skip_before(DoctorStep::Expiry, "no exec plugin is used");
            Some(ObtainedCredential { source, credential, from_plugin: false })
        }
        Err(error) => {
            let (step, text, to_do) = explain(effective, &error);
            if has_program && step == DoctorStep::Run {
                report.pass(DoctorStep::Policy, "permitted by the kuberc");
                report.skip(DoctorStep::Login, "not a login plugin");
            }
            report.fail(step, text, to_do);
            report.skip_before(DoctorStep::Expiry, "not run");
            None
        }
    }
}

fn explain(effective: &Effective, error: &CredentialError) -> (DoctorStep, String, String) {
    let user = quoted(&effective.user_name);
    match error {
        CredentialError::Signer(SignerError::Denied { program, .. }) => (
            DoctorStep::Policy,
            error.to_string(),
            format!("permit the external signer `{program}`: add the lines above to the kuberc"),
        ),
        CredentialError::Signer(SignerError::PolicyUnreadable { policy, .. }) => {
            (DoctorStep::Policy, printable(error), kuberc_to_do(policy))
        }
        CredentialError::Signer(_) => (
            DoctorStep::Run,
            printable(error),
            format!(
                "check the external signer of user {user} and its device: `navicert signer check` tests them"
            ),
        ),
        CredentialError::TokenFile(_) => {
            let file = quoted(&effective.user.token_file);
            (DoctorStep::Run, printable(error), format!("put a token into {file}"))
        }
        _ => (
            DoctorStep::Run,
            printable(error),
            format!("log in again as user {user}: its identity provider returned no token"),
        ),
    }
}
