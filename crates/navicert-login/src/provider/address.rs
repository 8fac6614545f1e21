//! Which addresses requests may go to: https, and http on loopback only.

use std::net::IpAddr;

use navicert_go::url::Url;
use navicert_types::redact;

use crate::error::LoginError;

/// Checks an address of the provider. An http address is accepted only on loopback, and only if the issuer is such an
/// address too: a provider elsewhere cannot direct requests to this machine in plain text.
///
/// # Errors
/// The address is not allowed.
pub(crate) fn check_address(url: &str, issuer: &str) -> Result<(), LoginError> {
    let refuse = || LoginError::Http { url: redact::line(&redact::url(url)).chars().take(300).collect() };
    let parsed = Url::parse(url).map_err(|_| refuse())?;
    let has_only_place = parsed.user_info.is_none() && parsed.fragment.is_none() && !parsed.host.is_empty();
    let is_plain_loopback = parsed.scheme == "http" && is_loopback(parsed.host) && is_loopback_issuer(issuer);
    if has_only_place && (parsed.scheme == "https" || is_plain_loopback) { Ok(()) } else { Err(refuse()) }
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
}
