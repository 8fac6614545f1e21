//! What a server's tasks and the test share: the log, the rules, and the handles of open connections.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::ServerConfig;
use tokio::sync::watch;

use super::accept::Reception;
use super::record::{Connection, Log, Request};
use super::rules::{Choice, Rules};
use crate::net::answer::Cut;

/// What the server's tasks and the test share.
pub(super) struct Shared {
    pub(super) log: watch::Sender<Log>,
    pub(super) rules: Mutex<Rules>,
    pub(super) reception: watch::Sender<Reception>,
    pub(super) tls: Mutex<Option<Arc<ServerConfig>>>,
    /// How to cut each open connection.
    pub(super) cuts: Mutex<HashMap<usize, watch::Sender<Option<Cut>>>>,
}

impl Shared {
    pub(super) fn rules(&self) -> MutexGuard<'_, Rules> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn choose(&self, path: &str) -> Choice {
        self.rules().choose(path)
    }

    pub(super) fn tls_config(&self) -> Option<Arc<ServerConfig>> {
        self.tls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn admit(&self, peer: SocketAddr, cut: watch::Sender<Option<Cut>>) -> usize {
        let mut id = 0;
        self.log.send_modify(|log| {
            id = log.connections.len();
            // Before the connection appears in the log, because a test may then cut it.
            self.cuts.lock().unwrap_or_else(PoisonError::into_inner).insert(id, cut);
            log.connections.push(Connection { id, peer, tls: None, closed: false, received: Arc::default() });
        });
        id
    }

    pub(super) fn closed(&self, id: usize) {
        self.cuts.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        self.change_connection(id, |connection| connection.closed = true);
    }

    /// Asks every open connection to close, and returns those connections.
    pub(super) fn cut_all(&self, how: Cut) -> Vec<usize> {
        let cuts = self.cuts.lock().unwrap_or_else(PoisonError::into_inner);
        for cut in cuts.values() {
            cut.send_replace(Some(how));
        }
        cuts.keys().copied().collect()
    }

    pub(super) fn received(&self, id: usize) -> Arc<Mutex<Vec<u8>>> {
        Arc::clone(&self.log.borrow().connections[id].received)
    }

    pub(super) fn record(&self, mut request: Request) -> usize {
        let mut index = 0;
        self.log.send_modify(|log| {
            index = log.requests.len();
            request.client =
                log.connections[request.connection].tls.as_ref().and_then(|tls| tls.client.clone());
            log.requests.push(request);
        });
        index
    }

    pub(super) fn request(&self, index: usize) -> Request {
        self.log.borrow().requests[index].clone()
    }

    pub(super) fn change_request(&self, index: usize, change: impl FnOnce(&mut Request)) {
        self.log.send_modify(|log| change(&mut log.requests[index]));
    }

    pub(super) fn change_connection(&self, id: usize, change: impl FnOnce(&mut Connection)) {
        self.log.send_modify(|log| change(&mut log.connections[id]));
    }
}
