//! Arguments of `navicert authn`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use navicert_authn::KubeVersion;

use super::{Profile, examples};

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum AuthnVerb {
    /// Check an AuthenticationConfiguration and report every problem
    #[command(after_help = examples::AUTHN_CHECK)]
    Check(CheckArgs),
    /// Print the user a token authenticates
    #[command(after_help = examples::AUTHN_EVAL)]
    Eval(EvalArgs),
    /// Explain step by step why a token is accepted or rejected
    #[command(after_help = examples::AUTHN_EXPLAIN)]
    Explain(ExplainArgs),
    /// Run AuthenticationTest files and report untested rules
    #[command(after_help = examples::AUTHN_TEST)]
    Test(TestArgs),
    /// Show what changes between two configurations or two Kubernetes versions
    #[command(after_help = examples::AUTHN_DIFF)]
    Diff(DiffArgs),
    /// Convert kube-apiserver's --oidc-* flags to an AuthenticationConfiguration
    #[command(after_help = examples::AUTHN_MIGRATE)]
    Migrate(MigrateArgs),
}

// Flags of every verb: the profile and the NavicertConfiguration file.
#[derive(Debug, Args)]
pub(crate) struct SettingsArgs {
    /// Rules to apply: `kube` decides exactly as kube-apiserver
    #[arg(long, value_enum, value_name = "PROFILE")]
    pub(crate) profile: Option<Profile>,

    /// Kubernetes version whose rules apply [default: 1.37]
    #[arg(long, value_name = "VERSION", value_parser = super::kube_versions())]
    pub(crate) kube_version: Option<KubeVersion>,

    /// NavicertConfiguration file: single rules, signature algorithms, key files and revoked tokens
    #[arg(long, value_name = "FILE")]
    pub(crate) navicert_config: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// AuthenticationTest files to run
    #[arg(required = true, value_name = "SUITE")]
    pub(crate) suites: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) settings: SettingsArgs,

    /// Fail if a rule or mapping is not covered by any case
    #[arg(long)]
    pub(crate) require_coverage: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// AuthenticationConfiguration file
    pub(crate) file: PathBuf,

    /// File to compare it with [default: the same file, under another Kubernetes version]
    #[arg(value_name = "NEW")]
    pub(crate) new: Option<PathBuf>,

    /// Kubernetes version of the first side
    #[arg(long, value_name = "VERSION", value_parser = super::kube_versions(), required_unless_present = "new")]
    pub(crate) from: Option<KubeVersion>,

    /// Kubernetes version of the second side
    #[arg(long, value_name = "VERSION", value_parser = super::kube_versions(), required_unless_present = "new")]
    pub(crate) to: Option<KubeVersion>,

    /// AuthenticationTest file whose cases are decided on both sides as well
    #[arg(long, value_name = "FILE")]
    pub(crate) suite: Option<PathBuf>,

    /// Folder of token files that are decided on both sides as well
    #[arg(long, value_name = "DIR", requires = "jwks")]
    pub(crate) tokens: Option<PathBuf>,

    /// Keys for --tokens: JWKS file, or JSON object of JWKS documents by issuer URL
    #[arg(long, value_name = "FILE", requires = "tokens")]
    pub(crate) jwks: Option<PathBuf>,

    /// Time to decide on --tokens at, in seconds since 1970 [default: now]
    #[arg(long, value_name = "SECONDS", requires = "tokens")]
    pub(crate) now: Option<i64>,

    #[command(flatten)]
    pub(crate) settings: SettingsArgs,
}

#[derive(Debug, Args)]
pub(crate) struct MigrateArgs {
    /// Static pod manifest, kubeadm ClusterConfiguration, k3s or RKE2 config.yaml, or command line (`-`: standard input)
    #[arg(value_name = "FILE", required_unless_present = "flags")]
    pub(crate) file: Option<PathBuf>,

    /// Flags to convert, after `--`
    #[arg(last = true, value_name = "FLAGS", conflicts_with = "file")]
    pub(crate) flags: Vec<String>,

    /// API version of the configuration to write
    #[arg(long, value_enum, value_name = "VERSION", default_value_t)]
    pub(crate) api_version: ApiVersion,

    /// Local copy of the --oidc-ca-file certificates
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,

    /// Also convert --anonymous-auth to an `anonymous` block
    #[arg(long)]
    pub(crate) anonymous: bool,

    /// Also write a NavicertConfiguration that keeps --oidc-signing-algs
    #[arg(long, value_name = "FILE")]
    pub(crate) write_navicert_config: Option<PathBuf>,
}

/// API versions of AuthenticationConfiguration that `migrate` can write.
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
    /// AuthenticationConfiguration file
    #[arg(required_unless_present = "jsonl")]
    pub(crate) file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) settings: SettingsArgs,

    /// Also contact every issuer: check DNS, connection, certificate, discovery document, keys and algorithms
    #[arg(long, conflicts_with = "jsonl")]
    pub(crate) online: bool,

    /// Fail on lint warnings
    #[arg(long)]
    pub(crate) deny_lints: bool,

    /// Read one JSON object per line from standard input and print one result line for each
    #[arg(long, conflicts_with = "file")]
    pub(crate) jsonl: bool,
}

#[derive(Debug, Args)]
pub(crate) struct EvalArgs {
    /// AuthenticationConfiguration file
    #[arg(long, value_name = "FILE", required_unless_present = "jsonl")]
    pub(crate) config: Option<PathBuf>,

    /// JWKS file, or JSON object of JWKS documents by issuer URL
    #[arg(long, value_name = "FILE")]
    pub(crate) jwks: Option<PathBuf>,

    /// Fetch the keys, and the token's distributed claims, from the issuer
    #[arg(long, conflicts_with_all = ["jwks", "jsonl"])]
    pub(crate) online: bool,

    /// File with the token [default: standard input]
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,

    /// Time to evaluate the token at, in seconds since 1970 [default: now]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) now: Option<i64>,

    #[command(flatten)]
    pub(crate) settings: SettingsArgs,

    /// Read one JSON object per line from standard input and print one result line for each
    #[arg(long, conflicts_with_all = ["config", "jwks", "token_file", "now"])]
    pub(crate) jsonl: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// AuthenticationConfiguration file
    #[arg(long, value_name = "FILE")]
    pub(crate) config: PathBuf,

    /// JWKS file, or JSON object of JWKS documents by issuer URL
    #[arg(long, value_name = "FILE")]
    pub(crate) jwks: Option<PathBuf>,

    /// Fetch the keys, and the token's distributed claims, from the issuer
    #[arg(long, conflicts_with = "jwks")]
    pub(crate) online: bool,

    /// File with the token [default: standard input]
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,

    /// Time to evaluate the token at, in seconds since 1970 [default: now]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) now: Option<i64>,

    #[command(flatten)]
    pub(crate) settings: SettingsArgs,

    /// Also show the values of subexpressions, which include the token's claims
    #[arg(long)]
    pub(crate) show_values: bool,
}
