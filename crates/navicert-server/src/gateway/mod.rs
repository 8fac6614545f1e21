//! A local gateway to one API server for the user's own commands: they use a credential without having access to it.
//!
//! ```text
//! child ──TLS, random token──▶ 127.0.0.1:port ──▶ local_auth ──▶ read_only ──▶ forward ──▶ transport, with the credential
//!   ▲                                                                                      (token, exec, certificate, HSM)
//!   └── KUBECONFIG=…/kubeconfig (child_kubeconfig): loopback address, ephemeral authority, token
//! ```

mod certificate;
pub mod child_kubeconfig;
mod local_auth;
pub mod read_only;
mod running;
pub mod upstream_failure;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::{Request, Response, request};
use hyper::body::Incoming;
use navicert_client::Config;
use navicert_client::transport::Transport;
use navicert_io::connection_owner;
use navicert_types::SystemClock;
use navicert_types::kubeconfig::{Kubeconfig, NamedAuthInfo, NamedCluster};
use rustls::ServerConfig;
use thiserror::Error;

use crate::forward::{
    ClientImpersonation, ForwardRules, Forwarder, Identify, Inbound, ReplyBody, UnauthorizedPolicy,
    UpstreamIdentity, UpstreamObserver,
};
use crate::limits::ServerLimits;
use crate::listener::{Handler, Peer};
use crate::problem::Problem;
use child_kubeconfig::{ChildKubeconfig, ContextNames, GatewayEndpoint};
use local_auth::LocalAuth;
use upstream_failure::{DistinctFailures, FailureReceiver};

pub use running::RunningGateway;

/// Settings of a gateway.
#[derive(Clone, Debug)]
pub struct GatewaySettings {
    /// Reject requests that change something.
    pub read_only: bool,
    /// Whether commands may impersonate other users (`kubectl --as`). Disable it if the gateway's credential already
    /// impersonates a user: a command could choose another one.
    pub impersonation: bool,
    /// Names in the child's kubeconfig.
    pub names: ContextNames,
    /// Connection and request limits.
    pub limits: ServerLimits,
    /// Whether error responses include the cause. Without it, commands see only that the API server or its credential is
    /// unavailable: for callers that report causes themselves.
    pub expose_causes: bool,
    /// Receives every distinct cause for which requests fail.
    pub failures: Option<FailureReceiver>,
}

impl Default for GatewaySettings {
    fn default() -> Self {
        GatewaySettings {
            read_only: false,
            impersonation: true,
            names: ContextNames::default(),
            limits: ServerLimits { connections: 512, ..ServerLimits::default() },
            expose_causes: true,
            failures: None,
        }
    }
}

/// The gateway cannot be started.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GatewayError {
    /// No port is available.
    #[error("failed to listen on 127.0.0.1")]
    Listen(#[source] io::Error),
    /// The certificate cannot be created.
    #[error("failed to create the gateway's certificate")]
    Certificate(#[from] rcgen::Error),
    /// TLS cannot be configured.
    #[error("failed to configure TLS for the gateway")]
    Tls(#[from] rustls::Error),
    /// The system provides no random numbers.
    #[error("failed to generate random numbers")]
    Random,
    /// The system does not report which user a loopback connection belongs to.
    #[error(
        "failed to find out which user a connection to 127.0.0.1 belongs to: this system reports it neither through \
         sock_diag nor in /proc/net/tcp, so a gateway would be open to other users"
    )]
    UnknownPeers,
    /// The child's kubeconfig cannot be written.
    #[error("failed to write the kubeconfig of the command below `{}`", base.display())]
    Kubeconfig {
        /// Parent directory.
        base: PathBuf,
        /// I/O error reported by the operating system.
        source: io::Error,
    },
}

/// A listening gateway with its kubeconfig; commands may be started. It serves once [started](Gateway::start); until
/// then connections wait. Removes its files when dropped.
#[derive(Debug)]
pub struct Gateway {
    service: Service,
    kubeconfig: ChildKubeconfig,
}

/// The serving part.
#[derive(Debug)]
struct Service {
    listener: TcpListener,
    address: SocketAddr,
    tls: Arc<ServerConfig>,
    handler: Arc<GatewayHandler>,
    limits: ServerLimits,
}

impl Gateway {
    /// Listens on a free port of 127.0.0.1 and writes the kubeconfig into a new directory below `base`.
    ///
    /// # Errors
    /// [`GatewayError`] if the socket, the certificate or the kubeconfig cannot be created.
    pub fn open(upstream: Transport, settings: &GatewaySettings, base: &Path) -> Result<Self, GatewayError> {
        if !connection_owner::is_known().map_err(GatewayError::Listen)? {
            return Err(GatewayError::UnknownPeers);
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(GatewayError::Listen)?;
        let address = listener.local_addr().map_err(GatewayError::Listen)?;
        let (tls, authority) = certificate::ephemeral_tls()?;
        let token = local_auth::random_token().map_err(|_| GatewayError::Random)?;
        let endpoint = GatewayEndpoint {
            server: format!("https://{address}"),
            authority: &authority,
            token: &token,
            names: &settings.names,
        };
        let kubeconfig = ChildKubeconfig::write(base, &endpoint)
            .map_err(|source| GatewayError::Kubeconfig { base: base.to_owned(), source })?;
        let rules = ForwardRules {
            impersonation: match settings.impersonation {
                true => ClientImpersonation::Forwarded,
                false => ClientImpersonation::Rejected,
            },
            unauthorized: UnauthorizedPolicy::Relayed,
            expose_details: settings.expose_causes,
            ..ForwardRules::default()
        };
        let identity = LocalIdentity { auth: LocalAuth::new(&token, address), read_only: settings.read_only };
        let observer = settings.failures.clone().map(|receiver| {
            Arc::new(DistinctFailures::new(receiver, Arc::new(SystemClock))) as Arc<dyn UpstreamObserver>
        });
        let forwarder = Forwarder::new(upstream, rules).with_observer(observer);
        let handler = Arc::new(GatewayHandler { identity, forwarder });
        let service = Service { listener, address, tls, handler, limits: settings.limits };
        Ok(Gateway { service, kubeconfig })
    }

    /// The bound address.
    pub fn address(&self) -> SocketAddr {
        self.service.address
    }

    /// The child's kubeconfig.
    pub fn kubeconfig(&self) -> &ChildKubeconfig {
        &self.kubeconfig
    }
}

/// Identifies what a gateway gives access to, as a digest: a command shares another command's gateway only if its own
/// would be identical.
pub fn sharing_key(config: &Config, read_only: bool) -> String {
    let entries = Kubeconfig {
        clusters: vec![NamedCluster {
            name: config.cluster_name().to_owned(),
            cluster: config.cluster().clone(),
            ..NamedCluster::default()
        }],
        users: vec![NamedAuthInfo {
            name: config.user_name().to_owned(),
            user: config.user().clone(),
            ..NamedAuthInfo::default()
        }],
        ..Kubeconfig::default()
    };
    let identity = zeroize::Zeroizing::new(format!(
        "{} {read_only} {:?} {:?} {}",
        env!("CARGO_PKG_VERSION"),
        config.context(),
        config.namespace(),
        zeroize::Zeroizing::new(entries.expose_tree().to_json()).as_str()
    ));
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, identity.as_bytes());
    base64::Engine::encode(&navicert_go::base64::RAW_URL, digest)
}

#[derive(Debug)]
struct GatewayHandler {
    identity: LocalIdentity,
    forwarder: Forwarder,
}

impl Handler for GatewayHandler {
    fn admits(&self, peer: SocketAddr, local: SocketAddr) -> bool {
        self.identity.auth.admits(peer, local)
    }

    fn handle(
        &self,
        request: Request<Incoming>,
        peer: &Peer,
    ) -> impl Future<Output = Response<ReplyBody>> + Send {
        let inbound = Inbound::from(request);
        async { *self.forwarder.forward(inbound, &self.identity, peer.admission()).await }
    }
}

/// Authenticates with the local token.
#[derive(Debug)]
struct LocalIdentity {
    auth: LocalAuth,
    read_only: bool,
}

impl Identify for LocalIdentity {
    async fn identify(&self, head: &request::Parts) -> Result<UpstreamIdentity, Problem> {
        self.auth.check(head)?;
        if self.read_only {
            read_only::check(head)?;
        }
        Ok(UpstreamIdentity::with_proxy_credential())
    }
}
