//! What is wrong with a context: walks the whole way of a request step by step, says what it saw at each, and ends with
//! the one thing to do.
//!
//! ```text
//! kubeconfig (file, context, cluster, user, authority) ──▶ connection (dns, tcp, tls) ──▶ plugin (plugin, policy, run,
//! versions) ──▶ credential (expiry) ──▶ answer (clock, request) ──▶ Report::to_do
//! ```
//!
//! Every step goes through the code a client goes through; nothing here decides anew. No text holds a secret.

mod answer;
mod connection;
mod credential;
mod kubeconfig;
mod plugin;
mod report;

use std::path::PathBuf;

use crate::credential::SharedFiles;
use crate::exec;
use crate::in_cluster::PodEnvironment;
use crate::kubeconfig::{Overrides, Sources};
use crate::transport;

use report::Walk;
pub use report::{Conclusion, Finding, Report, Step, Verdict};

/// What is examined, and with what.
#[derive(Clone)]
pub struct Patient {
    /// Where the kubeconfig is.
    pub sources: Sources,
    /// What the command line says instead of it.
    pub overrides: Overrides,
    /// What relative names of files are relative to.
    pub current_dir: PathBuf,
    /// Whether this is a pod.
    pub pod: PodEnvironment,
    /// Where files are read from.
    pub files: SharedFiles,
    /// How plugins are run.
    pub exec: exec::Settings,
    /// The clock, the runner, the environment, the plugin policy.
    pub around: exec::Surroundings,
    /// The variables that a transport heeds.
    pub transport: transport::Environment,
}

/// The spine. Every finding is told as soon as it is there, in the order of [`Step`]. Call it inside a tokio runtime.
///
/// The plugin is run once if the server can be reached; it may ask its user something if there is a terminal.
pub async fn examine(patient: &Patient, tell: &mut (dyn FnMut(&Finding) + Send)) -> Report {
    let mut walk = Walk::new(tell);
    let Some(effective) = kubeconfig::read(patient, &mut walk) else { return walk.end() };
    let reached = connection::reach(patient, &effective, &mut walk).await;
    let held = plugin::credential(patient, &effective, reached.is_some(), &mut walk).await;
    credential::look(patient, &effective, held.as_ref(), &mut walk);
    if let Some(reached) = reached {
        answer::compare_clocks(patient, &reached, &mut walk);
        answer::ask(patient, &effective, held, &mut walk).await;
    }
    walk.end()
}

#[cfg(test)]
mod tests;
