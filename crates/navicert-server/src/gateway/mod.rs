//! A private way to one API server for the user's own commands: they use a credential and never see it.
//!
//! ```text
//! child ──TLS, random token──▶ 127.0.0.1:port ──▶ local_auth ──▶ read_only ──▶ forward ──▶ transport, with the credential
//!   ▲                                                                                      (token, exec, certificate, HSM)
//!   └── KUBECONFIG=…/kubeconfig (child_kubeconfig): loopback address, throw-away authority, token
//! ```

mod certificate;
pub mod child_kubeconfig;
pub mod local_auth;
mod peer;
pub mod read_only;
mod running;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::{Request, Response, request};
use hyper::body::Incoming;
use navicert_client::kubeconfig::Effective;
use navicert_client::transport::Transport;
use navicert_types::kubeconfig::{Config, NamedAuthInfo, NamedCluster};
use rustls::ServerConfig;
use thiserror::Error;

use crate::forward::{
    ClientImpersonation, Forwarder, Identify, Identity, Inbound, ReplyBody, Rules, Unauthorized,
};
use crate::limits::Limits;
use crate::listener::{Handler, Peer};
use crate::problem::Problem;
use child_kubeconfig::{ChildKubeconfig, Names, Whereabouts};
use local_auth::LocalAuth;

pub use running::Running;

/// How a gateway behaves.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Only what changes nothing.
    pub read_only: bool,
    /// Whether commands may act as somebody else (`kubectl --as`). They should not where the gateway's own credential
    /// already acts as somebody: it would let them choose another.
    pub impersonation: bool,
    /// What the child's kubeconfig calls things.
    pub names: Names,
    /// How much commands may ask of it.
    pub limits: Limits,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            read_only: false,
            impersonation: true,
            names: Names::default(),
            limits: Limits { connections: 512, ..Limits::default() },
        }
    }
}

/// Why there is no gateway.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GatewayError {
    /// No port.
    #[error("cannot listen on 127.0.0.1")]
    Listen(#[source] io::Error),
    /// No certificate.
    #[error("cannot make a certificate")]
    Certificate(#[from] rcgen::Error),
    /// No TLS.
    #[error("cannot set TLS up")]
    Tls(#[from] rustls::Error),
    /// No random numbers.
    #[error("the system has no random numbers")]
    Random,
    /// No file for the child.
    #[error("cannot write the kubeconfig for the command below `{}`", base.display())]
    Kubeconfig {
        /// Where it was to be.
        base: PathBuf,
        /// The operating system's word.
        source: io::Error,
    },
}

/// A gateway that listens, and whose kubeconfig is written: a command may be started with it. It answers once it is
/// [started](Gateway::start); until then connections wait. Dropped, it leaves nothing behind.
#[derive(Debug)]
pub struct Gateway {
    service: Service,
    kubeconfig: ChildKubeconfig,
}

/// What answers.
#[derive(Debug)]
struct Service {
    listener: TcpListener,
    address: SocketAddr,
    tls: Arc<ServerConfig>,
    door: Arc<Door>,
    limits: Limits,
}

impl Gateway {
    /// Listens on a free port of 127.0.0.1, and writes the kubeconfig into a new folder below `base`.
    ///
    /// # Errors
    /// [`GatewayError`]: something it needs is not to be had.
    pub fn open(upstream: Transport, settings: &Settings, base: &Path) -> Result<Self, GatewayError> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(GatewayError::Listen)?;
        let address = listener.local_addr().map_err(GatewayError::Listen)?;
        let (tls, authority) = certificate::throw_away()?;
        let token = local_auth::random_token().map_err(|_| GatewayError::Random)?;
        let whereabouts = Whereabouts {
            server: format!("https://{address}"),
            authority: &authority,
            token: &token,
            names: &settings.names,
        };
        let kubeconfig = ChildKubeconfig::write(base, &whereabouts)
            .map_err(|source| GatewayError::Kubeconfig { base: base.to_owned(), source })?;
        let rules = Rules {
            impersonation: match settings.impersonation {
                true => ClientImpersonation::Forwarded,
                false => ClientImpersonation::Refused,
            },
            unauthorized: Unauthorized::Relayed,
            with_details: true,
            ..Rules::default()
        };
        let who = Who { auth: LocalAuth::new(&token, address), read_only: settings.read_only };
        let door = Arc::new(Door { who, forwarder: Forwarder::new(upstream, rules) });
        let service = Service { listener, address, tls, door, limits: settings.limits };
        Ok(Gateway { service, kubeconfig })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.service.address
    }

    /// The file a command finds it by.
    pub fn kubeconfig(&self) -> &ChildKubeconfig {
        &self.kubeconfig
    }
}

/// Tells gateways apart by what they give access to: a command joins another one's gateway only if it would have made
/// the same itself. A digest; nothing can be read from it.
pub fn key(effective: &Effective, read_only: bool) -> String {
    let config = Config {
        clusters: vec![NamedCluster {
            name: effective.cluster_name.clone(),
            cluster: effective.cluster.clone(),
            ..NamedCluster::default()
        }],
        users: vec![NamedAuthInfo {
            name: effective.user_name.clone(),
            user: effective.user.clone(),
            ..NamedAuthInfo::default()
        }],
        ..Config::default()
    };
    let told = zeroize::Zeroizing::new(format!(
        "{} {read_only} {:?} {:?} {}",
        env!("CARGO_PKG_VERSION"),
        effective.context,
        effective.namespace,
        zeroize::Zeroizing::new(config.expose_tree().to_json()).as_str()
    ));
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, told.as_bytes());
    base64::Engine::encode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, digest)
}

/// Keeps other processes of this user (the commands that run behind the gateway among them) from reading this one's memory,
/// and the system from writing it to a disk when it crashes.
///
/// # Errors
/// The system does not know how.
#[cfg(target_os = "linux")]
pub fn hide_memory() -> io::Result<()> {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

#[derive(Debug)]
struct Door {
    who: Who,
    forwarder: Forwarder,
}

impl Handler for Door {
    fn admits(&self, peer: SocketAddr, local: SocketAddr) -> bool {
        self.who.auth.admits(peer, local)
    }

    fn handle(
        &self,
        request: Request<Incoming>,
        _: &Peer,
    ) -> impl Future<Output = Response<ReplyBody>> + Send {
        let inbound = Inbound::from(request);
        async { *self.forwarder.forward(inbound, &self.who).await }
    }
}

/// Whoever holds the token is the user.
#[derive(Debug)]
struct Who {
    auth: LocalAuth,
    read_only: bool,
}

impl Identify for Who {
    async fn identify(&self, head: &request::Parts) -> Result<Identity, Problem> {
        self.auth.check(head)?;
        if self.read_only {
            read_only::check(head)?;
        }
        Ok(Identity::of_transport())
    }
}
