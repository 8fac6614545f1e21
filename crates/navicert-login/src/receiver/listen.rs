//! Addresses to listen on: parsing `--listen-address`, and binding one that is free on every family the browser may try.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use socket2::{Domain, Protocol, Socket, Type};
use thiserror::Error;
use tokio::net::TcpListener;

use super::BindError;
use super::port_owner::{self, PortOwner};
use super::redirect::RedirectTarget;

/// Attempts to find a port that is free on both families.
const MAX_FREE_PORT_ATTEMPTS: u32 = 16;
/// Connections that wait to be accepted.
const BACKLOG: i32 = 256;

/// An address of `--listen-address`: `127.0.0.1:8000`, `[::1]:8000`, `localhost:8000`, or `:8000` for every interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenAddress {
    host: ListenHost,
    port: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ListenHost {
    Ip(IpAddr),
    /// The loopback addresses of both families.
    Localhost,
    /// Every interface, of both families.
    Any,
}

/// Text that is not an address to listen on.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("invalid address to listen on `{text}`: expected an IP address or `localhost`, a colon and a port")]
pub struct ListenAddressError {
    text: String,
}

impl ListenAddress {
    /// A free port of 127.0.0.1.
    pub const FREE_PORT: ListenAddress =
        ListenAddress { host: ListenHost::Ip(IpAddr::V4(Ipv4Addr::LOCALHOST)), port: 0 };

    /// A fixed port of the loopback addresses of both families.
    pub fn localhost(port: u16) -> Self {
        ListenAddress { host: ListenHost::Localhost, port }
    }

    /// A port of 127.0.0.1.
    pub fn loopback(port: u16) -> Self {
        ListenAddress { port, ..Self::FREE_PORT }
    }

    /// The port; 0 asks for a free one.
    pub fn port(&self) -> u16 {
        self.port
    }

    fn is_loopback(&self) -> bool {
        match self.host {
            ListenHost::Ip(ip) => ip.is_loopback(),
            ListenHost::Localhost => true,
            ListenHost::Any => false,
        }
    }

    /// The addresses to bind. Those after the first are skipped where the system does not have their family.
    // L711
    fn sockets(&self, redirects_to_localhost: bool) -> Vec<IpAddr> {
        let (v4, v6) = (IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST));
        match self.host {
            ListenHost::Any => vec![Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()],
            ListenHost::Localhost => vec![v4, v6],
            ListenHost::Ip(ip) if redirects_to_localhost && ip == v4 => vec![v4, v6],
            ListenHost::Ip(ip) if redirects_to_localhost && ip == v6 => vec![v6, v4],
            ListenHost::Ip(ip) => vec![ip],
        }
    }
}

impl FromStr for ListenAddress {
    type Err = ListenAddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || ListenAddressError { text: text.to_owned() };
        let (host, port) = text.rsplit_once(':').ok_or_else(invalid)?;
        let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        let port = is_number.then(|| port.parse().ok()).flatten().ok_or_else(invalid)?;
        let host = match host.strip_prefix('[').map(|rest| rest.strip_suffix(']')) {
            Some(inner) => ListenHost::Ip(
                inner.and_then(|inner| inner.parse::<Ipv6Addr>().ok()).ok_or_else(invalid)?.into(),
            ),
            None if host.is_empty() => ListenHost::Any,
            None if host.eq_ignore_ascii_case("localhost") => ListenHost::Localhost,
            None => ListenHost::Ip(host.parse::<Ipv4Addr>().map_err(|_| invalid())?.into()),
        };
        match host {
            ListenHost::Ip(ip) if ip.is_unspecified() => Ok(ListenAddress { host: ListenHost::Any, port }),
            host => Ok(ListenAddress { host, port }),
        }
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host {
            ListenHost::Ip(ip) => SocketAddr::new(ip, self.port).fmt(f),
            ListenHost::Localhost => write!(f, "localhost:{}", self.port),
            ListenHost::Any => write!(f, "0.0.0.0:{}", self.port),
        }
    }
}

/// An address that could not be bound.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TakenAddress {
    /// The address.
    pub address: SocketAddr,
    /// Why, as reported by the operating system.
    pub reason: io::ErrorKind,
    /// The program that listens on it, where the system tells.
    pub owner: Option<PortOwner>,
}

impl fmt::Display for TakenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.owner, self.reason) {
            (Some(PortOwner { name, pid }), _) => {
                write!(f, "{} (in use by {}, pid {pid})", self.address, navicert_types::redact::line(name))
            }
            (None, io::ErrorKind::AddrInUse) => write!(f, "{} (in use)", self.address),
            (None, reason) => write!(f, "{} ({reason})", self.address),
        }
    }
}

/// `127.0.0.1:8000 (in use by python3, pid 77) nor 127.0.0.1:18000 (in use)`.
pub(super) fn show_taken(taken: &[TakenAddress]) -> String {
    taken.iter().map(ToString::to_string).collect::<Vec<_>>().join(" nor ")
}

/// The sockets of one port.
#[derive(Debug)]
pub(super) struct BoundSockets {
    listeners: Vec<TcpListener>,
    addresses: Vec<SocketAddr>,
}

impl BoundSockets {
    /// The first address; there is at least one.
    pub(super) fn first(&self) -> SocketAddr {
        self.addresses.first().copied().unwrap_or_else(|| SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
    }

    pub(super) fn port(&self) -> u16 {
        self.first().port()
    }

    pub(super) fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.addresses.iter().copied()
    }

    pub(super) fn into_listeners(self) -> Vec<TcpListener> {
        self.listeners
    }

    /// Addresses without sockets.
    #[cfg(test)]
    pub(super) fn of_addresses(addresses: &[&str]) -> Self {
        let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
        BoundSockets { listeners: Vec::new(), addresses }
    }
}

/// Binds the first address that is free on every family.
pub(super) fn bind(
    addresses: &[ListenAddress],
    redirect: &RedirectTarget,
) -> Result<BoundSockets, BindError> {
    if addresses.is_empty() {
        return Err(BindError::NoAddress);
    }
    for address in addresses.iter().filter(|address| address.port == 0) {
        // L712, L714
        if !address.is_loopback() {
            return Err(BindError::NotLoopback(*address));
        }
        if let Some(url) = redirect.explicit_url() {
            return Err(BindError::FreePortWithFixedRedirect { url: url.to_owned() });
        }
    }
    let mut taken = Vec::new();
    for address in addresses {
        match bind_one(*address, redirect.is_localhost()) {
            Ok(sockets) => return Ok(sockets),
            Err(failed) => taken.push(failed),
        }
    }
    Err(BindError::PortTaken(taken))
}

fn bind_one(address: ListenAddress, redirects_to_localhost: bool) -> Result<BoundSockets, TakenAddress> {
    let ips = address.sockets(redirects_to_localhost);
    let mut attempts = if address.port == 0 { MAX_FREE_PORT_ATTEMPTS } else { 1 };
    loop {
        attempts = attempts.saturating_sub(1);
        match bind_all(&ips, address.port) {
            Ok(sockets) => return Ok(sockets),
            // A port that is free on one family may be taken on the other.
            Err((_, error)) if attempts > 0 && error.kind() == io::ErrorKind::AddrInUse => {}
            Err((address, error)) => {
                let owner = match error.kind() {
                    io::ErrorKind::AddrInUse => port_owner::find(address),
                    _ => None,
                };
                return Err(TakenAddress { address, reason: error.kind(), owner });
            }
        }
    }
}

fn bind_all(ips: &[IpAddr], port: u16) -> Result<BoundSockets, (SocketAddr, io::Error)> {
    let mut bound = BoundSockets { listeners: Vec::new(), addresses: Vec::new() };
    for ip in ips {
        // The port that the system chose for the first family.
        let port = bound.addresses.first().map_or(port, SocketAddr::port);
        let address = SocketAddr::new(*ip, port);
        match bind_socket(address) {
            Ok((listener, address)) => {
                bound.listeners.push(listener);
                bound.addresses.push(address);
            }
            Err(error) if !bound.addresses.is_empty() && is_family_missing(&error) => {}
            Err(error) => return Err((address, error)),
        }
    }
    Ok(bound)
}

fn bind_socket(address: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        // `[::]` would take the IPv4 port as well, and hide who has it.
        socket.set_only_v6(true)?;
    }
    // Without it a port stays unusable for a minute after a login. Linux never lets two listeners share a port by it. On
    // Windows it would let another program take the port over.
    #[cfg(unix)]
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    let listener = TcpListener::from_std(socket.into())?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// Whether this machine has no such address family, or none of its addresses.
fn is_family_missing(error: &io::Error) -> bool {
    let unsupported = rustix::io::Errno::AFNOSUPPORT.raw_os_error();
    error.kind() == io::ErrorKind::AddrNotAvailable || error.raw_os_error() == Some(unsupported)
}
