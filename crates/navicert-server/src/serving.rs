//! Life cycle of one server: bind, serve, drain, stop; with a second listener for probes and metrics that stops last.
//!
//! ```text
//! bind ──▶ serve ──▶ (stop) not ready ──▶ delay ──▶ no new connections ──▶ drain, within a limit ──▶ end
//! ```

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use navicert_client::transport::Timer;
use tokio::sync::watch;

use crate::health::{Health, InspectionHandler};
use crate::limits::ServerLimits;
use crate::listener::{self, Handler, Security, Socket};
use crate::metrics::{ListenerMetrics, Registry};

/// Length of the accept queue; the operating system may cap it.
const LISTEN_BACKLOG: i32 = 4_096;

/// A listening socket. Connections queue until the server starts.
#[derive(Debug)]
pub struct BoundListener {
    listener: TcpListener,
    address: SocketAddr,
}

/// The socket cannot listen.
#[derive(Debug, thiserror::Error)]
#[error("failed to listen on {address}")]
pub struct BindError {
    /// The requested address.
    pub address: SocketAddr,
    /// I/O error reported by the operating system.
    pub source: io::Error,
}

impl BoundListener {
    /// Listens on an address. Port 0 selects a free port.
    ///
    /// # Errors
    /// The address is in use or not allowed.
    pub fn bind(address: SocketAddr) -> Result<Self, BindError> {
        let bind = || {
            let listener = TcpListener::bind(address)?;
            // The standard library's backlog is 128, which a burst of connections exceeds.
            socket2::SockRef::from(&listener).listen(LISTEN_BACKLOG)?;
            let address = listener.local_addr()?;
            Ok(BoundListener { listener, address })
        };
        bind().map_err(|source| BindError { address, source })
    }

    /// The bound address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The underlying socket.
    pub fn into_listener(self) -> TcpListener {
        self.listener
    }
}

/// Timing of a graceful shutdown.
#[derive(Clone, Copy, Debug)]
pub struct ShutdownTiming {
    /// How long to keep serving after readiness fails, so that load balancers stop sending requests.
    pub delay: Duration,
    /// How long to wait for in-flight requests after that.
    pub grace: Duration,
}

impl Default for ShutdownTiming {
    fn default() -> Self {
        ShutdownTiming { delay: Duration::ZERO, grace: Duration::from_secs(25) }
    }
}

/// What every server needs besides its handler.
#[derive(Clone, Debug)]
pub struct ServerRuntime {
    /// Readiness.
    pub health: Health,
    /// Registry behind `/metrics`.
    pub metrics: Registry,
    /// Shutdown timing.
    pub shutdown: ShutdownTiming,
    /// Timer for the shutdown.
    pub timer: Arc<dyn Timer>,
}

/// One server.
#[derive(Debug)]
pub struct Server<H> {
    /// The listening socket.
    pub bound: BoundListener,
    /// Transport security.
    pub security: Security,
    /// Connection and request limits.
    pub limits: ServerLimits,
    /// Listener metrics; at most one per registry.
    pub metrics: Arc<ListenerMetrics>,
    /// The request handler.
    pub handler: Arc<H>,
}

impl ServerRuntime {
    /// Serves until `stop` completes, then drains in-flight requests within the grace period; watches end early in it.
    /// Probes are answered until the end. Drop the future to end at once.
    ///
    /// # Errors
    /// A socket cannot be registered with the runtime.
    pub async fn serve<H: Handler>(
        &self,
        server: Server<H>,
        inspection: Option<BoundListener>,
        stop: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let Server { bound, security, limits, metrics, handler } = server;
        let (end, ended) = watch::channel(false);
        let (_end_inspection, inspection_ended) = watch::channel(false);
        if let Some(inspection) = inspection {
            tokio::spawn(self.serve_inspection(inspection, inspection_ended));
        }
        self.metrics.register(Arc::clone(&metrics) as _);
        let socket = Socket { listener: bound.listener, security, limits, metrics };
        let mut serving = tokio::spawn(listener::serve(socket, Arc::clone(&handler), ended));
        tokio::select! {
            // Only on an I/O error: the listener does not stop by itself.
            outcome = &mut serving => return outcome.unwrap_or(Ok(())),
            () = stop => {}
        }
        tracing::info!(
            event = "shutdown_started",
            "shutting down, draining in-flight requests; a second SIGTERM or SIGINT ends the server at once"
        );
        self.health.begin_shutdown();
        self.timer.sleep(self.shutdown.delay).await;
        end.send_replace(true);
        handler.begin_drain(self.shutdown.grace);
        tokio::select! {
            outcome = &mut serving => {
                tracing::info!(event = "shutdown_completed", "shut down, all requests finished");
                outcome.unwrap_or(Ok(()))
            }
            () = self.timer.sleep(self.shutdown.grace) => {
                tracing::warn!(
                    event = "shutdown_grace_exceeded",
                    grace = ?self.shutdown.grace,
                    "shut down, aborted requests or streams that exceeded the grace period"
                );
                Ok(())
            }
        }
    }

    fn serve_inspection(
        &self,
        bound: BoundListener,
        stop: watch::Receiver<bool>,
    ) -> impl Future<Output = ()> + Send + use<> {
        let handler = Arc::new(InspectionHandler::new(self.health.clone(), self.metrics.clone()));
        let limits = ServerLimits {
            connections: 256,
            requests: 64,
            header_bytes: 16 * 1024,
            ..ServerLimits::default()
        };
        let metrics = ListenerMetrics::new("inspection", Arc::new(navicert_types::SystemClock));
        let socket = Socket { listener: bound.listener, security: Security::Plain, limits, metrics };
        async move {
            if let Err(error) = listener::serve(socket, handler, stop).await {
                tracing::error!(event = "inspection_listener_failed", %error, "failed to serve probes and metrics");
            }
        }
    }
}
