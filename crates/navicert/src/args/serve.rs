//! Arguments of `navicert serve`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use navicert_authn::KubeVersion;
use navicert_server::settings::parse_listen_address;

use super::client::PluginArgs;
use super::{ConnectionArgs, Profile, duration, examples};

pub(crate) const HELP: &str = "\
Examples:
  navicert serve webhook --authentication-config auth.yaml \\
    --tls-cert-file tls.crt --tls-private-key-file tls.key --client-ca-file apiserver-ca.crt
  navicert serve --check --authentication-config auth.yaml --navicert-config navicert.yaml

SIGHUP reloads all files immediately (changed files are also reloaded automatically) and reopens the audit log. \
SIGTERM and SIGINT drain in-flight requests, then exit.";

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub(crate) struct ServeArgs {
    #[command(subcommand)]
    pub(crate) server: Option<ServerVerb>,

    /// Check the files and exit, without a server
    #[arg(long)]
    pub(crate) check: bool,

    #[command(flatten)]
    pub(crate) files: FilesArgs,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum ServerVerb {
    /// Authentication webhook for API servers (TokenReview), nginx (auth_request) and Envoy (ext_authz)
    #[command(after_help = examples::SERVE_WEBHOOK)]
    Webhook(Box<WebhookArgs>),

    /// Authenticating reverse proxy for a Kubernetes API server
    #[command(after_help = PROXY_HELP)]
    Proxy(Box<ProxyArgs>),
}

const PROXY_HELP: &str = "\
Examples:
  navicert serve proxy --authentication-config auth.yaml \\
    --tls-cert-file tls.crt --tls-private-key-file tls.key
  navicert serve proxy --authentication-config auth.yaml --navicert-config navicert.yaml \\
    --kubeconfig proxy.kubeconfig
  navicert serve proxy --authentication-config auth.yaml --print-rbac | kubectl apply -f -

The proxy authenticates to the API server with the kubeconfig's user (token, file, certificate, exec plugin, HSM) or \
the pod's service account. Its ClusterRole needs the verb `impersonate` for every attribute the configuration maps; \
`--print-rbac` prints the role, `/readyz?verbose` missing rules. All other settings are in `servers.proxy` of the \
NavicertConfiguration.";

#[derive(Debug, Args)]
pub(crate) struct WebhookArgs {
    #[command(flatten)]
    pub(crate) shared: SharedArgs,

    #[command(flatten)]
    pub(crate) callers: ClientAuthArgs,

    /// API audiences of the API servers that call this webhook, as in kube-apiserver
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = "Client authentication")]
    pub(crate) api_audiences: Vec<String>,

    #[command(flatten)]
    pub(crate) kubeconfig: KubeconfigArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ProxyArgs {
    #[command(flatten)]
    pub(crate) shared: SharedArgs,

    /// How to pass the user to the API server [default: impersonation, or `servers.proxy.mode`]
    #[arg(long, value_enum, value_name = "MODE", help_heading = "Options")]
    pub(crate) mode: Option<ProxyMode>,

    #[command(flatten)]
    pub(crate) rbac: RbacArgs,

    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,

    #[command(flatten)]
    pub(crate) plugins: PluginArgs,
}

// The role of the proxy's own account.
#[derive(Debug, Args)]
#[command(next_help_heading = "Permissions")]
pub(crate) struct RbacArgs {
    /// Print the ClusterRole that the configuration needs, with its binding, and exit
    #[arg(long)]
    pub(crate) print_rbac: bool,

    /// Print the rules of constrained impersonation (Kubernetes 1.36 and later) instead of `impersonate`
    #[arg(long, requires = "print_rbac")]
    pub(crate) constrained: bool,

    /// User name of the proxy's account, for the binding
    #[arg(
        long,
        value_name = "USERNAME",
        requires = "print_rbac",
        default_value = "system:serviceaccount:navicert:navicert-proxy",
        value_parser = clap::builder::NonEmptyStringValueParser::new()
    )]
    pub(crate) rbac_subject: String,
}

/// How the proxy passes the user to the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProxyMode {
    /// `Impersonate-*` headers; works with any cluster
    Impersonation,
    /// `X-Remote-*` headers, with a client certificate that the API server trusts for them
    RequestHeader,
}

// Issuers and the rules for their tokens.
#[derive(Debug, Args)]
#[command(next_help_heading = "Authentication")]
pub(crate) struct FilesArgs {
    /// AuthenticationConfiguration file, as for kube-apiserver
    #[arg(long, value_name = "FILE")]
    pub(crate) authentication_config: Option<PathBuf>,

    /// NavicertConfiguration file: single rules, revoked tokens and server settings
    #[arg(long, value_name = "FILE")]
    pub(crate) navicert_config: Option<PathBuf>,

    /// Rules to apply: `kube` decides exactly as kube-apiserver [default: hardened]
    #[arg(long, value_enum, value_name = "PROFILE")]
    pub(crate) profile: Option<Profile>,

    /// Kubernetes version whose rules apply [default: 1.37]
    #[arg(long, value_name = "VERSION", value_parser = super::kube_versions())]
    pub(crate) kube_version: Option<KubeVersion>,

    #[command(flatten)]
    pub(crate) oidc: OidcArgs,
}

// kube-apiserver's `--oidc-*` flags, mutually exclusive with `--authentication-config`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Authentication by kube-apiserver's flags (instead of a file)")]
pub(crate) struct OidcArgs {
    /// URL of the issuer
    #[arg(long, value_name = "URL")]
    pub(crate) oidc_issuer_url: Option<String>,

    /// Audience (client ID) that tokens must be issued for
    #[arg(long, value_name = "ID")]
    pub(crate) oidc_client_id: Option<String>,

    /// Certificate authority of the issuer, PEM [default: system root certificates]
    #[arg(long, value_name = "FILE")]
    pub(crate) oidc_ca_file: Option<String>,

    /// Claim to use as the user name [default: sub]
    #[arg(long, value_name = "CLAIM")]
    pub(crate) oidc_username_claim: Option<String>,

    /// Prefix of user names; `-` for none [default: the issuer's URL and `#`, unless the claim is `email`]
    #[arg(long, value_name = "PREFIX", allow_hyphen_values = true)]
    pub(crate) oidc_username_prefix: Option<String>,

    /// Claim to use as the groups
    #[arg(long, value_name = "CLAIM")]
    pub(crate) oidc_groups_claim: Option<String>,

    /// Prefix of group names
    #[arg(long, value_name = "PREFIX", allow_hyphen_values = true)]
    pub(crate) oidc_groups_prefix: Option<String>,

    /// Accepted signature algorithms, comma-separated [default: RS256]
    #[arg(long, value_name = "NAMES")]
    pub(crate) oidc_signing_algs: Vec<String>,

    /// Claim and the value it must have; repeatable
    #[arg(long, value_name = "CLAIM=VALUE")]
    pub(crate) oidc_required_claim: Vec<String>,
}

impl OidcArgs {
    /// The flags present on the command line, by name.
    pub(crate) fn given(&self) -> Vec<(String, String)> {
        let single = [
            ("oidc-issuer-url", &self.oidc_issuer_url),
            ("oidc-client-id", &self.oidc_client_id),
            ("oidc-ca-file", &self.oidc_ca_file),
            ("oidc-username-claim", &self.oidc_username_claim),
            ("oidc-username-prefix", &self.oidc_username_prefix),
            ("oidc-groups-claim", &self.oidc_groups_claim),
            ("oidc-groups-prefix", &self.oidc_groups_prefix),
        ];
        let single = single.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
        let algorithms = self.oidc_signing_algs.iter().map(|value| ("oidc-signing-algs", value));
        let claims = self.oidc_required_claim.iter().map(|value| ("oidc-required-claim", value));
        single.chain(algorithms).chain(claims).map(|(name, value)| (name.to_owned(), value.clone())).collect()
    }
}

// Flags of every server. They override `servers` of the NavicertConfiguration.
#[derive(Debug, Args)]
pub(crate) struct SharedArgs {
    #[command(flatten)]
    pub(crate) files: FilesArgs,

    #[command(flatten)]
    pub(crate) listener: ListenerArgs,

    /// Check the files and exit
    #[arg(long, help_heading = "Options")]
    pub(crate) check: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct ListenerArgs {
    /// Address to listen on; `:PORT` listens on all interfaces [default: :8443]
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = parse_listen_address)]
    pub(crate) listen: Option<SocketAddr>,

    /// Certificate chain of the server, PEM; reloaded when the file changes
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_cert_file: Option<PathBuf>,

    /// Private key of the server, PEM; reloaded when the file changes
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_private_key_file: Option<PathBuf>,

    /// Serve without TLS (insecure unless on loopback or behind a TLS proxy)
    #[arg(long, conflicts_with_all = ["tls_cert_file", "tls_private_key_file"])]
    pub(crate) plain_http: bool,

    /// Address to serve `/healthz`, `/readyz` and `/metrics` on, without TLS [default: none]
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = parse_listen_address)]
    pub(crate) health_listen: Option<SocketAddr>,

    /// Audit log, one JSON line per decision; `-` is standard output [default: none]
    #[arg(long, value_name = "FILE")]
    pub(crate) audit_log_path: Option<PathBuf>,

    /// Log level
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t)]
    pub(crate) log_level: LogLevel,

    /// Log format, on standard error
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub(crate) log_format: LogFormat,

    /// Keep serving this long after readiness fails [default: 0s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) shutdown_delay: Option<Duration>,

    /// Then drain in-flight requests for at most this long [default: 25s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) shutdown_grace: Option<Duration>,
}

// Clients allowed to call the webhook: an open webhook lets an attacker test stolen tokens.
#[derive(Debug, Args)]
#[command(next_help_heading = "Client authentication")]
pub(crate) struct ClientAuthArgs {
    /// Certificate authority for client certificates, PEM
    #[arg(long, value_name = "FILE")]
    pub(crate) client_ca_file: Option<PathBuf>,

    /// Allowed common name of client certificates; repeatable [default: any]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) client_allowed_names: Vec<String>,

    /// File with a bearer token that clients may present instead of a certificate
    #[arg(long, value_name = "FILE")]
    pub(crate) bearer_token_file: Option<PathBuf>,

    /// Allow unauthenticated clients (insecure)
    #[arg(long, conflicts_with_all = ["client_ca_file", "bearer_token_file"])]
    pub(crate) allow_any_caller: bool,
}

// Kubeconfig for kube-apiserver's `--authentication-token-webhook-config-file`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Kubeconfig for the API server")]
pub(crate) struct KubeconfigArgs {
    /// Print the file for --authentication-token-webhook-config-file and exit
    #[arg(long)]
    pub(crate) print_kubeconfig: bool,

    /// URL at which the API server reaches the webhook [default: the listen address]
    #[arg(long, value_name = "URL", requires = "print_kubeconfig")]
    pub(crate) server_url: Option<String>,

    /// Certificate authority of the webhook, embedded in the file [default: --tls-cert-file]
    #[arg(long, value_name = "FILE", requires = "print_kubeconfig")]
    pub(crate) certificate_authority: Option<PathBuf>,

    /// Path of the client certificate on the API server's host
    #[arg(long, value_name = "FILE", requires = "print_kubeconfig")]
    pub(crate) client_certificate: Option<PathBuf>,

    /// Path of the client key on the API server's host
    #[arg(long, value_name = "FILE", requires = "print_kubeconfig")]
    pub(crate) client_key: Option<PathBuf>,
}

/// Log level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogLevel {
    /// Failures that need action now
    Error,
    /// Conditions that will need action
    Warn,
    /// State changes
    #[default]
    Info,
    /// Details of every request
    Debug,
    /// Everything
    Trace,
}

/// Log format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Human-readable
    #[default]
    Text,
    /// One JSON object per line
    Json,
}
