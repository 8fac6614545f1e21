//! Runs a receiver: serves requests until the login has an answer, and then until the browser has its last page.

use std::sync::Arc;
use std::time::Duration;

use navicert_types::Secret;
use tokio_rustls::TlsAcceptor;

use super::login_server::{Answer, LoginServer};
use super::{AnswerError, PendingLogin, Receiver, connection};
use crate::pages::OutcomePage;

/// How long the browser may take to fetch its last page.
const PAGE_TIMEOUT: Duration = Duration::from_secs(2);

/// Serves a login and passes its answer to `complete`.
pub(super) async fn login<R, C>(receiver: Receiver, login: PendingLogin, complete: C) -> R
where
    C: AsyncFnOnce(Answer) -> (R, OutcomePage),
{
    let Receiver { sockets, site, owners, tls } = receiver;
    let (server, answer) = LoginServer::for_login(site, sockets.first(), login);
    let server = Arc::new(server);
    let tls = tls.map(TlsAcceptor::from);
    let serving = connection::serve(sockets.into_listeners(), tls, owners, Arc::clone(&server));
    let completing = async {
        let Ok(answer) = answer.await else {
            // Only `server` drops the sender, and it lives as long as this future.
            return std::future::pending().await;
        };
        let is_from_browser = !matches!(answer, Err(AnswerError::Strangers { .. }));
        let (result, page) = complete(answer).await;
        server.publish(page);
        if is_from_browser {
            // L716
            let _ = tokio::time::timeout(PAGE_TIMEOUT, server.last_response()).await;
        }
        result
    };
    tokio::select! {
        result = completing => result,
        never = serving => match never {},
    }
}

/// Sends one browser to the target.
pub(super) async fn redirect(receiver: Receiver, target: Secret<String>) {
    let Receiver { sockets, site, owners, tls } = receiver;
    let server = Arc::new(LoginServer::for_redirect(site, sockets.first(), target));
    let tls = tls.map(TlsAcceptor::from);
    let serving = connection::serve(sockets.into_listeners(), tls, owners, Arc::clone(&server));
    tokio::select! {
        () = server.last_response() => {}
        never = serving => match never {},
    }
}
