//! Receives the provider's answer on a loopback address: an HTTP server for one login.
//!
//! ```text
//! bind ──▶ Receiver (redirect_uri, start_url) ──serve(PendingLogin, complete)──▶ result of `complete`
//!
//! browser: GET /start/<id> ─303─▶ provider ─303─▶ GET <callback> ─▶ complete(code) ─303─▶ GET /done/<id>: page
//! ```
//!
//! Every request passes the same checks in one order: owner of the connection (`guard`), `Host`, `Sec-Fetch` and
//! `Origin`, path, parameters (`callback`). A request that fails one of them leaves the pending login as it was.

mod callback;
mod connection;
mod guard;
mod listen;
mod login_server;
mod port_owner;
mod redirect;
mod serve;
mod site;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use navicert_types::Secret;
use rustls::ServerConfig;
use thiserror::Error;

use crate::pages::OutcomePage;

#[cfg(feature = "fuzzing")]
pub use callback::accepted_code;
pub use listen::{ListenAddress, ListenAddressError, TakenAddress};
pub use port_owner::PortOwner;
pub use redirect::{RedirectTarget, RedirectUrlError};

/// Where to listen, and which redirect URI to use.
#[derive(Clone, Debug)]
pub struct ReceiverSettings {
    /// Tried in order (`--listen-address`).
    pub addresses: Vec<ListenAddress>,
    /// The redirect URI.
    pub redirect: RedirectTarget,
    /// Serves https (`--local-server-cert`, `--local-server-key`).
    pub tls: Option<Arc<ServerConfig>>,
}

/// A bound receiver. Its ports are closed when it is dropped.
pub struct Receiver {
    sockets: listen::BoundSockets,
    site: site::LoginSite,
    owners: guard::OwnerCheck,
    tls: Option<Arc<ServerConfig>>,
}

/// The login for which a receiver waits.
#[derive(Debug)]
pub struct PendingLogin {
    /// The provider's authorization endpoint with every parameter, or with `request_uri`. Only `/start/<id>` shows it.
    pub authorization_url: Secret<String>,
    /// The `state` parameter of the request.
    pub state: Secret<String>,
    /// The configured issuer, byte for byte.
    pub issuer: String,
    /// Whether an answer without `iss` is rejected: discovery says `authorization_response_iss_parameter_supported`.
    pub iss_required: bool,
    /// How the provider sends its answer.
    pub response_mode: ResponseMode,
}

/// How the provider sends its answer (`response_mode`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResponseMode {
    /// In the query of a GET request.
    #[default]
    Query,
    /// In the form of a POST request.
    FormPost,
}

/// A login that ended without a code. It was the provider's answer, or too many requests of strangers.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// The provider answered with an error, in the right state. The texts are the provider's: not escaped, of any length.
    #[error("the provider answered with the error `{}`", navicert_types::redact::line(error))]
    Provider {
        /// `error`.
        error: String,
        /// `error_description`.
        description: Option<String>,
    },
    /// The answer's `iss` is another issuer, or missing although the provider promised to send it (`None`).
    #[error("an answer came from {} instead of `{expected}`", show_issuer(answered.as_deref()))]
    MixUp {
        /// `iss` as it was received: not escaped.
        answered: Option<String>,
        /// The configured issuer.
        expected: String,
    },
    /// The answer has neither `error` nor a usable `code`.
    #[error("the provider's answer has neither a valid code nor an error")]
    Malformed,
    /// [`MAX_WRONG_STATES`] requests had a wrong state.
    #[error("something else keeps calling {address}")]
    Strangers {
        /// The bound address.
        address: SocketAddr,
    },
}

fn show_issuer(answered: Option<&str>) -> String {
    match answered {
        Some(issuer) => format!("`{}`", navicert_types::redact::line(issuer)),
        None => "an unnamed issuer".to_owned(),
    }
}

/// A receiver that cannot be bound.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BindError {
    /// No address is free on every family that the browser may try.
    #[error("cannot listen on {}", listen::show_taken(.0))]
    PortTaken(Vec<TakenAddress>),
    /// A redirect URL with a fixed port and `--listen-address` with port 0: the provider's answer would not arrive.
    #[error(
        "the redirect URL `{url}` has a fixed port, but --listen-address asks for a free one; give both the same port"
    )]
    FreePortWithFixedRedirect {
        /// The redirect URL.
        url: String,
    },
    /// Only loopback addresses may be bound on a free port.
    #[error("--listen-address `{0}` is not a loopback address and has no fixed port")]
    NotLoopback(ListenAddress),
    /// No address is given.
    #[error("missing an address to listen on")]
    NoAddress,
    /// The system provides no random numbers.
    #[error("failed to generate random numbers")]
    Random,
}

/// Wrong states after which a login fails.
pub const MAX_WRONG_STATES: u32 = 10;

impl Receiver {
    /// Binds the first address that is free on every family the browser may try. The browser is told nothing before.
    ///
    /// Must be called inside a Tokio runtime with I/O enabled.
    ///
    /// # Errors
    /// [`BindError`].
    pub fn bind(settings: &ReceiverSettings) -> Result<Self, BindError> {
        let scheme = if settings.tls.is_some() { "https" } else { "http" };
        let sockets = listen::bind(&settings.addresses, &settings.redirect)?;
        let redirect = redirect::RedirectUri::new(&settings.redirect, scheme, &sockets);
        let site = site::LoginSite::new(redirect).map_err(|_| BindError::Random)?;
        Ok(Receiver { sockets, site, owners: guard::OwnerCheck::new(), tls: settings.tls.clone() })
    }

    /// The redirect URI, for the authorization request and the code exchange: the same text in both.
    pub fn redirect_uri(&self) -> &str {
        self.site.redirect_uri()
    }

    /// What the browser opens: `http://127.0.0.1:<port>/start/<id>`, with the redirect URI's host. It holds no state, and
    /// another user cannot use it.
    pub fn start_url(&self) -> &str {
        self.site.start_url()
    }

    /// The port that was bound.
    pub fn port(&self) -> u16 {
        self.sockets.port()
    }

    /// The bound addresses that are reachable from other machines; empty unless `--listen-address` says so. Show them to the
    /// user.
    pub fn exposed_addresses(&self) -> Vec<SocketAddr> {
        self.sockets.addresses().filter(|address| !address.ip().is_loopback()).collect()
    }

    /// Serves the login until it has an answer, passes the answer to `complete` exactly once, and shows the page that
    /// `complete` returns. `complete` exchanges the code, checks the tokens and stores them, so that the page never promises
    /// more than was done.
    ///
    /// Returns when the browser has its page, at most two seconds after `complete`. Does not end by itself: apply the time
    /// limit outside. Dropping the future closes every socket.
    pub async fn serve<R, C>(self, login: PendingLogin, complete: C) -> R
    where
        C: AsyncFnOnce(Result<Secret<String>, AnswerError>) -> (R, OutcomePage),
    {
        serve::login(self, login, complete).await
    }

    /// Sends the first browser that opens [`start_url`](Receiver::start_url) to `target`, then ends: for addresses that must
    /// not be in a process list, such as the provider's logout page with a token.
    pub async fn serve_redirect(self, target: Secret<String>) {
        serve::redirect(self, target).await;
    }
}

impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("redirect_uri", &self.site.redirect_uri()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
