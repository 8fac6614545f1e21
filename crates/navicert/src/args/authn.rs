//! Arguments of `navicert authn`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Profile;

#[derive(Debug, Subcommand)]
pub(crate) enum AuthnVerb {
    /// Say everything that is wrong with an authentication configuration
    Check(CheckArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The AuthenticationConfiguration file
    #[arg(required_unless_present = "jsonl")]
    pub(crate) file: Option<PathBuf>,

    /// Whose rules: `kube` refuses exactly what kube-apiserver refuses
    #[arg(long, value_enum, value_name = "PROFILE")]
    pub(crate) profile: Option<Profile>,

    /// Read one JSON object per line from standard input and answer each with one line
    #[arg(long, conflicts_with = "file")]
    pub(crate) jsonl: bool,
}
