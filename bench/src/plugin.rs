//! What it costs to run a plugin, against the least that starting a program and reading its output can cost.

pub(crate) mod bare;

use std::sync::Arc;

use navicert_plugin::{AllowlistEntry, Command, Environment, Policy, ProcessRunner, Runner};
use navicert_types::SystemClock;

use crate::race::{Contest, Fault, Race};
use bare::BareProgram;

/// The trivial plugin.
const PROGRAM: &str = "/bin/true";

pub(crate) fn races() -> Vec<Race> {
    let bare = "plugin: one run / bare posix_spawn, pipe, waitpid";
    let pinned = "plugin: one run under an allowlist / the same";
    let listed = || Policy::from_parts("Allowlist", Some(vec![AllowlistEntry::new(PROGRAM)]));
    vec![
        Race::new(bare, 1.3, || Ok(Contest::time(ours(Policy::AllowAll), reference()?)))
            .allocations_at_most(250),
        Race::new(pinned, 1.3, move || Ok(Contest::time(ours(listed()?), reference()?)))
            .allocations_at_most(250),
    ]
}

/// An environment of the usual size.
fn variables() -> Vec<(String, String)> {
    let path = [("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())];
    path.into_iter()
        .chain((0..24).map(|n| (format!("VARIABLE_{n}"), "a value of the usual length".to_owned())))
        .collect()
}

fn ours(policy: Policy) -> impl FnMut() -> Result<(), Fault> {
    let runner = ProcessRunner::new(Arc::new(SystemClock));
    let environment: Environment = variables().into_iter().collect();
    move || {
        let command = Command::new(PROGRAM, environment.clone()).protocol_env("KUBERNETES_EXEC_INFO", "{}");
        let stdout = runner.run(policy.permit(command)?)?.require_success()?;
        if stdout.is_empty() { Ok(()) } else { Err("it printed something".into()) }
    }
}

fn reference() -> Result<impl FnMut() -> Result<(), Fault>, Fault> {
    let mut environment = vec!["KUBERNETES_EXEC_INFO={}".to_owned()];
    environment.extend(variables().into_iter().map(|(name, value)| format!("{name}={value}")));
    let program = BareProgram::new(PROGRAM, environment)?;
    Ok(move || match program.run()? {
        (0, 0) => Ok(()),
        (bytes, status) => Err(format!("it printed {bytes} bytes and ended with status {status}").into()),
    })
}
