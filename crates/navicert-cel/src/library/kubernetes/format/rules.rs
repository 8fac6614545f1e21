//! Validation rules of the named formats. Lengths are in bytes, although apimachinery's messages say characters.

use crate::instant::Timestamp;
use std::borrow::Cow;

const LABEL_LIMIT: usize = 63;
const SUBDOMAIN_LIMIT: usize = 253;

const DNS1123_LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and \
                             must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex \
                             used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const DNS1123_SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
                                 '-' or '.', and must start and end with an alphanumeric character (e.g. \
                                 'example.com', regex used for validation is \
                                 '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const DNS1035_LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
                             alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or \
                             'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const NAME: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                    alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or \
                           '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or \
                           'my_value',  or '12345', regex used for validation is \
                           '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

pub(super) fn dns1123_label(text: &str) -> Vec<String> {
    let mut errors = too_long(text, LABEL_LIMIT, "characters");
    if !is_dns1123_label(text) {
        // apimachinery has a message of its own for dots.
        let error = if is_dns1123_subdomain(text) { "must not contain dots" } else { DNS1123_LABEL };
        errors.push(error.to_owned());
    }
    errors
}

pub(super) fn dns1123_subdomain(text: &str) -> Vec<String> {
    let mut errors = too_long(text, SUBDOMAIN_LIMIT, "characters");
    if !is_dns1123_subdomain(text) {
        errors.push(DNS1123_SUBDOMAIN.to_owned());
    }
    errors
}

pub(super) fn dns1035_label(text: &str) -> Vec<String> {
    let mut errors = too_long(text, LABEL_LIMIT, "characters");
    if !(is_dns1123_label(text) && text.starts_with(|first: char| first.is_ascii_lowercase())) {
        errors.push(DNS1035_LABEL.to_owned());
    }
    errors
}

pub(super) fn qualified_name(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    let name = match text.split_once('/') {
        None => text,
        Some((_, name)) if name.contains('/') => {
            return vec![format!(
                "a valid label key {NAME} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
        Some(("", name)) => {
            errors.push("prefix part must be non-empty".to_owned());
            name
        }
        Some((prefix, name)) => {
            let mut faults = too_long(prefix, SUBDOMAIN_LIMIT, "bytes");
            if !is_dns1123_subdomain(prefix) {
                faults.push(DNS1123_SUBDOMAIN.to_owned());
            }
            errors.extend(faults.into_iter().map(|fault| format!("prefix part {fault}")));
            name
        }
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    }
    errors.extend(too_long(name, LABEL_LIMIT, "bytes").into_iter().map(|fault| format!("name part {fault}")));
    if !is_name(name) {
        errors.push(format!("name part {NAME}"));
    }
    errors
}

pub(super) fn label_value(text: &str) -> Vec<String> {
    let mut errors = too_long(text, LABEL_LIMIT, "bytes");
    if !text.is_empty() && !is_name(text) {
        errors.push(LABEL_VALUE.to_owned());
    }
    errors
}

/// A prefix may end in a dash, because more text follows. apimachinery replaces the dash *and* the character before
/// it with an `a`, so `A-` is valid.
pub(super) fn without_trailing_dash(text: &str) -> Cow<'_, str> {
    let Some(rest) = text.strip_suffix('-').filter(|rest| !rest.is_empty()) else {
        return Cow::Borrowed(text);
    };
    let mut shortened = rest.chars();
    match shortened.next_back() {
        Some(last) if last.is_ascii() => Cow::Owned(format!("{}a", shortened.as_str())),
        // apimachinery cuts inside the character; no rule accepts the result.
        _ => Cow::Borrowed(text),
    }
}

pub(super) fn is_uuid(text: &str) -> bool {
    let mut rest = text;
    [8, 4, 4, 4, 12].into_iter().enumerate().all(|(position, length)| {
        if position > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let Some((group, tail)) = rest.split_at_checked(length) else { return false };
        rest = tail;
        group.bytes().all(|byte| byte.is_ascii_hexdigit())
    }) && rest.is_empty()
}

/// Non-empty groups of four with padding. Unused bits in the last group are ignored.
pub(super) fn is_base64(text: &str) -> bool {
    let digits = text.strip_suffix("==").or_else(|| text.strip_suffix('=')).unwrap_or(text);
    !digits.is_empty()
        && text.len().is_multiple_of(4)
        && digits.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
}

/// A valid calendar date such as `2020-02-29`; year 0 is accepted.
pub(super) fn is_date(text: &str) -> bool {
    let valid = |date: &str| Timestamp::parse(&format!("{date}T00:00:00Z")).is_some();
    let shape = text.len() == 10 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    // Year 0 is outside the range of CEL timestamps; year 400 is a leap year too.
    shape && (valid(text) || text.strip_prefix("0000").is_some_and(|rest| valid(&format!("0400{rest}"))))
}

/// A date, `T` and a time, case-insensitive. As upstream, a second `T` ends the validated text, and any character
/// may precede the fraction.
pub(super) fn is_date_time(text: &str) -> bool {
    let mut parts = text.split(['t', 'T']);
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    is_date(date) && is_time(time)
}

fn is_time(text: &str) -> bool {
    let Some((clock, rest)) = text.split_at_checked(8) else { return false };
    let two_digits = |part: &str, limit: &str| {
        part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit()) && part <= limit
    };
    let mut numbers = clock.split(':');
    let clock_valid =
        ["23", "59", "59"].iter().all(|limit| numbers.next().is_some_and(|part| two_digits(part, limit)))
            && numbers.next().is_none();
    let is_zone = |zone: &str| {
        matches!(zone, "z" | "Z")
            || zone
                .strip_prefix(['+', '-'])
                .and_then(|zone| zone.split_once(':'))
                .is_some_and(|(hours, minutes)| two_digits(hours, "99") && two_digits(minutes, "99"))
    };
    let mut after_mark = rest.chars();
    after_mark.next();
    let fraction = after_mark.as_str();
    let after_fraction = fraction.trim_start_matches(|symbol: char| symbol.is_ascii_digit());
    clock_valid && (is_zone(rest) || after_fraction.len() < fraction.len() && is_zone(after_fraction))
}

fn too_long(text: &str, limit: usize, unit: &str) -> Vec<String> {
    if text.len() > limit { vec![format!("must be no more than {limit} {unit}")] } else { Vec::new() }
}

fn is_dns1123_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.bytes().all(|byte| inner(byte) || byte == b'-')
        && text.bytes().next().is_some_and(inner)
        && text.bytes().next_back().is_some_and(inner)
}

fn is_dns1123_subdomain(text: &str) -> bool {
    text.split('.').all(is_dns1123_label)
}

fn is_name(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
        && text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric())
        && text.bytes().next_back().is_some_and(|byte| byte.is_ascii_alphanumeric())
}
