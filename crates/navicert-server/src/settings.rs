//! `servers` of a `NavicertConfiguration`: settings shared by the servers. Command-line flags take precedence.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use navicert_types::Diagnostics;
use navicert_types::decode::{Decode, DecodeMode, Decoder, Fields};
use navicert_types::tree::Node;

use crate::confinement::ConfinementSettings;
use crate::health::RequiredIssuers;
use crate::limits::ServerLimits;
use crate::proxy;
use crate::proxy::identity_headers::IdentityLimit;
use crate::serving::ShutdownTiming;
use crate::setting_values::{duration, number, positive_duration};
use crate::webhook;

/// `servers` of a `NavicertConfiguration`.
#[derive(Clone, Debug, Default)]
pub struct ServerSettings {
    /// Address to listen on.
    pub listen: Option<SocketAddr>,
    /// Address for probes and metrics.
    pub health_listen: Option<SocketAddr>,
    /// Which issuers must be ready for `/readyz` to succeed.
    pub ready_issuers: RequiredIssuers,
    /// TLS certificate file.
    pub tls_cert_file: Option<PathBuf>,
    /// TLS private key file.
    pub tls_private_key_file: Option<PathBuf>,
    /// Certificate authorities that client certificates are verified against.
    pub client_ca_file: Option<PathBuf>,
    /// Allowed names in client certificates; empty allows any.
    pub client_allowed_names: Vec<String>,
    /// File with the clients' bearer token.
    pub bearer_token_file: Option<PathBuf>,
    /// Destination of the audit log.
    pub audit_log_path: Option<PathBuf>,
    /// Connection and request limits.
    pub limits: LimitSettings,
    /// How long to keep serving after readiness fails.
    pub shutdown_delay: Option<Duration>,
    /// How long to wait for in-flight requests after that.
    pub shutdown_grace: Option<Duration>,
    /// Confinement of the process.
    pub confinement: ConfinementSettings,
    /// Settings of the webhook.
    pub webhook: webhook::WebhookSettings,
    /// Settings of the proxy.
    pub proxy: proxy::ProxySettings,
}

/// Configured limits; unset ones keep their defaults.
#[derive(Clone, Debug, Default)]
pub struct LimitSettings {
    connections: Option<u32>,
    requests: Option<u32>,
    header_bytes: Option<u32>,
    unauthenticated_header_bytes: Option<u32>,
    unfinished_bytes: Option<u32>,
    header_lines: Option<u32>,
    handshake: Option<Duration>,
    header_time: Option<Duration>,
    body_time: Option<Duration>,
    http2_streams: Option<u32>,
}

impl ServerSettings {
    /// Parses the section strictly.
    ///
    /// # Errors
    /// All problems, in the order of the text.
    pub fn parse(node: &Node) -> Result<Self, Diagnostics> {
        let mut decoder = Decoder::new(DecodeMode::Strict);
        let servers = decoder.field("servers", node);
        decoder.finish(servers)
    }

    /// Resolves relative file names against the configuration's directory. `-` stays as it is.
    #[must_use]
    pub fn resolve_paths(mut self, dir: &Path) -> Self {
        let files = [
            &mut self.tls_cert_file,
            &mut self.tls_private_key_file,
            &mut self.client_ca_file,
            &mut self.bearer_token_file,
            &mut self.audit_log_path,
        ];
        for path in files.into_iter().flatten().filter(|path| **path != *Path::new("-")) {
            *path = dir.join(&*path);
        }
        self
    }

    /// The shutdown timing.
    pub fn shutdown(&self) -> ShutdownTiming {
        let default = ShutdownTiming::default();
        ShutdownTiming {
            delay: self.shutdown_delay.unwrap_or(default.delay),
            grace: self.shutdown_grace.unwrap_or(default.grace),
        }
    }
}

/// Settings that take precedence over `servers` of the file, such as those of a command line.
#[derive(Clone, Debug, Default)]
pub struct ServerOverrides {
    /// Address to listen on.
    pub listen: Option<SocketAddr>,
    /// Address for probes and metrics.
    pub health_listen: Option<SocketAddr>,
    /// TLS certificate file.
    pub tls_cert_file: Option<PathBuf>,
    /// TLS private key file.
    pub tls_private_key_file: Option<PathBuf>,
    /// Certificate authorities that client certificates are verified against.
    pub client_ca_file: Option<PathBuf>,
    /// Allowed names in client certificates; empty: those of the file.
    pub client_allowed_names: Vec<String>,
    /// File with the clients' bearer token.
    pub bearer_token_file: Option<PathBuf>,
    /// Destination of the audit log.
    pub audit_log_path: Option<PathBuf>,
    /// How long to keep serving after readiness fails.
    pub shutdown_delay: Option<Duration>,
    /// How long to wait for in-flight requests after that.
    pub shutdown_grace: Option<Duration>,
}

impl ServerSettings {
    /// The settings with these in place of the file's.
    #[must_use]
    pub fn with_overrides(self, overrides: ServerOverrides) -> Self {
        let names = overrides.client_allowed_names;
        ServerSettings {
            listen: overrides.listen.or(self.listen),
            health_listen: overrides.health_listen.or(self.health_listen),
            tls_cert_file: overrides.tls_cert_file.or(self.tls_cert_file),
            tls_private_key_file: overrides.tls_private_key_file.or(self.tls_private_key_file),
            client_ca_file: overrides.client_ca_file.or(self.client_ca_file),
            client_allowed_names: if names.is_empty() { self.client_allowed_names } else { names },
            bearer_token_file: overrides.bearer_token_file.or(self.bearer_token_file),
            audit_log_path: overrides.audit_log_path.or(self.audit_log_path),
            shutdown_delay: overrides.shutdown_delay.or(self.shutdown_delay),
            shutdown_grace: overrides.shutdown_grace.or(self.shutdown_grace),
            ..self
        }
    }
}

impl LimitSettings {
    /// Applies the configured limits to a server's defaults.
    pub fn apply_to(&self, default: ServerLimits) -> ServerLimits {
        let number = |set: Option<u32>, default: usize| set.map_or(default, |set| set as usize);
        ServerLimits {
            connections: number(self.connections, default.connections),
            requests: number(self.requests, default.requests),
            header_bytes: number(self.header_bytes, default.header_bytes),
            unauthenticated_header_bytes: number(
                self.unauthenticated_header_bytes,
                default.unauthenticated_header_bytes,
            ),
            unfinished_bytes: number(self.unfinished_bytes, default.unfinished_bytes),
            header_lines: number(self.header_lines, default.header_lines),
            handshake_timeout: self.handshake.unwrap_or(default.handshake_timeout),
            header_timeout: self.header_time.unwrap_or(default.header_timeout),
            body_timeout: self.body_time.unwrap_or(default.body_timeout),
            http2_streams: self.http2_streams.unwrap_or(default.http2_streams),
        }
    }
}

/// What kube-apiserver accepts of headers in a request.
const MAX_API_SERVER_HEADER_BYTES: usize = 1 << 20;

impl Decode for ServerSettings {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let settings = decoder.object(node, |fields| ServerSettings {
            listen: fields.optional::<ListenAddress>("listen").and_then(|address| address.0),
            health_listen: fields.optional::<ListenAddress>("healthListen").and_then(|address| address.0),
            ready_issuers: fields.default("readyIssuers"),
            tls_cert_file: file(fields, "tlsCertFile"),
            tls_private_key_file: file(fields, "tlsPrivateKeyFile"),
            client_ca_file: file(fields, "clientCAFile"),
            client_allowed_names: fields.default("clientAllowedNames"),
            bearer_token_file: file(fields, "bearerTokenFile"),
            audit_log_path: file(fields, "auditLogPath"),
            limits: fields.default("limits"),
            shutdown_delay: duration(fields, "shutdownDelay"),
            shutdown_grace: duration(fields, "shutdownGrace"),
            confinement: fields.default("confinement"),
            webhook: fields.default("webhook"),
            proxy: fields.default("proxy"),
        })?;
        let header_bytes = settings.limits.apply_to(ServerLimits::for_proxy()).header_bytes;
        let identity = settings.proxy.max_identity;
        let is_too_much = header_bytes.saturating_add(identity.bytes()) > MAX_API_SERVER_HEADER_BYTES;
        if is_too_much && identity > IdentityLimit::default() {
            let why = "`limits.headerBytes` and `proxy.maxIdentityBytes` together exceed 1 MiB, which API servers reject";
            decoder.report_invalid_value(node, why);
        }
        Some(settings)
    }
}

impl Decode for LimitSettings {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.object(node, |fields| LimitSettings {
            connections: number(fields, "connections"),
            requests: number(fields, "requests"),
            header_bytes: number(fields, "headerBytes"),
            unauthenticated_header_bytes: number(fields, "unauthenticatedHeaderBytes"),
            unfinished_bytes: number(fields, "unfinishedBytes"),
            header_lines: number(fields, "headerLines"),
            handshake: positive_duration(fields, "handshake"),
            header_time: positive_duration(fields, "headerTime"),
            body_time: positive_duration(fields, "bodyTime"),
            http2_streams: number(fields, "http2Streams"),
        })
    }
}

impl Decode for RequiredIssuers {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let words =
            [("none", RequiredIssuers::None), ("any", RequiredIssuers::Any), ("all", RequiredIssuers::All)];
        decoder.one_of(node, &words)
    }
}

fn file(fields: &mut Fields<'_>, name: &'static str) -> Option<PathBuf> {
    fields.optional::<String>(name).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// `127.0.0.1:8443`, `[::]:8443`, or `:8443` for all addresses.
#[derive(Default)]
struct ListenAddress(Option<SocketAddr>);

impl Decode for ListenAddress {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let text = String::decode(node, decoder)?;
        match parse_listen_address(&text) {
            Ok(address) => Some(ListenAddress(Some(address))),
            Err(message) => {
                decoder.report_invalid_value(node, message);
                None
            }
        }
    }
}

/// Parses an address to listen on: `127.0.0.1:8443`, `[::]:8443`, or `:8443` for all addresses.
///
/// # Errors
/// The expected format.
pub fn parse_listen_address(text: &str) -> Result<SocketAddr, &'static str> {
    let expected = "expected an address with a port, such as `127.0.0.1:8443` or `:8443`";
    match text.strip_prefix(':') {
        Some(port) => port.parse().map(|port| SocketAddr::from(([0u16; 8], port))).map_err(|_| expected),
        None => text.parse().map_err(|_| expected),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overrides_take_precedence_and_leave_the_rest() {
        let of_file = ServerSettings {
            tls_cert_file: Some("file.crt".into()),
            client_allowed_names: vec!["a".to_owned()],
            shutdown_grace: Some(Duration::from_secs(1)),
            audit_log_path: Some("audit.log".into()),
            ..ServerSettings::default()
        };
        let same = of_file.clone().with_overrides(ServerOverrides::default());
        assert_eq!(same.tls_cert_file, of_file.tls_cert_file);
        assert_eq!(same.client_allowed_names, ["a"]);
        let overridden = of_file.with_overrides(ServerOverrides {
            tls_cert_file: Some("flag.crt".into()),
            client_allowed_names: vec!["b".to_owned()],
            shutdown_delay: Some(Duration::from_secs(2)),
            ..ServerOverrides::default()
        });
        assert_eq!(overridden.tls_cert_file.as_deref(), Some(Path::new("flag.crt")));
        assert_eq!(overridden.client_allowed_names, ["b"]);
        assert_eq!(overridden.audit_log_path.as_deref(), Some(Path::new("audit.log")));
        let shutdown = overridden.shutdown();
        assert_eq!((shutdown.delay, shutdown.grace), (Duration::from_secs(2), Duration::from_secs(1)));
    }
}
