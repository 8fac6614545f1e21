//! Addresses that may be handed to a program that opens a browser.
// L725

use std::fmt;

use thiserror::Error;

/// An `http` or `https` address of characters that no opener, shell or script can take for something else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenableUrl(String);

/// An address that is not handed to an opener.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the address cannot be opened in a browser: {reason}")]
pub struct UnsafeUrl {
    reason: &'static str,
}

impl OpenableUrl {
    /// Checks an address.
    ///
    /// # Errors
    /// Another scheme than `http` and `https`, no host, user information, or a character that RFC 3986 does not allow or that
    /// is a quote.
    pub fn parse(text: &str) -> Result<Self, UnsafeUrl> {
        let rejected = |reason| UnsafeUrl { reason };
        let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        let rest = rest.ok_or_else(|| rejected("expected http:// or https://"))?;
        if !text.bytes().all(is_allowed) {
            return Err(rejected(
                "it has a space, a quote, a backslash or another character that must be escaped",
            ));
        }
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.contains('@') {
            return Err(rejected("user information is not allowed"));
        }
        if authority.is_empty() || authority.starts_with(':') {
            return Err(rejected("missing host"));
        }
        Ok(OpenableUrl(text.to_owned()))
    }

    /// The address.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::str::FromStr for OpenableUrl {
    type Err = UnsafeUrl;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl fmt::Display for OpenableUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The characters of RFC 3986, without the single quote.
fn is_allowed(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&()*+,;=%".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_http_addresses_are_opened() {
        // L725, L1305
        for text in [
            "http://127.0.0.1:41231/start/AAAAAAAAAAAAAAAAAAAAAA",
            "https://login.example/device?user_code=ABCD-EFGH&x=%20",
            "http://[::1]:8000/",
            "https://login.example",
        ] {
            assert_eq!(OpenableUrl::parse(text).unwrap().as_str(), text);
        }
        for text in [
            "",
            "javascript:alert(1)",
            "file:///etc/passwd",
            "data:text/html,x",
            "HTTP://login.example",
            "//login.example",
            "http://",
            "http:///path",
            "http://:80/",
            "-http://login.example",
            "http://login.example/a b",
            "http://login.example/a\"b",
            "http://login.example/a'b",
            "http://login.example/a`b",
            "http://login.example/a\\b",
            "http://login.example/a|b",
            "http://login.example/<b>",
            "http://login.example/\n",
            "http://login.example/\u{1b}[2J",
            "http://login.example/\u{e9}",
            "https://accounts.example@evil.example/",
        ] {
            assert!(OpenableUrl::parse(text).is_err(), "{text:?}");
        }
    }
}
