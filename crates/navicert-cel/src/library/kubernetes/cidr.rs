//! `net.CIDR`: an address with a prefix length. The host bits are kept until `masked()`.

use super::ip::{Ip, IpError, Mapped};
use std::fmt;

/// An address with a prefix length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cidr {
    address: Ip,
    prefix: u8,
}

/// Kubernetes adds it twice.
const PREFIX: &str = "network address parse error during conversion from string: ";

/// An invalid CIDR.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{PREFIX}{PREFIX}netip.ParsePrefix({text:?}): {fault}")]
pub(crate) struct CidrError {
    /// The input.
    pub text: String,
    /// The cause.
    pub fault: CidrFault,
}

/// Why a CIDR is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CidrFault {
    /// The prefix length is missing.
    #[error("no '/'")]
    NoSlash,
    /// `/08`, `/+8`
    #[error("bad bits after slash")]
    Bits,
    /// `/33`
    #[error("prefix length out of range")]
    Range,
    /// The address is invalid.
    #[error(transparent)]
    Address(#[from] IpError),
}

impl Cidr {
    /// `cidr(text)`; `isCIDR(text)` is whether this succeeds. IPv4-mapped IPv6 addresses are rejected in every
    /// form.
    pub(crate) fn parse(text: &str) -> Result<Self, CidrError> {
        Self::read(text).map_err(|fault| CidrError { text: text.to_owned(), fault })
    }

    fn read(text: &str) -> Result<Self, CidrFault> {
        let (address, bits) = text.rsplit_once('/').ok_or(CidrFault::NoSlash)?;
        let address = Ip::parse(address, Mapped::Rejected)?;
        let digits =
            bits.bytes().all(|byte| byte.is_ascii_digit()) && (bits == "0" || !bits.starts_with('0'));
        if bits.is_empty() || !digits {
            return Err(CidrFault::Bits);
        }
        let prefix = bits.parse().ok().filter(|&prefix| prefix <= address.bits()).ok_or(CidrFault::Range)?;
        Ok(Self { address, prefix })
    }

    /// `ip()`: the address with its host bits.
    #[must_use]
    pub(crate) fn ip(self) -> Ip {
        self.address
    }

    /// `prefixLength()`
    #[must_use]
    pub(crate) fn prefix_length(self) -> i64 {
        i64::from(self.prefix)
    }

    /// `masked()`: the network address with the prefix length.
    #[must_use]
    pub(crate) fn masked(self) -> Self {
        Self { address: self.address.masked(self.prefix), prefix: self.prefix }
    }

    /// `containsIP(ip)`; false for an address of the other family.
    #[must_use]
    pub(crate) fn contains_ip(self, address: Ip) -> bool {
        self.address.family() == address.family() && self.masked().address == address.masked(self.prefix)
    }

    /// `containsCIDR(cidr)`: whether the whole other network is contained.
    #[must_use]
    pub(crate) fn contains_cidr(self, other: Self) -> bool {
        other.prefix >= self.prefix && self.contains_ip(other.address)
    }
}

/// `10.1.2.3/8`: the result of `string(cidr)`.
impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::{Cidr, CidrFault};
    use crate::library::kubernetes::ip::{Ip, IpError, Mapped};

    fn cidr(text: &str) -> Cidr {
        Cidr::parse(text).unwrap()
    }

    fn contains(network: &str, other: &str) -> bool {
        match Ip::parse(other, Mapped::Rejected) {
            Ok(address) => cidr(network).contains_ip(address),
            Err(_) => cidr(network).contains_cidr(cidr(other)),
        }
    }

    #[test]
    fn parses_only_strict_cidrs() {
        // network_ext; cel.jsonl "ip and cidr"
        for (text, written, masked) in [
            ("10.0.0.0/8", "10.0.0.0/8", "10.0.0.0/8"),
            ("10.1.2.3/8", "10.1.2.3/8", "10.0.0.0/8"),
            ("10.1.2.3/0", "10.1.2.3/0", "0.0.0.0/0"),
            ("10.1.2.3/32", "10.1.2.3/32", "10.1.2.3/32"),
            ("2001:DB8:1:2::5/33", "2001:db8:1:2::5/33", "2001:db8::/33"),
            ("::1/0", "::1/0", "::/0"),
            ("::1/128", "::1/128", "::1/128"),
        ] {
            assert_eq!(cidr(text).to_string(), written);
            assert_eq!(cidr(text).masked().to_string(), masked);
        }
        for (text, fault) in [
            ("10.0.0.0", CidrFault::NoSlash),
            ("10.0.0.0/", CidrFault::Bits),
            ("10.0.0.0/08", CidrFault::Bits),
            ("10.0.0.0/00", CidrFault::Bits),
            ("10.0.0.0/+8", CidrFault::Bits),
            ("10.0.0.0/-1", CidrFault::Bits),
            ("10.0.0.0/ 8", CidrFault::Bits),
            ("10.0.0.0/33", CidrFault::Range),
            ("2001:db8::1/129", CidrFault::Range),
            ("10.0.0.0/999", CidrFault::Range),
            ("10.0.0.00/8", CidrFault::Address(IpError::Syntax("10.0.0.00".to_owned()))),
            ("10.0.0.0/8/8", CidrFault::Address(IpError::Syntax("10.0.0.0/8".to_owned()))),
            ("fe80::1%eth0/64", CidrFault::Address(IpError::Zone("fe80::1%eth0".to_owned()))),
            ("::ffff:1.2.3.0/120", CidrFault::Address(IpError::Mapped("::ffff:1.2.3.0".to_owned()))),
        ] {
            assert_eq!(Cidr::parse(text).unwrap_err().fault, fault, "{text}");
        }
    }

    #[test]
    fn network_contains_its_addresses_and_subnets() {
        for (network, other, contained) in [
            ("10.0.0.0/8", "10.1.1.1", true),
            ("10.1.2.3/8", "10.9.9.9", true),
            ("10.0.0.0/8", "11.1.1.1", false),
            ("10.0.0.0/8", "::1", false),
            ("0.0.0.0/0", "::1", false),
            ("10.0.0.0/8", "10.1.0.0/16", true),
            ("10.0.0.0/8", "10.0.0.0/8", true),
            ("10.0.0.0/8", "0.0.0.0/0", false),
            ("10.0.0.0/8", "10.5.5.5/7", false),
            ("0.0.0.0/0", "::/0", false),
            ("2001:db8::/32", "2001:db8::/33", true),
            ("192.168.0.0/24", "192.168.0.1/32", true),
        ] {
            assert_eq!(contains(network, other), contained, "{network} {other}");
        }
        assert_ne!(cidr("10.0.0.0/8"), cidr("10.0.0.1/8"));
        assert_eq!(cidr("10.1.2.3/8").ip().to_string(), "10.1.2.3");
        assert_eq!(cidr("10.1.2.3/8").prefix_length(), 8);
    }
}
