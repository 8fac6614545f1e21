//! Which connections belong to which client certificate, and what becomes of them when it is replaced
//! (client-credentials.md C460–C465).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::{ArcSwapOption, Guard};
use tokio::sync::Semaphore;

use super::error::TransportError;
use super::head_start::Untaken;
use super::pool::{Pool, PoolSettings, PoolTls};
use super::timer::Timer;
use super::tls::{RootVersion, Roots, only_http1};
use crate::credential::{Credential, Generation, Identity};

/// What becomes of connections in use when the client certificate is replaced. Unused ones are closed at once either way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rotation {
    /// They may finish; what is still open after `max` ends with an error that asks to try again (C463).
    Drain {
        /// How long at most.
        max: Duration,
    },
    /// They are closed at once, as client-go does it (C452).
    CloseNow,
}

impl Default for Rotation {
    fn default() -> Self {
        Rotation::Drain { max: Duration::from_secs(10 * 60) }
    }
}

/// The pools of one transport: the current one, and those that drain.
#[derive(Debug)]
pub(super) struct Pools {
    current: ArcSwapOption<Current>,
    changing: Mutex<()>,
    settings: Arc<PoolSettings>,
    /// `None` for a plain http server.
    roots: Option<Roots>,
    http2: bool,
    /// Whether the proxy itself is spoken to in TLS.
    tls_to_proxy: bool,
    rotation: Rotation,
    timer: Arc<dyn Timer>,
}

#[derive(Debug)]
struct Current {
    pool: Arc<Pool>,
    /// Replaced by an equal one when a new generation has the same certificate, so that pointers can be compared.
    identity: ArcSwapOption<Identity>,
    generation: Generation,
    roots: u64,
}

impl Pools {
    pub(super) fn new(
        settings: Arc<PoolSettings>,
        roots: Option<Roots>,
        (http2, tls_to_proxy): (bool, bool),
        rotation: Rotation,
        timer: Arc<dyn Timer>,
    ) -> Self {
        let (current, changing) = (ArcSwapOption::empty(), Mutex::default());
        Pools { current, changing, settings, roots, http2, tls_to_proxy, rotation, timer }
    }

    /// The pool of whatever credential came last.
    pub(super) fn latest(&self) -> Option<Arc<Pool>> {
        self.current.load().as_ref().map(|current| Arc::clone(&current.pool))
    }

    /// The pool for a credential; `None` if a newer one has taken its place meanwhile.
    pub(super) fn pool_for(&self, credential: &Credential) -> Result<Option<Arc<Pool>>, TransportError> {
        let roots = self.roots.as_ref().map_or(0, |roots| roots.current().number);
        if let Some(current) = &*self.current.load()
            && current.roots == roots
            && is_same_pointer(&current.identity.load(), credential.identity.as_ref())
        {
            return Ok(Some(Arc::clone(&current.pool)));
        }
        self.change(credential)
    }

    /// Before there was any connection: begins to open one, as long as the credential is not there.
    pub(super) fn head_start(&self) -> Option<Untaken<'_>> {
        if self.current.load().is_some() {
            return None;
        }
        let dial = self.settings.connector.ahead()?;
        self.settings.head_start.begin(self.settings.clock.monotonic(), dial)
    }

    /// The file of the certificate authority is looked at now and then (C181).
    pub(super) fn roots_to_look_at(&self) -> Option<&Roots> {
        self.roots.as_ref().filter(|roots| roots.is_due())
    }

    /// Lets a thread that may block look at the certificate authority.
    pub(super) async fn look_at_roots(self: &Arc<Self>) {
        let pools = Arc::clone(self);
        let look = move || {
            if let Some(roots) = &pools.roots {
                roots.look_again();
            }
        };
        let _ = tokio::task::spawn_blocking(look).await;
    }

    fn change(&self, credential: &Credential) -> Result<Option<Arc<Pool>>, TransportError> {
        let _one_at_a_time = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let roots = self.roots.as_ref().map(Roots::current);
        let number = roots.as_ref().map_or(0, |roots| roots.number);
        let before = self.current.load_full();
        let same_identity =
            before.as_ref().is_some_and(|before| is_same(before, credential.identity.as_ref()));
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

    /// A change of roots alone closes what is unused and leaves the rest (C181).
    fn retire(&self, pool: &Arc<Pool>, only_roots: bool) {
        pool.retire();
        match self.rotation {
            _ if only_roots => {}
            Rotation::CloseNow => pool.close(),
            Rotation::Drain { max } => {
                let (late, pool) = (self.timer.sleep(max), Arc::clone(pool));
                tokio::spawn(async move {
                    late.await;
                    pool.close();
                });
            }
        }
    }

    fn open_pool(
        &self,
        version: Option<&RootVersion>,
        identity: Option<&Identity>,
    ) -> Result<Pool, TransportError> {
        let (Some(roots), Some(version)) = (&self.roots, version) else {
            return Ok(Pool::new(Arc::clone(&self.settings), None, None));
        };
        let any = roots.client_config(version, identity, self.http2).map_err(TransportError::Identity)?;
        // The clone shares the session store: it is the same generation.
        let mut http1 = any.clone();
        http1.alpn_protocols = only_http1();
        let for_proxy = || roots.client_config(version, None, false).map(Arc::new);
        let proxy_tls = self.tls_to_proxy.then(for_proxy).transpose().map_err(TransportError::Identity)?;
        let tls = (self.settings.scheme == http::uri::Scheme::HTTPS).then(|| PoolTls {
            any: Arc::new(any),
            http1: Arc::new(http1),
            turn: identity.and_then(Identity::signer).map(|_| Arc::new(Semaphore::new(1))),
        });
        Ok(Pool::new(Arc::clone(&self.settings), tls, proxy_tls))
    }
}

fn is_same_pointer(held: &Guard<Option<Arc<Identity>>>, asked: Option<&Arc<Identity>>) -> bool {
    match (&**held, asked) {
        (None, None) => true,
        (Some(held), Some(asked)) => Arc::ptr_eq(held, asked),
        _ => false,
    }
}

fn is_same(before: &Current, asked: Option<&Arc<Identity>>) -> bool {
    match (&*before.identity.load(), asked) {
        (None, None) => true,
        (Some(held), Some(asked)) => held.is_same(asked),
        _ => false,
    }
}
