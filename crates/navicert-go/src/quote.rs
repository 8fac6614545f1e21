//! Strings in double quotes, as Go's `%q` and `strconv.Quote` write them.

use std::fmt::Write as _;

/// A string quoted as by `%q`.
pub fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for symbol in text.chars() {
        match symbol {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            '\0'..' ' | '\u{7f}' => _ = write!(out, "\\x{:02x}", u32::from(symbol)),
            ' '..'\u{7f}' => out.push(symbol),
            _ if is_printable(symbol) => out.push(symbol),
            _ if u32::from(symbol) < 0x1_0000 => _ = write!(out, "\\u{:04x}", u32::from(symbol)),
            _ => _ = write!(out, "\\U{:08x}", u32::from(symbol)),
        }
    }
    out.push('"');
    out
}

fn is_printable(symbol: char) -> bool {
    let invisible = matches!(symbol, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e000}'..='\u{f8ff}');
    !symbol.is_control() && !symbol.is_whitespace() && !invisible
}

/// A list of quoted strings in brackets, as by `%q`.
pub fn quoted_list<'t>(texts: impl Iterator<Item = &'t str>) -> String {
    format!("[{}]", texts.map(quoted).collect::<Vec<_>>().join(" "))
}
