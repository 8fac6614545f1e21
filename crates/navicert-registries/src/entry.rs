//! Process entry point: arguments, environment, standard streams, exit code.

use std::env;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;

use navicert_plugin::Environment;
use navicert_types::SystemClock;

use crate::acr::Acr;
use crate::ecr::Ecr;
use crate::gcp::Gcp;
use crate::http::ThreadSleep;
use crate::program::{Invocation, ProviderProgram, run};

/// Runs `acr-credential-provider` as this process.
pub fn acr_credential_provider() -> ExitCode {
    main::<Acr>()
}

/// Runs `auth-provider-gcp` as this process.
pub fn auth_provider_gcp() -> ExitCode {
    main::<Gcp>()
}

/// Runs `ecr-credential-provider` as this process.
pub fn ecr_credential_provider() -> ExitCode {
    main::<Ecr>()
}

fn main<P: ProviderProgram>() -> ExitCode {
    let mut arguments = env::args_os();
    let name = arguments.next().unwrap_or_default();
    let invocation = Invocation {
        name,
        arguments: arguments.collect(),
        environment: environment(),
        clock: Arc::new(SystemClock),
        sleep: Box::new(ThreadSleep),
    };
    let outcome = run::<P>(invocation, &mut io::stdin().lock());
    // Secrets go to standard output only. A failed write to standard error cannot be reported.
    let written = io::stdout().write_all(outcome.stdout.expose()).and_then(|()| io::stdout().flush());
    let _ = io::stderr().write_all(outcome.stderr.as_bytes());
    if written.is_err() { ExitCode::FAILURE } else { ExitCode::from(outcome.code) }
}

#[expect(clippy::disallowed_methods, reason = "the only place that reads the environment")]
fn environment() -> Environment {
    env::vars_os().collect()
}
