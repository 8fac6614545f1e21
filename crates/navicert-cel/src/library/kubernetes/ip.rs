//! `net.IP`: addresses without zones, leading zeros or IPv4-mapped IPv6 forms.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An IP address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ip(IpAddr);

/// How an IPv4-mapped IPv6 address is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mapped {
    /// Rejected, as in Kubernetes and cel-go.
    Rejected,
    /// Rejected in dotted form; in hexadecimal form it is the IPv4 address, as the conformance suite expects.
    DottedRejected,
}

/// An invalid IP address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum IpError {
    /// Not an address.
    #[error(
        "IP Address {0:?} parse error during conversion from string: ParseAddr({0:?}): unable to parse IP"
    )]
    Syntax(String),
    /// `fe80::1%eth0`
    #[error("IP address {0:?} with zone value is not allowed")]
    Zone(String),
    /// `::ffff:1.2.3.4`
    #[error("IPv4-mapped IPv6 address {0:?} is not allowed")]
    Mapped(String),
}

impl Ip {
    /// `ip(text)`; `isIP(text)` is whether this succeeds.
    pub(crate) fn parse(text: &str, mapped: Mapped) -> Result<Self, IpError> {
        let syntax = || IpError::Syntax(text.to_owned());
        let (address, zone) = match text.split_once('%') {
            Some((address, zone)) => (address, Some(zone)),
            None => (text, None),
        };
        let parsed: IpAddr = address.parse().map_err(|_| syntax())?;
        match (parsed, zone) {
            (IpAddr::V4(_), Some(_)) | (IpAddr::V6(_), Some("")) => Err(syntax()),
            (IpAddr::V6(_), Some(_)) => Err(IpError::Zone(text.to_owned())),
            (IpAddr::V4(_), None) => Ok(Self(parsed)),
            (IpAddr::V6(address), None) => match address.to_ipv4_mapped() {
                None => Ok(Self(parsed)),
                Some(inner) if mapped == Mapped::DottedRejected && !text.contains('.') => {
                    Ok(Self(inner.into()))
                }
                Some(_) => Err(IpError::Mapped(text.to_owned())),
            },
        }
    }

    /// `ip.isCanonical(text)`: whether the text equals its [`Display`](fmt::Display) form.
    pub(crate) fn is_canonical(text: &str, mapped: Mapped) -> Result<bool, IpError> {
        Self::parse(text, mapped).map(|address| LongestText::from_display(address).as_str() == text)
    }

    /// `family()`: 4 or 6.
    #[must_use]
    pub(crate) fn family(self) -> i64 {
        if self.0.is_ipv4() { 4 } else { 6 }
    }

    /// `isUnspecified()`
    #[must_use]
    pub(crate) fn is_unspecified(self) -> bool {
        self.0.is_unspecified()
    }

    /// `isLoopback()`
    #[must_use]
    pub(crate) fn is_loopback(self) -> bool {
        self.0.is_loopback()
    }

    /// `isLinkLocalMulticast()`: 224.0.0.0/24, and ff?2::/16 with any flags.
    #[must_use]
    pub(crate) fn is_link_local_multicast(self) -> bool {
        match self.0 {
            IpAddr::V4(address) => matches!(address.octets(), [224, 0, 0, _]),
            IpAddr::V6(address) => matches!(address.octets(), [0xff, second, ..] if second & 0x0f == 2),
        }
    }

    /// `isLinkLocalUnicast()`: 169.254.0.0/16, fe80::/10.
    #[must_use]
    pub(crate) fn is_link_local_unicast(self) -> bool {
        match self.0 {
            IpAddr::V4(address) => address.is_link_local(),
            IpAddr::V6(address) => address.is_unicast_link_local(),
        }
    }

    /// `isGlobalUnicast()`: not broadcast, unspecified, loopback, multicast or link-local; private addresses are
    /// included.
    #[must_use]
    pub(crate) fn is_global_unicast(self) -> bool {
        self.0 != IpAddr::V4(Ipv4Addr::BROADCAST)
            && !self.0.is_unspecified()
            && !self.0.is_loopback()
            && !self.0.is_multicast()
            && !self.is_link_local_unicast()
    }

    /// The address with the bits after `prefix` cleared.
    pub(super) fn masked(self, prefix: u8) -> Self {
        let prefix = u32::from(prefix);
        Self(match self.0 {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32_u32.saturating_sub(prefix)).unwrap_or(0);
                Ipv4Addr::from_bits(address.to_bits() & mask).into()
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128_u32.saturating_sub(prefix)).unwrap_or(0);
                Ipv6Addr::from_bits(address.to_bits() & mask).into()
            }
        })
    }

    /// Number of bits in an address of this family.
    pub(super) fn bits(self) -> u8 {
        if self.0.is_ipv4() { 32 } else { 128 }
    }
}

/// Buffer for the longest text of an address.
type LongestText = crate::stack_text::StackText<48>;

/// RFC 5952: lower case, the longest run of zeros as `::`. The result of `string(ip)`.
impl fmt::Display for Ip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::{Ip, IpError, Mapped};

    fn ip(text: &str) -> Ip {
        Ip::parse(text, Mapped::Rejected).unwrap()
    }

    #[test]
    fn parses_strict_addresses_and_formats_them_canonically() {
        // network_ext; cel.jsonl "ip and cidr"
        for (text, canonical) in [
            ("127.0.0.1", "127.0.0.1"),
            ("::1", "::1"),
            ("::1.2.3.4", "::102:304"),
            ("64:ff9b::1.2.3.4", "64:ff9b::102:304"),
            ("2001:DB8::1", "2001:db8::1"),
            ("2001:db8:0:0:0:0:0:1", "2001:db8::1"),
            ("1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"),
            ("::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8"),
            ("1:0:0:2:0:0:0:3", "1:0:0:2::3"),
            ("0:0:1::", "0:0:1::"),
        ] {
            assert_eq!(ip(text).to_string(), canonical);
            assert_eq!(Ip::is_canonical(text, Mapped::Rejected), Ok(text == canonical));
        }
        for text in [
            "",
            "abc",
            "1.2.3",
            "1.2.3.4.5",
            "256.1.1.1",
            "127.0.0.01",
            " 1.2.3.4",
            "1.2.3.4/8",
            "1::2::3",
            ":::",
            "1:2:3:4:5:6:7:8:9",
            "1:2:3:4::5:6:7:8",
            "12345::",
            "1.2.3.4%eth0",
            "fe80::1%",
            "::1.2.3.04",
        ] {
            assert_eq!(Ip::parse(text, Mapped::Rejected), Err(IpError::Syntax(text.to_owned())));
        }
        let zone = Ip::parse("fe80::1%eth0", Mapped::Rejected).unwrap_err();
        assert_eq!(zone.to_string(), "IP address \"fe80::1%eth0\" with zone value is not allowed");
    }

    #[test]
    fn rejects_mapped_addresses_except_hexadecimal_in_the_standard_dialect() {
        for text in ["::ffff:1.2.3.4", "::ffff:102:304"] {
            let error = Ip::parse(text, Mapped::Rejected).unwrap_err();
            assert_eq!(error.to_string(), format!("IPv4-mapped IPv6 address \"{text}\" is not allowed"));
        }
        assert!(Ip::parse("::ffff:192.168.0.1", Mapped::DottedRejected).is_err());
        assert_eq!(Ip::parse("::ffff:c0a8:1", Mapped::DottedRejected), Ok(ip("192.168.0.1")));
    }

    #[test]
    fn classifies_addresses() {
        for (text, kinds) in [
            ("0.0.0.0", "unspecified"),
            ("::", "unspecified"),
            ("127.1.2.3", "loopback"),
            ("::1", "loopback"),
            ("224.0.0.1", "multicast"),
            ("ff02::1", "multicast"),
            ("ff32::1", "multicast"),
            ("224.0.1.1", ""),
            ("ff05::1", ""),
            ("255.255.255.255", ""),
            ("169.254.1.1", "link-local"),
            ("fe80::1", "link-local"),
            ("febf::1", "link-local"),
            ("fec0::1", "global"),
            ("10.0.0.1", "global"),
            ("240.0.0.1", "global"),
            ("fd00::1", "global"),
        ] {
            let address = ip(text);
            assert_eq!(address.is_unspecified(), kinds == "unspecified", "{text}");
            assert_eq!(address.is_loopback(), kinds == "loopback", "{text}");
            assert_eq!(address.is_link_local_multicast(), kinds == "multicast", "{text}");
            assert_eq!(address.is_link_local_unicast(), kinds == "link-local", "{text}");
            assert_eq!(address.is_global_unicast(), kinds == "global", "{text}");
            assert_eq!(address.family(), if text.contains(':') { 6 } else { 4 });
        }
        assert_ne!(ip("1.2.3.4"), ip("::1.2.3.4"));
    }
}
