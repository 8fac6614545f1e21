//! Arguments of `navicert exec-plugin`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::{duration, examples};

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum ExecPluginVerb {
    /// Run a credential plugin as clients do and report every rule it violates
    #[command(after_help = examples::EXEC_PLUGIN_CHECK)]
    Check(CheckPluginArgs),
    /// Run a credential plugin for kubectl and keep its answer in memory for later commands
    #[command(after_help = examples::EXEC_PLUGIN_KEEP)]
    Keep(KeepArgs),
    /// Allow a credential plugin in the kuberc, by its path and digest
    #[command(after_help = examples::EXEC_PLUGIN_PIN)]
    Pin(PinArgs),
    /// Decode plugin output as a client does, one JSON object per line
    #[command(after_help = examples::EXEC_PLUGIN_DECODE)]
    Decode(BatchArgs),
    /// Print the KUBERNETES_EXEC_INFO a plugin receives, one JSON object per line
    #[command(after_help = examples::EXEC_PLUGIN_INFO)]
    Info(BatchArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CheckPluginArgs {
    /// Check only this version of ExecCredential
    #[arg(long, value_enum, value_name = "VERSION")]
    pub(crate) api_version: Option<ExecVersionArg>,

    /// Timeout of each run
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    pub(crate) limit: u64,

    /// Plugin and its arguments
    // Without `allow_hyphen_values`, a mistyped option before the command is a usage error and not a plugin to run.
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub(crate) struct KeepArgs {
    /// Use no answer that is older [default: 1h]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) max_age: Option<Duration>,

    /// Share the answer between working directories
    #[arg(long)]
    pub(crate) any_directory: bool,

    /// Environment variable to remove from the plugin's environment; repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) drop_env: Vec<OsString>,

    /// Remove every kept answer from memory and run no plugin
    #[arg(long, conflicts_with_all = ["max_age", "any_directory", "drop_env", "command"])]
    pub(crate) clear: bool,

    /// Plugin and its arguments
    #[arg(last = true, required_unless_present = "clear", value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct PinArgs {
    #[command(flatten)]
    pub(crate) write: AllowlistArgs,

    /// Plugin, and the arguments that its arguments must begin with
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

// Which files a verb writes that changes the allowlist.
#[derive(Debug, Args)]
pub(crate) struct AllowlistArgs {
    /// Kubeconfig file to use instead of `KUBECONFIG` or `~/.kube/config`
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Kuberc file to write instead of `KUBERC` or `~/.kube/kuberc`
    #[arg(long, value_name = "FILE")]
    pub(crate) kuberc: Option<PathBuf>,

    /// Also allow the plugins of the kubeconfig that a new allowlist would forbid
    #[arg(long)]
    pub(crate) add_plugins_in_use: bool,

    /// Replace what is there with other content
    #[arg(long)]
    pub(crate) force: bool,

    /// Write without asking
    #[arg(long)]
    pub(crate) yes: bool,
}

/// A version of `ExecCredential`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExecVersionArg {
    /// `client.authentication.k8s.io/v1`
    V1,
    /// `client.authentication.k8s.io/v1beta1`
    V1beta1,
}

#[derive(Debug, Args)]
pub(crate) struct BatchArgs {
    /// Read one JSON object per line from standard input and print one result line for each
    #[arg(long, required = true)]
    pub(crate) jsonl: bool,
}
