//! Diagnoses a context: checks every step of a request in order, reports the result of each, and ends with the one thing
//! to do.
//!
//! ```text
//! kubeconfig (file, context, cluster, user, authority) ──▶ connection (proxy, dns, tcp, tls, server) ──▶ plugin (plugin,
//! policy, run, versions) ──▶ credential (expiry) ──▶ clock ──▶ request ──▶ DoctorReport::to_do
//! ```
//!
//! Every step uses the client's own code. No text contains a secret.

mod api_server;
mod clock;
mod connection;
mod credential;
mod handshake;
mod kubeconfig;
mod plugin;
mod proxy;
mod rejection;
mod report;
mod request;
mod signer;
mod tls_probe;

use std::path::PathBuf;

use crate::credential::SharedFiles;
use crate::exec;
use crate::in_cluster::PodEnvironment;
use crate::kubeconfig::{KubeconfigSources, Overrides};
use crate::transport;

use report::ReportBuilder;
pub use report::{Conclusion, DoctorEvent, DoctorReport, DoctorStep, StepResult, StepStatus};

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

/// Diagnoses a context. Calls `on_event` with each result in the order of [`DoctorStep`]. Requires a tokio runtime.
///
/// Runs the plugin once if the server is reachable; the plugin may prompt if there is a terminal.
pub async fn diagnose(patient: &Patient, on_event: &mut (dyn FnMut(DoctorEvent<'_>) + Send)) -> DoctorReport {
    let mut report = ReportBuilder::new(on_event);
    let Some(effective) = kubeconfig::read(patient, &mut report) else { return report.finish() };
    let reached = connection::reach(patient, &effective, &mut report).await;
    let obtained = plugin::obtain_credential(patient, &effective, reached.is_some(), &mut report).await;
    credential::check_expiry(patient, &effective, obtained.as_ref(), &mut report);
    if let Some(reached) = reached {
        clock::compare(&reached, &mut report);
        request::send_request(patient, &effective, &reached, obtained, &mut report).await;
    }
    report.finish()
}

#[cfg(test)]
mod tests;
