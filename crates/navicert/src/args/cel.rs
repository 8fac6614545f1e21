//! Arguments of `navicert cel`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use navicert_authn::KubeVersion;
use serde_json::Value;

use super::{Profile, examples};

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum CelVerb {
    /// Compile an expression and print its type
    #[command(after_help = examples::CEL_CHECK)]
    Check(CheckArgs),
    /// Evaluate an expression over claims, a user or variables
    #[command(after_help = examples::CEL_EVAL)]
    Eval(EvalArgs),
}

/// Variables an expression may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Subject {
    /// Claim mappings and claim validation rules: `claims`
    #[default]
    Claims,
    /// User validation rules: `user`
    User,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Expression; `-` reads it from standard input
    pub(crate) expression: String,

    /// Variables the expression may use
    #[arg(long = "for", value_enum, default_value_t, value_name = "SUBJECT")]
    pub(crate) subject: Subject,

    /// Require type bool, as for a validation rule
    #[arg(long)]
    pub(crate) rule: bool,

    #[command(flatten)]
    pub(crate) language: LanguageArgs,
}

#[derive(Debug, Args)]
pub(crate) struct EvalArgs {
    /// Expression; `-` reads it from standard input
    #[arg(required_unless_present = "jsonl")]
    pub(crate) expression: Option<String>,

    /// JSON file with the claims of a token, for the variable `claims`
    #[arg(long, value_name = "FILE")]
    pub(crate) claims: Option<PathBuf>,

    /// JSON file with `username`, `uid`, `groups` and `extra`, for the variable `user`
    #[arg(long, value_name = "FILE", conflicts_with = "claims")]
    pub(crate) user: Option<PathBuf>,

    /// Variable to define, with whole numbers as int; repeatable
    #[arg(long = "var", value_name = "NAME=JSON", value_parser = variable, conflicts_with_all = ["claims", "user"])]
    pub(crate) variables: Vec<(String, Value)>,

    /// Require type bool, and exit with 1 if the value is false
    #[arg(long)]
    pub(crate) rule: bool,

    /// Also print the value of every subexpression
    #[arg(long)]
    pub(crate) trace: bool,

    /// Read one JSON object per line from standard input and print one result line for each
    #[arg(long, conflicts_with_all = ["expression", "claims", "user", "variables", "rule", "trace"])]
    pub(crate) jsonl: bool,

    #[command(flatten)]
    pub(crate) language: LanguageArgs,
}

#[derive(Debug, Args)]
pub(crate) struct LanguageArgs {
    /// Rules to apply: `kube` evaluates exactly as Kubernetes; `hardened` also stops after one second
    #[arg(long, value_enum, value_name = "PROFILE")]
    pub(crate) profile: Option<Profile>,

    /// Kubernetes version whose rules apply [default: 1.37]
    #[arg(long, value_name = "VERSION", value_parser = super::kube_versions())]
    pub(crate) kube_version: Option<KubeVersion>,

    /// Also enable the math, encoders (base64) and bindings (cel.bind) libraries, which Kubernetes lacks
    #[arg(long)]
    pub(crate) extended: bool,
}

impl LanguageArgs {
    /// The minor version of Kubernetes.
    pub(crate) fn minor(&self) -> u16 {
        self.kube_version.unwrap_or_default().minor()
    }
}

fn variable(text: &str) -> Result<(String, Value), String> {
    let (name, json) = text.split_once('=').ok_or("expected NAME=JSON")?;
    let value = serde_json::from_str(json)
        .map_err(|error| format!("the value is invalid JSON at column {}", error.column()))?;
    Ok((name.to_owned(), value))
}
