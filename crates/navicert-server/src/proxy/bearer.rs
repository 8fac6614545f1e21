//! The credential that a client shows: a bearer token in `Authorization`, or among a WebSocket's protocols, where
//! browsers have to put it (structured-authentication.md S97–S99). Nothing else is ever read as one (S243).

use std::fmt;

use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use http::HeaderMap;
use http::header::{HeaderValue, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use zeroize::Zeroizing;

/// How browsers put a token into a WebSocket's protocols.
const TOKEN_PROTOCOL: &str = "base64url.bearer.authorization.k8s.io.";

/// Without padding, and as tolerant of the last bits as Go is.
const UNPADDED: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::URL_SAFE,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::RequireNone)
        .with_decode_allow_trailing_bits(true),
);

/// A token as it was shown; cleared when dropped, and never printed.
pub struct Token(Zeroizing<String>);

impl Token {
    /// Reads the value.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// As it is sent on (S276); marked as sensitive.
    pub(super) fn authorization(&self) -> Option<HeaderValue> {
        let mut value =
            HeaderValue::try_from(Zeroizing::new(format!("Bearer {}", self.expose())).as_str()).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// When a token that has been accepted expires, in seconds since 1970: what its second part says. `None`: it does not.
    pub(super) fn expires(&self) -> Option<i64> {
        let payload = Zeroizing::new(UNPADDED.decode(self.0.split('.').nth(1)?).ok()?);
        let claims: serde_json::Value = serde_json::from_slice(&payload).ok()?;
        let expires = claims.get("exp")?;
        #[expect(clippy::cast_possible_truncation, reason = "a time that is no i64 is no time")]
        expires.as_i64().or_else(|| expires.as_f64().map(|seconds| seconds as i64))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(***)")
    }
}

/// Why what is shown cannot be a token. A client is told nothing but 401.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// More than one token among the protocols.
    #[error("multiple tokens among the WebSocket protocols")]
    Several,
    /// Not base64, or not text.
    #[error("the token among the WebSocket protocols is not base64url of a text")]
    Encoding,
    /// Nothing but the token: no protocol would be left to agree on.
    #[error("missing additional subprotocol")]
    NoOther,
}

/// The token of a request; `None` if it shows none.
///
/// # Errors
/// [`Unreadable`]: something is shown, and it is none.
pub fn read(headers: &HeaderMap) -> Result<Option<Token>, Unreadable> {
    // Two headers have been refused already (S244).
    match crate::bearer::token(headers) {
        Ok(Some(token)) => Ok(Some(Token(Zeroizing::new(token.to_owned())))),
        _ => web_socket(headers),
    }
}

/// S98
fn web_socket(headers: &HeaderMap) -> Result<Option<Token>, Unreadable> {
    if headers.get(UPGRADE).is_none_or(|protocol| !protocol.as_bytes().eq_ignore_ascii_case(b"websocket")) {
        return Ok(None);
    }
    let lists = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|value| value.to_str().ok());
    let (mut found, mut others) = (None, 0);
    for protocol in lists.flat_map(|list| list.split(',')).map(str::trim).filter(|name| !name.is_empty()) {
        match protocol.strip_prefix(TOKEN_PROTOCOL) {
            None => others += 1,
            Some(_) if found.is_some() => return Err(Unreadable::Several),
            Some(token) => found = Some(token),
        }
    }
    let Some(encoded) = found else { return Ok(None) };
    let decoded = UNPADDED.decode(encoded).map_err(|_| Unreadable::Encoding)?;
    let token = String::from_utf8(decoded).map_err(|_| Unreadable::Encoding)?;
    match (token.is_empty(), others) {
        (true, _) => Err(Unreadable::Encoding),
        (false, 0) => Err(Unreadable::NoOther),
        (false, _) => Ok(Some(Token(Zeroizing::new(token)))),
    }
}

#[cfg(test)]
mod tests {
    use http::header::HeaderName;

    use super::*;

    fn read_all(lines: &[(&'static str, &str)]) -> Result<Option<String>, Unreadable> {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
        }
        read(&headers).map(|token| token.map(|token| token.expose().to_owned()))
    }

    // S97 is `crate::bearer`'s; S243
    #[test]
    fn nothing_else_is_read_as_a_token() {
        assert_eq!(read_all(&[("authorization", "Bearer abc")]), Ok(Some("abc".to_owned())));
        assert_eq!(read_all(&[("authorization", "Bearer ")]), Ok(None));
        assert_eq!(read_all(&[("authorization", "Basic abc")]), Ok(None));
        assert_eq!(read_all(&[("cookie", "token=abc"), ("x-token", "abc")]), Ok(None));
    }

    // S98
    #[test]
    fn a_browsers_token_is_among_the_protocols_of_a_web_socket() {
        const GOOD: &str = "v5.channel.k8s.io, base64url.bearer.authorization.k8s.io.YWJj";
        let asked = |protocols: &[&str]| {
            let mut lines = vec![("upgrade", "websocket")];
            lines.extend(protocols.iter().map(|list| ("sec-websocket-protocol", *list)));
            read_all(&lines)
        };
        assert_eq!(asked(&[GOOD]), Ok(Some("abc".to_owned())));
        assert_eq!(
            asked(&["base64url.bearer.authorization.k8s.io.YWJj", "v4.channel.k8s.io"]),
            Ok(Some("abc".into()))
        );
        assert_eq!(asked(&["v4.channel.k8s.io"]), Ok(None));
        assert_eq!(asked(&[GOOD, GOOD]), Err(Unreadable::Several));
        assert_eq!(asked(&["base64url.bearer.authorization.k8s.io.YWJj"]), Err(Unreadable::NoOther));
        for bad in ["YWJ", "YW=j", "YWJj=", "_w", "", "Y WJj"] {
            let list = format!("base64url.bearer.authorization.k8s.io.{bad},v4.channel.k8s.io");
            let read = asked(&[&list]);
            assert!(read.is_err() || bad == "YWJ", "{bad:?}: {read:?}");
        }
        assert_eq!(read_all(&[("sec-websocket-protocol", GOOD)]), Ok(None), "no WebSocket, no token");
        let both =
            [("authorization", "Bearer own"), ("upgrade", "websocket"), ("sec-websocket-protocol", GOOD)];
        assert_eq!(read_all(&both), Ok(Some("own".to_owned())));
    }

    #[test]
    fn an_expiry_is_read_from_the_payload_and_a_token_is_never_printed() {
        let payload =
            base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(r#"{"exp":1700000000,"sub":"a"}"#);
        let token = Token(Zeroizing::new(format!("e30.{payload}.c2ln")));
        assert_eq!(token.expires(), Some(1_700_000_000));
        assert_eq!(Token(Zeroizing::new("opaque".to_owned())).expires(), None);
        assert_eq!(format!("{token:?}"), "Token(***)");
        assert!(token.authorization().unwrap().is_sensitive());
    }
}
