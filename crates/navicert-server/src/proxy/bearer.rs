//! Bearer token of a request: from `Authorization`, or from the WebSocket subprotocols, where browsers put it.
//! Nothing else is accepted.
// S97–S99, S243

use std::fmt;

use base64::Engine as _;
use http::HeaderMap;
use http::header::{HeaderValue, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use navicert_go::base64::RAW_URL;
use zeroize::Zeroizing;

/// Prefix of the WebSocket subprotocol that carries a token.
const TOKEN_PROTOCOL: &str = "base64url.bearer.authorization.k8s.io.";

/// A token, never printed: in the header that it was read from, or a copy that is zeroized when dropped.
pub enum Token<'h> {
    /// Part of a header.
    InHeader(&'h str),
    /// A copy.
    Owned(Zeroizing<String>),
}

impl Token<'_> {
    /// Returns the token.
    pub fn expose(&self) -> &str {
        match self {
            Token::InHeader(token) => token,
            Token::Owned(token) => token,
        }
    }

    /// A token that does not borrow the header.
    pub fn into_owned(self) -> Token<'static> {
        Token::Owned(match self {
            Token::InHeader(token) => Zeroizing::new(token.to_owned()),
            Token::Owned(token) => token,
        })
    }

    /// `Authorization` header value for forwarding, marked as sensitive.
    // S276
    pub(super) fn authorization(&self) -> Option<HeaderValue> {
        let mut value =
            HeaderValue::try_from(Zeroizing::new(format!("Bearer {}", self.expose())).as_str()).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

impl fmt::Debug for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(***)")
    }
}

/// Invalid token encoding. The client receives only a 401.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MalformedToken {
    /// Several subprotocols carry a token.
    #[error("multiple tokens in the WebSocket subprotocols")]
    Multiple,
    /// Invalid base64 or UTF-8.
    #[error("invalid token in the WebSocket subprotocols: expected base64url")]
    Encoding,
    /// Only the token is offered: no subprotocol is left to negotiate.
    #[error("missing additional subprotocol")]
    NoSubprotocol,
}

/// The token of a request, if any.
///
/// # Errors
/// [`MalformedToken`]: the token cannot be decoded.
pub fn read(headers: &HeaderMap) -> Result<Option<Token<'_>>, MalformedToken> {
    // Duplicate headers have been rejected already (S244).
    match crate::bearer::token(headers) {
        Ok(Some(token)) => Ok(Some(Token::InHeader(token))),
        _ => web_socket(headers),
    }
}

// S98
fn web_socket(headers: &HeaderMap) -> Result<Option<Token<'static>>, MalformedToken> {
    if headers.get(UPGRADE).is_none_or(|protocol| !protocol.as_bytes().eq_ignore_ascii_case(b"websocket")) {
        return Ok(None);
    }
    let lists = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|value| value.to_str().ok());
    let (mut found, mut others) = (None, 0);
    for protocol in lists.flat_map(|list| list.split(',')).map(str::trim).filter(|name| !name.is_empty()) {
        match protocol.strip_prefix(TOKEN_PROTOCOL) {
            None => others += 1,
            Some(_) if found.is_some() => return Err(MalformedToken::Multiple),
            Some(token) => found = Some(token),
        }
    }
    let Some(encoded) = found else { return Ok(None) };
    let decoded = RAW_URL.decode(encoded).map_err(|_| MalformedToken::Encoding)?;
    let token = String::from_utf8(decoded).map_err(|_| MalformedToken::Encoding)?;
    match (token.is_empty(), others) {
        (true, _) => Err(MalformedToken::Encoding),
        (false, 0) => Err(MalformedToken::NoSubprotocol),
        (false, _) => Ok(Some(Token::Owned(Zeroizing::new(token)))),
    }
}

#[cfg(test)]
mod tests {
    use http::header::HeaderName;

    use super::*;

    fn read_all(lines: &[(&'static str, &str)]) -> Result<Option<String>, MalformedToken> {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
        }
        read(&headers).map(|token| token.map(|token| token.expose().to_owned()))
    }

    // S97 is `crate::bearer`'s; S243
    #[test]
    fn reads_tokens_only_from_authorization() {
        assert_eq!(read_all(&[("authorization", "Bearer abc")]), Ok(Some("abc".to_owned())));
        assert_eq!(read_all(&[("authorization", "Bearer ")]), Ok(None));
        assert_eq!(read_all(&[("authorization", "Basic abc")]), Ok(None));
        assert_eq!(read_all(&[("cookie", "token=abc"), ("x-token", "abc")]), Ok(None));
    }

    // S98
    #[test]
    fn reads_browser_tokens_from_websocket_subprotocols() {
        const GOOD: &str = "v5.channel.k8s.io, base64url.bearer.authorization.k8s.io.YWJj";
        let read_protocols = |protocols: &[&str]| {
            let mut lines = vec![("upgrade", "websocket")];
            lines.extend(protocols.iter().map(|list| ("sec-websocket-protocol", *list)));
            read_all(&lines)
        };
        assert_eq!(read_protocols(&[GOOD]), Ok(Some("abc".to_owned())));
        assert_eq!(
            read_protocols(&["base64url.bearer.authorization.k8s.io.YWJj", "v4.channel.k8s.io"]),
            Ok(Some("abc".into()))
        );
        assert_eq!(read_protocols(&["v4.channel.k8s.io"]), Ok(None));
        assert_eq!(read_protocols(&[GOOD, GOOD]), Err(MalformedToken::Multiple));
        assert_eq!(
            read_protocols(&["base64url.bearer.authorization.k8s.io.YWJj"]),
            Err(MalformedToken::NoSubprotocol)
        );
        for bad in ["YWJ", "YW=j", "YWJj=", "_w", "", "Y WJj"] {
            let list = format!("base64url.bearer.authorization.k8s.io.{bad},v4.channel.k8s.io");
            let read = read_protocols(&[&list]);
            assert!(read.is_err() || bad == "YWJ", "{bad:?}: {read:?}");
        }
        assert_eq!(read_all(&[("sec-websocket-protocol", GOOD)]), Ok(None), "no WebSocket, no token");
        let both =
            [("authorization", "Bearer own"), ("upgrade", "websocket"), ("sec-websocket-protocol", GOOD)];
        assert_eq!(read_all(&both), Ok(Some("own".to_owned())));
    }

    #[test]
    fn token_is_never_printed() {
        let token = Token::Owned(Zeroizing::new("e30.e30.c2ln".to_owned()));
        assert_eq!(format!("{token:?}"), "Token(***)");
        assert!(token.authorization().unwrap().is_sensitive());
    }
}
