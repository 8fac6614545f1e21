//! A minimal hyper server that always responds with the same bytes: the baseline of benchmarks.

use std::convert::Infallible;
use std::net::SocketAddr;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

/// Listens on a free port of 127.0.0.1, without TLS, HTTP/1.1 only; gone when dropped.
///
/// ```
/// use navicert_testkit::net::bare_server::BareServer;
/// use std::io::{Read, Write};
///
/// let server = BareServer::start("{}", 1);
/// let mut client = std::net::TcpStream::connect(server.address()).unwrap();
/// client.write_all(b"POST / HTTP/1.1\r\nhost: h\r\nconnection: close\r\ncontent-length: 2\r\n\r\nhi").unwrap();
/// let mut answer = String::new();
/// client.read_to_string(&mut answer).unwrap();
/// assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("{}"), "{answer}");
/// ```
#[derive(Debug)]
pub struct BareServer {
    address: SocketAddr,
    runtime: Option<Runtime>,
}

impl BareServer {
    /// Answers with these bytes, on so many threads.
    ///
    /// # Panics
    /// If there is no port or no thread to be had.
    pub fn start(body: impl Into<Bytes>, threads: usize) -> Self {
        let body = body.into();
        let runtime =
            Builder::new_multi_thread().worker_threads(threads).enable_all().build().expect("a runtime");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a free port");
        let address = listener.local_addr().expect("an address");
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let body = body.clone();
                tokio::spawn(async move {
                    let _ = stream.set_nodelay(true);
                    let service = service_fn(move |_: Request<Incoming>| {
                        let mut response = Response::new(Full::new(body.clone()));
                        response
                            .headers_mut()
                            .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                        std::future::ready(Ok::<_, Infallible>(response))
                    });
                    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        BareServer { address, runtime: Some(runtime) }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for BareServer {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
