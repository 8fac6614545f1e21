//! Finds the program that listens on a port, for the error that names it. Linux tells it for processes of this user, and for
//! all of them to root.

use std::net::SocketAddr;

/// A program that listens on a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortOwner {
    /// Its name, as in `ps`.
    pub name: String,
    /// Its process id.
    pub pid: u32,
}

/// The program that listens on this address or on every interface.
#[cfg(target_os = "linux")]
pub(super) fn find(address: SocketAddr) -> Option<PortOwner> {
    let inodes: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|table| std::fs::read_to_string(table).ok())
        .flat_map(|table| listening_inodes(&table, address))
        .collect();
    linux::process_with_socket(&inodes)
}

/// The program that listens on this address; unknown on this system.
#[cfg(not(target_os = "linux"))]
pub(super) fn find(_: SocketAddr) -> Option<PortOwner> {
    None
}

/// Inodes of the sockets in a table of `/proc/net` that listen on the port, on this address or on every interface.
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "used on Linux"))]
fn listening_inodes(table: &str, address: SocketAddr) -> Vec<String> {
    /// `TCP_LISTEN`.
    const LISTEN: &str = "0A";
    let port = format!("{:04X}", address.port());
    let octets = match address.ip() {
        std::net::IpAddr::V4(v4) => v4.octets().to_vec(),
        std::net::IpAddr::V6(v6) => v6.octets().to_vec(),
    };
    let words = octets.chunks_exact(4).filter_map(|word| <[u8; 4]>::try_from(word).ok());
    let wanted: String = words.map(|word| format!("{:08X}", u32::from_ne_bytes(word))).collect();
    let is_listening = |local: &str, state: &str| {
        let Some((ip, found_port)) = local.split_once(':') else { return false };
        let is_any = ip.bytes().all(|digit| digit == b'0');
        state == LISTEN && found_port == port && (ip == wanted || is_any)
    };
    table
        .lines()
        .filter_map(|line| {
            let columns: Vec<&str> = line.split_ascii_whitespace().collect();
            let (local, state) = (columns.get(1)?, columns.get(3)?);
            is_listening(local, state).then(|| columns.get(9).map(ToString::to_string))?
        })
        .collect()
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;
    use std::path::Path;

    use super::PortOwner;

    /// The first process with a descriptor of one of these sockets.
    pub(super) fn process_with_socket(inodes: &[String]) -> Option<PortOwner> {
        if inodes.is_empty() {
            return None;
        }
        let links: Vec<String> = inodes.iter().map(|inode| format!("socket:[{inode}]")).collect();
        fs::read_dir("/proc").ok()?.flatten().find_map(|process| {
            let pid = process.file_name().to_str()?.parse().ok()?;
            has_descriptor(&process.path().join("fd"), &links).then_some(())?;
            let name = fs::read_to_string(process.path().join("comm")).ok()?;
            Some(PortOwner { name: name.trim_end().to_owned(), pid })
        })
    }

    fn has_descriptor(directory: &Path, links: &[String]) -> bool {
        let Ok(descriptors) = fs::read_dir(directory) else { return false };
        descriptors.flatten().any(|descriptor| {
            let target = fs::read_link(descriptor.path());
            target.is_ok_and(|target| links.iter().any(|link| target.as_os_str() == link.as_str()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_listening_sockets_from_the_table() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 11 1 0 100 0 0 10 0\n\
            1: 00000000:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 12 1 0 100 0 0 10 0\n\
            2: 0200007F:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 13 1 0 100 0 0 10 0\n\
            3: 0100007F:1F40 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 14 1 0 100 0 0 10 0\n\
            4: 0100007F:1F41 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 15 1 0 100 0 0 10 0\n\
            5: 00000000000000000000000001000000:1F40 00000000000000000000000000000000:0000 0A 0:0 0:0 0 1000 0 16\n";
        if cfg!(target_endian = "little") {
            assert_eq!(listening_inodes(table, "127.0.0.1:8000".parse().unwrap()), ["11", "12"]);
            assert_eq!(listening_inodes(table, "[::1]:8000".parse().unwrap()), ["12", "16"]);
        }
        assert!(listening_inodes("", "127.0.0.1:8000".parse().unwrap()).is_empty());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn finds_this_process() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let owner = find(listener.local_addr().unwrap()).unwrap();
        assert_eq!(owner.pid, std::process::id());
        assert!(!owner.name.is_empty());
        let address = listener.local_addr().unwrap();
        drop(listener);
        assert_eq!(find(address), None);
    }
}
