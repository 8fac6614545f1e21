//! Forms and queries of requests.

use navicert_go::percent;
use zeroize::Zeroizing;

/// A form body. Cleared from memory when dropped: it may contain secrets.
#[derive(Clone, Default)]
pub struct Form(Zeroizing<String>);

impl Form {
    /// An empty form.
    pub fn new() -> Self {
        Form::default()
    }

    /// Adds a field.
    pub fn add(&mut self, name: &str, value: &str) {
        if !self.0.is_empty() {
            self.0.push('&');
        }
        percent::encode_into(&mut self.0, name.as_bytes(), percent::Plus::Literal, percent::is_unreserved);
        self.0.push('=');
        percent::encode_into(&mut self.0, value.as_bytes(), percent::Plus::Literal, percent::is_unreserved);
    }

    /// The encoded text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // L608
    #[test]
    fn forms_are_percent_encoded() {
        let mut form = Form::new();
        form.add("a", "x y&z=ä+");
        form.add("resource", "https://r/");
        assert_eq!(form.as_str(), "a=x%20y%26z%3D%C3%A4%2B&resource=https%3A%2F%2Fr%2F");
    }
}
