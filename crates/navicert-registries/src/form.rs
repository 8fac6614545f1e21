//! Forms in `application/x-www-form-urlencoded`.

use std::fmt::Write as _;

use navicert_types::Secret;
use zeroize::Zeroizing;

use crate::http::{HttpRequest, HttpUrl};

/// A form builder. Its fields may be secrets.
#[derive(Debug, Default)]
pub struct Form(Secret<String>);

impl Form {
    /// Creates an empty form.
    pub fn new() -> Self {
        Form::default()
    }

    /// Adds a field.
    #[must_use]
    pub fn field(self, name: &str, value: &str) -> Self {
        let separator = if self.0.is_empty() { "" } else { "&" };
        let value = Zeroizing::new(percent_encode(value));
        Form(Secret::new(format!("{}{separator}{}={}", self.0.expose(), percent_encode(name), &*value)))
    }

    /// The encoded form, for a query.
    pub fn text(&self) -> &str {
        self.0.expose()
    }

    /// A POST request with the form.
    pub fn request(&self, url: HttpUrl) -> HttpRequest {
        HttpRequest::new("POST", url).body("application/x-www-form-urlencoded", self.0.expose().as_bytes())
    }
}

/// Percent-encodes everything except unreserved characters; a space becomes `+`.
fn percent_encode(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                escaped.push(char::from(byte));
            }
            b' ' => escaped.push('+'),
            _ => {
                let _ = write!(escaped, "%{byte:02X}");
            }
        }
    }
    escaped
}

/// Decodes percent escapes and keeps everything else.
pub(crate) fn percent_decode(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let digits = (*first == b'%').then(|| behind.get(..2)).flatten();
        let byte = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { behind.get(2..).unwrap_or_default() } else { behind };
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodes_fields_in_order() {
        let form = Form::new().field("a", "1 2").field("b&", "ä=/~").field("c", "");
        assert_eq!(form.text(), "a=1+2&b%26=%C3%A4%3D%2F~&c=");
        assert_eq!(format!("{form:?}"), "Form(Secret(…))");
    }
}
