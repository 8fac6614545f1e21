//! Arguments of `navicert cel`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::Value;

use super::Profile;

#[derive(Debug, Subcommand)]
pub(crate) enum CelVerb {
    /// Say whether an expression compiles, and what type it has
    Check(CheckArgs),
    /// Evaluate an expression over claims, a user or variables
    Eval(EvalArgs),
}

/// Which variables an expression may use.
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
    /// The expression; `-` reads it from standard input
    pub(crate) expression: String,

    /// Which variables it may use
    #[arg(long = "for", value_enum, default_value_t, value_name = "SUBJECT")]
    pub(crate) subject: Subject,

    /// It has to be a rule: of type bool
    #[arg(long)]
    pub(crate) rule: bool,

    #[command(flatten)]
    pub(crate) language: LanguageArgs,
}

#[derive(Debug, Args)]
pub(crate) struct EvalArgs {
    /// The expression; `-` reads it from standard input
    #[arg(required_unless_present = "jsonl")]
    pub(crate) expression: Option<String>,

    /// JSON file with the claims of a token, for the variable `claims`
    #[arg(long, value_name = "FILE")]
    pub(crate) claims: Option<PathBuf>,

    /// JSON file with `username`, `uid`, `groups` and `extra`, for the variable `user`
    #[arg(long, value_name = "FILE", conflicts_with = "claims")]
    pub(crate) user: Option<PathBuf>,

    /// A variable of your own, repeatable; its numbers are int where they are whole
    #[arg(long = "var", value_name = "NAME=JSON", value_parser = variable, conflicts_with_all = ["claims", "user"])]
    pub(crate) variables: Vec<(String, Value)>,

    /// It has to be a rule: of type bool; then false exits with 1
    #[arg(long)]
    pub(crate) rule: bool,

    /// Also show the value of every part of the expression
    #[arg(long)]
    pub(crate) trace: bool,

    /// Read one JSON object per line from standard input and answer each with one line
    #[arg(long, conflicts_with_all = ["expression", "claims", "user", "variables", "rule", "trace"])]
    pub(crate) jsonl: bool,

    #[command(flatten)]
    pub(crate) language: LanguageArgs,
}

#[derive(Debug, Args)]
pub(crate) struct LanguageArgs {
    /// Whose language: `kube` is exactly Kubernetes'; `hardened` also stops an evaluation that takes longer than a second
    #[arg(long, value_enum, value_name = "PROFILE")]
    pub(crate) profile: Option<Profile>,

    /// Also the libraries math, encoders (base64) and bindings (cel.bind), which Kubernetes does not have
    #[arg(long)]
    pub(crate) extended: bool,
}

fn variable(text: &str) -> Result<(String, Value), String> {
    let (name, json) = text.split_once('=').ok_or("expected NAME=JSON")?;
    let value = serde_json::from_str(json)
        .map_err(|error| format!("the value is not JSON at column {}", error.column()))?;
    Ok((name.to_owned(), value))
}
