//! Client address of a request: the peer's, unless the peer is a trusted load balancer that reports another. No peer
//! is trusted by default.
// structured-authentication.md S242; CVE-2026-40575

use std::net::IpAddr;
use std::str::FromStr;

use http::HeaderMap;
use http::header::HeaderName;
use navicert_types::decode::{Decode, Decoder};
use navicert_types::tree::Node;

/// Client address for the API server.
pub(super) const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// An IP network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: u128,
    /// Prefix length, of 128; IPv4 addresses are mapped to IPv6.
    bits: u32,
}

/// Invalid network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an address or a network such as `10.0.0.0/8`")]
pub struct NotANetwork;

impl Network {
    /// Whether the network contains the address.
    pub fn contains(&self, address: IpAddr) -> bool {
        let mask = u128::MAX.checked_shl(128 - self.bits).unwrap_or(0);
        (number(address) ^ self.address) & mask == 0
    }
}

impl FromStr for Network {
    type Err = NotANetwork;

    fn from_str(text: &str) -> Result<Self, NotANetwork> {
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address = IpAddr::from_str(address).map_err(|_| NotANetwork)?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            None => most,
            Some(bits) => bits.parse().ok().filter(|bits| *bits <= most).ok_or(NotANetwork)?,
        };
        Ok(Network { address: number(address), bits: 128 - most + bits })
    }
}

impl Decode for Network {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let text = String::decode(node, decoder)?;
        let network = text.parse();
        if let Err(error) = &network {
            decoder.report_invalid_value(node, NotANetwork::to_string(error));
        }
        network.ok()
    }
}

/// Placeholder for an invalid network; contains only `::`.
impl Default for Network {
    fn default() -> Self {
        Network { address: 0, bits: 128 }
    }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// The client's address: the last `X-Forwarded-For` entry that is not trusted, if every later entry and the peer are.
pub(super) fn client(peer: IpAddr, headers: &HeaderMap, trusted: &[Network]) -> IpAddr {
    let is_ours = |address: IpAddr| trusted.iter().any(|network| network.contains(address));
    let mut client = peer.to_canonical();
    if trusted.is_empty() {
        return client;
    }
    let lists: Vec<&str> =
        headers.get_all(FORWARDED_FOR).iter().map(|list| list.to_str().unwrap_or_default()).collect();
    for told in lists.iter().flat_map(|list| list.split(',')).rev().map(str::trim) {
        if !is_ours(client) {
            break;
        }
        // Entries before an invalid one cannot be trusted.
        let Ok(address) = IpAddr::from_str(told) else { break };
        client = address.to_canonical();
    }
    client
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn networks_contain_addresses_with_their_prefix() {
        for (network, address, is_inside) in [
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("10.0.0.7", "10.0.0.7", true),
            ("10.0.0.7", "10.0.0.8", false),
            ("0.0.0.0/0", "192.0.2.1", true),
            ("0.0.0.0/0", "2001:db8::1", false),
            ("::/0", "2001:db8::1", true),
            ("2001:db8::/32", "2001:db8:7::1", true),
            ("10.0.0.0/8", "::ffff:10.1.1.1", true),
        ] {
            let network: Network = network.parse().unwrap();
            assert_eq!(network.contains(address.parse().unwrap()), is_inside, "{network:?} {address}");
        }
        for bad in ["", "10.0.0.0/33", "::/129", "a/8", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/8/8"] {
            assert!(bad.parse::<Network>().is_err(), "{bad}");
        }
    }

    #[test]
    fn trusts_only_configured_load_balancers() {
        let ours: Vec<Network> = vec!["10.0.0.0/8".parse().unwrap()];
        for (peer, lists, trusted, expected) in [
            ("192.0.2.9", &["1.2.3.4"][..], &[][..], "192.0.2.9"),
            ("10.0.0.1", &["1.2.3.4"], &[], "10.0.0.1"),
            ("192.0.2.9", &["1.2.3.4"], &ours, "192.0.2.9"),
            ("10.0.0.1", &["1.2.3.4"], &ours, "1.2.3.4"),
            ("10.0.0.1", &["6.6.6.6, 1.2.3.4"], &ours, "1.2.3.4"),
            ("10.0.0.1", &["6.6.6.6, 1.2.3.4, 10.0.0.2"], &ours, "1.2.3.4"),
            ("10.0.0.1", &["6.6.6.6", "1.2.3.4"], &ours, "1.2.3.4"),
            ("10.0.0.1", &["10.0.0.3, 10.0.0.2"], &ours, "10.0.0.3"),
            ("10.0.0.1", &["1.2.3.4, nonsense"], &ours, "10.0.0.1"),
            ("10.0.0.1", &[], &ours, "10.0.0.1"),
            ("::ffff:10.0.0.1", &["1.2.3.4"], &ours, "1.2.3.4"),
        ] {
            let mut headers = HeaderMap::new();
            for list in lists {
                headers.append(FORWARDED_FOR, HeaderValue::from_static(list));
            }
            let found = client(peer.parse().unwrap(), &headers, trusted);
            assert_eq!(found.to_string(), expected, "{peer} {lists:?}");
        }
    }
}
