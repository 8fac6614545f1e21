//! The `image` verbs.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Profile;

#[derive(Debug, Subcommand)]
pub(crate) enum ImageVerb {
    /// Print the credentials a kubelet would pull an image with
    Get(GetArgs),
    /// Say which providers match an image and why, what would run, and which credentials would be tried
    Explain(ExplainArgs),
    /// Check a credential provider configuration
    Check(CheckArgs),
    /// Say whether a pattern of `matchImages` matches an image
    Match(MatchArgs),
    /// Look an image up in a docker configuration file, as the kubelet does
    Keyring(KeyringArgs),
    /// Check what a plugin printed
    Response(ResponseArgs),
    /// Write a containers auth.json for podman, skopeo and buildah
    AuthFile(AuthFileArgs),
    /// Put a provider plugin through every rule it has to keep
    PluginCheck(PluginCheckArgs),
    /// Run the per-user daemon that `docker-credential-navicert` asks
    Serve(ServeArgs),
    /// Make the daemon forget an image's credentials
    Invalidate(InvalidateArgs),
    /// Print what the daemon has counted, in Prometheus' text format
    Metrics(MetricsArgs),
}

/// Which providers, spelled as the kubelet spells it.
#[derive(Debug, Args)]
#[command(next_help_heading = "Providers")]
pub(crate) struct ProviderArgs {
    /// Credential provider configuration: a file, or a folder of files [default: `NAVICERT_IMAGE_CONFIG`, or
    /// `~/.config/navicert/image/config`, or `/etc/navicert/image/config`]
    #[arg(long = "image-credential-provider-config", visible_alias = "config", value_name = "PATH")]
    pub(crate) config: Option<PathBuf>,

    /// Folder with the providers' executables [default: `NAVICERT_IMAGE_BIN_DIR`, or `bin` beside the default
    /// configuration]
    #[arg(long = "image-credential-provider-bin-dir", visible_alias = "bin-dir", value_name = "FOLDER")]
    pub(crate) bin_dir: Option<PathBuf>,

    /// Whose rules: `kube` is the kubelet to the letter [default: `hardened`; with `--jsonl`: `kube`]
    #[arg(long, value_enum, value_name = "PROFILE")]
    pub(crate) profile: Option<Profile>,
}

/// On whose behalf, for providers with `tokenAttributes`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Service account")]
pub(crate) struct AccountArgs {
    /// Service account to ask as: its annotations are read and a token is requested, bound to no pod
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = namespaced, conflicts_with = "pod")]
    pub(crate) service_account: Option<Named>,

    /// Pod to ask as, exactly as its kubelet would: its service account, with a token bound to the pod
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = namespaced)]
    pub(crate) pod: Option<Named>,

    /// Kubeconfig file of the API server to ask, instead of `KUBECONFIG` or `~/.kube/config`
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig, instead of `current-context`
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,

    /// File with a service account token to hand on as it is; no API server is asked
    #[arg(long, value_name = "FILE", conflicts_with_all = ["service_account", "pod"])]
    pub(crate) service_account_token_file: Option<PathBuf>,

    /// Annotation of the service account, to go with the token file; repeatable
    #[arg(long, value_name = "KEY=VALUE", value_parser = super::key_and_value, requires = "service_account_token_file")]
    pub(crate) service_account_annotation: Vec<(String, String)>,
}

/// An object of a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

fn namespaced(text: &str) -> Result<Named, String> {
    match text.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
            Ok(Named { namespace: namespace.to_owned(), name: name.to_owned() })
        }
        _ => Err("expected NAMESPACE/NAME".to_owned()),
    }
}

#[derive(Debug, Args)]
pub(crate) struct GetArgs {
    /// The image, as in a pod
    pub(crate) image: String,

    /// Print passwords as they are
    #[arg(long)]
    pub(crate) show_secrets: bool,

    /// Root folder of a kubelet: the node's docker configuration is looked for there, as the kubelet does, and tried
    /// first
    #[arg(long, value_name = "FOLDER")]
    pub(crate) kubelet_root_dir: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) providers: ProviderArgs,

    #[command(flatten)]
    pub(crate) account: AccountArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The image, as in a pod
    pub(crate) image: String,

    /// Run no plugin
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Root folder of a kubelet: the node's docker configuration is looked for there, as the kubelet does, and tried
    /// first
    #[arg(long, value_name = "FOLDER")]
    pub(crate) kubelet_root_dir: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) providers: ProviderArgs,

    #[command(flatten)]
    pub(crate) account: AccountArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Read one JSON object per line from standard input and answer each with one line
    #[arg(long)]
    pub(crate) jsonl: bool,

    #[command(flatten)]
    pub(crate) providers: ProviderArgs,
}

#[derive(Debug, Args)]
pub(crate) struct MatchArgs {
    /// An entry of `matchImages`
    #[arg(required_unless_present = "jsonl")]
    pub(crate) pattern: Option<String>,

    /// The image, as in a pod
    #[arg(required_unless_present = "jsonl")]
    pub(crate) image: Option<String>,

    /// Whose rules: `kube` is the kubelet to the letter [default: `hardened`; with `--jsonl`: `kube`]
    #[arg(long, value_enum, value_name = "PROFILE")]
    pub(crate) profile: Option<Profile>,

    /// Read one JSON object per line from standard input and answer each with one line
    #[arg(long, conflicts_with_all = ["pattern", "image"])]
    pub(crate) jsonl: bool,
}

#[derive(Debug, Args)]
pub(crate) struct KeyringArgs {
    /// A docker config.json
    #[arg(required_unless_present = "jsonl")]
    pub(crate) docker_config: Option<PathBuf>,

    /// The image, as in a pod
    #[arg(required_unless_present = "jsonl")]
    pub(crate) image: Option<String>,

    /// Print passwords as they are
    #[arg(long)]
    pub(crate) show_secrets: bool,

    /// Whose rules: `kube` is the kubelet to the letter [default: `hardened`; with `--jsonl`: `kube`]
    #[arg(long, value_enum, value_name = "PROFILE")]
    pub(crate) profile: Option<Profile>,

    /// Read one JSON object per line from standard input and answer each with one line
    #[arg(long, conflicts_with_all = ["docker_config", "image", "show_secrets"])]
    pub(crate) jsonl: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ResponseArgs {
    /// What the plugin printed; standard input if absent
    pub(crate) file: Option<PathBuf>,

    /// The version the provider is configured with
    #[arg(long, value_name = "VERSION", default_value = "credentialprovider.kubelet.k8s.io/v1")]
    pub(crate) api_version: String,

    /// Read one JSON object per line from standard input and answer each with one line
    #[arg(long, conflicts_with = "file")]
    pub(crate) jsonl: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AuthFileArgs {
    /// The images that will be pulled, as in a pod
    #[arg(required = true)]
    pub(crate) images: Vec<String>,

    /// The file to write, readable by its owner alone
    #[arg(long, value_name = "FILE")]
    pub(crate) file: PathBuf,

    #[command(flatten)]
    pub(crate) providers: ProviderArgs,

    #[command(flatten)]
    pub(crate) account: AccountArgs,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example: navicert image plugin-check --image registry.example/app -- ./my-provider --flag"
)]
pub(crate) struct PluginCheckArgs {
    /// An image the plugin has credentials for
    #[arg(long, value_name = "IMAGE", default_value = "registry.example/app")]
    pub(crate) image: String,

    /// The version the plugin is spoken to in
    #[arg(long, value_name = "VERSION", default_value = "credentialprovider.kubelet.k8s.io/v1")]
    pub(crate) api_version: String,

    /// How many seconds a run may take
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub(crate) limit: u64,

    /// The plugin and its arguments
    #[arg(required = true, last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// The socket to listen on, instead of the one in the runtime folder
    #[arg(long, value_name = "SOCKET")]
    pub(crate) socket: Option<PathBuf>,

    /// Which part of a registry is meant by tools that can only name the registry; repeatable
    #[arg(long, value_name = "HOST=HOST/PATH")]
    pub(crate) scope: Vec<String>,

    /// A mirror, and the registry whose credentials it is given; repeatable
    #[arg(long, value_name = "MIRROR=REGISTRY")]
    pub(crate) mirror: Vec<String>,

    #[command(flatten)]
    pub(crate) providers: ProviderArgs,
}

#[derive(Debug, Args)]
pub(crate) struct InvalidateArgs {
    /// The image, as in a pod
    pub(crate) image: String,

    /// The daemon's socket, instead of the one in the runtime folder
    #[arg(long, value_name = "SOCKET")]
    pub(crate) socket: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct MetricsArgs {
    /// The daemon's socket, instead of the one in the runtime folder
    #[arg(long, value_name = "SOCKET")]
    pub(crate) socket: Option<PathBuf>,
}
