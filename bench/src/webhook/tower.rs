//! `navicert-tower`'s layer in an axum server against the webhook's handler: both authenticate a cached token per request.

use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use axum::routing::get;
use axum::serve::ListenerExt as _;
use axum::{Extension, Router};
use navicert_tower::{AuthenticatedUser, AuthnLayer};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

use super::{Load, NoFetch, Setup, THREADS, TOKENS};
use crate::race::{Contest, Fault};

pub(super) fn contest(setup: Rc<Setup>) -> Result<Contest, Fault> {
    let server = TowerServer::start(setup.folder.path(), &setup.token)?;
    Ok(Contest::time(move || server.ask(), move || setup.webhook.ask(&setup.cached)))
}

struct TowerServer {
    load: Load,
    requests: Vec<Vec<u8>>,
    _runtime: Runtime,
}

impl TowerServer {
    /// Serves with the configuration of the folder.
    fn start(folder: &Path, token: &str) -> Result<Self, Fault> {
        let runtime = Builder::new_multi_thread().worker_threads(THREADS).enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
        let address = listener.local_addr()?;
        let authn = {
            let _entered = runtime.enter();
            let builder = AuthnLayer::builder().config(folder.join("config.yaml"));
            builder.navicert_config(folder.join("navicert.yaml")).fetch(Arc::new(NoFetch)).build()?
        };
        let app = Router::new().route("/whoami", get(whoami)).layer(authn);
        // Each response is one write; as the webhook's listener does.
        let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
        runtime.spawn(async move { axum::serve(listener, app).await });
        let request = format!(
            "GET /whoami HTTP/1.1\r\nHost: 127.0.0.1:8443\r\nAccept: application/json\r\nAuthorization: Bearer {token}\r\n\r\n"
        )
        .into_bytes();
        let (load, _) = Load::open(address, &request)?;
        Ok(TowerServer { load, requests: vec![request; TOKENS], _runtime: runtime })
    }

    /// A method, so that a closure which calls it owns the whole server: one that names only these two fields would drop
    /// the runtime, and with it every connection.
    fn ask(&self) -> Result<(), Fault> {
        self.load.ask(&self.requests)
    }
}

async fn whoami(Extension(user): Extension<AuthenticatedUser>) -> String {
    format!("{{\"authenticated\":true,\"user\":\"{}\"}}", user.username())
}
