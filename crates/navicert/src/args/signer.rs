//! Arguments of `navicert signer`. No flag takes a PIN: command lines are visible to every user of the machine.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::examples;

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum SignerVerb {
    /// List tokens with their keys, certificates and signature schemes, and the kubeconfig lines to use them
    #[command(after_help = examples::SIGNER_LIST)]
    List(ListArgs),
    /// Create and verify one test signature per scheme
    #[command(after_help = examples::SIGNER_CHECK)]
    Check(CheckArgs),
    /// Log in once and sign for all clients of this user
    #[command(after_help = examples::SIGNER_SERVE)]
    Serve(ServeArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// PKCS#11 module to search; repeatable
    #[arg(long, value_name = "FILE")]
    pub(crate) module: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Key, as a `pkcs11:` URI (RFC 7512)
    #[arg(value_name = "URI")]
    pub(crate) uri: String,
}

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Keys, as `pkcs11:` URIs (RFC 7512)
    #[arg(value_name = "URI", required = true)]
    pub(crate) uri: Vec<String>,

    /// Socket to listen on [default: `navicert/signer.sock` in the runtime directory]
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
}
