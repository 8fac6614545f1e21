//! Test signatures, one per scheme of a key.

use std::fmt;

use navicert_types::{Clock, Timestamp, error_chain};
use serde::{Serialize, Serializer};

use crate::remote::wire::sample_message;
use crate::{Input, KeyAlgorithm, Scheme, SigningIdentity};

/// The result of `signer check`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CheckReport {
    /// The label of the token.
    pub token: String,
    /// The algorithm of the key.
    pub kind: KeyAlgorithm,
    /// When the certificate expires (RFC 3339).
    #[serde(serialize_with = "as_text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub not_after: Timestamp,
    /// Whether the certificate has expired.
    pub expired: bool,
    /// One test signature per scheme.
    pub schemes: Vec<SchemeCheck>,
    /// Number of certificates in the chain.
    #[serde(skip)]
    pub chain_length: usize,
}

/// A test signature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SchemeCheck {
    /// The scheme.
    pub scheme: Scheme,
    /// Whether the signature was created, and verifies.
    pub ok: bool,
    /// How long it took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub microseconds: Option<u64>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl CheckReport {
    /// Creates and verifies the signatures. The key has to be logged in.
    pub fn run(identity: &SigningIdentity, token: &str, clock: &dyn Clock) -> Self {
        let not_after = identity.validity().1;
        CheckReport {
            token: token.to_owned(),
            kind: identity.public_key().algorithm(),
            not_after,
            expired: not_after < clock.now(),
            schemes: identity
                .schemes()
                .iter()
                .map(|scheme| SchemeCheck::run(identity, *scheme, clock))
                .collect(),
            chain_length: identity.chain().len(),
        }
    }

    /// Whether the key can be used: every signature verifies, and the certificate is valid.
    pub fn is_usable(&self) -> bool {
        self.schemes.iter().all(|scheme| scheme.ok) && !self.expired
    }
}

impl SchemeCheck {
    fn run(identity: &SigningIdentity, scheme: Scheme, clock: &dyn Clock) -> Self {
        let started = clock.monotonic();
        let signed = identity.sign(scheme, Input::Message(&sample_message(0)));
        let took = clock.monotonic().saturating_sub(started).as_micros();
        SchemeCheck {
            scheme,
            ok: signed.is_ok(),
            microseconds: signed.is_ok().then(|| u64::try_from(took).unwrap_or(u64::MAX)),
            error: signed.err().map(|error| error_chain(&error)),
        }
    }
}

fn as_text<S: Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(time)
}

impl fmt::Display for CheckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CheckReport { token, kind, chain_length, not_after, .. } = self;
        writeln!(f, "key in token {token}: {kind}, certificate chain length {chain_length}")?;
        for SchemeCheck { scheme, microseconds, error, .. } in &self.schemes {
            let name = scheme.name();
            match (microseconds, error) {
                (Some(time), _) => writeln!(f, "  ok      {name}  {}.{:03} ms", time / 1000, time % 1000),
                (None, error) => writeln!(f, "  failed  {name}  {}", error.as_deref().unwrap_or_default()),
            }?;
        }
        if !self.schemes.iter().any(|check| check.ok && check.scheme.is_in_tls13()) {
            writeln!(f, "  this key does not support TLS 1.3; TLS 1.2 is used")?;
        }
        let word = if self.expired { "expired" } else { "valid until" };
        writeln!(f, "  certificate {word} {not_after}")
    }
}
