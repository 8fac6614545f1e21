//! The least that can stand at both ends: an HTTPS server that demands a certificate and always says the same, and clients
//! that ask for it on connections they keep.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use navicert_testkit::{Ca, Identity};
use navicert_types::kubeconfig::Kubeconfig;
use navicert_types::{Clock, SystemClock};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned};

use super::provider;
use crate::race::Fault;
use crate::statistics::{Round, median};

const BODY: &str = "{\"major\":\"1\",\"minor\":\"34\",\"gitVersion\":\"v1.34.0\",\"gitCommit\":\"0\",\"gitTreeState\":\"clean\",\
    \"buildDate\":\"2026-01-01T00:00:00Z\",\"goVersion\":\"go1\",\"compiler\":\"gc\",\"platform\":\"linux/amd64\"}";

/// An API server of one answer, over HTTP/1.1.
pub(crate) struct Upstream {
    address: SocketAddr,
}

impl Upstream {
    pub(crate) fn start(ca: &Ca) -> Result<Self, Fault> {
        let config = demanding(ca)?;
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let config = Arc::clone(&config);
                thread::spawn(move || drop(serve(stream, config)));
            }
        });
        Ok(Upstream { address })
    }

    pub(crate) fn url(&self) -> String {
        format!("https://{}", self.address)
    }
}

/// A server's side of TLS that demands a certificate.
pub(crate) fn demanding(ca: &Ca) -> Result<Arc<ServerConfig>, Fault> {
    let identity = ca.server().issue();
    let verifier = WebPkiClientVerifier::builder_with_provider(ca.root_store(), provider()).build()?;
    let config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(verifier)
        .with_single_cert(identity.chain().to_vec(), identity.rustls_key())?;
    Ok(Arc::new(config))
}

/// A client's side of TLS without a certificate.
pub(crate) fn trusting(ca: &Ca) -> Result<Arc<ClientConfig>, Fault> {
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(ca.root_store())
        .with_no_client_auth();
    Ok(Arc::new(config))
}

fn serve(stream: TcpStream, config: Arc<ServerConfig>) -> Result<(), Fault> {
    stream.set_nodelay(true)?;
    let mut stream = StreamOwned::new(ServerConnection::new(config)?, stream);
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{BODY}",
        BODY.len()
    );
    let (mut request, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let read = stream.read(&mut buffer)?;
        if read == 0 {
            return Ok(());
        }
        request.extend_from_slice(buffer.get(..read).unwrap_or_default());
        if request.ends_with(b"\r\n\r\n") {
            request.clear();
            stream.write_all(answer.as_bytes())?;
            stream.flush()?;
        }
    }
}

pub(crate) trait Line: Read + Write + Send {}
impl<S: Read + Write + Send> Line for S {}

/// Connections that stay open.
pub(crate) struct Load {
    request: String,
    lines: Vec<Mutex<Box<dyn Line>>>,
}

impl Load {
    /// As the kubeconfig of a gateway says.
    pub(crate) fn of_kubeconfig(config: &Kubeconfig, connections: usize) -> Result<Self, Fault> {
        let (cluster, user) = (config.clusters.first(), config.users.first());
        let (cluster, user) = (&cluster.ok_or("no cluster")?.cluster, &user.ok_or("no user")?.user);
        let address: SocketAddr = cluster.server.trim_start_matches("https://").parse()?;
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(&cluster.certificate_authority_data)?)?;
        let config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let authorization = format!("authorization: Bearer {}\r\n", user.token.expose());
        Load::open(address, &authorization, connections, Some(Arc::new(config)))
    }

    /// Without TLS.
    pub(crate) fn plain(address: &str, connections: usize) -> Result<Self, Fault> {
        Load::open(address.parse()?, "", connections, None)
    }

    /// To the API server itself.
    pub(crate) fn direct(
        upstream: &Upstream,
        ca: &Ca,
        identity: &Identity,
        connections: usize,
    ) -> Result<Self, Fault> {
        let config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()?
            .with_root_certificates(ca.root_store())
            .with_client_auth_cert(identity.chain().to_vec(), identity.rustls_key())?;
        Load::open(upstream.address, "", connections, Some(Arc::new(config)))
    }

    /// With TLS, and these lines of a head.
    pub(crate) fn secured(
        address: SocketAddr,
        ca: &Ca,
        more: &str,
        connections: usize,
    ) -> Result<Self, Fault> {
        Load::open(address, more, connections, Some(trusting(ca)?))
    }

    fn open(
        address: SocketAddr,
        more: &str,
        connections: usize,
        tls: Option<Arc<ClientConfig>>,
    ) -> Result<Self, Fault> {
        let lines: Result<Vec<_>, Fault> = (0..connections)
            .map(|_| -> Result<Mutex<Box<dyn Line>>, Fault> {
                let stream = TcpStream::connect(address)?;
                stream.set_nodelay(true)?;
                let name = ServerName::IpAddress(address.ip().into());
                Ok(Mutex::new(match &tls {
                    Some(config) => {
                        Box::new(StreamOwned::new(ClientConnection::new(Arc::clone(config), name)?, stream))
                    }
                    None => Box::new(stream),
                }))
            })
            .collect();
        let request =
            format!("GET /version HTTP/1.1\r\nhost: {address}\r\naccept: application/json\r\n{more}\r\n");
        let load = Load { request, lines: lines? };
        // Servers close connections whose handshake or first request does not come within seconds, and a row that uses one
        // connection alone takes longer than that.
        load.ask(1)?;
        Ok(load)
    }

    /// Asks so often on every connection, on all of them at once.
    pub(crate) fn ask(&self, requests: usize) -> Result<(), Fault> {
        self.latencies(self.lines.len(), requests).map(drop)
    }

    /// The same on some of the connections, and the time of every answer.
    pub(crate) fn latencies(&self, connections: usize, requests: usize) -> Result<Vec<Duration>, Fault> {
        let measure = |line: &Mutex<Box<dyn Line>>| -> Result<Vec<Duration>, Fault> {
            let mut line = line.lock().unwrap_or_else(PoisonError::into_inner);
            let mut times = Vec::with_capacity(requests);
            for _ in 0..requests {
                let started = SystemClock.monotonic();
                self.once(&mut **line)?;
                times.push(SystemClock.monotonic().saturating_sub(started));
            }
            Ok(times)
        };
        if let ([line, ..], 1) = (self.lines.as_slice(), connections) {
            return measure(line);
        }
        thread::scope(|scope| {
            let lines = self.lines.iter().take(connections);
            let threads: Vec<_> = lines
                .map(|line| scope.spawn(move || measure(line).map_err(|fault| fault.to_string())))
                .collect();
            let mut times = Vec::with_capacity(connections * requests);
            for thread in threads {
                times.extend(thread.join().map_err(|_| "a client panicked")??);
            }
            Ok(times)
        })
    }

    fn once(&self, line: &mut dyn Line) -> Result<(), Fault> {
        line.write_all(self.request.as_bytes())?;
        line.flush()?;
        let (mut answer, mut buffer) = (Vec::with_capacity(1024), [0; 2048]);
        while !answer.ends_with(BODY.as_bytes()) {
            let read = line.read(&mut buffer)?;
            if read == 0 {
                return Err(format!("the answer ends early: {}", String::from_utf8_lossy(&answer)).into());
            }
            answer.extend_from_slice(buffer.get(..read).unwrap_or_default());
        }
        if answer.starts_with(b"HTTP/1.1 200 ") { Ok(()) } else { Err("not 200".into()) }
    }
}

/// One round: how much longer the median GET takes through each of two detours than directly. Each way is asked for a while,
/// in every possible order once: asked one by one in turns, each would meet what the one before leaves behind, such as
/// threads that still look for work.
pub(crate) fn added_latency(
    ways: [&Load; 3],
    ask: fn(&Load) -> Result<Vec<Duration>, Fault>,
) -> Result<Round, Fault> {
    let mut times: [Vec<f64>; 3] = Default::default();
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [0, 2, 1], [2, 0, 1], [1, 0, 2]] {
        for index in order {
            if let (Some(way), Some(times)) = (ways.get(index), times.get_mut(index)) {
                times.extend(ask(way)?.iter().map(Duration::as_secs_f64));
            }
        }
    }
    let [ours, reference, direct] = times.map(median);
    Ok(Round { ours: ours - direct, reference: reference - direct })
}
