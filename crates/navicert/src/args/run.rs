//! Arguments of `navicert run` and `navicert gateway`.

use std::ffi::OsString;

use clap::{Args, ValueEnum};

use super::ConnectionArgs;

pub(crate) const RUN_HELP: &str = "\
Examples:
  navicert run -- kubectl get pods
  navicert run --context prod --read-only -- bash

The command gets a KUBECONFIG that points to a private gateway on the loopback address. The gateway holds the credential;
the command gets a token that is valid for this gateway only, while it runs. The exit code is the command's; 127 if the
command is not found, 126 if it is not executable.";

pub(crate) const GATEWAY_HELP: &str = "\
Examples:
  navicert gateway --context prod

In other terminals, `navicert run --context prod --gateway auto -- COMMAND` uses it. \
Prints the path of a kubeconfig and serves until interrupted (Ctrl-C or SIGTERM).";

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) access: AccessArgs,

    /// Gateway to use
    #[arg(long, value_enum, value_name = "WHICH", default_value_t)]
    pub(crate) gateway: GatewayChoice,

    /// Environment variable to remove from the command's environment; repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) drop_env: Vec<OsString>,

    /// Command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct GatewayArgs {
    #[command(flatten)]
    pub(crate) access: AccessArgs,
}

// Cluster a gateway gives access to, and what it allows.
#[derive(Debug, Args)]
pub(crate) struct AccessArgs {
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,

    /// Reject create, update, patch, delete, exec, attach, port-forward and proxy requests
    #[arg(long, help_heading = "Options")]
    pub(crate) read_only: bool,
}

/// Gateway to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum GatewayChoice {
    /// Private gateway for this command
    #[default]
    Own,
    /// Running `navicert gateway` for the same context and user, or a private one
    Auto,
}
