//! An HTTP proxy for tunnels: it connects every tunnel to one address, whatever host it is asked for, and keeps what it was asked.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A proxy that forwards `CONNECT`. It ends with the test.
#[derive(Debug)]
pub struct ConnectProxy {
    address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
}

impl ConnectProxy {
    /// Connects every tunnel to this address.
    ///
    /// # Panics
    /// If no port is free.
    pub fn start(to: SocketAddr) -> Self {
        Self::run(to, None)
    }

    /// The same for requests with this user and password, in the form `user:password`. Others get a 407.
    ///
    /// # Panics
    /// If no port is free.
    pub fn start_with_password(to: SocketAddr, user: &str) -> Self {
        Self::run(to, Some(format!("Basic {}", STANDARD.encode(user))))
    }

    fn run(to: SocketAddr, required: Option<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("the address of a listener");
        let heads: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = Arc::clone(&heads);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (seen, required) = (Arc::clone(&seen), required.clone());
                thread::spawn(move || tunnel(client, to, required.as_deref(), &seen));
            }
        });
        ConnectProxy { address, heads }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The same as a URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The first lines of the requests so far.
    pub fn requests(&self) -> Vec<String> {
        self.heads.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn tunnel(
    mut client: TcpStream,
    to: SocketAddr,
    required: Option<&str>,
    seen: &Mutex<Vec<String>>,
) -> io::Result<()> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        client.read_exact(&mut byte)?;
        head.extend(byte);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let first = head.lines().next().unwrap_or_default().to_owned();
    seen.lock().unwrap_or_else(PoisonError::into_inner).push(first);
    let mut fields = head.lines().filter_map(|line| line.split_once(": "));
    let sent = fields.find(|(name, _)| name.eq_ignore_ascii_case("proxy-authorization"));
    if required.is_some() && sent.map(|(_, value)| value) != required {
        let refused = "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"p\"\r\nContent-Length: 0\r\n\r\n";
        return client.write_all(refused.as_bytes());
    }
    let mut server = TcpStream::connect(to)?;
    client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
    let (mut from_client, mut to_server) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || {
        let _ = io::copy(&mut from_client, &mut to_server);
        to_server.shutdown(Shutdown::Write)
    });
    io::copy(&mut server, &mut client)?;
    client.shutdown(Shutdown::Write)
}
