//! The listening side: accepts connections, or refuses, resets or stalls them while an outage lasts.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc as blocking_mpsc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio_rustls::TlsAcceptor;

use super::record::{ClientCertificate, Connection, Tls};
use super::serve;
use super::socket::{Socket, Spy};
use super::state::Shared;
use crate::net::answer::Cut;
use crate::net::gate::Gate;
use crate::wait;

/// What becomes of new connections.
#[derive(Clone, Debug)]
pub(super) enum Reception {
    Serve,
    Reset,
    Stall(Gate),
}

/// Closes or opens the listening socket, and notifies the sender of the message when done.
pub(super) struct Listening {
    pub(super) open: bool,
    pub(super) done: blocking_mpsc::Sender<()>,
}

/// A reserved port, also while the server does not listen.
///
/// A bound socket that never listens keeps the port: connections are refused, and no other process can bind it.
pub(super) struct Port {
    _reservation: TcpSocket,
    address: SocketAddr,
}

impl Port {
    pub(super) fn reserve() -> io::Result<Self> {
        let reservation = bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        Ok(Port { address: reservation.local_addr()?, _reservation: reservation })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Must run inside a runtime.
    pub(super) fn listen(&self) -> io::Result<TcpListener> {
        bind(self.address)?.listen(1024)
    }
}

fn bind(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

/// Accepts until the runtime is dropped.
pub(super) async fn accept(
    port: Port,
    listener: TcpListener,
    mut orders: mpsc::UnboundedReceiver<Listening>,
    shared: Arc<Shared>,
) {
    let mut listener = Some(listener);
    loop {
        tokio::select! {
            order = orders.recv() => {
                let Some(order) = order else { return };
                // Dropped first: two listeners cannot share the port.
                drop(listener.take());
                listener = order.open.then(|| port.listen().expect("the port is reserved for this server"));
                let _ = order.done.send(());
            }
            accepted = next(listener.as_ref()) => {
                if let Ok((stream, peer)) = accepted {
                    // Admitted here and not in its task, so that an order that follows finds it.
                    let (cut, _) = watch::channel(None);
                    let id = shared.admit(peer, cut.clone());
                    tokio::spawn(connection(stream, id, cut, Arc::clone(&shared)));
                }
            }
        }
    }
}

async fn next(listener: Option<&TcpListener>) -> io::Result<(TcpStream, SocketAddr)> {
    match listener {
        Some(listener) => listener.accept().await,
        None => std::future::pending().await,
    }
}

/// Serves one connection until it ends or is cut.
async fn connection(stream: TcpStream, id: usize, cut: watch::Sender<Option<Cut>>, shared: Arc<Shared>) {
    let _ = stream.set_nodelay(true);
    let mut cuts = cut.subscribe();
    let reset = Arc::new(AtomicBool::new(false));
    let closing = Arc::clone(&shared);
    let socket = Socket::new(stream, Arc::clone(&reset), move || closing.closed(id));
    let line = Line { id, cut, reset };
    let watcher = line.clone();
    tokio::select! {
        () = receive(socket, line, shared) => {}
        () = watcher.until_cut(&mut cuts) => {}
    }
}

/// One connection's handle to itself.
#[derive(Clone)]
pub(super) struct Line {
    pub(super) id: usize,
    pub(super) cut: watch::Sender<Option<Cut>>,
    reset: Arc<AtomicBool>,
}

impl Line {
    /// Returns when the connection is to be cut; a reset is arranged before the socket is dropped.
    pub(super) async fn until_cut(&self, cuts: &mut watch::Receiver<Option<Cut>>) {
        match cuts.wait_for(Option::is_some).await.map(|cut| *cut) {
            Ok(Some(Cut::Reset)) => self.reset.store(true, std::sync::atomic::Ordering::SeqCst),
            Ok(_) => {}
            Err(_) => std::future::pending().await,
        }
    }
}

async fn receive(socket: Socket, line: Line, shared: Arc<Shared>) {
    let reception = shared.reception.borrow().clone();
    match reception {
        Reception::Serve => {}
        Reception::Reset => {
            line.cut.send_replace(Some(Cut::Reset));
            return std::future::pending().await;
        }
        Reception::Stall(gate) => gate.pass().await,
    }
    let received = shared.received(line.id);
    let Some(config) = shared.tls_config() else {
        return serve::http1(Spy::new(socket, received), line, shared).await;
    };
    let stream = match TlsAcceptor::from(config).accept(socket).into_fallible().await {
        Ok(stream) => stream,
        Err((error, socket)) => {
            shared.log.send_modify(|log| log.handshake_failures.push(error.to_string()));
            return let_the_alert_arrive(socket).await;
        }
    };
    let tls = describe(stream.get_ref().1);
    let protocol = tls.protocol.clone();
    shared.change_connection(line.id, |connection: &mut Connection| connection.tls = Some(tls));
    let stream = Spy::new(stream, received);
    match protocol.as_deref() {
        Some("h2") => serve::http2(stream, line, shared).await,
        _ => serve::http1(stream, line, shared).await,
    }
}

/// Closing a socket with unread input resets it, and a reset may overtake the alert; so the input is read away.
async fn let_the_alert_arrive(mut socket: Socket) {
    let drain = async {
        let _ = socket.shutdown().await;
        let mut buffer = [0; 4096];
        while matches!(socket.read(&mut buffer).await, Ok(1..)) {}
    };
    let _ = tokio::time::timeout(wait::LIMIT, drain).await;
}

fn describe(session: &rustls::ServerConnection) -> Tls {
    Tls {
        version: session.protocol_version().expect("a finished handshake has a version"),
        resumed: session.handshake_kind() == Some(rustls::HandshakeKind::Resumed),
        protocol: session.alpn_protocol().map(|name| String::from_utf8_lossy(name).into_owned()),
        server_name: session.server_name().map(str::to_owned),
        client: session.peer_certificates().and_then(ClientCertificate::read),
    }
}
