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
mod duplicates;
mod front_proxy;
mod handshake;
mod kubeconfig;
mod plugin;
mod proxy;
mod rejection;
mod report;
mod request;
mod signer;
mod switch;
mod tls_probe;

use http::HeaderName;

use crate::config::{Config, ConfigOptions};
use crate::context::ClientContext;
use crate::exec;

use report::ReportBuilder;
pub use report::{Conclusion, DoctorEvent, DoctorReport, DoctorStep, StepResult, StepStatus};

/// The configuration to diagnose, and the dependencies.
struct DoctorInputs {
    config: Config,
    exec: exec::ExecSettings,
    client_context: ClientContext,
    /// The header in which the credential's owner, a front proxy, names users.
    front_proxy: Option<HeaderName>,
}

/// Diagnoses a context. Calls `on_event` with each result in the order of [`DoctorStep`]. Requires a tokio runtime.
///
/// Runs the plugin once if the server is reachable; the plugin may prompt if there is a terminal.
pub async fn diagnose(
    options: &ConfigOptions,
    on_event: &mut (dyn FnMut(DoctorEvent<'_>) + Send),
) -> DoctorReport {
    run(options, None, on_event).await
}

/// The same for the context of a front proxy, whose client certificate names users in this header. The last step checks
/// whether the server accepts the header from the certificate, and only for that purpose.
pub async fn diagnose_front_proxy(
    options: &ConfigOptions,
    user_header: HeaderName,
    on_event: &mut (dyn FnMut(DoctorEvent<'_>) + Send),
) -> DoctorReport {
    run(options, Some(user_header), on_event).await
}

async fn run(
    options: &ConfigOptions,
    front_proxy: Option<HeaderName>,
    on_event: &mut (dyn FnMut(DoctorEvent<'_>) + Send),
) -> DoctorReport {
    let mut report = ReportBuilder::new(on_event);
    let Some(config) = kubeconfig::read(options, &mut report) else { return report.finish() };
    let client_context = config.client_context();
    let exec = exec::ExecSettings::default();
    let inputs = &DoctorInputs { config, exec, client_context, front_proxy };
    let effective = &inputs.config.effective;
    let reached = connection::reach(inputs, effective, &mut report).await;
    let obtained = plugin::obtain_credential(inputs, effective, reached.is_some(), &mut report).await;
    credential::check_expiry(inputs, effective, obtained.as_ref(), &mut report);
    if let Some(reached) = reached {
        clock::compare(&reached, &mut report);
        request::send_request(inputs, effective, &reached, obtained, &mut report).await;
    }
    report.finish()
}

#[cfg(test)]
mod tests;
