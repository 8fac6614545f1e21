//! Arguments of `navicert signer`. No flag takes a PIN: command lines are visible to every user of the machine.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::client::PluginArgs;
use super::exec_plugin::AllowlistArgs;
use super::{ConnectionArgs, duration, examples};

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum SignerVerb {
    /// List tokens with their keys, certificates and signature schemes, and the kubeconfig lines to use them
    #[command(after_help = examples::SIGNER_LIST)]
    List(ListArgs),
    /// Create and verify one test signature per scheme
    #[command(after_help = examples::SIGNER_CHECK)]
    Check(CheckArgs),
    /// Request a client certificate for a key that stays in its token, and store it beside the key
    #[command(after_help = examples::SIGNER_REQUEST)]
    Request(Box<RequestArgs>),
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

#[derive(Debug, Args)]
pub(crate) struct RequestArgs {
    /// Key, as a `pkcs11:` URI (RFC 7512)
    #[arg(value_name = "URI")]
    pub(crate) uri: String,

    /// Make the key in the token if it is missing
    #[arg(long, value_enum, value_name = "KIND")]
    pub(crate) generate: Option<NewKeyArg>,

    /// Common name: the user that the API server sees
    #[arg(long, value_name = "NAME")]
    pub(crate) common_name: Option<String>,

    /// Organization: a group that the API server sees; repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) organization: Vec<String>,

    /// Make a certificate that the key itself signs, instead of a request
    #[arg(long, conflicts_with_all = ["submit", "wait", "certificate"])]
    pub(crate) self_signed: bool,

    /// Use this certificate of the key, which an authority has issued, instead of making a request
    #[arg(long, value_name = "FILE", conflicts_with_all = ["submit", "wait", "common_name"])]
    pub(crate) certificate: Option<PathBuf>,

    /// Submit the request to the cluster as a CertificateSigningRequest
    #[arg(long)]
    pub(crate) submit: bool,

    /// Name of the CertificateSigningRequest [default: chosen by the server]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// Signer of the CertificateSigningRequest [default: kubernetes.io/kube-apiserver-client]
    #[arg(long, value_name = "NAME")]
    pub(crate) signer_name: Option<String>,

    /// Validity to request, at least 10m, or of a self-signed certificate [default: the signer's, or 8760h]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) valid_for: Option<Duration>,

    /// Wait until the CertificateSigningRequest is approved and the certificate issued
    #[arg(long)]
    pub(crate) wait: bool,

    /// How long to wait [default: 10m]
    #[arg(long, value_name = "DURATION", value_parser = duration, requires = "wait")]
    pub(crate) timeout: Option<Duration>,

    /// Store the certificate in the token, in place of an earlier one of the key
    #[arg(long)]
    pub(crate) store: bool,

    /// Write the request, or the certificate if there is one, to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,

    #[command(flatten)]
    pub(crate) plugins: PluginArgs,
}

/// A key to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum NewKeyArg {
    /// Elliptic curve P-256
    #[value(name = "ec-p256")]
    EcP256,
    /// RSA with 2048 bits
    #[value(name = "rsa-2048")]
    Rsa2048,
}
