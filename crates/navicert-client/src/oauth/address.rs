//! Which addresses requests may go to: https, and http on loopback only.

use std::net::IpAddr;

use navicert_go::url::Url;
use navicert_types::redact;

use super::error::OAuthError;

/// Checks an address of the provider. An http address is accepted only on loopback, and only if the issuer is such an
/// address too: a provider elsewhere cannot direct requests to this machine in plain text.
///
/// # Errors
/// The address is not allowed.
pub fn check_address(url: &str, issuer: &str) -> Result<(), OAuthError> {
    let refuse = || OAuthError::Address { url: redact::line(&redact::url(url)).chars().take(300).collect() };
    let parsed = Url::parse(url).map_err(|_| refuse())?;
    let has_only_place = parsed.user_info.is_none() && parsed.fragment.is_none() && !parsed.host.is_empty();
    let is_plain_loopback = parsed.scheme == "http" && is_loopback(parsed.host) && is_loopback_issuer(issuer);
    if has_only_place && (parsed.scheme == "https" || is_plain_loopback) { Ok(()) } else { Err(refuse()) }
}

/// The host and port of a URL, for messages.
pub fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    authority.rsplit_once('@').map_or(authority, |(_, host)| host)
}

fn is_loopback_issuer(issuer: &str) -> bool {
    Url::parse(issuer).is_ok_and(|url| is_loopback(url.host))
}

/// Whether host and port name this machine.
fn is_loopback(authority: &str) -> bool {
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.rsplit_once(':').map_or(authority, |(host, _)| host),
    };
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    // L603, L1305, L1319
    #[test]
    fn only_https_and_http_on_loopback_are_allowed() {
        let local = "http://127.0.0.1:1";
        for (url, issuer, is_allowed) in [
            ("https://id.example/token", "https://id.example", true),
            ("https://other.example/token", "https://id.example", true),
            ("http://id.example", "https://id.example", false),
            ("http://127.0.0.1:1/x", local, true),
            ("http://127.9.9.9/x", local, true),
            ("http://[::1]:1/x", local, true),
            ("http://localhost/x", local, true),
            ("http://localhost.evil/x", local, false),
            ("http://127.0.0.1:1/x", "https://id.example", false),
            ("https://u:p@id.example", "https://id.example", false),
            ("https://id.example#x", "https://id.example", false),
            ("javascript:alert(1)", local, false),
            ("https:///x", local, false),
            ("file:///etc/passwd", local, false),
        ] {
            assert_eq!(check_address(url, issuer).is_ok(), is_allowed, "{url}");
        }
        let text = check_address("http://u:canary@h", local).unwrap_err().to_string();
        assert!(!text.contains("canary"), "{text}");
    }

    #[test]
    fn host_is_the_authority_without_user_information() {
        for (url, host) in [
            ("https://id.example/realms/x", "id.example"),
            ("https://u:p@id.example:8443?x", "id.example:8443"),
            ("id.example", "id.example"),
        ] {
            assert_eq!(host_of(url), host);
        }
    }
}
