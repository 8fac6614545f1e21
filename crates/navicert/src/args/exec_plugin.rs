//! The flags of `navicert exec-plugin`.

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub(crate) enum ExecPluginVerb {
    /// Run a credential plugin in every way a client would and say which rules it breaks
    #[command(after_help = "\
Example: navicert exec-plugin check aws eks get-token --cluster-name test

The plugin is run with and without a cluster and a terminal. Nothing it prints is shown.")]
    Check(CheckPluginArgs),
    /// Read what plugins printed as a client would, one JSON object per line
    Decode(BatchArgs),
    /// Write what plugins would be told, one JSON object per line
    Info(BatchArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CheckPluginArgs {
    /// Only this version of ExecCredential
    #[arg(long, value_enum, value_name = "VERSION")]
    pub(crate) api_version: Option<ExecVersion>,

    /// How long each run may take
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    pub(crate) limit: u64,

    /// The plugin and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// A version of `ExecCredential`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExecVersion {
    /// `client.authentication.k8s.io/v1`
    V1,
    /// `client.authentication.k8s.io/v1beta1`
    V1beta1,
}

#[derive(Debug, Args)]
pub(crate) struct BatchArgs {
    /// Read one JSON object per line from standard input and answer each with one line
    #[arg(long, required = true)]
    pub(crate) jsonl: bool,
}
