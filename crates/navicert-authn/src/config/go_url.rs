//! Parses URLs as Go's `net/url` does, to reject exactly what kube-apiserver rejects. Malformed but accepted URLs are
//! rejected with [`Hardening::StrictIssuerUrls`](crate::profile::Hardening::StrictIssuerUrls) only.
// S23–S25, S24

/// The parts of a URL that validation needs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct GoUrl<'u> {
    /// In lower case; empty if missing.
    pub(crate) scheme: String,
    /// `scheme:rest` without a slash.
    pub(crate) is_opaque: bool,
    pub(crate) has_user: bool,
    pub(crate) host: &'u str,
    pub(crate) path: &'u str,
    /// `None` without `?`.
    pub(crate) query: Option<&'u str>,
    /// `None` without `#`.
    pub(crate) fragment: Option<&'u str>,
}

/// Parses a URL; errors are in Go's words.
pub(crate) fn parse(text: &str) -> Result<GoUrl<'_>, String> {
    let (text, fragment) = cut(text, '#');
    if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return Err("invalid control character in URL".to_owned());
    }
    let mut url = GoUrl { fragment, ..GoUrl::default() };
    if text == "*" {
        url.path = text;
        return Ok(url);
    }
    let (scheme, rest) = scheme(text)?;
    url.scheme = scheme.to_ascii_lowercase();
    let (rest, query) = cut(rest, '?');
    url.query = query;
    if !rest.starts_with('/') {
        if !scheme.is_empty() {
            url.is_opaque = true;
            return Ok(url);
        }
        if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    url.path = rest;
    if let Some(authority) = rest.strip_prefix("//")
        && (!scheme.is_empty() || !rest.starts_with("///"))
    {
        let (authority, path) = authority.split_at(authority.find('/').unwrap_or(authority.len()));
        url.path = path;
        url.host = match authority.rsplit_once('@') {
            None => authority,
            Some((user, host)) => {
                check_user(user)?;
                url.has_user = true;
                host
            }
        };
        check_host(url.host)?;
    }
    check_escapes(url.path)?;
    check_escapes(fragment.unwrap_or_default())?;
    Ok(url)
}

fn cut(text: &str, at: char) -> (&str, Option<&str>) {
    text.split_once(at).map_or((text, None), |(before, after)| (before, Some(after)))
}

fn scheme(text: &str) -> Result<(&str, &str), String> {
    for (index, symbol) in text.char_indices() {
        match symbol {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if index > 0 => {}
            ':' if index == 0 => return Err("missing protocol scheme".to_owned()),
            ':' => return Ok(text.split_once(':').unwrap_or(("", text))),
            _ => break,
        }
    }
    Ok(("", text))
}

fn check_user(user: &str) -> Result<(), String> {
    if !user.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte)) {
        return Err("net/url: invalid userinfo".to_owned());
    }
    check_escapes(user)
}

fn check_host(host: &str) -> Result<(), String> {
    if host.rfind('[').is_some_and(|bracket| bracket > 0) {
        return Err("invalid IP-literal".to_owned());
    }
    let port = if host.starts_with('[') {
        let end = host.rfind(']').ok_or("missing ']' in host")?;
        let address = host.get(1..end).unwrap_or_default();
        let (address, zone) = address.split_once("%25").unwrap_or((address, "none"));
        if address.parse::<std::net::Ipv6Addr>().is_err() || zone.is_empty() {
            return Err("invalid host".to_owned());
        }
        host.get(end + 1..).unwrap_or_default()
    } else {
        host.find(':').and_then(|colon| host.get(colon..)).unwrap_or_default()
    };
    let valid_port = port.is_empty()
        || port.strip_prefix(':').is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    if !valid_port {
        return Err(format!("invalid port {port:?} after host"));
    }
    let mut rest = host.as_bytes();
    while let [byte, after @ ..] = rest {
        rest = after;
        match byte {
            // Only non-ASCII bytes and the percent sign of a zone may be escaped in a host.
            b'%' => match after {
                [first, second, ..] if first.is_ascii_hexdigit() && second.is_ascii_hexdigit() => {
                    if first.to_ascii_lowercase() < b'8' && (*first, *second) != (b'2', b'5') {
                        return Err("invalid URL escape in host".to_owned());
                    }
                }
                _ => return Err("invalid URL escape in host".to_owned()),
            },
            0x80.. => {}
            byte if byte.is_ascii_alphanumeric() || b"!$&'()*+,;=:[]<>\"-_.~".contains(byte) => {}
            byte => return Err(format!("invalid character {:?} in host name", char::from(*byte))),
        }
    }
    Ok(())
}

/// Every `%` is followed by two hexadecimal digits.
fn check_escapes(text: &str) -> Result<(), String> {
    let mut pieces = text.split('%');
    pieces.next();
    for piece in pieces {
        if !matches!(piece.as_bytes(), [first, second, ..] if first.is_ascii_hexdigit() && second.is_ascii_hexdigit())
        {
            let shown: String = piece.chars().take(2).collect();
            return Err(format!("invalid URL escape \"%{shown}\""));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    // S23, VV3–VV7
    #[test]
    fn urls_are_rejected_where_go_rejects_them() {
        for bad in [
            "https://x/%zz",
            " https://x",
            "https://ex ample",
            "https://x:port",
            "https://x:80:80",
            ":x",
            "https://[::1",
            "https://[x]",
            "https://[::1%25]",
            "https://issuer.example.c[om",
            "https://a[b]c",
            "https://[[::1]]",
            "https://x/\u{7f}",
            "https://x%41",
            "https://a b@x",
            "https://x#%",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        for good in [
            "https://",
            "https:///p",
            "https:opaque",
            "https://x/../y",
            "https://é",
            "https://x?",
            "https://x#",
            "HTTPS://x",
            "https://x:99999",
            "https://x:",
            "https://[::1]:443/a",
            "https://[fe80::1%25en0]/",
            "//x",
            "x",
            "",
            "https://x?%zz",
            "https://x]",
        ] {
            assert!(parse(good).is_ok(), "{good}: {:?}", parse(good));
        }
        assert_eq!(parse("HTTPS://x").unwrap().scheme, "https");
        assert!(parse("https://:p@x").unwrap().has_user);
    }
}
