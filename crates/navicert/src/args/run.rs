//! The flags of `navicert run` and `navicert gateway`.

use std::ffi::OsString;

use clap::{Args, ValueEnum};

use super::ConnectionArgs;

pub(crate) const RUN_HELP: &str = "\
Examples:
  navicert run -- kubectl get pods
  navicert run --context prod --read-only -- bash

The command finds a kubeconfig in KUBECONFIG that leads to a private gateway on loopback. The gateway has the credential;
the command has a token that is good for this gateway and as long as it runs. The exit code is the command's own; 127
if there is no such command, 126 if it cannot be executed.";

pub(crate) const GATEWAY_HELP: &str = "\
Example: navicert gateway --context prod     and in other terminals: navicert run --context prod --gateway auto -- CMD

Prints the path of a kubeconfig and serves until it is told to end (Ctrl-C, SIGTERM).";

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) access: AccessArgs,

    /// Whose gateway to use
    #[arg(long, value_enum, value_name = "WHICH", default_value_t)]
    pub(crate) gateway: WhichGateway,

    /// Variable that the command does not inherit, such as a secret of the credential plugin; repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) drop_env: Vec<OsString>,

    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct GatewayArgs {
    #[command(flatten)]
    pub(crate) access: AccessArgs,
}

/// What a gateway gives access to.
#[derive(Debug, Args)]
pub(crate) struct AccessArgs {
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,

    /// Refuse whatever would change something: create, update, patch, delete, exec, attach, port-forward, proxy
    #[arg(long, help_heading = "Options")]
    pub(crate) read_only: bool,
}

/// Whose gateway to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum WhichGateway {
    /// One of its own, for this command alone
    #[default]
    Own,
    /// That of a running `navicert gateway` for the same context and user, if there is one
    Auto,
}
