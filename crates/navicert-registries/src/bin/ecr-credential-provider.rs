//! `ecr-credential-provider`: kubelet image credential provider for Amazon ECR; as `docker-credential-…`, a docker credential
//! helper.

use std::process::ExitCode;

fn main() -> ExitCode {
    navicert_registries::ecr_credential_provider()
}
