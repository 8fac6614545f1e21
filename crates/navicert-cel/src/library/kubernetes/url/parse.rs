//! Parses a URL into its parts.

use super::escape::{Mode, unescape};
use super::{Url, UrlFault};
use std::net::IpAddr;

pub(super) fn check_request(text: &str) -> Result<(), UrlFault> {
    if text.bytes().any(|byte| byte.is_ascii_control()) {
        return Err(UrlFault::Control);
    }
    without_fragment(text, true).map(drop)
}

pub(super) fn parse(text: &str) -> Result<Url, UrlFault> {
    check_request(text)?;
    let (text, fragment) = text.split_once('#').unwrap_or((text, ""));
    let mut url = without_fragment(text, false)?;
    unescape(fragment, Mode::Fragment)?;
    fragment.clone_into(&mut url.fragment);
    Ok(url)
}

/// With `request`, parses a request target: it must be absolute or an absolute path, and `//` without a scheme is
/// part of the path.
fn without_fragment(text: &str, request: bool) -> Result<Url, UrlFault> {
    let mut url = Url::default();
    if text.is_empty() && request {
        return Err(UrlFault::Empty);
    }
    if text == "*" {
        "*".clone_into(&mut url.raw_path);
        return Ok(url);
    }
    let (scheme, rest) = scheme(text)?;
    url.scheme = scheme.to_ascii_lowercase();
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    url.force_query = query.is_empty() && text.ends_with('?');
    query.clone_into(&mut url.raw_query);
    if !rest.starts_with('/') {
        if !url.scheme.is_empty() {
            rest.clone_into(&mut url.opaque);
            return Ok(url);
        }
        if request {
            return Err(UrlFault::Relative);
        }
        if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
            return Err(UrlFault::ColonInFirstSegment);
        }
    }
    let may_have_host = !url.scheme.is_empty() || !request && !rest.starts_with("///");
    let path = match rest.strip_prefix("//") {
        Some(after) if may_have_host => {
            let end = after.find('/').unwrap_or(after.len());
            let (authority, path) = after.split_at_checked(end).unwrap_or((after, ""));
            read_authority(&mut url, authority)?;
            path
        }
        _ => {
            url.omit_host = !url.scheme.is_empty() && rest.starts_with('/');
            rest
        }
    };
    unescape(path, Mode::Path)?;
    path.clone_into(&mut url.raw_path);
    Ok(url)
}

/// The scheme (empty if absent) and the text after its colon.
fn scheme(text: &str) -> Result<(&str, &str), UrlFault> {
    for (at, symbol) in text.char_indices() {
        match symbol {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if at > 0 => {}
            ':' if at == 0 => return Err(UrlFault::MissingScheme),
            ':' => return Ok(text.split_once(':').unwrap_or(("", text))),
            _ => break,
        }
    }
    Ok(("", text))
}

fn read_authority(url: &mut Url, authority: &str) -> Result<(), UrlFault> {
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    let strict = matches!(url.scheme.as_str(), "http" | "https");
    url.host = read_host(host, strict)?;
    let Some(user) = user else { return Ok(()) };
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
    if !user.bytes().all(legal) {
        return Err(UrlFault::UserInfo);
    }
    let (name, password) = match user.split_once(':') {
        Some((name, password)) => (name, Some(unescape(password, Mode::User)?)),
        None => (user, None),
    };
    url.user = Some((unescape(name, Mode::User)?, password));
    Ok(())
}

/// With `strict`, the port follows the first colon, otherwise the last.
fn read_host(host: &str, strict: bool) -> Result<Vec<u8>, UrlFault> {
    if host.starts_with('[') {
        return read_bracketed(host);
    }
    if host.contains('[') {
        return Err(UrlFault::IpLiteral);
    }
    if let Some(at) = if strict { host.find(':') } else { host.rfind(':') } {
        check_port(host.get(at..).unwrap_or_default())?;
    }
    unescape(host, Mode::Host)
}

/// `[::1]:80`, optionally with a zone: `[fe80::1%25eth0]`.
fn read_bracketed(host: &str) -> Result<Vec<u8>, UrlFault> {
    let (inner, port) = host.rsplit_once(']').ok_or(UrlFault::MissingBracket)?;
    check_port(port)?;
    let inner = inner.strip_prefix('[').unwrap_or(inner);
    let (address, zone) = match inner.find("%25").and_then(|at| inner.split_at_checked(at)) {
        Some((address, zone)) => (address, Some(zone)),
        None => (inner, None),
    };
    let mut literal = unescape(address, Mode::Host)?;
    match (std::str::from_utf8(&literal).ok().and_then(|address| address.parse().ok()), zone) {
        (Some(IpAddr::V6(_)), None) => {}
        (Some(IpAddr::V6(_)), Some(zone)) if zone.len() > "%25".len() => {
            literal.extend(unescape(zone, Mode::Zone)?);
        }
        _ => return Err(UrlFault::IpLiteral),
    }
    Ok([b"[".as_slice(), &literal, b"]", port.as_bytes()].concat())
}

fn check_port(port: &str) -> Result<(), UrlFault> {
    let legal = port.is_empty()
        || port.strip_prefix(':').is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    if legal { Ok(()) } else { Err(UrlFault::Port(port.to_owned())) }
}
