//! Finds the user that owns the other end of a loopback connection. TCP has no `SO_PEERCRED`; Linux reports socket
//! owners through `sock_diag` or, more slowly, `/proc/net/tcp`.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};

/// The user who opened the connection from `peer` to `local`; `None` if unknown.
#[cfg(target_os = "linux")]
pub fn owner(peer: SocketAddr, local: SocketAddr) -> Option<u32> {
    let (SocketAddr::V4(peer), SocketAddr::V4(local)) = (peer, local) else { return None };
    match linux::by_sock_diag(peer, local) {
        Ok(owner) => owner,
        Err(_) => linux::by_proc_table(&std::fs::read_to_string("/proc/net/tcp").ok()?, peer, local),
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

#[cfg(target_os = "linux")]
mod linux {
    use std::net::SocketAddrV4;

    use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
    use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

    /// `SOCK_DIAG_BY_FAMILY`.
    const BY_FAMILY: u16 = 20;
    /// `NLM_F_REQUEST`.
    const REQUEST: u16 = 1;
    /// Matches every socket.
    const ANY_COOKIE: [u8; 8] = [0xff; 8];
    /// Length of a netlink message header, and offset of the owner in the `inet_diag_msg` after it.
    const HEADER: usize = 16;
    const OWNER: usize = HEADER + 64;

    /// Requests exactly this connection, as seen from its other end.
    pub(super) fn by_sock_diag(peer: SocketAddrV4, local: SocketAddrV4) -> rustix::io::Result<Option<u32>> {
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
        let owner = response.get(OWNER..OWNER + 4).and_then(|bytes| bytes.try_into().ok());
        Ok(owner.map(u32::from_ne_bytes))
    }

    /// A `nlmsghdr` and an `inet_diag_req_v2` (linux/netlink.h, linux/inet_diag.h).
    fn diag_request(peer: SocketAddrV4, local: SocketAddrV4) -> Vec<u8> {
        const LENGTH: u32 = 16 + 56;
        let mut message = Vec::with_capacity(72);
        message.extend(LENGTH.to_ne_bytes());
        message.extend(BY_FAMILY.to_ne_bytes());
        message.extend(REQUEST.to_ne_bytes());
        message.extend([0; 8]); // sequence, sender
        message.extend([2, 6, 0, 0]); // AF_INET, IPPROTO_TCP, no extensions, padding
        message.extend(u32::MAX.to_ne_bytes()); // in any state
        for port in [peer.port(), local.port()] {
            message.extend(port.to_be_bytes());
        }
        for address in [peer.ip(), local.ip()] {
            message.extend(address.octets());
            message.extend([0; 12]);
        }
        message.extend([0; 4]); // on any interface
        message.extend(ANY_COOKIE);
        message
    }

    /// The same from the text table: local address, remote address, and the `uid` column.
    pub(super) fn by_proc_table(table: &str, peer: SocketAddrV4, local: SocketAddrV4) -> Option<u32> {
        let format_address = |address: SocketAddrV4| {
            format!("{:08X}:{:04X}", u32::from_ne_bytes(address.ip().octets()), address.port())
        };
        let (remote_address, local_address) = (format_address(peer), format_address(local));
        table.lines().find_map(|line| {
            let mut columns = line.split_ascii_whitespace().skip(1);
            let found = columns.next() == Some(&*remote_address) && columns.next() == Some(&*local_address);
            found.then(|| columns.nth(4))?.and_then(|owner| owner.parse().ok())
        })
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::net::SocketAddrV4;

    use super::linux::{by_proc_table, by_sock_diag};
    use super::*;

    #[test]
    fn system_reports_owners() {
        assert!(is_known().unwrap());
    }

    #[test]
    fn sock_diag_and_proc_report_this_user() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, peer) = listener.accept().unwrap();
        let local = server.local_addr().unwrap();
        let me = rustix::process::getuid().as_raw();
        assert_eq!(owner(peer, local), Some(me));
        let (SocketAddr::V4(peer), SocketAddr::V4(local)) = (peer, local) else { panic!("loopback is IPv4") };
        let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
        assert_eq!(by_proc_table(&table, peer, local), Some(me));
        // Kernels without the `inet_diag` module only have the table.
        if let Ok(found) = by_sock_diag(peer, local) {
            assert_eq!(found, Some(me));
            let unused = SocketAddrV4::new(*peer.ip(), 1);
            assert_eq!(by_sock_diag(unused, local).unwrap(), None);
        }
        drop(client);
    }

    #[test]
    fn parses_the_proc_table() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
            0: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 1 1 0 20 4 30 10 -1\n   \
            1: 0100007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 2 1 0 20 4 30 10 -1\n";
        let (peer, local) = ("127.0.0.1:50000".parse().unwrap(), "127.0.0.1:8080".parse().unwrap());
        if cfg!(target_endian = "little") {
            assert_eq!(by_proc_table(table, peer, local), Some(1000));
            assert_eq!(by_proc_table(table, "127.0.0.1:50001".parse().unwrap(), local), None);
        }
    }
}
