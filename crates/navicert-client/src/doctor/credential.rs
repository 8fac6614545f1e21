//! Checks the expiry of the credential. Never prints the token.

use navicert_types::Timestamp;

use super::DoctorInputs;
use super::kubeconfig::quoted;
use super::plugin::ObtainedCredential;
use super::report::{DoctorStep, ReportBuilder};
use crate::credential::Credential;
use crate::credential::claims::Claims;
use crate::kubeconfig::Effective;

/// Compares every known expiry with the clock.
pub(super) fn check_expiry(
    inputs: &DoctorInputs,
    effective: &Effective,
    obtained: Option<&ObtainedCredential>,
    report: &mut ReportBuilder<'_>,
) {
    let Some(obtained) = obtained else { return report.skip(DoctorStep::Expiry, "no credential available") };
    let now = inputs.client_context.clock.now();
    let ends = expiries(&obtained.credential);
    let Some(first) = ends.iter().min_by_key(|end| end.at) else {
        let nothing = obtained.credential.authorization.is_none() && obtained.credential.identity.is_none();
        return match nothing {
            true => report.skip(DoctorStep::Expiry, "there is no credential"),
            false => report.pass(DoctorStep::Expiry, "the credential has no known expiry"),
        };
    };
    let not_before = obtained.credential.identity.as_ref().map(|identity| identity.validity().not_before);
    if let Some(from) = not_before.filter(|from| *from > now) {
        let text = format!("the client certificate is not valid before {from}");
        return report.fail(DoctorStep::Expiry, text, "correct the local clock, or wait");
    }
    if first.at > now {
        return report.pass(DoctorStep::Expiry, format!("{} is valid until {}", first.what, first.at));
    }
    let user = quoted(&effective.user_name);
    let to_do = match (obtained.from_plugin, effective.user.exec.as_ref()) {
        (true, Some(exec)) => {
            format!("log in again with {}: its credential has expired", quoted(&exec.command))
        }
        _ if !effective.user.token_file.is_empty() => {
            format!("put a new token into {}", quoted(&effective.user.token_file))
        }
        _ => format!("give user {user} a new {}", first.kind),
    };
    report.fail(DoctorStep::Expiry, format!("{} expired at {}", first.what, first.at), to_do);
}

struct Expiry {
    what: &'static str,
    kind: &'static str,
    at: Timestamp,
}

fn expiries(credential: &Credential) -> Vec<Expiry> {
    let reported =
        credential.expires.map(|at| Expiry { what: "the plugin's credential", kind: "credential", at });
    let token = claims(credential).and_then(|claims| claims.expires);
    let token = token.map(|at| Expiry { what: "the token", kind: "token", at });
    let certificate = credential.identity.as_ref().map(|identity| identity.validity().not_after);
    let certificate =
        certificate.map(|at| Expiry { what: "the client certificate", kind: "client certificate", at });
    [token, certificate, reported].into_iter().flatten().collect()
}

/// The claims of the token, if it is a JWT.
pub(super) fn claims(credential: &Credential) -> Option<Claims> {
    Claims::parse_unverified(credential.authorization.as_ref()?.to_str().ok()?.strip_prefix("Bearer ")?)
}
