//! A gateway at work, on threads of its own, until it is dropped.

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
use crate::metrics::Traffic;

/// More threads than this do not help one user's commands.
const THREADS: usize = 4;

/// A gateway that answers. Dropped, it closes its port and every connection, and removes its files.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
    kubeconfig: ChildKubeconfig,
    _stop: watch::Sender<bool>,
    runtime: Option<Runtime>,
}

impl Gateway {
    /// Answers from now on.
    ///
    /// # Errors
    /// No threads are to be had.
    pub fn start(self) -> io::Result<Running> {
        let threads = thread::available_parallelism().map_or(1, usize::from).min(THREADS);
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name("gateway")
            .enable_all()
            .build()?;
        let Service { listener, address, tls, door, limits } = self.service;
        let (stop, stopped) = watch::channel(false);
        runtime.spawn(async move {
            let security = Security::fixed(tls);
            // Nobody reads the figures of one user's gateway.
            let traffic = Traffic::new("gateway", Arc::new(SystemClock));
            let socket = Socket { listener, security, limits, traffic };
            if let Err(error) = listener::serve(socket, Arc::clone(&door), stopped).await {
                tracing::error!(%error, "the gateway's socket cannot be used");
            }
        });
        Ok(Running { address, kubeconfig: self.kubeconfig, _stop: stop, runtime: Some(runtime) })
    }
}

impl Running {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The file a command finds it by.
    pub fn kubeconfig(&self) -> &ChildKubeconfig {
        &self.kubeconfig
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Streams may last for ever, and whoever used them is gone.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
