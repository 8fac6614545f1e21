//! What there is to show the server: until when it is good, and what a token says about itself. Never the token.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use navicert_types::Timestamp;
use navicert_types::redact;
use navicert_types::tree::{Node, Number, Syntax, Value, parse};
use zeroize::Zeroizing;

use super::Patient;
use super::kubeconfig::shown;
use super::plugin::Held;
use super::report::{Step, Walk};
use crate::credential::Credential;
use crate::kubeconfig::Effective;
use crate::whoami::member;

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
    let token = Claims::of(credential).and_then(|claims| claims.expires);
    let token = token.map(|at| End { what: "the token", kind: "token", at });
    let certificate = credential.identity.as_ref().map(|identity| identity.validity().not_after);
    let certificate =
        certificate.map(|at| End { what: "the client certificate", kind: "client certificate", at });
    [token, certificate, said].into_iter().flatten().collect()
}

/// What a JWT says about itself, unverified: enough to say why a server may not like it.
pub(super) struct Claims {
    pub(super) issuer: String,
    pub(super) audiences: Vec<String>,
    pub(super) expires: Option<Timestamp>,
    pub(super) not_before: Option<Timestamp>,
}

impl Claims {
    /// `None` if there is no token, or it is no JWT.
    pub(super) fn of(credential: &Credential) -> Option<Self> {
        let header = credential.authorization.as_ref()?.to_str().ok()?;
        let mut parts = header.strip_prefix("Bearer ")?.split('.');
        let (_, payload, _) = (parts.next()?, parts.next()?, parts.next()?);
        let bytes = Zeroizing::new(URL_SAFE_NO_PAD.decode(payload.trim_end_matches('=')).ok()?);
        let node = parse(&bytes, Syntax::Json).ok()?;
        node.as_mapping()?;
        let text = |node: &Node| node.as_str().map(|text| redact::terminal(text).into_owned());
        let audiences = member(&node, "aud").map(|audience| match audience.as_sequence() {
            Some(several) => several.iter().filter_map(text).collect(),
            None => text(audience).into_iter().collect(),
        });
        Some(Claims {
            issuer: member(&node, "iss").and_then(text).unwrap_or_default(),
            audiences: audiences.unwrap_or_default(),
            expires: member(&node, "exp").and_then(moment),
            not_before: member(&node, "nbf").and_then(moment),
        })
    }
}

fn moment(node: &Node) -> Option<Timestamp> {
    match node.value {
        Value::Number(Number::Integer(seconds)) => Timestamp::from_second(seconds).ok(),
        _ => None,
    }
}
