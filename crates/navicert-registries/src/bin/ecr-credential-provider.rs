//! `ecr-credential-provider`: image credentials of Amazon ECR, for kubelets, and as docker-credential-… for everybody else.

use std::process::ExitCode;

use navicert_registries::ecr::Ecr;
use navicert_registries::entry;

fn main() -> ExitCode {
    entry::main::<Ecr>()
}
