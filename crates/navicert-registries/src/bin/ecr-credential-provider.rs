//! `ecr-credential-provider`: image credentials of Amazon ECR, for kubelets, and as docker-credential-… for everybody else.

use std::process::ExitCode;

use navicert_registries::entry;
use navicert_registries::program::Which;

fn main() -> ExitCode {
    entry::main(Which::Ecr)
}
