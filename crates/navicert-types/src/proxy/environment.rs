//! The proxy variables of the environment, with the semantics of Go's `httpproxy`. Their values are passed in: this
//! file does not read the environment.
// C148

use std::net::IpAddr;

use navicert_go::host_port;

use super::{Proxy, ProxyError};

/// The proxy variables. Of each pair, a non-empty upper-case variable wins.
#[derive(Clone, Debug, Default)]
pub struct ProxyEnvironment {
    /// `HTTPS_PROXY`, else `https_proxy`.
    pub https_proxy: String,
    /// `HTTP_PROXY`, else `http_proxy`.
    pub http_proxy: String,
    /// `NO_PROXY`, else `no_proxy`.
    pub no_proxy: String,
}

impl ProxyEnvironment {
    /// Reads the six variables with `lookup`.
    pub fn read(lookup: impl Fn(&str) -> Option<String>) -> Self {
        let either = |upper: &str, lower: &str| {
            lookup(upper).filter(|value| !value.is_empty()).or_else(|| lookup(lower)).unwrap_or_default()
        };
        ProxyEnvironment {
            https_proxy: either("HTTPS_PROXY", "https_proxy"),
            http_proxy: either("HTTP_PROXY", "http_proxy"),
            no_proxy: either("NO_PROXY", "no_proxy"),
        }
    }

    /// The variable for servers of a scheme: the first that is set to a value.
    pub fn variable(https: bool, lookup: impl Fn(&str) -> Option<String>) -> &'static str {
        let names = if https { ["HTTPS_PROXY", "https_proxy"] } else { ["HTTP_PROXY", "http_proxy"] };
        let [upper, _] = names;
        names.into_iter().find(|name| lookup(name).is_some_and(|value| !value.is_empty())).unwrap_or(upper)
    }

    /// The proxy for a server, if any.
    ///
    /// # Errors
    /// The variable does not hold a valid proxy address.
    pub fn proxy_for(&self, https: bool, host: &str, port: u16) -> Result<Option<Proxy>, ProxyError> {
        let text = if https { &self.https_proxy } else { &self.http_proxy };
        if text.is_empty() || !self.applies_to(host, port) {
            return Ok(None);
        }
        // `proxy:3128` and `proxy.example` mean http.
        match Proxy::parse(text) {
            Err(ProxyError::Scheme(_) | ProxyError::Address(_)) if !text.contains("://") => {
                Proxy::parse(&format!("http://{text}")).map(Some)
            }
            other => other.map(Some),
        }
    }

    /// Whether a server is reached through the proxy: not if it is loopback or matches `NO_PROXY`.
    fn applies_to(&self, host: &str, port: u16) -> bool {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let address = host.parse::<IpAddr>().ok();
        if host == "localhost" || address.is_some_and(|address| address.is_loopback()) {
            return false;
        }
        let mut entries = self.no_proxy.split(',').map(|entry| entry.trim().to_ascii_lowercase());
        !entries.any(|entry| entry == "*" || entry_matches(&entry, &host, address, port))
    }
}

/// Whether one entry of `NO_PROXY` matches this server.
fn entry_matches(entry: &str, host: &str, address: Option<IpAddr>, port: u16) -> bool {
    if let Some((network, bits)) = network(entry) {
        return address.is_some_and(|address| contains(network, bits, address));
    }
    // A bare IPv6 address contains colons.
    let (name, wanted_port) = match entry.parse::<IpAddr>() {
        Ok(_) => (entry, None),
        Err(_) => match host_port::split(entry) {
            Some(parts) => parts,
            None => return false,
        },
    };
    if wanted_port.is_some_and(|wanted| wanted != port) {
        return false;
    }
    if let Ok(wanted) = name.parse::<IpAddr>() {
        return address == Some(wanted);
    }
    // `.name` and `*.name` match subdomains, `name` matches the domain too.
    if let Some(suffix) = name.strip_prefix('*').unwrap_or(name).strip_prefix('.') {
        return host.strip_suffix(suffix).is_some_and(|before| before.ends_with('.'));
    }
    host.strip_suffix(name).is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

fn network(entry: &str) -> Option<(IpAddr, u32)> {
    let (address, bits) = entry.split_once('/')?;
    let address: IpAddr = address.parse().ok()?;
    let bits: u32 = bits.parse().ok()?;
    let max_bits = if address.is_ipv4() { 32 } else { 128 };
    (bits <= max_bits).then_some((address, bits))
}

fn contains(network: IpAddr, bits: u32, address: IpAddr) -> bool {
    match (network, address) {
        (IpAddr::V4(network), IpAddr::V4(address)) => {
            let differing = network.to_bits() ^ address.to_bits();
            differing.checked_shr(32 - bits).unwrap_or(0) == 0
        }
        (IpAddr::V6(network), IpAddr::V6(address)) => {
            let differing = network.to_bits() ^ address.to_bits();
            differing.checked_shr(128 - bits).unwrap_or(0) == 0
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxied(no_proxy: &str, host: &str, port: u16) -> bool {
        let environment = ProxyEnvironment {
            https_proxy: "proxy:3128".into(),
            no_proxy: no_proxy.into(),
            ..ProxyEnvironment::default()
        };
        environment.proxy_for(true, host, port).unwrap().is_some()
    }

    // C148
    #[test]
    fn no_proxy_matches_hosts_domains_ports_addresses_and_networks() {
        for (no_proxy, host, port, expected) in [
            ("", "api.example", 443, true),
            ("", "localhost", 443, false),
            ("", "127.0.0.9", 443, false),
            ("", "::1", 443, false),
            ("*", "api.example", 443, false),
            ("other, API.example", "api.example", 443, false),
            ("example", "api.example", 443, false),
            ("example", "apiexample", 443, true),
            (".example", "api.example", 443, false),
            (".example", "example", 443, true),
            ("*.example", "api.example", 443, false),
            ("*.example", "example", 443, true),
            ("api.example:443", "api.example", 443, false),
            ("api.example:6443", "api.example", 443, true),
            ("10.0.0.0/8", "10.1.2.3", 443, false),
            ("10.0.0.0/8", "11.1.2.3", 443, true),
            ("0.0.0.0/0", "11.1.2.3", 443, false),
            ("10.0.0.0/8", "ten.example", 443, true),
            ("10.1.2.3", "10.1.2.3", 443, false),
            ("fd00::/8", "fd00::1", 443, false),
            ("fd00::1", "fd00::1", 443, false),
            ("[fd00::1]:6443", "fd00::1", 443, true),
            ("10.0.0.0/33,,/", "10.1.2.3", 443, true),
        ] {
            assert_eq!(proxied(no_proxy, host, port), expected, "{no_proxy:?} for {host}:{port}");
        }
    }

    // C148
    #[test]
    fn each_scheme_has_a_variable_and_upper_case_wins() {
        let values = |name: &str| {
            let value = match name {
                "HTTPS_PROXY" => "https://secure:1",
                "https_proxy" => "http://ignored",
                "http_proxy" => "socks5://plain:2",
                _ => return None,
            };
            Some(value.to_owned())
        };
        let environment = ProxyEnvironment::read(values);
        let shown = |https| environment.proxy_for(https, "api", 1).unwrap().unwrap().address();
        assert_eq!((shown(true), shown(false)), ("https://secure:1".into(), "socks5://plain:2".into()));
    }

    // C148
    #[test]
    fn value_without_a_scheme_means_http_and_unknown_scheme_is_an_error() {
        let shown = |text: &str| {
            let environment = ProxyEnvironment { https_proxy: text.into(), ..ProxyEnvironment::default() };
            environment.proxy_for(true, "api", 1).map(|proxy| proxy.unwrap().address())
        };
        assert_eq!(shown("proxy:3128").unwrap(), "http://proxy:3128");
        assert_eq!(shown("proxy").unwrap(), "http://proxy:80");
        assert_eq!(shown("10.0.0.1:3128").unwrap(), "http://10.0.0.1:3128");
        assert!(matches!(shown("ftp://proxy"), Err(ProxyError::Scheme(_))));
    }
}
