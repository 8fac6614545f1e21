//! Values of literals: escapes in strings and bytes, numbers.

/// The value of a string token with quotes and prefix; `None` if an escape is not a character.
pub(crate) fn string_value(token: &str) -> Option<Unescaped<'_>> {
    let (body, raw) = body_of(token);
    if raw || !body.contains('\\') {
        return Some(if body.contains('\r') {
            Unescaped::New(body.replace("\r\n", "\n").replace('\r', "\n"))
        } else {
            Unescaped::Same(body)
        });
    }
    let normal = body.replace("\r\n", "\n").replace('\r', "\n");
    let mut out = String::with_capacity(normal.len());
    let mut rest = normal.as_str();
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let (code, len) = escape(after)?;
        out.push(char::from_u32(code)?);
        rest = after.get(len..)?;
    }
    out.push_str(rest);
    Some(Unescaped::New(out))
}

/// The value of a bytes token; `None` for escapes that denote characters instead of bytes.
pub(crate) fn bytes_value(token: &str) -> Option<Vec<u8>> {
    let (body, raw) = body_of(token);
    let normal = body.replace("\r\n", "\n").replace('\r', "\n");
    if raw {
        return Some(normal.into_bytes());
    }
    let mut out = Vec::with_capacity(normal.len());
    let mut rest = normal.as_str();
    while let Some((before, after)) = rest.split_once('\\') {
        out.extend_from_slice(before.as_bytes());
        if after.starts_with(['u', 'U']) {
            return None;
        }
        let (code, len) = escape(after)?;
        out.push(u8::try_from(code).ok()?);
        rest = after.get(len..)?;
    }
    out.extend_from_slice(rest.as_bytes());
    Some(out)
}

/// An unescaped string, copied only if it had escapes.
pub(crate) enum Unescaped<'t> {
    Same(&'t str),
    New(String),
}

/// The text between the quotes, and whether the literal is raw.
fn body_of(token: &str) -> (&str, bool) {
    let unprefixed = token.trim_start_matches(['b', 'B', 'r', 'R']);
    let prefix = token.get(..token.len() - unprefixed.len()).unwrap_or("");
    let raw = prefix.ends_with(['r', 'R']);
    for quotes in ["\"\"\"", "'''", "\"", "'"] {
        if let Some(body) = unprefixed.strip_prefix(quotes).and_then(|rest| rest.strip_suffix(quotes)) {
            return (body, raw);
        }
    }
    (unprefixed, raw)
}

/// The code point and length of the escape sequence after a backslash.
fn escape(text: &str) -> Option<(u32, usize)> {
    let number = |from: usize, to: usize, radix: u32| {
        let digits = text.get(from..to)?;
        Some((u32::from_str_radix(digits, radix).ok()?, to))
    };
    match text.bytes().next()? {
        b'a' => Some((0x07, 1)),
        b'b' => Some((0x08, 1)),
        b'f' => Some((0x0c, 1)),
        b'n' => Some((0x0a, 1)),
        b'r' => Some((0x0d, 1)),
        b't' => Some((0x09, 1)),
        b'v' => Some((0x0b, 1)),
        other @ (b'"' | b'\'' | b'\\' | b'?' | b'`') => Some((u32::from(other), 1)),
        b'x' | b'X' => number(1, 3, 16),
        b'u' => number(1, 5, 16),
        b'U' => number(1, 9, 16),
        b'0'..=b'3' => number(0, 3, 8),
        _ => None,
    }
}

/// The value of an `int` literal, including its sign.
pub(crate) fn int_value(token: &str, negative: bool) -> Option<i64> {
    let (digits, radix) = match token.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (token, 10),
    };
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    if negative { 0i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}

/// The value of a `uint` literal with its suffix.
pub(crate) fn uint_value(token: &str) -> Option<u64> {
    let digits = token.trim_end_matches(['u', 'U']);
    match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => digits.parse().ok(),
    }
}

/// The value of a `double` literal; `None` if it is out of range.
pub(crate) fn double_value(token: &str, negative: bool) -> Option<f64> {
    let value: f64 = token.parse().ok()?;
    let value = if negative { -value } else { value };
    value.is_finite().then_some(value)
}
