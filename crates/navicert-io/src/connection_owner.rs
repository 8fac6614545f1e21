//! Finds the user that owns the other end of a loopback connection. TCP has no `SO_PEERCRED`; Linux reports socket
//! owners through `sock_diag` or, more slowly, `/proc/net/tcp` and `/proc/net/tcp6`.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};

/// The user who opened the connection from `peer` to `local`; `None` if unknown.
///
/// A socket that its process has closed counts as unknown: Linux reports such sockets as root's.
#[cfg(target_os = "linux")]
pub fn owner(peer: SocketAddr, local: SocketAddr) -> Option<u32> {
    let (peer, local) = (canonical(peer), canonical(local));
    if peer.is_ipv4() != local.is_ipv4() {
        return None;
    }
    match linux::by_sock_diag(peer, local) {
        Ok(Some(owner)) => Some(owner),
        // An IPv6 socket that is connected to an IPv4 address is in the table of IPv6 sockets only.
        Ok(None) if peer.is_ipv4() => linux::by_sock_diag(mapped(peer), mapped(local)).ok().flatten(),
        Ok(None) => None,
        Err(_) => linux::by_proc_tables(peer, local),
    }
}

/// The user who opened the connection; unknown on this system.
#[cfg(not(target_os = "linux"))]
pub fn owner(_: SocketAddr, _: SocketAddr) -> Option<u32> {
    None
}

/// Whether the system reports owners: it is asked about a connection of this process.
///
/// # Errors
/// The connection cannot be made.
pub fn is_known() -> io::Result<bool> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let client = TcpStream::connect(listener.local_addr()?)?;
    Ok(owner(client.local_addr()?, client.peer_addr()?) == Some(rustix::process::geteuid().as_raw()))
}

/// `::ffff:a.b.c.d` as `a.b.c.d`.
#[cfg(target_os = "linux")]
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// `a.b.c.d` as `::ffff:a.b.c.d`.
#[cfg(target_os = "linux")]
fn mapped(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(v4) => SocketAddr::new(v4.ip().to_ipv6_mapped().into(), v4.port()),
        SocketAddr::V6(_) => address,
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::net::{IpAddr, SocketAddr};

    use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
    use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

    /// `SOCK_DIAG_BY_FAMILY`.
    const BY_FAMILY: u16 = 20;
    /// `NLM_F_REQUEST`.
    const REQUEST: u16 = 1;
    /// Matches every socket.
    const ANY_COOKIE: [u8; 8] = [0xff; 8];
    /// Length of a netlink message header, and offsets of owner and inode in the `inet_diag_msg` after it.
    const HEADER: usize = 16;
    const OWNER: usize = HEADER + 64;
    const INODE: usize = HEADER + 68;
    /// `AF_INET`, `AF_INET6`, `IPPROTO_TCP`.
    const INET: u8 = 2;
    const INET6: u8 = 10;
    const TCP: u8 = 6;

    /// Requests exactly this connection, as seen from its other end.
    pub(super) fn by_sock_diag(peer: SocketAddr, local: SocketAddr) -> rustix::io::Result<Option<u32>> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket =
            rustix::net::socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, Some(SOCK_DIAG))?;
        let kernel = SocketAddrNetlink::new(0, 0);
        rustix::net::sendto(&socket, &diag_request(peer, local), SendFlags::empty(), &kernel)?;
        // The kernel has queued the response when `sendto` returns.
        let mut response = [0; 4096];
        let (length, _) = rustix::net::recv(&socket, &mut response, RecvFlags::empty())?;
        let response = response.get(..length).unwrap_or_default();
        let kind = response.get(4..6).and_then(|bytes| bytes.try_into().ok()).map(u16::from_ne_bytes);
        if kind != Some(BY_FAMILY) {
            return Ok(None); // An error: mostly that there is no such connection any more.
        }
        let field = |offset: usize| {
            let bytes = response.get(offset..offset + 4).and_then(|bytes| bytes.try_into().ok());
            bytes.map(u32::from_ne_bytes)
        };
        Ok(field(OWNER).filter(|_| field(INODE).is_some_and(|inode| inode != 0)))
    }

    /// A `nlmsghdr` and an `inet_diag_req_v2` (linux/netlink.h, linux/inet_diag.h).
    fn diag_request(peer: SocketAddr, local: SocketAddr) -> Vec<u8> {
        const LENGTH: u32 = 16 + 56;
        let mut message = Vec::with_capacity(72);
        message.extend(LENGTH.to_ne_bytes());
        message.extend(BY_FAMILY.to_ne_bytes());
        message.extend(REQUEST.to_ne_bytes());
        message.extend([0; 8]); // sequence, sender
        message.extend([if peer.is_ipv4() { INET } else { INET6 }, TCP, 0, 0]); // no extensions, padding
        message.extend(u32::MAX.to_ne_bytes()); // in any state
        for port in [peer.port(), local.port()] {
            message.extend(port.to_be_bytes());
        }
        for address in [peer.ip(), local.ip()] {
            match address {
                IpAddr::V4(v4) => {
                    message.extend(v4.octets());
                    message.extend([0; 12]);
                }
                IpAddr::V6(v6) => message.extend(v6.octets()),
            }
        }
        message.extend([0; 4]); // on any interface
        message.extend(ANY_COOKIE);
        message
    }

    /// The same from the text tables.
    pub(super) fn by_proc_tables(peer: SocketAddr, local: SocketAddr) -> Option<u32> {
        let in_table =
            |name: &str, peer, local| by_proc_table(&std::fs::read_to_string(name).ok()?, peer, local);
        let v4 = peer.is_ipv4().then(|| in_table("/proc/net/tcp", peer, local)).flatten();
        v4.or_else(|| in_table("/proc/net/tcp6", super::mapped(peer), super::mapped(local)))
    }

    /// The same from one text table: local address, remote address, and the `uid` and `inode` columns.
    pub(super) fn by_proc_table(table: &str, peer: SocketAddr, local: SocketAddr) -> Option<u32> {
        let (remote_address, local_address) = (format_address(peer), format_address(local));
        table.lines().find_map(|line| {
            let mut columns = line.split_ascii_whitespace().skip(1);
            let found = columns.next() == Some(&*remote_address) && columns.next() == Some(&*local_address);
            let owner = found.then(|| columns.nth(4))?.and_then(|owner| owner.parse().ok());
            owner.filter(|_| columns.nth(1).is_some_and(|inode| inode != "0"))
        })
    }

    /// Words of four octets in the machine's order, as hexadecimal digits, and the port.
    fn format_address(address: SocketAddr) -> String {
        let octets = match address.ip() {
            IpAddr::V4(v4) => v4.octets().to_vec(),
            IpAddr::V6(v6) => v6.octets().to_vec(),
        };
        let words = octets.chunks_exact(4).filter_map(|word| <[u8; 4]>::try_from(word).ok());
        let words: String = words.map(|word| format!("{:08X}", u32::from_ne_bytes(word))).collect();
        format!("{words}:{:04X}", address.port())
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::linux::{by_proc_table, by_proc_tables, by_sock_diag};
    use super::*;

    #[test]
    fn system_reports_owners() {
        assert!(is_known().unwrap());
    }

    #[test]
    fn sock_diag_and_proc_report_this_user_on_both_families() {
        let me = rustix::process::getuid().as_raw();
        // L903: the receiver of a login listens on both.
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let listener = match TcpListener::bind(address) {
                Ok(listener) => listener,
                Err(error) if address.starts_with('[') && has_no_ipv6(&error) => continue,
                Err(error) => panic!("{address}: {error}"),
            };
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (server, peer) = listener.accept().unwrap();
            let local = server.local_addr().unwrap();
            assert_eq!(owner(peer, local), Some(me), "{address}");
            assert_eq!(by_proc_tables(peer, local), Some(me), "{address}");
            // Kernels without the `inet_diag` module only have the table.
            if let Ok(found) = by_sock_diag(peer, local) {
                assert_eq!(found, Some(me), "{address}");
                let unused = SocketAddr::new(peer.ip(), 1);
                assert_eq!(by_sock_diag(unused, local).unwrap(), None, "{address}");
            }
            drop(client);
        }
    }

    #[test]
    fn ipv6_socket_connected_to_an_ipv4_address_has_an_owner() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let client = match TcpStream::connect(("::ffff:127.0.0.1", port)) {
            Err(error) if has_no_ipv6(&error) => return,
            client => client.unwrap(),
        };
        let (server, peer) = listener.accept().unwrap();
        let local = server.local_addr().unwrap();
        let me = rustix::process::getuid().as_raw();
        assert_eq!(owner(peer, local), Some(me));
        assert_eq!(by_proc_tables(peer, local), Some(me));
        drop(client);
    }

    #[test]
    fn connection_that_its_process_has_closed_has_no_owner() {
        // Linux reports user 0 for it: a receiver that runs as root must not take it for its own.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, peer) = listener.accept().unwrap();
        let local = server.local_addr().unwrap();
        drop(client);
        assert_eq!(owner(peer, local), None);
        assert_eq!(by_proc_tables(peer, local), None);
    }

    #[test]
    fn parses_the_proc_table() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
            0: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 1 1 0 20 4 30 10 -1\n   \
            1: 0100007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 2 1 0 20 4 30 10 -1\n   \
            2: 0100007F:C352 0100007F:1F90 05 00000000:00000000 00:00000000 00000000     0        0 0 1 0 20 4 30 10 -1\n   \
            3: 00000000000000000000000001000000:C350 00000000000000000000000001000000:1F90 01 00000000:00000000 00:00000000 00000000  1001        0 3 1 0 20 4 30 10 -1\n";
        let of =
            |peer: &str, local: &str| by_proc_table(table, peer.parse().unwrap(), local.parse().unwrap());
        if cfg!(target_endian = "little") {
            assert_eq!(of("127.0.0.1:50000", "127.0.0.1:8080"), Some(1000));
            assert_eq!(of("127.0.0.1:50001", "127.0.0.1:8080"), None);
            assert_eq!(of("127.0.0.1:50002", "127.0.0.1:8080"), None, "closed by its process");
            assert_eq!(of("[::1]:50000", "[::1]:8080"), Some(1001));
        }
    }

    fn has_no_ipv6(error: &io::Error) -> bool {
        matches!(error.kind(), io::ErrorKind::AddrNotAvailable | io::ErrorKind::Unsupported)
            || error.raw_os_error() == Some(97) // EAFNOSUPPORT
    }
}
