//! Diagnoses a context: checks every step of a request in order, reports the result of each, and ends with the one thing
//! to do.
//!
//! ```text
//! kubeconfig (file, context, cluster, user, authority) ──▶ connection (dns, tcp, tls) ──▶ plugin (plugin, policy, run,
//! versions) ──▶ credential (expiry) ──▶ request (clock, request) ──▶ DoctorReport::to_do
//! ```
//!
//! Every step uses the client's own code. No text contains a secret.

mod connection;
mod credential;
mod kubeconfig;
mod plugin;
mod report;
mod request;

use std::path::PathBuf;

use crate::credential::SharedFiles;
use crate::exec;
use crate::in_cluster::PodEnvironment;
use crate::kubeconfig::{KubeconfigSources, Overrides};
use crate::transport;

use report::ReportBuilder;
pub use report::{Conclusion, DoctorReport, DoctorStep, StepResult, StepStatus};

/// The context to diagnose, and the dependencies.
#[derive(Clone)]
pub struct Patient {
    /// The location of the kubeconfig.
    pub sources: KubeconfigSources,
    /// Command-line overrides.
    pub overrides: Overrides,
    /// The directory that relative paths are resolved against.
    pub current_dir: PathBuf,
    /// The in-cluster environment.
    pub pod: PodEnvironment,
    /// The file system.
    pub files: SharedFiles,
    /// How plugins are run.
    pub exec: exec::ExecSettings,
    /// The clock, the runner, the environment, the plugin policy.
    pub around: exec::Surroundings,
    /// The environment variables the transport uses.
    pub transport: transport::TransportEnvironment,
}

/// Diagnoses a context. Calls `on_result` with each result in the order of [`DoctorStep`]. Requires a tokio runtime.
///
/// Runs the plugin once if the server is reachable; the plugin may prompt if there is a terminal.
pub async fn diagnose(patient: &Patient, on_result: &mut (dyn FnMut(&StepResult) + Send)) -> DoctorReport {
    let mut report = ReportBuilder::new(on_result);
    let Some(effective) = kubeconfig::read(patient, &mut report) else { return report.finish() };
    let reached = connection::reach(patient, &effective, &mut report).await;
    let obtained = plugin::obtain_credential(patient, &effective, reached.is_some(), &mut report).await;
    credential::check_expiry(patient, &effective, obtained.as_ref(), &mut report);
    if let Some(reached) = reached {
        request::compare_clocks(patient, &reached, &mut report);
        request::send_request(patient, &effective, obtained, &mut report).await;
    }
    report.finish()
}

#[cfg(test)]
mod tests;
