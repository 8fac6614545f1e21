//! Parses escape sequences.

use super::class::Class;
use super::names;
use super::parse::text_before;
use super::{Fault, PatternError};
use regex_syntax::hir::{self, Look};

pub(super) enum Escape {
    /// One character; `None` for a surrogate, which never matches.
    Symbol(Option<char>),
    Class(Class),
    Look(Look),
}

/// Parses the escape sequence at the start of `text`, outside brackets.
pub(super) fn parse(text: &str, fold_case: bool) -> Result<(Escape, &str), PatternError> {
    let mut symbols = text.chars();
    symbols.next();
    let look = match symbols.next() {
        Some('A') => Look::Start,
        Some('z') => Look::End,
        Some('b') => Look::WordAscii,
        Some('B') => Look::WordAsciiNegate,
        _ => {
            if let Some((class, rest)) = parse_class(text, fold_case)? {
                return Ok((Escape::Class(class), rest));
            }
            let (symbol, rest) = parse_symbol(text)?;
            return Ok((Escape::Symbol(char::from_u32(symbol)), rest));
        }
    };
    Ok((Escape::Look(look), symbols.as_str()))
}

/// `\d \D \s \S \w \W`, `\pN`, `\p{Name}`, `\P…`; `None` for any other escape.
pub(super) fn parse_class(text: &str, fold_case: bool) -> Result<Option<(Class, &str)>, PatternError> {
    let mut symbols = text.chars();
    symbols.next();
    let Some(letter) = symbols.next() else { return Ok(None) };
    let class = match letter {
        'd' | 'D' => Class::from_range('0', '9'),
        's' | 'S' => Class::ranges(&[('\t', '\n'), ('\x0c', '\r'), (' ', ' ')]),
        'w' | 'W' => Class::ranges(&[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')]),
        'p' | 'P' => return unicode_class(text, letter == 'P', fold_case).map(Some),
        _ => return Ok(None),
    };
    let class = if fold_case { class.folded() } else { class };
    Ok(Some((if letter.is_ascii_uppercase() { class.negated() } else { class }, symbols.as_str())))
}

fn unicode_class(text: &str, negated: bool, fold_case: bool) -> Result<(Class, &str), PatternError> {
    let fault = |rest: &str| PatternError::new(Fault::ClassRange, text_before(text, rest));
    let mut symbols = text.chars();
    symbols.by_ref().take(2).for_each(drop);
    let after = symbols.as_str();
    let (name, rest) = match after.strip_prefix('{') {
        Some(inner) => inner.split_once('}').ok_or_else(|| fault(""))?,
        None => {
            let mut one = after.chars();
            one.next();
            (text_before(after, one.as_str()), one.as_str())
        }
    };
    let (negated, name) = match name.strip_prefix('^') {
        Some(name) => (!negated, name),
        None => (negated, name),
    };
    let class = named(name).ok_or_else(|| fault(rest))?;
    let class = if fold_case { class.folded() } else { class };
    Ok((if negated { class.negated() } else { class }, rest))
}

fn named(name: &str) -> Option<Class> {
    // Has the form of a general category, but is not one.
    match names::normalize(name).as_str() {
        "any" => return Some(Class::from_range('\0', char::MAX)),
        "ascii" => return Some(Class::from_range('\0', '\x7f')),
        "assigned" => return named("Cn").map(Class::negated),
        _ => {}
    }
    let table = match names::table_name(name)? {
        // Surrogates are not characters.
        "Cs" => return Some(Class::ranges(&[])),
        table => table,
    };
    let tree = regex_syntax::Parser::new().parse(&format!("\\p{{{table}}}")).ok()?;
    match tree.into_kind() {
        hir::HirKind::Class(hir::Class::Unicode(set)) => Some(Class::from_set(set)),
        hir::HirKind::Literal(literal) => {
            let only = std::str::from_utf8(&literal.0).ok()?.chars().next()?;
            Some(Class::from_range(only, only))
        }
        _ => None,
    }
}

/// An escape sequence for one code point (possibly a surrogate), inside or outside brackets.
pub(super) fn parse_symbol(text: &str) -> Result<(u32, &str), PatternError> {
    let mut symbols = text.chars();
    symbols.next();
    let Some(letter) = symbols.next() else {
        return Err(PatternError::new(Fault::TrailingBackslash, ""));
    };
    let rest = symbols.as_str();
    let simple = match letter {
        'a' => 0x07,
        'f' => 0x0c,
        'n' => 0x0a,
        'r' => 0x0d,
        't' => 0x09,
        'v' => 0x0b,
        // A single digit other than 0 would be a back-reference.
        '0' => return Ok(octal(0, rest)),
        '1'..='7' if rest.starts_with(|next| matches!(next, '0'..='7')) => {
            return Ok(octal(u32::from(letter) - u32::from('0'), rest));
        }
        'x' => return hexadecimal(text, rest),
        other if other.is_ascii() && !other.is_ascii_alphanumeric() => u32::from(other),
        _ => return Err(PatternError::new(Fault::Escape, text_before(text, rest))),
    };
    Ok((simple, rest))
}

/// Up to two more octal digits.
fn octal(first: u32, mut rest: &str) -> (u32, &str) {
    let mut value = first;
    for _ in 0..2 {
        let mut symbols = rest.chars();
        let Some(digit) = symbols.next().and_then(|next| next.to_digit(8)) else { break };
        value = value * 8 + digit;
        rest = symbols.as_str();
    }
    (value, rest)
}

/// `\xHH` or `\x{H…}`.
fn hexadecimal<'p>(text: &str, rest: &'p str) -> Result<(u32, &'p str), PatternError> {
    let fault = |rest: &str| PatternError::new(Fault::Escape, text_before(text, rest));
    let (digits, rest) = match rest.strip_prefix('{') {
        Some(inner) => inner.split_once('}').ok_or_else(|| fault(""))?,
        None => rest.split_at_checked(2).ok_or_else(|| fault(""))?,
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(fault(rest));
    }
    let value = digits.bytes().fold(0_u32, |sum, byte| {
        sum.saturating_mul(16).saturating_add(char::from(byte).to_digit(16).unwrap_or(0))
    });
    if value > 0x10_ffff { Err(fault(rest)) } else { Ok((value, rest)) }
}
