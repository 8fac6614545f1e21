//! Unverified claims of a JWT: when it expires, and its issuer and audiences for diagnostics.

use base64::Engine as _;
use navicert_go::base64::RAW_URL;
use navicert_types::tree::{Node, Number, Syntax, Value, parse};
use navicert_types::{Timestamp, redact};
use zeroize::Zeroizing;

use crate::json::member;

/// The claims used here.
#[cfg_attr(not(feature = "doctor"), expect(dead_code, reason = "only the doctor reports the others"))]
pub(crate) struct Claims {
    pub(crate) issuer: String,
    pub(crate) audiences: Vec<String>,
    pub(crate) expires: Option<Timestamp>,
    pub(crate) not_before: Option<Timestamp>,
}

impl Claims {
    /// Parses a token without verifying it; `None` if it is not a JWT.
    pub(crate) fn parse_unverified(token: &str) -> Option<Self> {
        let mut parts = token.split('.');
        let (_, payload, _) = (parts.next()?, parts.next()?, parts.next()?);
        let bytes = Zeroizing::new(RAW_URL.decode(payload.trim_end_matches('=')).ok()?);
        let node = parse(&bytes, Syntax::Json).ok()?;
        node.as_mapping()?;
        let text = |node: &Node| node.as_str().map(|text| redact::line(text).into_owned());
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
