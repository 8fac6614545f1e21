//! Whether a label selector is valid: an invalid one changes how kube-apiserver interprets a list.

/// Whether Kubernetes accepts the selector.
pub(super) fn is_valid(selector: &[u8]) -> bool {
    let tokens = tokens(selector);
    let mut parser = Parser { tokens: &tokens };
    parser.requirements().is_some()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a [u8]),
    Not,
    Equals,
    NotEquals,
    Compare,
    Open,
    Close,
    Comma,
}

/// Splits a selector into tokens. A NUL ends the word before it; elsewhere it ends the selector.
fn tokens(selector: &[u8]) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = selector;
    loop {
        rest = skip_spaces(rest);
        let (token, length) = match rest {
            [] | [0, ..] => return tokens,
            [b'=', b'=', ..] => (Token::Equals, 2),
            [b'=', ..] => (Token::Equals, 1),
            [b'!', b'=', ..] => (Token::NotEquals, 2),
            [b'!', ..] => (Token::Not, 1),
            [b'<' | b'>', ..] => (Token::Compare, 1),
            [b'(', ..] => (Token::Open, 1),
            [b')', ..] => (Token::Close, 1),
            [b',', ..] => (Token::Comma, 1),
            _ => {
                let is_end = |byte: &u8| b"=!(),<>\0".contains(byte) || is_space(*byte);
                let end = rest.iter().position(is_end).unwrap_or(rest.len());
                let (word, behind) = rest.split_at(end);
                tokens.push(Token::Word(word));
                rest = behind.strip_prefix(b"\0").unwrap_or(behind);
                continue;
            }
        };
        // A NUL directly behind an operator belongs to it.
        let behind = rest.get(length..).unwrap_or_default();
        rest = behind.strip_prefix(b"\0").unwrap_or(behind);
        tokens.push(token);
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

fn skip_spaces(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|byte| !is_space(*byte)).unwrap_or(text.len());
    text.get(start..).unwrap_or_default()
}

/// A recursive descent over the tokens; every function returns `None` for an invalid selector.
struct Parser<'t, 'a> {
    tokens: &'t [Token<'a>],
}

impl<'a> Parser<'_, 'a> {
    fn next(&mut self) -> Option<Token<'a>> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(*first)
    }

    fn peek(&self) -> Option<Token<'a>> {
        self.tokens.first().copied()
    }

    fn requirements(&mut self) -> Option<()> {
        while self.peek().is_some() {
            self.requirement()?;
            match self.next() {
                None => return Some(()),
                Some(Token::Comma) if matches!(self.peek(), Some(Token::Word(_) | Token::Not)) => {}
                Some(_) => return None,
            }
        }
        Some(())
    }

    fn requirement(&mut self) -> Option<()> {
        let mut first = self.next()?;
        let is_negated = first == Token::Not;
        if is_negated {
            first = self.next()?;
        }
        let Token::Word(key) = first else { return None };
        is_label_key(key).then_some(())?;
        if is_negated || matches!(self.peek(), None | Some(Token::Comma)) {
            return Some(());
        }
        match self.next()? {
            Token::Word(b"in" | b"notin") => self.values(),
            Token::Equals | Token::NotEquals => is_label_value(self.exact_value()?).then_some(()),
            Token::Compare => {
                let value = self.exact_value()?;
                let is_integer = std::str::from_utf8(value).is_ok_and(|text| text.parse::<i64>().is_ok());
                (is_integer && is_label_value(value)).then_some(())
            }
            _ => None,
        }
    }

    fn exact_value(&mut self) -> Option<&'a [u8]> {
        if matches!(self.peek(), None | Some(Token::Comma)) {
            return Some(b"");
        }
        match self.next()? {
            Token::Word(word) => Some(word),
            _ => None,
        }
    }

    /// `(a, b)`; values between commas may be empty.
    fn values(&mut self) -> Option<()> {
        (self.next()? == Token::Open).then_some(())?;
        loop {
            match self.next()? {
                Token::Close => return Some(()),
                Token::Comma => {}
                Token::Word(word) => {
                    is_label_value(word).then_some(())?;
                    matches!(self.peek()?, Token::Comma | Token::Close).then_some(())?;
                }
                _ => return None,
            }
        }
    }
}

/// A qualified name: an optional DNS subdomain and `/`, then a name.
fn is_label_key(key: &[u8]) -> bool {
    let mut parts = key.split(|byte| *byte == b'/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(name), None, _) => is_name(name),
        (Some(prefix), Some(name), None) => is_subdomain(prefix) && is_name(name),
        _ => false,
    }
}

fn is_label_value(value: &[u8]) -> bool {
    value.is_empty() || is_name(value)
}

/// Up to 63 letters, digits, `-`, `_` and `.`, with a letter or digit at both ends.
fn is_name(name: &[u8]) -> bool {
    let is_inner = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    let is_outer = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    name.len() <= 63 && name.iter().all(is_inner) && is_outer(name.first()) && is_outer(name.last())
}

/// Up to 253 characters: labels of lower-case letters, digits and inner `-`.
fn is_subdomain(name: &[u8]) -> bool {
    let is_alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_outer = |byte: Option<&u8>| byte.is_some_and(is_alphanumeric);
    let is_label = |label: &[u8]| {
        label.iter().all(|byte| is_alphanumeric(byte) || *byte == b'-')
            && is_outer(label.first())
            && is_outer(label.last())
    };
    name.len() <= 253 && name.split(|byte| *byte == b'.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_what_kubernetes_accepts() {
        for valid in [
            "",
            " ",
            "a",
            "!a",
            "! a",
            "a,b",
            "a=b",
            "a==b",
            "a = b",
            "a!=b",
            "a=",
            "a=,b",
            "a in (b)",
            "a notin (b, c)",
            "a in ()",
            "a in (,)",
            "a in (b,,c)",
            "in",
            "notin=in",
            "in in (in)",
            "a>1",
            "a<0,b",
            "example.com/a=b",
            "a\tin\n(b)",
            "a\0,b",
            "a,b\0\0(",
        ] {
            assert!(is_valid(valid.as_bytes()), "{valid:?}");
        }
        let long = "k".repeat(64);
        for invalid in [
            ",",
            "a,",
            ",a",
            "a b",
            "=b",
            "!",
            "!!a",
            "!a=b",
            "a=b=c",
            "a===b",
            "a in",
            "a in b",
            "a in (b",
            "a in (b c)",
            "a in (b))",
            "a>",
            "a>x",
            "a>-1",
            "a>+1",
            "a\0b",
            "a/b/c",
            "/a",
            "a/",
            "A.b/c",
            "-a",
            "a-",
            "a=-b",
            "é",
            "a=é",
            "(",
            ")",
            &long,
            "a..b/c",
        ] {
            assert!(!is_valid(invalid.as_bytes()), "{invalid}");
        }
    }
}
