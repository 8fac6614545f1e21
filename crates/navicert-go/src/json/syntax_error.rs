//! Go's messages for invalid JSON. Operators search for kube-apiserver's log lines, so they have to match exactly.
//!
//! A second scanner beside `validate.rs`, because it is the slow one: it knows at every byte what Go was looking for.

use super::MAX_DEPTH;
use crate::quote::quoted;

/// Go's syntax error for invalid JSON; `None` if it is valid.
pub fn syntax_error(text: &[u8]) -> Option<String> {
    let mut scanner = Scanner { open: Vec::new(), state: ScanState::Value };
    for byte in text {
        if let Err(message) = scanner.step(*byte) {
            return Some(message);
        }
    }
    // A number at the end of the text is complete only here.
    if let Err(message) = scanner.step(b' ') {
        return Some(if scanner.state == ScanState::Broken { message } else { END.to_owned() });
    }
    (scanner.state != ScanState::End).then(|| END.to_owned())
}

const END: &str = "unexpected end of JSON input";

#[derive(Clone, Copy, PartialEq, Eq)]
enum ScanState {
    Value,
    ValueOrEnd,
    NameOrEnd,
    Name,
    AfterName,
    AfterValue,
    End,
    Text { is_name: bool },
    Escape { is_name: bool },
    Unit { is_name: bool, left: u8 },
    Word { word: &'static str, at: usize },
    Minus,
    Zero,
    Digits,
    Point,
    Fraction,
    Exponent,
    Sign,
    Power,
    Broken,
}

struct Scanner {
    /// Open containers: true for an object.
    open: Vec<bool>,
    state: ScanState,
}

impl Scanner {
    fn step(&mut self, byte: u8) -> Result<(), String> {
        let space = matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        match self.state {
            ScanState::Value
            | ScanState::ValueOrEnd
            | ScanState::NameOrEnd
            | ScanState::Name
            | ScanState::AfterName
            | ScanState::AfterValue
            | ScanState::End
                if space => {}
            ScanState::ValueOrEnd if byte == b']' => self.close(),
            ScanState::Value | ScanState::ValueOrEnd => return self.begin(byte),
            ScanState::NameOrEnd if byte == b'}' => self.close(),
            ScanState::NameOrEnd | ScanState::Name if byte == b'"' => {
                self.state = ScanState::Text { is_name: true }
            }
            ScanState::NameOrEnd | ScanState::Name => {
                return wrong(byte, "looking for beginning of object key string");
            }
            ScanState::AfterName if byte == b':' => self.state = ScanState::Value,
            ScanState::AfterName => return wrong(byte, "after object key"),
            ScanState::AfterValue => return self.after_value(byte),
            ScanState::End => return wrong(byte, "after top-level value"),
            ScanState::Text { is_name } => match byte {
                b'"' if is_name => self.state = ScanState::AfterName,
                b'"' => self.ended(),
                b'\\' => self.state = ScanState::Escape { is_name },
                0..0x20 => return wrong(byte, "in string literal"),
                _ => {}
            },
            ScanState::Escape { is_name } => match byte {
                b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => {
                    self.state = ScanState::Text { is_name }
                }
                b'u' => self.state = ScanState::Unit { is_name, left: 4 },
                _ => return wrong(byte, "in string escape code"),
            },
            ScanState::Unit { is_name, left } => {
                if !byte.is_ascii_hexdigit() {
                    return wrong(byte, "in \\u hexadecimal character escape");
                }
                let left = left - 1;
                self.state =
                    if left == 0 { ScanState::Text { is_name } } else { ScanState::Unit { is_name, left } };
            }
            ScanState::Word { word, at } => {
                let expected = word.as_bytes().get(at).copied().unwrap_or_default();
                if byte != expected {
                    let context = format!("in literal {word} (expecting {})", character(expected));
                    return wrong(byte, &context);
                }
                if at + 1 == word.len() {
                    self.ended();
                } else {
                    self.state = ScanState::Word { word, at: at + 1 };
                }
            }
            _ => return self.number(byte),
        }
        Ok(())
    }

    fn begin(&mut self, byte: u8) -> Result<(), String> {
        self.state = match byte {
            b'{' => return self.enter(true),
            b'[' => return self.enter(false),
            b'"' => ScanState::Text { is_name: false },
            b'-' => ScanState::Minus,
            b'0' => ScanState::Zero,
            b'1'..=b'9' => ScanState::Digits,
            b't' => ScanState::Word { word: "true", at: 1 },
            b'f' => ScanState::Word { word: "false", at: 1 },
            b'n' => ScanState::Word { word: "null", at: 1 },
            _ => return wrong(byte, "looking for beginning of value"),
        };
        Ok(())
    }

    fn enter(&mut self, is_object: bool) -> Result<(), String> {
        if self.open.len() == MAX_DEPTH {
            self.state = ScanState::Broken;
            return Err("exceeded max depth".to_owned());
        }
        self.open.push(is_object);
        self.state = if is_object { ScanState::NameOrEnd } else { ScanState::ValueOrEnd };
        Ok(())
    }

    fn close(&mut self) {
        self.open.pop();
        self.ended();
    }

    fn ended(&mut self) {
        self.state = if self.open.is_empty() { ScanState::End } else { ScanState::AfterValue };
    }

    fn after_value(&mut self, byte: u8) -> Result<(), String> {
        match (self.open.last(), byte) {
            (Some(true), b'}') | (Some(false), b']') => self.close(),
            (Some(true), b',') => self.state = ScanState::Name,
            (Some(false), b',') => self.state = ScanState::Value,
            (Some(true), _) => return wrong(byte, "after object key:value pair"),
            (Some(false), _) => return wrong(byte, "after array element"),
            (None, _) => return wrong(byte, "after top-level value"),
        }
        Ok(())
    }

    fn number(&mut self, byte: u8) -> Result<(), String> {
        self.state = match (self.state, byte) {
            (ScanState::Minus, b'0') => ScanState::Zero,
            (ScanState::Minus, b'1'..=b'9') | (ScanState::Digits, b'0'..=b'9') => ScanState::Digits,
            (ScanState::Zero | ScanState::Digits, b'.') => ScanState::Point,
            (ScanState::Point | ScanState::Fraction, b'0'..=b'9') => ScanState::Fraction,
            (ScanState::Zero | ScanState::Digits | ScanState::Fraction, b'e' | b'E') => ScanState::Exponent,
            (ScanState::Exponent, b'+' | b'-') => ScanState::Sign,
            (ScanState::Exponent | ScanState::Sign | ScanState::Power, b'0'..=b'9') => ScanState::Power,
            (ScanState::Minus, _) => return wrong(byte, "in numeric literal"),
            (ScanState::Point, _) => return wrong(byte, "after decimal point in numeric literal"),
            (ScanState::Exponent | ScanState::Sign, _) => {
                return wrong(byte, "in exponent of numeric literal");
            }
            _ => {
                self.ended();
                return self.step(byte);
            }
        };
        Ok(())
    }
}

fn wrong(byte: u8, context: &str) -> Result<(), String> {
    Err(format!("invalid character {} {context}", character(byte)))
}

fn character(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        _ => {
            let quoted = quoted(&char::from(byte).to_string());
            format!("'{}'", quoted.trim_matches('"'))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_errors_match_go() {
        for (text, message) in [
            ("{\"alg\":", END),
            (" ", END),
            ("1e", END),
            ("{\"a\" \"x\"}", "invalid character '\"' after object key"),
            ("{\"a\":1,}", "invalid character '}' looking for beginning of object key string"),
            ("{\"a\":01}", "invalid character '1' after object key:value pair"),
            ("{\"a\":1.}", "invalid character '}' after decimal point in numeric literal"),
            ("{\"a\":1e}", "invalid character '}' in exponent of numeric literal"),
            ("{\"a\":-}", "invalid character '}' in numeric literal"),
            ("{\"a\":\"\\x\"}", "invalid character 'x' in string escape code"),
            ("{\"a\":\"\\u12G4\"}", "invalid character 'G' in \\u hexadecimal character escape"),
            ("{\"a\":\"\u{1}\"}", "invalid character '\\x01' in string literal"),
            ("{\"a\":tru}", "invalid character '}' in literal true (expecting 'e')"),
            ("{\"a\":[1 2]}", "invalid character '2' after array element"),
            ("{\"a\":'x'}", "invalid character '\\'' looking for beginning of value"),
            ("{\"a\":é}", "invalid character 'Ã' looking for beginning of value"),
            ("{} x", "invalid character 'x' after top-level value"),
        ] {
            assert_eq!(syntax_error(text.as_bytes()).as_deref(), Some(message), "{text}");
        }
        for good in ["0", "{}", " [1, -2.5e+3, \"\\u00e9\", {\"a\": null}] ", "\"x\""] {
            assert_eq!(syntax_error(good.as_bytes()), None, "{good}");
        }
    }

    #[test]
    fn both_scanners_agree_on_valid_json() {
        let pieces =
            ["{", "}", "[", "]", ",", ":", "\"a\"", "1", "-", "0", ".5", "e3", "true", "nul", " ", "\\"];
        let mut seed = 7_usize;
        for _ in 0..20_000 {
            let mut text = String::new();
            for _ in 0..(seed % 9) {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                text.push_str(pieces[(seed >> 33) % pieces.len()]);
            }
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            seed >>= 1;
            let valid = super::super::Raw::parse(text.as_bytes()).is_ok();
            assert_eq!(syntax_error(text.as_bytes()).is_none(), valid, "{text}");
        }
    }
}
