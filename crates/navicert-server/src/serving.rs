//! One server's life: it binds, it serves until it is told to end, it finishes what it has begun. Beside it the listener for
//! probes and metrics, which ends last.
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

use crate::health::{Health, Inspection};
use crate::limits::Limits;
use crate::listener::{self, Handler, Security, Socket};
use crate::metrics::{Registry, Traffic};

/// Connections that wait to be taken; the system may have a lower limit of its own.
const WAITING: i32 = 4_096;

/// A socket that listens already and answers nothing yet: whoever comes waits.
#[derive(Debug)]
pub struct Bound {
    listener: TcpListener,
    address: SocketAddr,
}

/// A socket that cannot be had.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}")]
pub struct BindError {
    /// Where.
    pub address: SocketAddr,
    /// Why.
    pub source: io::Error,
}

impl Bound {
    /// Listens there. Port 0 is any free one.
    ///
    /// # Errors
    /// The system does not let us.
    pub fn bind(address: SocketAddr) -> Result<Self, BindError> {
        let bind = || {
            let listener = TcpListener::bind(address)?;
            // The standard library lets 128 wait. A crowd that comes at once should not keep others out.
            socket2::SockRef::from(&listener).listen(WAITING)?;
            let address = listener.local_addr()?;
            Ok(Bound { listener, address })
        };
        bind().map_err(|source| BindError { address, source })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The socket itself.
    pub fn into_listener(self) -> TcpListener {
        self.listener
    }
}

/// How a server ends.
#[derive(Clone, Copy, Debug)]
pub struct Ending {
    /// How long it goes on as before while it says that it is not ready: until nobody is sent here any more.
    pub delay: Duration,
    /// How long what has begun may take from then on.
    pub grace: Duration,
}

impl Default for Ending {
    fn default() -> Self {
        Ending { delay: Duration::ZERO, grace: Duration::from_secs(25) }
    }
}

/// What every server has beside its own work.
#[derive(Clone, Debug)]
pub struct House {
    /// Whether requests may be sent here.
    pub health: Health,
    /// What `/metrics` shows.
    pub figures: Registry,
    /// How it ends.
    pub ending: Ending,
    /// Waits.
    pub timer: Arc<dyn Timer>,
}

/// A server's own part.
#[derive(Debug)]
pub struct Server<H> {
    /// Where it listens.
    pub bound: Bound,
    /// How connections are secured.
    pub security: Security,
    /// How much anybody may ask.
    pub limits: Limits,
    /// What is counted; only one of them can be on one page of figures.
    pub traffic: Arc<Traffic>,
    /// What answers.
    pub handler: Arc<H>,
}

impl House {
    /// Serves until `stop` is done, and then until what has begun is finished, or has had its time. Probes are answered
    /// to the very end.
    ///
    /// # Errors
    /// A socket cannot be used by the runtime.
    pub async fn serve<H: Handler>(
        &self,
        server: Server<H>,
        inspection: Option<Bound>,
        stop: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let Server { bound, security, limits, traffic, handler } = server;
        let (end, ended) = watch::channel(false);
        let (_end_inspection, inspection_ended) = watch::channel(false);
        if let Some(inspection) = inspection {
            tokio::spawn(self.inspect(inspection, inspection_ended));
        }
        self.figures.join(Arc::clone(&traffic) as _);
        let socket = Socket { listener: bound.listener, security, limits, traffic };
        let mut serving = tokio::spawn(listener::serve(socket, handler, ended));
        tokio::select! {
            // It does not end by itself.
            outcome = &mut serving => return outcome.unwrap_or(Ok(())),
            () = stop => {}
        }
        tracing::info!("shutting down: what has begun is finished");
        self.health.stop();
        self.timer.sleep(self.ending.delay).await;
        end.send_replace(true);
        tokio::select! {
            outcome = &mut serving => {
                tracing::info!("shut down: everything was finished");
                outcome.unwrap_or(Ok(()))
            }
            () = self.timer.sleep(self.ending.grace) => {
                tracing::warn!(grace = ?self.ending.grace, "shut down: some requests or streams were cut off");
                Ok(())
            }
        }
    }

    fn inspect(&self, bound: Bound, stop: watch::Receiver<bool>) -> impl Future<Output = ()> + Send + use<> {
        let handler = Arc::new(Inspection::new(self.health.clone(), self.figures.clone()));
        let limits = Limits { connections: 256, requests: 64, head: 16 * 1024, ..Limits::default() };
        let traffic = Traffic::new("inspection", Arc::new(navicert_types::SystemClock));
        let socket = Socket { listener: bound.listener, security: Security::Plain, limits, traffic };
        async move {
            if let Err(error) = listener::serve(socket, handler, stop).await {
                tracing::error!(%error, "the socket for probes cannot be used");
            }
        }
    }
}
