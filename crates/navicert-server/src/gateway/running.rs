//! A running gateway with its own threads.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;

use navicert_types::SystemClock;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

use super::child_kubeconfig::ChildKubeconfig;
use super::{Gateway, Service};
use crate::listener::{self, Security, Socket};
use crate::metrics::ListenerMetrics;

/// Maximum number of worker threads.
const MAX_WORKER_THREADS: usize = 4;

/// A running gateway. Closes its port and connections and removes its files when dropped.
#[derive(Debug)]
pub struct RunningGateway {
    address: SocketAddr,
    kubeconfig: ChildKubeconfig,
    _stop: watch::Sender<bool>,
    runtime: Option<Runtime>,
}

impl Gateway {
    /// Starts serving.
    ///
    /// # Errors
    /// No threads can be started.
    pub fn start(self) -> io::Result<RunningGateway> {
        let threads = thread::available_parallelism().map_or(1, usize::from).min(MAX_WORKER_THREADS);
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name("gateway")
            .enable_all()
            .build()?;
        let Service { listener, address, tls, handler, limits } = self.service;
        let (stop, stopped) = watch::channel(false);
        runtime.spawn(async move {
            let security = Security::fixed(tls);
            // Not exported: the gateway has no metrics endpoint.
            let metrics = ListenerMetrics::new("gateway", Arc::new(SystemClock));
            let socket = Socket { listener, security, limits, metrics };
            if let Err(error) = listener::serve(socket, Arc::clone(&handler), stopped).await {
                tracing::error!(event = "gateway_listener_failed", %error, "failed to serve the gateway");
            }
        });
        Ok(RunningGateway { address, kubeconfig: self.kubeconfig, _stop: stop, runtime: Some(runtime) })
    }
}

impl RunningGateway {
    /// The bound address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The child's kubeconfig.
    pub fn kubeconfig(&self) -> &ChildKubeconfig {
        &self.kubeconfig
    }
}

impl Drop for RunningGateway {
    fn drop(&mut self) {
        // Does not wait for streams, which may never end.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
