//! Arguments of `navicert whoami` and `navicert doctor`.

use std::path::PathBuf;

use clap::Args;
use http::HeaderName;

use super::ConnectionArgs;

#[derive(Debug, Args)]
pub(crate) struct WhoamiArgs {
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,

    #[command(flatten)]
    pub(crate) plugins: PluginArgs,

    /// Send this many requests, one per second, from one long-lived client [default: 1]
    #[arg(long, value_name = "COUNT", default_value_t = 1, hide_default_value = true)]
    pub(crate) times: u32,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Context to diagnose instead of `current-context`
    #[arg(value_name = "CONTEXT", conflicts_with = "context")]
    pub(crate) examined: Option<String>,

    /// Check the certificate of a front proxy, which names users in HEADER [default: X-Remote-User]
    #[arg(
        long,
        value_name = "HEADER",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "X-Remote-User"
    )]
    pub(crate) front_proxy: Option<HeaderName>,

    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,

    #[command(flatten)]
    pub(crate) plugins: PluginArgs,
}

// Policy for credential plugins.
#[derive(Debug, Default, Args)]
pub(crate) struct PluginArgs {
    /// Kuberc file with the plugin policy, instead of `KUBERC` or `~/.kube/kuberc`
    #[arg(long, value_name = "FILE")]
    pub(crate) kuberc: Option<PathBuf>,
}
