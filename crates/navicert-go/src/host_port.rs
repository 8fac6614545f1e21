//! Hosts with an optional port, as in the authority of a URL.

/// Splits `host`, `host:port`, `[v6]` or `[v6]:port`; the host comes without brackets.
pub fn split(text: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = if let Some(rest) = text.strip_prefix('[') {
        let (host, behind) = rest.split_once(']')?;
        (host, behind.strip_prefix(':'))
    } else {
        match text.rsplit_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        }
    };
    let port = match port.filter(|digits| !digits.is_empty()) {
        Some(digits) => Some(digits.parse().ok()?),
        None => None,
    };
    (!host.is_empty()).then_some((host, port))
}

/// Joins host and port; the inverse of [`split`].
pub fn join(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_what_it_joins() {
        for (text, host, port) in [
            ("h", "h", None),
            ("h:", "h", None),
            ("h:1", "h", Some(1)),
            ("[::1]", "::1", None),
            ("[::1]:2", "::1", Some(2)),
        ] {
            assert_eq!(split(text), Some((host, port)), "{text}");
            if let Some(port) = port {
                assert_eq!(join(host, port), text);
            }
        }
        for text in ["", ":1", "[]", "[::1", "h:x", "h:65536"] {
            assert_eq!(split(text), None, "{text}");
        }
    }
}
