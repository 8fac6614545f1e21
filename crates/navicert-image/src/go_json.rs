//! Writes JSON byte for byte like Go's encoder, so that requests and hashes equal the kubelet's.
// I90, I141

use navicert_go::json::write_string;
use zeroize::Zeroizing;

/// A JSON object written member by member, in the given order.
#[derive(Debug)]
pub(crate) struct Object(Zeroizing<String>);

impl Object {
    pub(crate) fn new() -> Self {
        Object(Zeroizing::new("{".to_owned()))
    }

    /// Adds a string member.
    pub(crate) fn text(mut self, name: &str, value: &str) -> Self {
        self.name(name);
        write_string(&mut self.0, value);
        self
    }

    /// Adds a string member unless the value is empty.
    pub(crate) fn text_if_nonempty(self, name: &str, value: &str) -> Self {
        if value.is_empty() { self } else { self.text(name, value) }
    }

    /// Adds an object member.
    pub(crate) fn object(mut self, name: &str, value: Object) -> Self {
        self.name(name);
        let text = value.finish();
        self.0.push_str(&text);
        self
    }

    /// Returns the JSON text.
    pub(crate) fn finish(mut self) -> Zeroizing<String> {
        self.0.push('}');
        self.0
    }

    fn name(&mut self, name: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        write_string(&mut self.0, name);
        self.0.push(':');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped_as_go_does() {
        // I90
        let text = Object::new()
            .text("a\"\\", "<1>&\u{2028}\u{1}\n\t\r\u{8}\u{c}é\u{7f}")
            .text_if_nonempty("b", "")
            .finish();
        let expected = r#"{"a\"\\":"\u003c1\u003e\u0026\u2028\u0001\n\t\r\b\f"#.to_owned() + "é\u{7f}\"}";
        assert_eq!(*text, expected);
        assert_eq!(*Object::new().object("o", Object::new()).text("n", "").finish(), r#"{"o":{},"n":""}"#);
    }
}
