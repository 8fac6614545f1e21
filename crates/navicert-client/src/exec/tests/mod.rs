//! The authenticator with a scripted runner and a manual clock. Tests with real processes are in `tests/`.

mod failures;
mod freshness;
mod identity;
mod policy;
mod rejections;
mod runs;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use navicert_plugin::{BackoffSettings, Environment, Script, ScriptedRunner};
use navicert_types::clock::ManualClock;
use navicert_types::{Clock, Timestamp};

use super::interactive::FixedTerminal;
use super::*;
use crate::context::ClientContext;
use crate::credential::{
    Credential, CredentialError, CredentialSource, Generation, Rejection, RequestOrigin, block_on,
};
use crate::kubeconfig::{Effective, KubeconfigSources, MemoryFileSystem, Overrides};
use crate::metrics::Metrics;

const NOW: i64 = 1_900_000_000;

/// A clock, a runner and a recorder, and authenticators that use them.
struct Fixture {
    clock: Arc<ManualClock>,
    runner: Arc<ScriptedRunner>,
    metrics: Arc<Metrics>,
    client_context: ClientContext,
    settings: ExecSettings,
}

impl Fixture {
    fn new(scripts: impl IntoIterator<Item = Script>) -> Self {
        let clock = Arc::new(ManualClock::at(NOW));
        let runner = Arc::new(ScriptedRunner::new(scripts));
        let metrics = Arc::new(Metrics::new());
        let client_context = ClientContext {
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            runner: Arc::clone(&runner) as Arc<dyn navicert_plugin::Runner>,
            terminal: Arc::new(FixedTerminal::default()),
            environment: [("PATH", "/bin"), ("HOME", "/home/me")].into_iter().collect::<Environment>(),
            policy: PluginPolicy::default(),
            recorder: Arc::clone(&metrics) as Arc<dyn crate::metrics::Recorder>,
            registry: AuthenticatorRegistry::new(),
            ..ClientContext::system()
        };
        // No jitter, so that tests know the exact delays.
        let backoff = BackoffSettings { jitter: 0.0, ..BackoffSettings::default() };
        let settings = ExecSettings { backoff: Some(backoff), ..ExecSettings::default() };
        Fixture { clock, runner, metrics, client_context, settings }
    }

    /// Behaves like client-go: no early refresh, no back-off.
    fn like_upstream(mut self) -> Self {
        self.settings.leeway = Duration::ZERO;
        self.settings.past_expiry = Duration::ZERO;
        self.settings.backoff = None;
        self
    }

    fn authenticator(&self, exec: &str) -> Authenticator {
        Authenticator::new(plugin(exec), self.settings.clone(), self.client_context.clone())
    }

    fn shell_authenticator(&self) -> Authenticator {
        self.authenticator("{command: /bin/sh, interactiveMode: Never}")
    }

    fn runs(&self) -> usize {
        self.runner.commands().len()
    }

    fn advance_seconds(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }
}

fn effective(cluster: &str, exec: &str) -> Effective {
    let text = format!(
        "clusters: [{{name: c, cluster: {cluster}}}]\nusers: [{{name: u, user: {{exec: {exec}}}}}]\n\
         contexts: [{{name: x, context: {{cluster: c, user: u}}}}]\ncurrent-context: x\n"
    );
    let files = MemoryFileSystem::new("/no-such-root", [(PathBuf::from("config"), text.into_bytes())]);
    let sources = KubeconfigSources::list([PathBuf::from("config")]);
    crate::kubeconfig::load(&sources, Path::new("/no-such-root"), &files)
        .map(crate::kubeconfig::MergedKubeconfig::new)
        .unwrap()
        .selection(&Overrides::default())
        .unwrap()
}

fn plugin_in(cluster: &str, exec: &str) -> Plugin {
    let exec = with_version(exec);
    Plugin::from_effective(&effective(cluster, &exec), &MemoryFileSystem::new("/no-such-root", []))
        .unwrap()
        .unwrap()
}

/// The fragment with a version, if it has none.
fn with_version(exec: &str) -> String {
    if exec.contains("apiVersion") {
        return exec.to_owned();
    }
    exec.trim_end_matches('}').to_owned() + ", apiVersion: client.authentication.k8s.io/v1}"
}

fn plugin(exec: &str) -> Plugin {
    plugin_in("{server: 'https://127.0.0.1:6443'}", exec)
}

fn output(status: &str) -> String {
    format!("{{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"status\":{{{status}}}}}")
}

fn token(token: &str) -> Script {
    Script::prints(output(&format!("\"token\":\"{token}\"")))
}

/// A token that expires this many seconds after the start of the test.
fn token_until(token: &str, seconds: i64) -> Script {
    let expiry = Timestamp::from_second(NOW + seconds).unwrap();
    Script::prints(output(&format!("\"token\":\"{token}\",\"expirationTimestamp\":\"{expiry}\"")))
}

fn with_certificate(certificate: &str, key: &str) -> Script {
    let escaped = |pem: &str| pem.replace('\n', "\\n");
    let status = format!(
        "\"clientCertificateData\":\"{}\",\"clientKeyData\":\"{}\"",
        escaped(certificate),
        escaped(key)
    );
    Script::prints(output(&status))
}

fn pair() -> (String, String) {
    let made = rcgen::generate_simple_self_signed(vec!["a.example".to_owned()]).unwrap();
    (made.cert.pem(), made.signing_key.serialize_pem())
}

fn bearer(credential: &Credential) -> String {
    let header = credential.authorization.as_ref().map(|value| value.to_str().unwrap().to_owned());
    header.unwrap_or_default().trim_start_matches("Bearer ").to_owned()
}

fn current(authenticator: &Authenticator) -> Result<String, String> {
    current_as(authenticator, RequestOrigin::Background)
}

fn current_as(authenticator: &Authenticator, origin: RequestOrigin) -> Result<String, String> {
    let result: Result<Arc<Credential>, CredentialError> = block_on(authenticator.get(origin));
    result.map(|credential| bearer(&credential)).map_err(|error| navicert_types::error_chain(&error))
}

fn reject(authenticator: &Authenticator, generation: Generation) -> Result<Option<String>, String> {
    let result = block_on(authenticator.refresh_rejected(generation, Rejection::Unauthorized(None)));
    result
        .map(|found| found.map(|credential| bearer(&credential)))
        .map_err(|error| navicert_types::error_chain(&error))
}

fn generation(authenticator: &Authenticator) -> Generation {
    authenticator.cached().unwrap().generation
}
