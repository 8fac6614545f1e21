//! `auth-provider-gcp`: kubelet image credential provider for Google registries (also called `gcp-credential-provider`);
//! as `docker-credential-…`, a docker credential helper.

use std::process::ExitCode;

use navicert_registries::entry;
use navicert_registries::gcp::Gcp;

fn main() -> ExitCode {
    entry::main::<Gcp>()
}
