//! `auth-provider-gcp`: image credentials of Google's registries, for kubelets (also called gcp-credential-provider), and as docker-credential-….

use std::process::ExitCode;

use navicert_registries::entry;
use navicert_registries::gcp::Gcp;

fn main() -> ExitCode {
    entry::main::<Gcp>()
}
