//! `acr-credential-provider`: kubelet image credential provider for Azure Container Registry; as `docker-credential-…`, a
//! docker credential helper.

use std::process::ExitCode;

fn main() -> ExitCode {
    navicert_registries::acr_credential_provider()
}
