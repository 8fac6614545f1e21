//! Tokens, before and after verification:
//! `compact` (text) → `claims` (unverified: for routing and cheap checks) → `header` → `signature` → [`VerifiedClaims`].

pub(crate) mod claims;
pub(crate) mod compact;
pub(crate) mod header;
pub mod id_token;
mod legacy_rsa;
pub(crate) mod registered_claim;
mod seconds;
pub(crate) mod signature;

pub use crate::model::{JwsAlgorithm, JwsAlgorithmSet};
pub use claims::VerifiedClaims;

use claims::UnverifiedClaims;
use compact::RawToken;

/// When a token expires, according to the token itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatedExpiry {
    /// At this time, in seconds since 1970.
    At(i64),
    /// The token has no `exp`.
    Never,
    /// The token cannot be read.
    Unknown,
}

/// The expiry that a token states. For tokens that another server has verified; a token that was verified here has
/// [`AuthnDecision::expires`](crate::AuthnDecision::expires).
pub fn stated_expiry(token: &str) -> StatedExpiry {
    let read = || {
        let payload = RawToken::new(token).ok()?.payload().ok()?;
        let claims = UnverifiedClaims::read(&payload.bytes).ok()?;
        Some(claims.registered_as_go_reads_them()?.stated_expiry())
    };
    match read() {
        Some(Some(seconds)) => StatedExpiry::At(seconds),
        Some(None) => StatedExpiry::Never,
        None => StatedExpiry::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::*;

    // S255: as the verifier reads it.
    #[test]
    fn stated_expiry_is_unknown_if_the_token_cannot_be_read() {
        for (claims, expected) in [
            (r#"{"iss":"i","exp":1700000000}"#, StatedExpiry::At(1_700_000_000)),
            (r#"{"iss":"i","exp":"1700000000"}"#, StatedExpiry::At(1_700_000_000)),
            (r#"{"iss":"i","exp":2,"EXP":1}"#, StatedExpiry::At(1)),
            (r#"{"iss":"i","exp":1.7e9}"#, StatedExpiry::At(1_700_000_000)),
            (r#"{"iss":"i"}"#, StatedExpiry::Never),
            (r#"{"iss":"i","exp":null}"#, StatedExpiry::Unknown),
            (r#"{"iss":"i","exp":true}"#, StatedExpiry::Unknown),
            (r#"{"iss":"i","exp":1,"aud":5}"#, StatedExpiry::Unknown),
            ("[", StatedExpiry::Unknown),
        ] {
            let token = format!("h.{}.s", URL_SAFE_NO_PAD.encode(claims));
            assert_eq!(stated_expiry(&token), expected, "{claims}");
        }
        assert_eq!(stated_expiry("opaque"), StatedExpiry::Unknown);
    }
}
