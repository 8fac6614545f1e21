//! Watches: how long an event takes through the proxy and through a loop that only copies, and what many of them weigh.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use navicert_testkit::cli::process::Process;
use navicert_testkit::{ApiServer, Ca, Identity, Watch, wait};
use navicert_types::{Clock, SystemClock};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, ServerConfig, ServerConnection, StreamOwned};

use super::Front;
use crate::gateway::load::{demanding, trusting};
use crate::gateway::provider;
use crate::race::{Fault, Meter};
use crate::statistics::median;

/// Events whose median delay is one turn's figure, and how long each is.
const EVENTS: usize = 50;
const EVENT: usize = 512;
/// How many watches are weighed.
const WATCHES: usize = 1_000;

type Outer = StreamOwned<ClientConnection, TcpStream>;
type Inner = StreamOwned<ServerConnection, TcpStream>;

/// One watch, both ends of which are here.
struct Open {
    client: Outer,
    server: Inner,
    _between: Option<Front>,
}

/// An event's way from the server's write to the client's read: the median of a round.
pub(super) fn event(through_proxy: bool) -> Result<Meter, Fault> {
    let mut open = if through_proxy { proxied()? } else { copied()? };
    Ok(Box::new(move || {
        let mut taken = Vec::with_capacity(EVENTS);
        for _ in 0..EVENTS {
            let started = SystemClock.monotonic();
            open.send()?;
            open.receive(EVENT)?;
            taken.push(SystemClock.monotonic().saturating_sub(started));
        }
        let median = median(taken.iter().map(Duration::as_secs_f64));
        Ok(Duration::try_from_secs_f64(median)?)
    }))
}

impl Open {
    fn send(&mut self) -> Result<(), Fault> {
        let event = "e".repeat(EVENT);
        write!(self.server, "{EVENT:x}\r\n{event}\r\n")?;
        Ok(self.server.flush()?)
    }

    /// Until so many letters of an event have come, whatever is around them.
    fn receive(&mut self, wanted: usize) -> Result<(), Fault> {
        let (mut seen, mut buffer) = (0, [0; 4096]);
        while seen < wanted {
            let read = self.client.read(&mut buffer)?;
            if read == 0 {
                return Err("the watch ends".into());
            }
            seen += buffer.get(..read).unwrap_or_default().iter().filter(|byte| **byte == b'e').count();
        }
        Ok(())
    }
}

/// Asks the proxy for a watch.
fn ask(client: &mut impl Write, front: &Front) -> Result<(), Fault> {
    write!(
        client,
        "GET /api/v1/pods?watch=true HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {}\r\n\r\n",
        front.token
    )?;
    Ok(client.flush()?)
}

fn proxied() -> Result<Open, Fault> {
    let ca = Ca::new("watch bench");
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let front = Front::start(&ca, &format!("https://{}", listener.local_addr()?))?;
    let mut client = outer(front.address, trusting(&ca)?)?;
    ask(&mut client, &front)?;
    let server = inner(&listener, demanding(&ca)?)?;
    begun(Open { client, server, _between: Some(front) })
}

/// Two connections and a loop that copies what comes on the one to the other.
fn copied() -> Result<Open, Fault> {
    let ca = Ca::new("copy bench");
    let (before, behind) = (TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?);
    let (front, back) = (before.local_addr()?, behind.local_addr()?);
    let identity = ca.client("navicert-proxy").issue();
    let (accepting, connecting) = (serving(&ca)?, showing(&ca, &identity)?);
    thread::spawn(move || {
        let copy = || -> Result<(), Fault> {
            let mut client = inner_unread(&before, accepting)?;
            let mut server = outer(back, connecting)?;
            let mut buffer = vec![0; 16 * 1024];
            let read = client.read(&mut buffer)?;
            server.write_all(buffer.get(..read).unwrap_or_default())?;
            server.flush()?;
            loop {
                let read = server.read(&mut buffer)?;
                if read == 0 {
                    return Ok(());
                }
                client.write_all(buffer.get(..read).unwrap_or_default())?;
                client.flush()?;
            }
        };
        drop(copy());
    });
    let mut client = outer(front, trusting(&ca)?)?;
    write!(client, "GET /api/v1/pods?watch=true HTTP/1.1\r\nhost: a\r\n\r\n")?;
    client.flush()?;
    let server = inner(&behind, demanding(&ca)?)?;
    begun(Open { client, server, _between: None })
}

/// The head of the answer and a first event.
fn begun(mut open: Open) -> Result<Open, Fault> {
    write!(open.server, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")?;
    open.send()?;
    open.receive(EVENT)?;
    Ok(open)
}

fn outer(address: SocketAddr, config: Arc<ClientConfig>) -> Result<Outer, Fault> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let name = ServerName::IpAddress(address.ip().into());
    Ok(StreamOwned::new(ClientConnection::new(config, name)?, stream))
}

fn inner_unread(listener: &TcpListener, config: Arc<ServerConfig>) -> Result<Inner, Fault> {
    let (stream, _) = listener.accept()?;
    stream.set_nodelay(true)?;
    Ok(StreamOwned::new(ServerConnection::new(config)?, stream))
}

/// The next connection, and the request on it read to the end of its head.
fn inner(listener: &TcpListener, config: Arc<ServerConfig>) -> Result<Inner, Fault> {
    let mut stream = inner_unread(listener, config)?;
    let (mut head, mut buffer) = (Vec::new(), [0; 4096]);
    while !head.ends_with(b"\r\n\r\n") {
        let read = stream.read(&mut buffer)?;
        head.extend_from_slice(buffer.get(..read).filter(|bytes| !bytes.is_empty()).ok_or("no request")?);
    }
    Ok(stream)
}

fn serving(ca: &Ca) -> Result<Arc<ServerConfig>, Fault> {
    let identity = ca.server().issue();
    let config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(identity.chain().to_vec(), identity.rustls_key())?;
    Ok(Arc::new(config))
}

fn showing(ca: &Ca, identity: &Identity) -> Result<Arc<ClientConfig>, Fault> {
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(ca.root_store())
        .with_client_auth_cert(identity.chain().to_vec(), identity.rustls_key())?;
    Ok(Arc::new(config))
}

/// What the proxy holds in memory while a thousand clients, each on a connection of its own, watch and nothing happens.
pub(super) fn weight() -> Result<u64, Fault> {
    let ca = Ca::new("weight bench");
    let (api, pods) = (ApiServer::start(&ca), Watch::new());
    api.answer("/api/v1/pods", pods.answer());
    let front = Front::start(&ca, &api.url())?;
    let config = trusting(&ca)?;
    let mut clients = Vec::with_capacity(WATCHES);
    for number in 1..=WATCHES {
        let mut client = outer(front.address, Arc::clone(&config))?;
        ask(&mut client, &front)?;
        clients.push(client);
        if number % 50 == 0 {
            wait::blocking(pods.wait_for_opened(number));
        }
    }
    pods.bytes("an event\n");
    for client in &mut clients {
        let (mut seen, mut buffer) = (Vec::new(), [0; 1024]);
        while !seen.windows(8).any(|part| part == b"an event") {
            let read = client.read(&mut buffer)?;
            seen.extend_from_slice(
                buffer.get(..read).filter(|bytes| !bytes.is_empty()).ok_or("a watch ends")?,
            );
        }
    }
    thread::park_timeout(Duration::from_millis(200)); // what the last event took is given back
    Ok(Process(front.program.pid()).resident()? << 10)
}
