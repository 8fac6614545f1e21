//! `auth-provider-gcp`: kubelet image credential provider for Google registries (also called `gcp-credential-provider`);
//! as `docker-credential-…`, a docker credential helper.

use std::process::ExitCode;

fn main() -> ExitCode {
    navicert_registries::auth_provider_gcp()
}
