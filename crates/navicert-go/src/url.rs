//! Server and proxy URLs, parsed exactly like Go's `net/url`, so that kubectl and navicert accept the same ones.
//!
//! The `url` crate follows the WHATWG rules, which normalize invalid input; this module does not.

/// Why a text is not a valid address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// A control character.
    #[error("control character in address")]
    ControlCharacter,
    /// Starts with a colon.
    #[error("missing scheme")]
    MissingScheme,
    /// `host:port` without a scheme that does not parse as a scheme either.
    #[error("first path segment contains a colon; add the scheme")]
    ColonInFirstSegment,
    /// A `%` that is not an escape.
    #[error("invalid percent escape")]
    Escape,
    /// User information with characters that need escaping.
    #[error("invalid user information")]
    UserInfo,
    /// The host contains an invalid character.
    #[error("invalid host")]
    Host,
    /// The port is not a number.
    #[error("invalid port")]
    Port,
}

/// A parsed address; the parts are as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address<'a> {
    /// Lower-case scheme; empty if absent.
    pub scheme: String,
    /// User information before the `@`, if any.
    pub user_info: Option<&'a str>,
    /// Host and port, empty if the text has no `//`.
    pub host: &'a str,
    /// Path, still escaped.
    pub path: &'a str,
    /// Query without the question mark.
    pub query: Option<&'a str>,
    /// Fragment without the number sign.
    pub fragment: Option<&'a str>,
}

impl<'a> Address<'a> {
    /// Parses a text.
    ///
    /// # Errors
    /// Where Go's `url.Parse` returns one.
    pub fn parse(text: &'a str) -> Result<Self, AddressError> {
        let (rest, fragment) = match text.split_once('#') {
            Some((rest, fragment)) => (rest, Some(fragment)),
            None => (text, None),
        };
        let mut address = Self::parse_without_fragment(rest)?;
        if let Some(fragment) = fragment {
            check_escapes(fragment)?;
            address.fragment = Some(fragment);
        }
        Ok(address)
    }

    /// The same, but `#` is part of the path, as in server addresses.
    ///
    /// # Errors
    /// Where Go's `url.ParseRequestURI` returns one for a part of the text.
    pub fn parse_without_fragment(text: &'a str) -> Result<Self, AddressError> {
        if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
            return Err(AddressError::ControlCharacter);
        }
        let (scheme, rest) = split_scheme(text)?;
        let (rest, query) = match rest.split_once('?') {
            Some((rest, query)) => (rest, Some(query)),
            None => (rest, None),
        };
        let mut address = Address {
            scheme: scheme.to_ascii_lowercase(),
            user_info: None,
            host: "",
            path: rest,
            query,
            fragment: None,
        };
        if !rest.starts_with('/') {
            if address.scheme.is_empty() {
                let first = rest.split('/').next().unwrap_or_default();
                if first.contains(':') {
                    return Err(AddressError::ColonInFirstSegment);
                }
            } else {
                // Opaque (`mailto:x`): no host, and the rest is not parsed.
                return Ok(address);
            }
        }
        let has_authority = !address.scheme.is_empty() || !rest.starts_with("///");
        if let Some(authority_and_path) = rest.strip_prefix("//").filter(|_| has_authority) {
            let end = authority_and_path.find('/').unwrap_or(authority_and_path.len());
            let (authority, path) = authority_and_path.split_at(end);
            (address.user_info, address.host) = split_authority(&address.scheme, authority)?;
            address.path = path;
        }
        check_escapes(address.path)?;
        Ok(address)
    }
}

/// A path as Go prints it: unchanged if it is a valid encoding, otherwise decoded and escaped again.
pub fn escaped_path(path: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&byte);
    let may_occur = |byte: u8| is_plain(byte) || b"!'()*[]%".contains(&byte);
    if path.bytes().all(may_occur) {
        return path.to_owned();
    }
    let mut escaped = String::with_capacity(path.len());
    for byte in unescaped(path) {
        if is_plain(byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}

/// The decoded bytes of a path with valid escapes.
fn unescaped(path: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((byte, tail)) = rest.split_first() {
        let escape = tail.get(..2).and_then(|digits| str::from_utf8(digits).ok());
        let decoded = escape.and_then(|digits| u8::from_str_radix(digits, 16).ok()).filter(|_| *byte == b'%');
        bytes.push(decoded.unwrap_or(*byte));
        rest = if decoded.is_some() { tail.get(2..).unwrap_or_default() } else { tail };
    }
    bytes
}

/// A scheme is a letter followed by letters, digits, `+`, `-`, `.`; anything else before the colon means there is none.
fn split_scheme(text: &str) -> Result<(&str, &str), AddressError> {
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if index > 0 => {}
            b':' if index == 0 => return Err(AddressError::MissingScheme),
            b':' => {
                let (scheme, rest) = text.split_at(index);
                return Ok((scheme, rest.strip_prefix(':').unwrap_or(rest)));
            }
            _ => break,
        }
    }
    Ok(("", text))
}

fn split_authority<'a>(scheme: &str, authority: &'a str) -> Result<(Option<&'a str>, &'a str), AddressError> {
    let (user_info, host) = match authority.rsplit_once('@') {
        Some((user_info, host)) => (Some(user_info), host),
        None => (None, authority),
    };
    check_host(scheme, host)?;
    if let Some(user_info) = user_info {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
        if !user_info.bytes().all(allowed) {
            return Err(AddressError::UserInfo);
        }
        check_escapes(user_info)?;
    }
    Ok((user_info, host))
}

fn check_host(scheme: &str, host: &str) -> Result<(), AddressError> {
    if let Some(rest) = host.strip_prefix('[') {
        let (literal, port) = rest.rsplit_once(']').ok_or(AddressError::Host)?;
        check_port(port)?;
        return check_literal(literal);
    }
    // Brackets are allowed only around IPv6 addresses, at the start of the host.
    if host.contains('[') {
        return Err(AddressError::Host);
    }
    // The first colon: since Go 1.26 `h:80:80` is invalid for http, but other schemes may list several hosts.
    let colon = if matches!(scheme, "http" | "https") { host.find(':') } else { host.rfind(':') };
    if let Some(colon) = colon {
        check_port(host.split_at(colon).1)?;
    }
    check_host_bytes(host)
}

/// Checks a bracketed IPv6 address with an optional zone, which is written `%25name` and may contain escapes.
fn check_literal(literal: &str) -> Result<(), AddressError> {
    let (plain, zone) = match literal.split_once("%25") {
        Some((plain, zone)) => (plain, Some(zone)),
        None => (literal, None),
    };
    check_host_bytes(plain)?;
    check_escapes(zone.unwrap_or_default())?;
    if plain.parse::<std::net::Ipv6Addr>().is_err() || zone.is_some_and(str::is_empty) {
        return Err(AddressError::Host);
    }
    Ok(())
}

/// Empty, or a colon and digits.
fn check_port(port: &str) -> Result<(), AddressError> {
    match port.strip_prefix(':') {
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => Ok(()),
        None if port.is_empty() => Ok(()),
        _ => Err(AddressError::Port),
    }
}

/// Escapes in a host may only encode non-ASCII bytes or `%`.
fn check_host_bytes(host: &str) -> Result<(), AddressError> {
    let mut rest = host.as_bytes();
    while let Some((byte, tail)) = rest.split_first() {
        rest = tail;
        match byte {
            b'%' => {
                let (escape, tail) = tail.split_at_checked(2).ok_or(AddressError::Escape)?;
                if !escape.iter().all(u8::is_ascii_hexdigit) {
                    return Err(AddressError::Escape);
                }
                if escape != b"25" && escape.first().is_some_and(|high| (b'0'..b'8').contains(high)) {
                    return Err(AddressError::Escape);
                }
                rest = tail;
            }
            byte if *byte >= 0x80 || byte.is_ascii_alphanumeric() => {}
            byte if b"-_.~!$&'()*+,;=:[]<>\"".contains(byte) => {}
            _ => return Err(AddressError::Host),
        }
    }
    Ok(())
}

fn check_escapes(text: &str) -> Result<(), AddressError> {
    for part in text.split('%').skip(1) {
        let escape = part.as_bytes().get(..2).ok_or(AddressError::Escape)?;
        if !escape.iter().all(u8::is_ascii_hexdigit) {
            return Err(AddressError::Escape);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_addresses_into_parts_as_written() {
        let address = Address::parse("HTTPS://u:p@h:1/a%20b?q#f").unwrap();
        assert_eq!(address.scheme, "https");
        assert_eq!(address.user_info, Some("u:p"));
        assert_eq!((address.host, address.path), ("h:1", "/a%20b"));
        assert_eq!((address.query, address.fragment), (Some("q"), Some("f")));
    }

    #[test]
    fn rejects_what_go_rejects() {
        for (text, error) in [
            ("http://%1", AddressError::Escape),
            ("http://a b", AddressError::Host),
            ("http://h:x", AddressError::Port),
            ("http://::bad::dev", AddressError::Port),
            ("https://:0.1:1", AddressError::Port),
            ("https://h:80:80", AddressError::Port),
            ("https://::1/", AddressError::Port),
            (":x", AddressError::MissingScheme),
            ("127.0.0.1:3128", AddressError::ColonInFirstSegment),
            ("http://[::1", AddressError::Host),
            ("http://[::1]x", AddressError::Port),
            ("http://[]", AddressError::Host),
            ("http://[1.2.3.4]", AddressError::Host),
            ("http://[fe80::1%25]", AddressError::Host),
            ("http://h[::1]", AddressError::Host),
            ("ttps://127.0.0.[:1/base", AddressError::Host),
            ("http://h/%zz", AddressError::Escape),
            ("http://h/\u{1}", AddressError::ControlCharacter),
            ("http://u[@h", AddressError::UserInfo),
            ("http://%41", AddressError::Escape),
        ] {
            assert_eq!(Address::parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn accepts_what_go_accepts() {
        for (text, scheme, host) in [
            ("p1:3128", "p1", ""),
            ("proxy1", "", ""),
            ("socks5://127.0.0.1:1080", "socks5", "127.0.0.1:1080"),
            ("http://[::1]:80", "http", "[::1]:80"),
            ("http://[fe80::1%25eth0]:80", "http", "[fe80::1%25eth0]:80"),
            ("http://h:", "http", "h:"),
            ("http://[::ffff:1.2.3.4]", "http", "[::ffff:1.2.3.4]"),
            ("mongodb://h:1,i:2", "mongodb", "h:1,i:2"),
            ("//h/p", "", "h"),
            ("http://%C3%A4", "http", "%C3%A4"),
            ("", "", ""),
        ] {
            let address = Address::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!((address.scheme.as_str(), address.host), (scheme, host), "{text}");
        }
    }
}
