//! Arguments of `navicert authn`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Profile;

#[derive(Debug, Subcommand)]
pub(crate) enum AuthnVerb {
    /// Say everything that is wrong with an authentication configuration
    Check(CheckArgs),
    /// Say whom a token stands for, offline, with the keys of a file
    Eval(EvalArgs),
    /// Say why a token is taken or refused, step by step
    Explain(ExplainArgs),
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

#[derive(Debug, Args)]
pub(crate) struct EvalArgs {
    /// The AuthenticationConfiguration file
    #[arg(long, value_name = "FILE", required_unless_present = "jsonl")]
    pub(crate) config: Option<PathBuf>,

    /// JSON file with the issuer's keys (a JWKS document), or with one such document per issuer URL
    #[arg(long, value_name = "FILE", required_unless_present = "jsonl")]
    pub(crate) jwks: Option<PathBuf>,

    /// File with the token; without it the token is read from standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,

    /// The time to judge at, in seconds since 1970; now if not given
    #[arg(long, value_name = "SECONDS")]
    pub(crate) now: Option<i64>,

    /// Whose rules: `kube` decides exactly as kube-apiserver
    #[arg(long, value_enum, value_name = "PROFILE")]
    pub(crate) profile: Option<Profile>,

    /// Read one JSON object per line from standard input and answer each with one line
    #[arg(long, conflicts_with_all = ["config", "jwks", "token_file", "now"])]
    pub(crate) jsonl: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The AuthenticationConfiguration file
    #[arg(long, value_name = "FILE")]
    pub(crate) config: PathBuf,

    /// JSON file with the issuer's keys (a JWKS document), or with one such document per issuer URL
    #[arg(long, value_name = "FILE")]
    pub(crate) jwks: PathBuf,

    /// File with the token; without it the token is read from standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,

    /// The time to judge at, in seconds since 1970; now if not given
    #[arg(long, value_name = "SECONDS")]
    pub(crate) now: Option<i64>,

    /// Whose rules: `kube` decides exactly as kube-apiserver
    #[arg(long, value_enum, value_name = "PROFILE")]
    pub(crate) profile: Option<Profile>,

    /// Also show what the parts of expressions came out as: these are values of the token's claims
    #[arg(long)]
    pub(crate) show_values: bool,
}
