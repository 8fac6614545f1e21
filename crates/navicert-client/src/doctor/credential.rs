//! What there is to show the server: until when it is good, and what a token says about itself. Never the token.

use navicert_types::Timestamp;

use super::Patient;
use super::kubeconfig::shown;
use super::plugin::Held;
use super::report::{Step, Walk};
use crate::credential::Credential;
use crate::credential::claims::Claims;
use crate::kubeconfig::Effective;

/// Compares every end there is with the clock.
pub(super) fn look(patient: &Patient, effective: &Effective, held: Option<&Held>, walk: &mut Walk<'_>) {
    let Some(held) = held else { return walk.skip(Step::Expiry, "there is no credential to look at") };
    let now = patient.around.clock.now();
    let ends = ends(&held.credential);
    let Some(first) = ends.iter().min_by_key(|end| end.at) else {
        let nothing = held.credential.authorization.is_none() && held.credential.identity.is_none();
        return match nothing {
            true => walk.skip(Step::Expiry, "there is no credential"),
            false => walk.pass(Step::Expiry, "it does not say when it expires"),
        };
    };
    if first.at > now {
        return walk.pass(Step::Expiry, format!("{} is good until {}", first.what, first.at));
    }
    let user = shown(&effective.user_name);
    let to_do = match (held.from_plugin, effective.user.exec.as_ref()) {
        (true, Some(exec)) => {
            format!("log in with {} again: it gives what has expired", shown(&exec.command))
        }
        _ if !effective.user.token_file.is_empty() => {
            format!("put a new token into {}", shown(&effective.user.token_file))
        }
        _ => format!("give user {user} a new {}", first.kind),
    };
    walk.fail(Step::Expiry, format!("{} expired at {}", first.what, first.at), to_do);
}

struct End {
    what: &'static str,
    kind: &'static str,
    at: Timestamp,
}

fn ends(credential: &Credential) -> Vec<End> {
    let said = credential.expires.map(|at| End { what: "what the plugin gave", kind: "credential", at });
    let token = claims(credential).and_then(|claims| claims.expires);
    let token = token.map(|at| End { what: "the token", kind: "token", at });
    let certificate = credential.identity.as_ref().map(|identity| identity.validity().not_after);
    let certificate =
        certificate.map(|at| End { what: "the client certificate", kind: "client certificate", at });
    [token, certificate, said].into_iter().flatten().collect()
}

/// What the token says about itself, if it is a JWT.
pub(super) fn claims(credential: &Credential) -> Option<Claims> {
    Claims::of(credential.authorization.as_ref()?.to_str().ok()?.strip_prefix("Bearer ")?)
}
