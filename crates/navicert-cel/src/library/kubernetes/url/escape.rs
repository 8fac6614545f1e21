//! Percent-encoding; the characters that need it depend on the part of the URL.

use super::UrlFault;

/// A part of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Path,
    User,
    Host,
    /// The zone after `%25` in an IPv6 address.
    Zone,
    /// A key or value of the query.
    Query,
    Fragment,
}

/// Decodes percent escapes. The result may be invalid UTF-8.
pub(super) fn unescape(text: &str, mode: Mode) -> Result<Vec<u8>, UrlFault> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        match byte {
            b'%' => {
                let fault = || {
                    let shown: Vec<u8> = std::iter::once(b'%').chain(tail.iter().copied().take(2)).collect();
                    UrlFault::Escape(super::text(&shown))
                };
                let [high, low, after @ ..] = tail else { return Err(fault()) };
                let digit =
                    |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
                let (Some(high), Some(low)) = (digit(*high), digit(*low)) else { return Err(fault()) };
                let value = high << 4 | low;
                let allowed = match mode {
                    // A host may escape only non-ASCII bytes and the percent sign.
                    Mode::Host => value >= 0x80 || value == b'%',
                    Mode::Zone => matches!(value, b'%' | b' ') || !needs_escape(value, Mode::Host),
                    _ => true,
                };
                if !allowed {
                    return Err(fault());
                }
                out.push(value);
                rest = after;
            }
            b'+' if mode == Mode::Query => out.push(b' '),
            _ if matches!(mode, Mode::Host | Mode::Zone) && byte.is_ascii() && needs_escape(byte, mode) => {
                return Err(UrlFault::HostCharacter(char::from(byte).to_string()));
            }
            _ => out.push(byte),
        }
    }
    Ok(out)
}

/// Encodes the bytes that need it.
pub(super) fn escape(bytes: &[u8], mode: Mode) -> String {
    let mut out = String::with_capacity(bytes.len());
    for &byte in bytes {
        if byte.is_ascii() && !needs_escape(byte, mode) {
            out.push(char::from(byte));
        } else {
            const DIGITS: [char; 16] =
                ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F'];
            let digit = |value: u8| DIGITS.get(usize::from(value)).copied().unwrap_or('0');
            out.extend(['%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
    out
}

/// Returns the text if it is correctly escaped, otherwise decodes and re-escapes it.
pub(super) fn ensure_escaped(written: &str, mode: Mode) -> String {
    // A written text may keep some characters that re-escaping would encode.
    let is_allowed = |byte: u8| {
        byte.is_ascii_alphanumeric() || b"!$&'()*+,;=:@[]%".contains(&byte) || !needs_escape(byte, mode)
    };
    if written.bytes().all(is_allowed) {
        return written.to_owned();
    }
    unescape(written, mode).map_or_else(|_| written.to_owned(), |bytes| escape(&bytes, mode))
}

fn needs_escape(byte: u8, mode: Mode) -> bool {
    match byte {
        _ if byte.is_ascii_alphanumeric() => false,
        b'-' | b'_' | b'.' | b'~' => false,
        b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=' | b':' | b'[' | b']'
        | b'<' | b'>' | b'"'
            if matches!(mode, Mode::Host | Mode::Zone) =>
        {
            false
        }
        b'$' | b'&' | b'+' | b',' | b'/' | b':' | b';' | b'=' | b'?' | b'@' => match mode {
            Mode::Path => byte == b'?',
            Mode::User => matches!(byte, b'@' | b'/' | b'?' | b':'),
            Mode::Fragment => false,
            Mode::Host | Mode::Zone | Mode::Query => true,
        },
        b'!' | b'(' | b')' | b'*' => mode != Mode::Fragment,
        _ => true,
    }
}
