//! Arguments of `navicert authn`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Profile;

#[derive(Debug, Subcommand)]
pub(crate) enum AuthnVerb {
    /// Say everything that is wrong with an authentication configuration
    Check(CheckArgs),
    /// Say whom a token stands for
    Eval(EvalArgs),
    /// Say why a token is taken or refused, step by step
    Explain(ExplainArgs),
    /// Run the cases of an AuthenticationTest file, and name the rules that no case would miss
    Test(TestArgs),
    /// Turn --oidc-* flags of kube-apiserver into an AuthenticationConfiguration
    Migrate(MigrateArgs),
}

/// What every verb takes: whose rules, and our own file beside the configuration.
#[derive(Debug, Args)]
pub(crate) struct SettingsArgs {
    /// Whose rules: `kube` decides exactly as kube-apiserver
    #[arg(long, value_enum, value_name = "PROFILE")]
    pub(crate) profile: Option<Profile>,

    /// NavicertConfiguration file: rules one by one, algorithms, key files and revoked tokens
    #[arg(long, value_name = "FILE")]
    pub(crate) navicert_config: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// AuthenticationTest files
    #[arg(required = true, value_name = "SUITE")]
    pub(crate) suites: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) settings: SettingsArgs,

    /// Also fail if a rule or a mapping could be taken away without any case noticing
    #[arg(long)]
    pub(crate) require_coverage: bool,
}

#[derive(Debug, Args)]
pub(crate) struct MigrateArgs {
    /// Where the flags are: a static pod manifest, a kubeadm ClusterConfiguration, a k3s or RKE2 config.yaml, or a text
    /// with a command line (`-` for standard input)
    #[arg(value_name = "FILE", required_unless_present = "flags")]
    pub(crate) file: Option<PathBuf>,

    /// The flags themselves, after `--`
    #[arg(last = true, value_name = "FLAGS", conflicts_with = "file")]
    pub(crate) flags: Vec<String>,

    /// The version of the configuration that is written
    #[arg(long, value_enum, value_name = "VERSION", default_value_t)]
    pub(crate) api_version: ApiVersion,

    /// The issuer's certificates, if the file of --oidc-ca-file is somewhere else here
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,

    /// Also turn --anonymous-auth into an `anonymous` block
    #[arg(long)]
    pub(crate) anonymous: bool,

    /// Also write a NavicertConfiguration that keeps the signature algorithms as narrow as the flags had them
    #[arg(long, value_name = "FILE")]
    pub(crate) write_navicert_config: Option<PathBuf>,
}

/// Versions of AuthenticationConfiguration that are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ApiVersion {
    /// Kubernetes 1.34 and later
    #[default]
    V1,
    /// Kubernetes 1.30 and later
    V1beta1,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The AuthenticationConfiguration file
    #[arg(required_unless_present = "jsonl")]
    pub(crate) file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) settings: SettingsArgs,

    /// Also look at every issuer now: name, connection, certificate, discovery, keys and algorithms
    #[arg(long, conflicts_with = "jsonl")]
    pub(crate) online: bool,

    /// Fail if there is anything to look at
    #[arg(long)]
    pub(crate) deny_lints: bool,

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
    #[arg(long, value_name = "FILE")]
    pub(crate) jwks: Option<PathBuf>,

    /// Ask the issuer itself for its keys, now
    #[arg(long, conflicts_with_all = ["jwks", "jsonl"])]
    pub(crate) online: bool,

    /// File with the token; without it the token is read from standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,

    /// The time to judge at, in seconds since 1970; now if not given
    #[arg(long, value_name = "SECONDS")]
    pub(crate) now: Option<i64>,

    #[command(flatten)]
    pub(crate) settings: SettingsArgs,

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
    pub(crate) jwks: Option<PathBuf>,

    /// Ask the issuer itself for its keys, now
    #[arg(long, conflicts_with = "jwks")]
    pub(crate) online: bool,

    /// File with the token; without it the token is read from standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,

    /// The time to judge at, in seconds since 1970; now if not given
    #[arg(long, value_name = "SECONDS")]
    pub(crate) now: Option<i64>,

    #[command(flatten)]
    pub(crate) settings: SettingsArgs,

    /// Also show what the parts of expressions came out as: these are values of the token's claims
    #[arg(long)]
    pub(crate) show_values: bool,
}
