//! Arguments of `navicert serve`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use navicert_server::settings::address;

use super::client::PluginArgs;
use super::{ConnectionArgs, Profile};

pub(crate) const HELP: &str = "\
Examples:
  navicert serve webhook --authentication-config auth.yaml \\
    --tls-cert-file tls.crt --tls-private-key-file tls.key --client-ca-file apiserver-ca.crt
  navicert serve --check --authentication-config auth.yaml --navicert-config navicert.yaml

SIGHUP looks at all files at once (they are watched anyway) and opens the audit log again. \
SIGTERM and SIGINT finish what has begun, then end.";

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct ServeArgs {
    #[command(subcommand)]
    pub(crate) server: Option<ServerVerb>,

    /// Say what is wrong with the files, and serve nothing
    #[arg(long, required = true)]
    pub(crate) check: bool,

    #[command(flatten)]
    pub(crate) files: FilesArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServerVerb {
    /// Answer an API server's TokenReviews, and nginx's or Envoy's question whether a request may pass
    Webhook(Box<WebhookArgs>),

    /// Stand before an API server: whoever shows a good token goes on, named exactly
    #[command(after_help = PROXY_HELP)]
    Proxy(Box<ProxyArgs>),
}

const PROXY_HELP: &str = "\
Examples:
  navicert serve proxy --authentication-config auth.yaml \\
    --tls-cert-file tls.crt --tls-private-key-file tls.key
  navicert serve proxy --authentication-config auth.yaml --navicert-config navicert.yaml \\
    --kubeconfig proxy.kubeconfig

The proxy's own credential is that of the kubeconfig's user (token, file, certificate, exec plugin, HSM), or of the \
pod's service account. In a ClusterRole it needs the verb `impersonate` for what the configuration maps; \
`/readyz?verbose` says what is missing, as the rule to add. Every other setting is in `servers.proxy` of the \
NavicertConfiguration.";

#[derive(Debug, Args)]
pub(crate) struct WebhookArgs {
    #[command(flatten)]
    pub(crate) shared: SharedArgs,

    #[command(flatten)]
    pub(crate) callers: CallerArgs,

    /// What the API servers that ask are called, as kube-apiserver spells it (its default: --service-account-issuer)
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = "Callers")]
    pub(crate) api_audiences: Vec<String>,

    #[command(flatten)]
    pub(crate) kubeconfig: KubeconfigArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ProxyArgs {
    #[command(flatten)]
    pub(crate) shared: SharedArgs,

    /// How the API server is told who is calling [default: impersonation, or `servers.proxy.mode`]
    #[arg(long, value_enum, value_name = "MODE", help_heading = "Options")]
    pub(crate) mode: Option<ProxyMode>,

    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,

    #[command(flatten)]
    pub(crate) plugins: PluginArgs,
}

/// How the API server is told who is calling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProxyMode {
    /// By `Impersonate-*` headers: any cluster
    Impersonation,
    /// By `X-Remote-*` headers, and a client certificate that the API server trusts for it
    RequestHeader,
}

/// Whose tokens are known, and by which rules.
#[derive(Debug, Args)]
#[command(next_help_heading = "Authentication")]
pub(crate) struct FilesArgs {
    /// AuthenticationConfiguration file, as kube-apiserver takes it
    #[arg(long, value_name = "FILE")]
    pub(crate) authentication_config: Option<PathBuf>,

    /// NavicertConfiguration file: rules one by one, revoked tokens, and settings of the servers
    #[arg(long, value_name = "FILE")]
    pub(crate) navicert_config: Option<PathBuf>,

    /// Whose rules: `kube` decides exactly as kube-apiserver [default: hardened]
    #[arg(long, value_enum, value_name = "PROFILE")]
    pub(crate) profile: Option<Profile>,

    #[command(flatten)]
    pub(crate) oidc: OidcArgs,
}

/// kube-apiserver's own flags, instead of a file. Any of them and `--authentication-config` exclude each other.
#[derive(Debug, Args)]
#[command(next_help_heading = "Authentication by kube-apiserver's flags, instead of a file")]
pub(crate) struct OidcArgs {
    /// The issuer's URL
    #[arg(long, value_name = "URL")]
    pub(crate) oidc_issuer_url: Option<String>,

    /// The audience of its tokens
    #[arg(long, value_name = "ID")]
    pub(crate) oidc_client_id: Option<String>,

    /// Certificates the issuer's is checked with; the system's if not given
    #[arg(long, value_name = "FILE")]
    pub(crate) oidc_ca_file: Option<String>,

    /// The claim with the user's name [default: sub]
    #[arg(long, value_name = "CLAIM")]
    pub(crate) oidc_username_claim: Option<String>,

    /// What is put before names; `-` for nothing [default: the issuer's URL and `#`, unless the claim is `email`]
    #[arg(long, value_name = "PREFIX", allow_hyphen_values = true)]
    pub(crate) oidc_username_prefix: Option<String>,

    /// The claim with the groups
    #[arg(long, value_name = "CLAIM")]
    pub(crate) oidc_groups_claim: Option<String>,

    /// What is put before groups
    #[arg(long, value_name = "PREFIX", allow_hyphen_values = true)]
    pub(crate) oidc_groups_prefix: Option<String>,

    /// Algorithms of signatures, with commas between them [default: RS256]
    #[arg(long, value_name = "NAMES")]
    pub(crate) oidc_signing_algs: Vec<String>,

    /// A claim that has to have this value; repeatable
    #[arg(long, value_name = "CLAIM=VALUE")]
    pub(crate) oidc_required_claim: Vec<String>,
}

impl OidcArgs {
    /// The flags that were given, by their names.
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

/// What every server takes. What is not given here is taken from `servers` of the NavicertConfiguration.
#[derive(Debug, Args)]
pub(crate) struct SharedArgs {
    #[command(flatten)]
    pub(crate) files: FilesArgs,

    #[command(flatten)]
    pub(crate) listener: ListenerArgs,

    /// Say what is wrong with the files, and serve nothing
    #[arg(long, help_heading = "Options")]
    pub(crate) check: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct ListenerArgs {
    /// Where to listen; `:PORT` is every address of this machine [default: :8443]
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address)]
    pub(crate) listen: Option<SocketAddr>,

    /// The server's certificate and those between it and a root, PEM; followed when it changes
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_cert_file: Option<PathBuf>,

    /// Its private key, PEM
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_private_key_file: Option<PathBuf>,

    /// No TLS: tokens travel in the clear. Only on loopback, or behind something that has TLS
    #[arg(long, conflicts_with_all = ["tls_cert_file", "tls_private_key_file"])]
    pub(crate) plain_http: bool,

    /// Where `/healthz`, `/readyz` and `/metrics` are answered, without TLS [default: nowhere]
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address)]
    pub(crate) health_listen: Option<SocketAddr>,

    /// File for one line of JSON per decision; `-` is standard output [default: none]
    #[arg(long, value_name = "FILE")]
    pub(crate) audit_log_path: Option<PathBuf>,

    /// How much is logged
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t)]
    pub(crate) log_level: LogLevel,

    /// How it is logged, on standard error
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub(crate) log_format: LogFormat,

    /// After SIGTERM: how long it goes on as before, not ready any more [default: 0s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) shutdown_delay: Option<Duration>,

    /// From then on: how long what has begun may take [default: 25s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) shutdown_grace: Option<Duration>,
}

/// Who may ask: whoever can ask whose a token is can try stolen ones.
#[derive(Debug, Args)]
#[command(next_help_heading = "Callers")]
pub(crate) struct CallerArgs {
    /// Certificates that callers' are checked with, PEM
    #[arg(long, value_name = "FILE")]
    pub(crate) client_ca_file: Option<PathBuf>,

    /// A name that a caller's certificate may have; repeatable [default: any]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) client_allowed_names: Vec<String>,

    /// File with a token that callers may show instead
    #[arg(long, value_name = "FILE")]
    pub(crate) bearer_token_file: Option<PathBuf>,

    /// Anybody who reaches it may ask (dangerous)
    #[arg(long, conflicts_with_all = ["client_ca_file", "bearer_token_file"])]
    pub(crate) allow_any_caller: bool,
}

/// The file for kube-apiserver's `--authentication-token-webhook-config-file`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Kubeconfig for the API server")]
pub(crate) struct KubeconfigArgs {
    /// Print the file for --authentication-token-webhook-config-file, and serve nothing
    #[arg(long)]
    pub(crate) print_kubeconfig: bool,

    /// Where the API server reaches the webhook [default: the address it listens on]
    #[arg(long, value_name = "URL", requires = "print_kubeconfig")]
    pub(crate) server_url: Option<String>,

    /// Certificates that the webhook's is checked with; copied into the file [default: those of --tls-cert-file]
    #[arg(long, value_name = "FILE", requires = "print_kubeconfig")]
    pub(crate) certificate_authority: Option<PathBuf>,

    /// The API server's client certificate, where the API server has it
    #[arg(long, value_name = "FILE", requires = "print_kubeconfig")]
    pub(crate) client_certificate: Option<PathBuf>,

    /// Its key, where the API server has it
    #[arg(long, value_name = "FILE", requires = "print_kubeconfig")]
    pub(crate) client_key: Option<PathBuf>,
}

/// How much is logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogLevel {
    /// What stops something
    Error,
    /// What may
    Warn,
    /// What changes
    #[default]
    Info,
    /// Every decision
    Debug,
    /// Everything
    Trace,
}

/// How it is logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people
    #[default]
    Text,
    /// One JSON object per line
    Json,
}

/// `1m30s`, as in Kubernetes.
fn duration(text: &str) -> Result<Duration, String> {
    let read: navicert_types::time::Duration =
        text.parse().map_err(|error: navicert_types::time::DurationError| error.to_string())?;
    read.to_std().ok_or_else(|| "a duration is not negative".to_owned())
}
