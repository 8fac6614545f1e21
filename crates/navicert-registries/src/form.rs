//! Forms in `application/x-www-form-urlencoded`.

use navicert_go::percent::{Plus, encode, is_unreserved};
use navicert_types::Secret;
use zeroize::Zeroizing;

use crate::http::{HttpRequest, HttpUrl};

/// A form builder. Its fields may be secrets.
#[derive(Debug, Default)]
pub(crate) struct Form(Secret<String>);

impl Form {
    /// Creates an empty form.
    pub(crate) fn new() -> Self {
        Form::default()
    }

    /// Adds a field.
    #[must_use]
    pub(crate) fn field(self, name: &str, value: &str) -> Self {
        let separator = if self.0.is_empty() { "" } else { "&" };
        let value = Zeroizing::new(percent_encode(value));
        Form(Secret::new(format!("{}{separator}{}={}", self.0.expose(), percent_encode(name), &*value)))
    }

    /// The encoded form, for a query.
    pub(crate) fn text(&self) -> &str {
        self.0.expose()
    }

    /// A POST request with the form.
    pub(crate) fn request(&self, url: HttpUrl) -> HttpRequest {
        HttpRequest::new("POST", url).body("application/x-www-form-urlencoded", self.0.expose().as_bytes())
    }
}

/// Percent-encodes everything except unreserved characters; a space becomes `+`.
fn percent_encode(text: &str) -> String {
    encode(text, Plus::Space, is_unreserved)
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
