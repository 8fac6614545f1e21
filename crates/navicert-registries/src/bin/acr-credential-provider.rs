//! `acr-credential-provider`: kubelet image credential provider for Azure Container Registry; as `docker-credential-…`, a
//! docker credential helper.

use std::process::ExitCode;

use navicert_registries::acr::Acr;
use navicert_registries::entry;

fn main() -> ExitCode {
    entry::main::<Acr>()
}
