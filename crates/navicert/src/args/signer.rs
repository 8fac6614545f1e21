//! The flags of `navicert signer`. There is none for a PIN: an argument is visible to every user of the machine.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum SignerVerb {
    /// Show tokens, their keys and certificates, what each can sign, and the kubeconfig lines that use it
    #[command(after_help = "\
Example: navicert signer list --module /usr/lib/x86_64-linux-gnu/libykcs11.so

Without a module, NAVICERT_PKCS11_MODULE or the usual places are looked at. No PIN is needed.")]
    List(ListArgs),
    /// Make one test signature per scheme, and check each
    #[command(after_help = "\
Example: navicert signer check 'pkcs11:token=YubiKey;id=%01?module-path=/usr/lib/libykcs11.so'

The PIN is asked for at the terminal, by NAVICERT_PINENTRY, or read from the URI's `pin-source` file.")]
    Check(CheckArgs),
    /// Log in once and sign for every client of this user, until stopped
    #[command(after_help = "\
Example: navicert signer serve 'pkcs11:token=YubiKey;id=%01?module-path=/usr/lib/libykcs11.so'

Clients whose kubeconfig has `signerApiVersion: v1` find it by themselves, and need no PIN while it runs.")]
    Serve(ServeArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// PKCS#11 module to look into; several times for several
    #[arg(long, value_name = "FILE")]
    pub(crate) module: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The key, as a `pkcs11:` URI (RFC 7512)
    #[arg(value_name = "URI")]
    pub(crate) uri: String,
}

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// The keys, as `pkcs11:` URIs (RFC 7512)
    #[arg(value_name = "URI", required = true)]
    pub(crate) uri: Vec<String>,

    /// Socket to listen on, instead of `navicert/signer.sock` in the runtime folder
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
}
