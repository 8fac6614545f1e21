//! Random numbers: without them there is no login.

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use navicert_types::Secret;

use crate::error::LoginError;

/// Random bytes of `state`, `nonce` and PKCE verifier.
const SECRET_BYTES: usize = 32;

/// Random bytes as base64url text.
pub(crate) fn text(bytes: usize) -> Result<String, LoginError> {
    let mut random = vec![0; bytes];
    aws_lc_rs::rand::fill(&mut random)
        .map_err(|_| LoginError::Internal("the system provides no random numbers".to_owned()))?;
    Ok(URL_SAFE_NO_PAD.encode(random))
}

/// A `state`, `nonce` or PKCE verifier.
pub(crate) fn secret() -> Result<Secret<String>, LoginError> {
    text(SECRET_BYTES).map(Secret::new)
}

/// The PKCE challenge of a verifier, and the text that a nonce is remembered as.
pub(crate) fn hashed(text: &Secret<String>) -> String {
    URL_SAFE_NO_PAD.encode(digest(&SHA256, text.expose().as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    // L703, L704: the example of RFC 7636, appendix B.
    #[test]
    fn challenge_is_the_hash_of_the_verifier() {
        let verifier = Secret::new("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".to_owned());
        assert_eq!(hashed(&verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
        let (one, other) = (secret().unwrap(), secret().unwrap());
        assert_eq!(one.expose().len(), 43);
        assert_ne!(one, other);
    }
}
