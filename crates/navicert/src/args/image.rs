//! Arguments of `navicert image`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Profile, examples};

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum ImageVerb {
    /// Print the credentials a kubelet would use to pull an image
    #[command(after_help = examples::IMAGE_GET)]
    Get(GetArgs),
    /// Explain which providers match an image, which plugins run and which credentials are tried
    #[command(after_help = examples::IMAGE_EXPLAIN)]
    Explain(ExplainArgs),
    /// Check a credential provider configuration
    #[command(after_help = examples::IMAGE_CHECK)]
    Check(CheckArgs),
    /// Check whether a `matchImages` pattern matches an image
    #[command(after_help = examples::IMAGE_MATCH)]
    Match(MatchArgs),
    /// Look up an image in a Docker configuration file, as the kubelet does
    #[command(after_help = examples::IMAGE_KEYRING)]
    Keyring(KeyringArgs),
    /// Check the response of a provider plugin
    #[command(after_help = examples::IMAGE_RESPONSE)]
    Response(ResponseArgs),
    /// Write a containers auth.json for podman, skopeo and buildah
    #[command(after_help = examples::IMAGE_AUTH_FILE)]
    AuthFile(AuthFileArgs),
    /// Check a provider plugin against every rule of the protocol
    #[command(after_help = examples::IMAGE_PLUGIN_CHECK)]
    PluginCheck(PluginCheckArgs),
    /// Run the per-user daemon that serves `docker-credential-navicert`
    #[command(after_help = examples::IMAGE_SERVE)]
    Serve(ServeArgs),
    /// Remove an image's credentials from the daemon's cache
    #[command(after_help = examples::IMAGE_INVALIDATE)]
    Invalidate(InvalidateArgs),
    /// Print the daemon's metrics in the Prometheus text format
    #[command(after_help = examples::IMAGE_METRICS)]
    Metrics(MetricsArgs),
}

// Credential providers, with the kubelet's flag names.
#[derive(Debug, Args)]
#[command(next_help_heading = "Providers")]
pub(crate) struct ProviderArgs {
    /// Credential provider configuration, file or directory [default: `~/.config/navicert/image/config` or `/etc/…`]
    #[arg(long = "image-credential-provider-config", visible_alias = "config", value_name = "PATH")]
    pub(crate) config: Option<PathBuf>,

    /// Directory of the provider executables [default: `bin` beside the default configuration]
    #[arg(long = "image-credential-provider-bin-dir", visible_alias = "bin-dir", value_name = "DIR")]
    pub(crate) bin_dir: Option<PathBuf>,

    /// Rules to apply: `kube` decides exactly as the kubelet [default: hardened; with --jsonl: kube]
    #[arg(long, value_enum, value_name = "PROFILE")]
    pub(crate) profile: Option<Profile>,
}

// Service account to pull as, for providers with `tokenAttributes`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Service account")]
pub(crate) struct AccountArgs {
    /// Service account to request a token for, not bound to a pod
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = namespaced, conflicts_with = "pod")]
    pub(crate) service_account: Option<NamespacedName>,

    /// Pod whose service account to request a token for, bound to the pod as the kubelet does
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = namespaced)]
    pub(crate) pod: Option<NamespacedName>,

    /// Kubeconfig file to use instead of `KUBECONFIG` or `~/.kube/config`
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Context to use instead of `current-context`
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,

    /// File with a service account token to pass to providers, without contacting an API server
    #[arg(long, value_name = "FILE", conflicts_with_all = ["service_account", "pod"])]
    pub(crate) service_account_token_file: Option<PathBuf>,

    /// Service account annotation to pass with the token file; repeatable
    #[arg(long, value_name = "KEY=VALUE", value_parser = super::key_and_value, requires = "service_account_token_file")]
    pub(crate) service_account_annotation: Vec<(String, String)>,
}

/// Namespace and name of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamespacedName {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

fn namespaced(text: &str) -> Result<NamespacedName, String> {
    match text.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
            Ok(NamespacedName { namespace: namespace.to_owned(), name: name.to_owned() })
        }
        _ => Err("expected NAMESPACE/NAME".to_owned()),
    }
}

#[derive(Debug, Args)]
pub(crate) struct GetArgs {
    /// Image name, as in a pod
    pub(crate) image: String,

    /// Print passwords unredacted
    #[arg(long)]
    pub(crate) show_secrets: bool,

    /// Kubelet root directory; its Docker configuration is tried first, as the kubelet does
    #[arg(long, value_name = "DIR")]
    pub(crate) kubelet_root_dir: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) providers: ProviderArgs,

    #[command(flatten)]
    pub(crate) account: AccountArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// Image name, as in a pod
    pub(crate) image: String,

    /// Do not run plugins
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Kubelet root directory; its Docker configuration is tried first, as the kubelet does
    #[arg(long, value_name = "DIR")]
    pub(crate) kubelet_root_dir: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) providers: ProviderArgs,

    #[command(flatten)]
    pub(crate) account: AccountArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Read one JSON object per line from standard input and print one result line for each
    #[arg(long)]
    pub(crate) jsonl: bool,

    #[command(flatten)]
    pub(crate) providers: ProviderArgs,
}

#[derive(Debug, Args)]
pub(crate) struct MatchArgs {
    /// `matchImages` pattern
    #[arg(required_unless_present = "jsonl")]
    pub(crate) pattern: Option<String>,

    /// Image name, as in a pod
    #[arg(required_unless_present = "jsonl")]
    pub(crate) image: Option<String>,

    /// Rules to apply: `kube` decides exactly as the kubelet [default: hardened; with --jsonl: kube]
    #[arg(long, value_enum, value_name = "PROFILE")]
    pub(crate) profile: Option<Profile>,

    /// Read one JSON object per line from standard input and print one result line for each
    #[arg(long, conflicts_with_all = ["pattern", "image"])]
    pub(crate) jsonl: bool,
}

#[derive(Debug, Args)]
pub(crate) struct KeyringArgs {
    /// Docker config.json file
    #[arg(required_unless_present = "jsonl")]
    pub(crate) docker_config: Option<PathBuf>,

    /// Image name, as in a pod
    #[arg(required_unless_present = "jsonl")]
    pub(crate) image: Option<String>,

    /// Print passwords unredacted
    #[arg(long)]
    pub(crate) show_secrets: bool,

    /// Rules to apply: `kube` decides exactly as the kubelet [default: hardened; with --jsonl: kube]
    #[arg(long, value_enum, value_name = "PROFILE")]
    pub(crate) profile: Option<Profile>,

    /// Read one JSON object per line from standard input and print one result line for each
    #[arg(long, conflicts_with_all = ["docker_config", "image", "show_secrets"])]
    pub(crate) jsonl: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ResponseArgs {
    /// File with the plugin's output [default: standard input]
    pub(crate) file: Option<PathBuf>,

    /// API version the provider is configured with
    #[arg(long, value_name = "VERSION", default_value = "credentialprovider.kubelet.k8s.io/v1")]
    pub(crate) api_version: String,

    /// Read one JSON object per line from standard input and print one result line for each
    #[arg(long, conflicts_with = "file")]
    pub(crate) jsonl: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AuthFileArgs {
    /// Images to write credentials for, as in a pod
    #[arg(required = true)]
    pub(crate) images: Vec<String>,

    /// File to write, with mode 0600
    #[arg(long, value_name = "FILE")]
    pub(crate) file: PathBuf,

    #[command(flatten)]
    pub(crate) providers: ProviderArgs,

    #[command(flatten)]
    pub(crate) account: AccountArgs,
}

#[derive(Debug, Args)]
pub(crate) struct PluginCheckArgs {
    /// Image the plugin has credentials for
    #[arg(long, value_name = "IMAGE", default_value = "registry.example/app")]
    pub(crate) image: String,

    /// API version to call the plugin with
    #[arg(long, value_name = "VERSION", default_value = "credentialprovider.kubelet.k8s.io/v1")]
    pub(crate) api_version: String,

    /// Timeout of each run in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub(crate) limit: u64,

    /// Plugin and its arguments
    #[arg(required = true, last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Socket to listen on [default: `navicert/image.sock` in the runtime directory]
    #[arg(long, value_name = "SOCKET")]
    pub(crate) socket: Option<PathBuf>,

    /// Repository path to look up for tools that pass only the registry host; repeatable
    #[arg(long, value_name = "HOST=HOST/PATH")]
    pub(crate) scope: Vec<String>,

    /// Mirror and the registry whose credentials to use for it; repeatable
    #[arg(long, value_name = "MIRROR=REGISTRY")]
    pub(crate) mirror: Vec<String>,

    #[command(flatten)]
    pub(crate) providers: ProviderArgs,
}

#[derive(Debug, Args)]
pub(crate) struct InvalidateArgs {
    /// Image name, as in a pod
    pub(crate) image: String,

    /// Socket of the daemon [default: `navicert/image.sock` in the runtime directory]
    #[arg(long, value_name = "SOCKET")]
    pub(crate) socket: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct MetricsArgs {
    /// Socket of the daemon [default: `navicert/image.sock` in the runtime directory]
    #[arg(long, value_name = "SOCKET")]
    pub(crate) socket: Option<PathBuf>,
}
