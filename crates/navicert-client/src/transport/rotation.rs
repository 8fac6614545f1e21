//! Client certificate rotation: one connection pool per certificate, and what happens to the old pool.
// C460–C465

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::{ArcSwapOption, Guard};
use tokio::sync::Semaphore;

use super::error::TransportError;
use super::pool::{Pool, PoolSettings, PoolTls};
use super::preconnect::PreconnectGuard;
use super::timer::Timer;
use super::tls::{RootVersion, Roots, only_http1};
use crate::credential::{ClientIdentity, Credential, Generation};

/// The pools of one transport: the current one, and those that drain.
#[derive(Debug)]
pub(super) struct Pools {
    current: ArcSwapOption<Current>,
    change_lock: Mutex<()>,
    settings: Arc<PoolSettings>,
    /// `None` for a plain http server.
    roots: Option<Roots>,
    http2: bool,
    /// Whether the proxy is an https proxy.
    tls_to_proxy: bool,
    drain_timeout: Duration,
    timer: Arc<dyn Timer>,
}

#[derive(Debug)]
struct Current {
    pool: Arc<Pool>,
    /// Replaced by an equal identity when a new generation has the same certificate, so that a pointer comparison
    /// suffices.
    identity: ArcSwapOption<ClientIdentity>,
    generation: Generation,
    roots: u64,
}

impl Pools {
    pub(super) fn new(
        settings: Arc<PoolSettings>,
        roots: Option<Roots>,
        (http2, tls_to_proxy): (bool, bool),
        drain_timeout: Duration,
        timer: Arc<dyn Timer>,
    ) -> Self {
        let (current, changing) = (ArcSwapOption::empty(), Mutex::default());
        Pools { current, change_lock: changing, settings, roots, http2, tls_to_proxy, drain_timeout, timer }
    }

    /// The pool of the most recent credential.
    pub(super) fn current_pool(&self) -> Option<Arc<Pool>> {
        self.current.load().as_ref().map(|current| Arc::clone(&current.pool))
    }

    /// The pool for a credential; `None` if a newer certificate has replaced it.
    pub(super) fn pool_for(&self, credential: &Credential) -> Result<Option<Arc<Pool>>, TransportError> {
        let roots = self.roots.as_ref().map_or(0, |roots| roots.current().number);
        if let Some(current) = &*self.current.load()
            && current.roots == roots
            && is_same_allocation(&current.identity.load(), credential.identity.as_ref())
        {
            return Ok(Some(Arc::clone(&current.pool)));
        }
        self.replace_pool(credential)
    }

    /// Starts to open the first connection while the credential is not yet available.
    pub(super) fn preconnect(&self) -> Option<PreconnectGuard<'_>> {
        if self.current.load().is_some() {
            return None;
        }
        let dial = self.settings.connector.direct_dial()?;
        self.settings.preconnect.begin(self.settings.clock.monotonic(), dial)
    }

    /// The certificate authorities, if it is time to reload their file.
    // C181
    pub(super) fn roots_due(&self) -> Option<&Roots> {
        self.roots.as_ref().filter(|roots| roots.is_due())
    }

    /// Reloads the certificate authority file on a blocking thread.
    pub(super) async fn reload_roots(self: &Arc<Self>) {
        let pools = Arc::clone(self);
        let look = move || {
            if let Some(roots) = &pools.roots {
                roots.reload_if_due();
            }
        };
        let _ = tokio::task::spawn_blocking(look).await;
    }

    fn replace_pool(&self, credential: &Credential) -> Result<Option<Arc<Pool>>, TransportError> {
        let _guard = self.change_lock.lock().unwrap_or_else(PoisonError::into_inner);
        let roots = self.roots.as_ref().map(Roots::current);
        let number = roots.as_ref().map_or(0, |roots| roots.number);
        let before = self.current.load_full();
        let same_identity =
            before.as_ref().is_some_and(|before| has_same_identity(before, credential.identity.as_ref()));
        if let Some(before) = &before {
            if !same_identity && credential.generation < before.generation {
                return Ok(None);
            }
            if same_identity && before.roots == number {
                before.identity.store(credential.identity.clone());
                return Ok(Some(Arc::clone(&before.pool)));
            }
        }
        let pool = Arc::new(self.open_pool(roots.as_deref(), credential.identity.as_deref())?);
        let generation = before
            .as_ref()
            .map_or(credential.generation, |before| before.generation.max(credential.generation));
        self.current.store(Some(Arc::new(Current {
            pool: Arc::clone(&pool),
            identity: ArcSwapOption::new(credential.identity.clone()),
            generation,
            roots: number,
        })));
        if let Some(before) = before {
            self.retire(&before.pool, same_identity);
        }
        Ok(Some(pool))
    }

    /// After a change of certificate authorities only, idle connections close and the others stay.
    // C181
    fn retire(&self, pool: &Arc<Pool>, only_roots: bool) {
        pool.retire();
        if only_roots {
            return;
        }
        if self.drain_timeout.is_zero() {
            pool.close();
            return;
        }
        let (late, pool) = (self.timer.sleep(self.drain_timeout), Arc::clone(pool));
        tokio::spawn(async move {
            late.await;
            pool.close();
        });
    }

    fn open_pool(
        &self,
        version: Option<&RootVersion>,
        identity: Option<&ClientIdentity>,
    ) -> Result<Pool, TransportError> {
        let (Some(roots), Some(version)) = (&self.roots, version) else {
            return Ok(Pool::new(Arc::clone(&self.settings), None, None));
        };
        let any = roots.client_config(version, identity, self.http2).map_err(TransportError::Identity)?;
        // The clone shares the session store: it belongs to the same generation.
        let mut http1 = any.clone();
        http1.alpn_protocols = only_http1();
        let for_proxy = || roots.client_config(version, None, false).map(Arc::new);
        let proxy_tls = self.tls_to_proxy.then(for_proxy).transpose().map_err(TransportError::Identity)?;
        let tls = (self.settings.scheme == http::uri::Scheme::HTTPS).then(|| PoolTls {
            default: Arc::new(any),
            http1: Arc::new(http1),
            handshake_permit: identity
                .is_some_and(ClientIdentity::is_external)
                .then(|| Arc::new(Semaphore::new(1))),
        });
        Ok(Pool::new(Arc::clone(&self.settings), tls, proxy_tls))
    }
}

fn is_same_allocation(
    held: &Guard<Option<Arc<ClientIdentity>>>,
    asked: Option<&Arc<ClientIdentity>>,
) -> bool {
    match (&**held, asked) {
        (None, None) => true,
        (Some(held), Some(asked)) => Arc::ptr_eq(held, asked),
        _ => false,
    }
}

fn has_same_identity(before: &Current, asked: Option<&Arc<ClientIdentity>>) -> bool {
    match (&*before.identity.load(), asked) {
        (None, None) => true,
        (Some(held), Some(asked)) => held.has_same_chain(asked),
        _ => false,
    }
}
