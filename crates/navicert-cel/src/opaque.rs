//! Values without structure visible to expressions: those of the Kubernetes types, and the empty message.

use crate::library::kubernetes::cidr::Cidr;
use crate::library::kubernetes::format::NamedFormat;
use crate::library::kubernetes::ip::Ip;
use crate::library::kubernetes::quantity::Quantity;
use crate::library::kubernetes::semver::Version;
use crate::library::kubernetes::url::Url;
use std::fmt;

/// Lengths of the patterns that upstream uses in the cost of these formats.
const URI_SIZE: u64 = 1103;
const UUID_SIZE: u64 = 70;
const BYTE_SIZE: u64 = 84;
const DATE_SIZE: u64 = 71;

/// A value of one of the Kubernetes types, or the empty message.
#[derive(Debug, Clone)]
pub enum Opaque {
    /// `kubernetes.Quantity`
    ///
    /// The flag is set for a computed quantity, which Kubernetes cannot compare.
    Quantity(Box<Quantity>, bool),
    /// `kubernetes.URL`
    Url(Box<Url>),
    /// `net.IP`
    Ip(Ip),
    /// `net.CIDR`
    Cidr(Cidr),
    /// `kubernetes.NamedFormat`
    Format(NamedFormat),
    /// `kubernetes.Semver`
    Semver(Box<Version>),
    /// `google.protobuf.Empty`
    Empty,
}

impl Opaque {
    /// The name of the type.
    pub fn type_name(&self) -> &'static str {
        match self {
            Opaque::Quantity(..) => "kubernetes.Quantity",
            Opaque::Url(_) => "kubernetes.URL",
            Opaque::Ip(_) => "net.IP",
            Opaque::Cidr(_) => "net.CIDR",
            Opaque::Format(_) => "kubernetes.NamedFormat",
            Opaque::Semver(_) => "kubernetes.Semver",
            Opaque::Empty => "google.protobuf.Empty",
        }
    }

    /// Whether two values are equal in CEL.
    pub(crate) fn equals(&self, other: &Opaque) -> bool {
        match (self, other) {
            (Opaque::Quantity(left, _), Opaque::Quantity(right, _)) => left == right,
            (Opaque::Url(left), Opaque::Url(right)) => left == right,
            (Opaque::Ip(left), Opaque::Ip(right)) => left == right,
            (Opaque::Cidr(left), Opaque::Cidr(right)) => left == right,
            (Opaque::Format(left), Opaque::Format(right)) => left == right,
            (Opaque::Semver(left), Opaque::Semver(right)) => left == right,
            (Opaque::Empty, Opaque::Empty) => true,
            _ => false,
        }
    }

    /// The size for cost purposes, if the type has one.
    pub(crate) fn size(&self) -> Option<u64> {
        match self {
            Opaque::Ip(address) => Some(if address.family() == 4 { 4 } else { 16 }),
            Opaque::Cidr(network) => u64::try_from(network.prefix_length()).ok().map(|bits| bits.div_ceil(8)),
            _ => None,
        }
    }

    /// The length of a named format's pattern, for cost purposes.
    pub(crate) fn pattern_size(&self) -> Option<u64> {
        let Opaque::Format(format) = self else { return None };
        Some(match format {
            NamedFormat::Dns1123Label
            | NamedFormat::Dns1035Label
            | NamedFormat::Dns1123LabelPrefix
            | NamedFormat::Dns1035LabelPrefix => 30,
            NamedFormat::Dns1123Subdomain
            | NamedFormat::Dns1123SubdomainPrefix
            | NamedFormat::QualifiedName => 60,
            NamedFormat::LabelValue => 40,
            NamedFormat::Uri => URI_SIZE,
            NamedFormat::Uuid => UUID_SIZE,
            NamedFormat::Byte => BYTE_SIZE,
            NamedFormat::Date | NamedFormat::DateTime => DATE_SIZE,
        })
    }

    /// Approximate heap bytes owned by the value.
    pub(crate) fn heap_size(&self) -> usize {
        match self {
            Opaque::Quantity(quantity, _) => size_of_val(&**quantity) + 64,
            Opaque::Url(url) => size_of_val(&**url) + 256,
            Opaque::Semver(version) => size_of_val(&**version) + 64,
            _ => 0,
        }
    }

    /// Whether `string()` supports the value.
    pub(crate) fn has_text(&self) -> bool {
        !matches!(self, Opaque::Format(_) | Opaque::Empty)
    }
}

impl fmt::Display for Opaque {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Opaque::Quantity(quantity, _) => write!(out, "{quantity}"),
            Opaque::Url(url) => write!(out, "{url}"),
            Opaque::Ip(address) => write!(out, "{address}"),
            Opaque::Cidr(network) => write!(out, "{network}"),
            Opaque::Format(format) => out.write_str(format.name()),
            Opaque::Semver(version) => write!(out, "{version}"),
            Opaque::Empty => Ok(()),
        }
    }
}
