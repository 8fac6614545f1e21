//! Arguments of `navicert signer`. No flag takes a PIN: command lines are visible to every user of the machine.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::examples;
use super::exec_plugin::AllowlistArgs;

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum SignerVerb {
    /// List tokens with their keys, certificates and signature schemes, and the kubeconfig lines to use them
    #[command(after_help = examples::SIGNER_LIST)]
    List(ListArgs),
    /// Create and verify one test signature per scheme
    #[command(after_help = examples::SIGNER_CHECK)]
    Check(CheckArgs),
    /// Write the user of a key into the kubeconfig, and allow its signer in the kuberc
    #[command(after_help = examples::SIGNER_SETUP)]
    Setup(SetupArgs),
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
pub(crate) struct SetupArgs {
    /// Key, as a `pkcs11:` URI (RFC 7512) [default: the only key with a certificate]
    #[arg(value_name = "URI")]
    pub(crate) uri: Option<String>,

    /// PKCS#11 module to search; repeatable
    #[arg(long, value_name = "FILE")]
    pub(crate) module: Vec<PathBuf>,

    /// Name of the user [default: the common name of the certificate]
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,

    /// Context to set the user of
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,

    #[command(flatten)]
    pub(crate) write: AllowlistArgs,
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
