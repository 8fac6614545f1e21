//! The flags of `navicert whoami` and `navicert doctor`.

use std::path::PathBuf;

use clap::Args;

use super::ConnectionArgs;

#[derive(Debug, Args)]
pub(crate) struct WhoamiArgs {
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,

    #[command(flatten)]
    pub(crate) plugins: PluginArgs,

    /// Ask so many times, once a second, as one long-lived client: what a program sees while credentials change
    #[arg(long, value_name = "COUNT", default_value_t = 1, hide_default_value = true)]
    pub(crate) times: u32,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Context to examine instead of `current-context`
    #[arg(value_name = "CONTEXT", conflicts_with = "context")]
    pub(crate) examined: Option<String>,

    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,

    #[command(flatten)]
    pub(crate) plugins: PluginArgs,
}

/// Which credential plugins may run.
#[derive(Debug, Default, Args)]
pub(crate) struct PluginArgs {
    /// Kuberc file with the plugin policy, instead of `KUBERC` or `~/.kube/kuberc`
    #[arg(long, value_name = "FILE")]
    pub(crate) kuberc: Option<PathBuf>,
}
