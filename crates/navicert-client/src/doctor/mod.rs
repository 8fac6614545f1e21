//! Diagnoses a context: checks every step of a request in order, reports the result of each, and ends with the one thing
//! to do.
//!
//! ```text
//! kubeconfig (file, context, cluster, user, authority) ──▶ connection (proxy, dns, tcp, tls, server) ──▶ plugin (plugin,
//! policy, login, run, versions) ──▶ credential (expiry) ──▶ clock ──▶ request ──▶ DoctorReport::to_do
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
mod login;
mod plugin;
mod proxy;
mod rejection;
mod report;
mod request;
mod signer;
mod switch;
mod tls_probe;

use std::sync::Arc;

use http::HeaderName;

use crate::config::{Config, ConfigOptions};
use crate::context::ClientContext;
use crate::exec;

pub use login::{FoundSession, InspectLogin, LoginFacts, LoginSessionFacts};
use report::ReportBuilder;
pub use report::{Conclusion, DoctorEvent, DoctorReport, DoctorStep, StepResult, StepStatus};

/// The configuration to diagnose, and the dependencies.
struct DoctorInputs {
    config: Config,
    exec: exec::ExecSettings,
    client_context: ClientContext,
    /// The header in which the credential's owner, a front proxy, names users.
    front_proxy: Option<HeaderName>,
    /// Who knows the sessions of login plugins.
    login: Option<Arc<dyn InspectLogin>>,
}

/// What a diagnosis takes besides the configuration.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct DoctorSettings {
    front_proxy: Option<HeaderName>,
    login: Option<Arc<dyn InspectLogin>>,
}

impl DoctorSettings {
    /// The context is that of a front proxy, whose client certificate names users in this header. The last step checks whether
    /// the server accepts the header from the certificate, and only for that purpose.
    pub fn front_proxy(mut self, user_header: HeaderName) -> Self {
        self.front_proxy = Some(user_header);
        self
    }

    /// The sessions of exec plugins that log in are examined by this.
    pub fn login(mut self, inspector: Arc<dyn InspectLogin>) -> Self {
        self.login = Some(inspector);
        self
    }
}

/// Diagnoses a context. Calls `on_event` with each result in the order of [`DoctorStep`]. Requires a tokio runtime.
///
/// Runs the plugin once if the server is reachable; the plugin may prompt if there is a terminal.
pub async fn diagnose(
    options: &ConfigOptions,
    on_event: &mut (dyn FnMut(DoctorEvent<'_>) + Send),
) -> DoctorReport {
    diagnose_with(options, DoctorSettings::default(), on_event).await
}

/// The same with settings.
pub async fn diagnose_with(
    options: &ConfigOptions,
    settings: DoctorSettings,
    on_event: &mut (dyn FnMut(DoctorEvent<'_>) + Send),
) -> DoctorReport {
    let mut report = ReportBuilder::new(on_event);
    let Some(config) = kubeconfig::read(options, &mut report) else { return report.finish() };
    let client_context = config.client_context();
    let exec = exec::ExecSettings::default();
    let DoctorSettings { front_proxy, login } = settings;
    let inputs = &DoctorInputs { config, exec, client_context, front_proxy, login };
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
