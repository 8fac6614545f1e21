//! Functions of `net.IP` and `net.CIDR`.

use crate::error::InvalidArgument;
use crate::fault::Cause;
use crate::functions::{Call, Declaration, FunctionResult, NO_SUCH_OVERLOAD};
use crate::library::kubernetes::cidr::Cidr;
use crate::library::kubernetes::ip::{Ip, Mapped};
use crate::opaque::Opaque;
use crate::value::ValueRef;

/// All functions.
pub(crate) const FUNCTIONS: &[Declaration] = &[
    ("string_to_ip", "ip(string): net.IP", ip),
    ("cidr_ip", "(net.CIDR).ip(): net.IP", cidr_ip),
    ("ip_family", "(net.IP).family(): int", family),
    ("ip_is_canonical", "ip.isCanonical(string): bool", is_canonical),
    ("ip_is_unspecified", "(net.IP).isUnspecified(): bool", is_unspecified),
    ("ip_is_loopback", "(net.IP).isLoopback(): bool", is_loopback),
    ("ip_is_link_local_multicast", "(net.IP).isLinkLocalMulticast(): bool", is_link_local_multicast),
    ("ip_is_link_local_unicast", "(net.IP).isLinkLocalUnicast(): bool", is_link_local_unicast),
    ("ip_is_global_unicast", "(net.IP).isGlobalUnicast(): bool", is_global_unicast),
    ("is_ip", "isIP(string): bool", is_ip),
    ("ip_to_string", "string(net.IP): string", text),
    ("string_to_cidr", "cidr(string): net.CIDR", cidr),
    ("cidr_contains_ip_string", "(net.CIDR).containsIP(string): bool", contains_ip),
    ("cidr_contains_ip_ip", "(net.CIDR).containsIP(net.IP): bool", contains_ip),
    ("cidr_contains_cidr_string", "(net.CIDR).containsCIDR(string): bool", contains_cidr),
    ("cidr_contains_cidr", "(net.CIDR).containsCIDR(net.CIDR): bool", contains_cidr),
    ("cidr_prefix_length", "(net.CIDR).prefixLength(): int", prefix_length),
    ("cidr_masked", "(net.CIDR).masked(): net.CIDR", masked),
    ("is_cidr", "isCIDR(string): bool", is_cidr),
    ("cidr_to_string", "string(net.CIDR): string", text),
];

/// Part of the standard network extension; added by Kubernetes 1.38.
pub(crate) const IS_MASK: &[Declaration] = &[("cidr_is_mask", "(net.CIDR).isMask(): bool", is_mask)];

fn mapped(call: &Call<'_>) -> Mapped {
    if call.standard { Mapped::DottedRejected } else { Mapped::Rejected }
}

fn parse_ip<'a>(call: &Call<'a>, text: &str) -> Result<Ip, Cause<'a>> {
    Ip::parse(text, mapped(call)).map_err(|error| call.invalid(InvalidArgument::IpAddress, error))
}

fn parse_cidr<'a>(call: &Call<'a>, text: &str) -> Result<Cidr, Cause<'a>> {
    Cidr::parse(text).map_err(|error| call.invalid(InvalidArgument::Cidr, error))
}

fn address<'a>(args: &[ValueRef<'a>]) -> Result<Ip, Cause<'a>> {
    match args {
        [ValueRef::Opaque(Opaque::Ip(address))] => Ok(*address),
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn network<'a>(args: &[ValueRef<'a>]) -> Result<Cidr, Cause<'a>> {
    match args.first() {
        Some(ValueRef::Opaque(Opaque::Cidr(network))) => Ok(*network),
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn ip<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match args {
        [ValueRef::Str(text)] => call.opaque(Opaque::Ip(parse_ip(call, text)?)),
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn cidr<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match args {
        [ValueRef::Str(text)] => call.opaque(Opaque::Cidr(parse_cidr(call, text)?)),
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn cidr_ip<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    call.opaque(Opaque::Ip(network(args)?.ip()))
}

fn family<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    Ok(ValueRef::Int(address(args)?.family()))
}

fn is_canonical<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match args {
        [ValueRef::Str(text)] => Ip::is_canonical(text, mapped(call))
            .map(ValueRef::Bool)
            .map_err(|error| call.invalid(InvalidArgument::IpAddress, error)),
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn is_unspecified<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    Ok(ValueRef::Bool(address(args)?.is_unspecified()))
}

fn is_loopback<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    Ok(ValueRef::Bool(address(args)?.is_loopback()))
}

fn is_link_local_multicast<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    Ok(ValueRef::Bool(address(args)?.is_link_local_multicast()))
}

fn is_link_local_unicast<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    Ok(ValueRef::Bool(address(args)?.is_link_local_unicast()))
}

fn is_global_unicast<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    Ok(ValueRef::Bool(address(args)?.is_global_unicast()))
}

fn is_ip<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match args {
        [ValueRef::Str(text)] => Ok(ValueRef::Bool(Ip::parse(text, mapped(call)).is_ok())),
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn is_cidr<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match args {
        [ValueRef::Str(text)] => Ok(ValueRef::Bool(Cidr::parse(text).is_ok())),
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn text<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    match args {
        [ValueRef::Opaque(opaque)] => call.write(|out| write!(out, "{opaque}")),
        _ => Err(NO_SUCH_OVERLOAD),
    }
}

fn contains_ip<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    let network = network(args)?;
    let address = match args.get(1) {
        Some(ValueRef::Opaque(Opaque::Ip(address))) => *address,
        // Kubernetes drops the error of the address.
        Some(ValueRef::Str(text)) => Ip::parse(text, mapped(call)).map_err(|_| NO_SUCH_OVERLOAD)?,
        _ => return Err(NO_SUCH_OVERLOAD),
    };
    Ok(ValueRef::Bool(network.contains_ip(address)))
}

fn contains_cidr<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    let network = network(args)?;
    let other = match args.get(1) {
        Some(ValueRef::Opaque(Opaque::Cidr(other))) => *other,
        Some(ValueRef::Str(text)) => parse_cidr(call, text)?,
        _ => return Err(NO_SUCH_OVERLOAD),
    };
    Ok(ValueRef::Bool(network.contains_cidr(other)))
}

fn prefix_length<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    Ok(ValueRef::Int(network(args)?.prefix_length()))
}

fn masked<'a>(call: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    call.opaque(Opaque::Cidr(network(args)?.masked()))
}

fn is_mask<'a>(_: &Call<'a>, args: &[ValueRef<'a>]) -> FunctionResult<'a> {
    let network = network(args)?;
    Ok(ValueRef::Bool(network == network.masked()))
}
