//! `acr-credential-provider`: image credentials of Azure's registries, for kubelets, and as docker-credential-… for everybody else.

use std::process::ExitCode;

use navicert_registries::acr::Acr;
use navicert_registries::entry;

fn main() -> ExitCode {
    entry::main::<Acr>()
}
