//! `ecr-credential-provider`: kubelet image credential provider for Amazon ECR; as `docker-credential-…`, a docker credential
//! helper.

use std::process::ExitCode;

use navicert_registries::ecr::Ecr;
use navicert_registries::entry;

fn main() -> ExitCode {
    entry::main::<Ecr>()
}
