//! A client certificate with its key in an external signer: `auth-provider: name: externalSigner`. The certificate is
//! fetched before the first connection, so that a PIN is entered before the server waits; the signer signs the
//! handshake.
// C842

use std::fmt;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use navicert_plugin::{Backoff, Environment, FlightError, JoinError, Policy, SingleFlight, Stderr};
use navicert_signer::SignError;
use navicert_signer::pkcs11::KeySelection;
use navicert_signer::remote::{
    ExecSigner, ExecSignerSettings as SignerSettings, SignerProtocol, SignerTimeouts,
};
use navicert_types::external_signer::{SignerConfiguration, v1};
use navicert_types::tree::yaml_quoted;
use navicert_types::{Clock, error_chain, redact};
use thiserror::Error;

use super::{
    BoxFuture, ClientIdentity, Credential, CredentialError, CredentialSource, Generation, Rejection,
    RequestOrigin,
};
use crate::context::ClientContext;
use crate::exec::interactive::StdinUse;
use crate::exec::{ExecSettings, PluginPolicy};
use crate::kuberc::KubercError;

/// The settings of an external signer, checked.
#[derive(Clone)]
pub(crate) struct SignerPlan {
    pub(crate) program: String,
    pub(crate) configuration: SignerConfiguration,
    pub(crate) protocol: SignerProtocol,
    pub(crate) cluster: v1::SignerCluster,
    /// Whether the PIN in the configuration is used.
    pub(crate) allow_pin: bool,
}

/// Why an external signer returned no certificate.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum SignerError {
    /// The plugin policy does not allow it.
    // X1, X3
    #[error(
        "external signer `{program}` is not allowed: {reason}; to allow it, add this to your kuberc (~/.kube/kuberc):\n\n{lines}"
    )]
    Denied {
        /// The program.
        program: String,
        /// The policy's reason.
        reason: String,
        /// The complete kuberc that would allow it.
        lines: String,
    },
    /// The plugin policy cannot be read, so nothing may run.
    // C740
    #[error("external signer `{program}` is not allowed")]
    PolicyUnreadable {
        /// The program.
        program: String,
        /// The reason.
        #[source]
        policy: Arc<KubercError>,
    },
    /// The signer failed or could not be started.
    #[error("external signer failed")]
    Sign(#[source] SignError),
    /// The thread that ran the signer panicked.
    #[error("external signer failed")]
    Lost(#[source] JoinError),
}

impl SignerError {
    /// A PIN that was incorrect is not asked for again at once: devices lock.
    fn min_backoff(&self) -> Duration {
        match self {
            SignerError::Sign(error) => error.reason().min_backoff(),
            _ => Duration::ZERO,
        }
    }
}

/// Gets a client certificate from an external signer, and again when it has expired or was rejected.
///
/// Clients in one process with equal configurations share one certificate; each client's own policy decides whether it
/// may use it.
// C821, C841
#[derive(Clone)]
pub(crate) struct ExternalSigner {
    shared: Arc<SharedSigner>,
    settings: SignerSettings,
    policy: PluginPolicy,
    /// Set once this client's policy has allowed the signer.
    permitted: Arc<AtomicBool>,
}

/// The state that clients share.
pub(crate) struct SharedSigner {
    clock: Arc<dyn Clock>,
    state: Mutex<SignerState>,
    flights: SingleFlight<(), Arc<Credential>, SignerError>,
}

struct SignerState {
    current: Option<Arc<Credential>>,
    backoff: Option<Backoff>,
    failure: Option<SignerError>,
}

impl ExternalSigner {
    /// Creates the source. Runs nothing.
    pub(crate) fn new(plan: &SignerPlan, settings: &ExecSettings, client_context: &ClientContext) -> Self {
        let limits = SignerTimeouts {
            certificate: settings.timeout.unwrap_or(SignerTimeouts::default().certificate),
            interactive: settings.interactive_timeout.unwrap_or(SignerTimeouts::default().interactive),
            ..SignerTimeouts::default()
        };
        let settings = SignerSettings {
            program: plan.program.clone().into(),
            configuration: plan.configuration.clone(),
            protocol: plan.protocol,
            policy: Arc::default(),
            environment: without_variables(&client_context.environment, &settings.drop_env),
            runner: Arc::clone(&client_context.runner),
            clock: Arc::clone(&client_context.clock),
            // The signer prompts on the controlling terminal, so standard input may be a pipe (C226).
            interactive: client_context.terminal.has_controlling_terminal(),
            stdin_is_terminal: settings.stdin == StdinUse::Free
                && client_context.terminal.stdin_is_terminal(),
            cluster: Some(plan.cluster.clone()),
            limits,
            show: prompt_output(&settings.stderr),
            allow_pin: plan.allow_pin,
        };
        let shared = client_context.registry.signer(sharing_key(&settings), || SharedSigner {
            clock: Arc::clone(&client_context.clock),
            state: Mutex::new(SignerState { current: None, backoff: None, failure: None }),
            flights: SingleFlight::new(),
        });
        let (policy, permitted) = (client_context.policy.clone(), Arc::default());
        ExternalSigner { shared, settings, policy, permitted }
    }

    /// Fetches the certificate, or joins a fetch already in flight.
    async fn fetch(&self, origin: RequestOrigin) -> Result<Arc<Credential>, CredentialError> {
        self.check_policy()?;
        if let Some(failure) = self.shared.failure_in_backoff(origin) {
            return Err(failure.into());
        }
        let signer = self.clone();
        let outcome = self.shared.flights.join((), move || signer.connect()).await;
        outcome.map_err(|error| match error {
            FlightError::Failed(error) => error.into(),
            FlightError::Join(lost) => SignerError::Lost(lost).into(),
        })
    }
}

/// The key for sharing a signer between clients: the configuration without its PIN, and the cluster passed to the
/// signer.
// C841, X9
fn sharing_key(settings: &SignerSettings) -> String {
    let cluster = settings.cluster.as_ref();
    let server = cluster.map(|cluster| cluster.server.as_str()).unwrap_or_default();
    let name = cluster.map(|cluster| cluster.tls_server_name.as_str()).unwrap_or_default();
    format!("{}\n{server}\n{name}\n{}", settings.configuration.identity(), settings.allow_pin)
}

impl SharedSigner {
    fn lock(&self) -> MutexGuard<'_, SignerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fresh(&self) -> Option<Arc<Credential>> {
        let current = self.lock().current.clone()?;
        let has_expired = current.expires.is_some_and(|expires| expires < self.clock.now());
        (!has_expired).then_some(current)
    }

    /// The last failure, while backing off. Foreground requests do not wait.
    // C441
    fn failure_in_backoff(&self, origin: RequestOrigin) -> Option<SignerError> {
        let state = self.lock();
        state.backoff.as_ref().filter(|_| origin == RequestOrigin::Background)?.remaining()?;
        state.failure.clone()
    }
}

impl ExternalSigner {
    /// The cached certificate, if this client may use it.
    fn fresh(&self) -> Option<Arc<Credential>> {
        self.shared.fresh().filter(|_| self.permitted.load(Ordering::Acquire))
    }

    /// Checks this client's policy, even if another client already has the certificate.
    pub(crate) fn check_policy(&self) -> Result<(), SignerError> {
        if !self.permitted.load(Ordering::Acquire) {
            let settings = SignerSettings { policy: self.policy()?, ..self.settings.clone() };
            ExecSigner::check_policy(&settings).map_err(|error| self.explain_denial(error))?;
            self.permitted.store(true, Ordering::Release);
        }
        Ok(())
    }

    fn policy(&self) -> Result<Arc<Policy>, SignerError> {
        match &self.policy {
            PluginPolicy::Policy(policy) => Ok(Arc::clone(policy)),
            PluginPolicy::Broken(policy) => {
                Err(SignerError::PolicyUnreadable { program: self.program(), policy: Arc::clone(policy) })
            }
        }
    }

    fn program(&self) -> String {
        redact::terminal(&self.settings.program.to_string_lossy()).into_owned()
    }

    /// Adds the kuberc lines that would allow the signer to a policy denial.
    fn explain_denial(&self, error: SignError) -> SignerError {
        match error {
            SignError::Denied { source } => {
                let (reason, lines) = (error_chain(&source), self.kuberc_lines());
                SignerError::Denied { program: self.program(), reason, lines }
            }
            error => SignerError::Sign(error),
        }
    }

    fn connect(&self) -> Result<Arc<Credential>, SignerError> {
        let settings = SignerSettings { policy: self.policy()?, ..self.settings.clone() };
        let connected = ExecSigner::connect(settings);
        let mut state = self.shared.lock();
        match connected {
            Ok(identity) => {
                let identity = Arc::new(ClientIdentity::from_signer(Arc::new(identity)));
                let before = state.current.as_ref();
                let generation = match before {
                    Some(before)
                        if before.identity.as_ref().is_some_and(|one| one.has_same_chain(&identity)) =>
                    {
                        before.generation
                    }
                    Some(before) => before.generation.next(),
                    None => Generation::FIRST,
                };
                let expires = Some(identity.validity().not_after);
                let credential = Arc::new(Credential {
                    generation,
                    authorization: None,
                    identity: Some(identity),
                    expires,
                });
                state.current = Some(Arc::clone(&credential));
                (state.backoff, state.failure) = (None, None);
                Ok(credential)
            }
            Err(error) => {
                let error = self.explain_denial(error);
                let clock = Arc::clone(&self.settings.clock);
                let backoff = state.backoff.get_or_insert_with(|| Backoff::new(Default::default(), clock));
                backoff.record_failure_with_min_delay(error.min_backoff());
                state.failure = Some(error.clone());
                Err(error)
            }
        }
    }

    /// The kuberc that would allow exactly this signer.
    fn kuberc_lines(&self) -> String {
        let mut entry = format!("- command: {}\n", quoted(&self.settings.program.to_string_lossy()));
        let modules = KeySelection::named_module(&self.settings.configuration.0);
        if !modules.is_empty() {
            let modules: Vec<String> = modules.iter().map(|module| quoted(module)).collect();
            entry.push_str(&format!("  pathLib: [{}]\n", modules.join(", ")));
        }
        format!(
            "apiVersion: kubectl.config.k8s.io/v1beta1\nkind: Preference\ncredentialPluginPolicy: Allowlist\n\
             credentialPluginAllowlist:\n{entry}"
        )
    }
}

/// A YAML string that is safe to print.
fn quoted(text: &str) -> String {
    yaml_quoted(&redact::terminal(text))
}

fn without_variables(environment: &Environment, dropped: &[std::ffi::OsString]) -> Environment {
    let kept = environment.iter().filter(|(name, _)| !dropped.iter().any(|gone| gone == name));
    kept.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Prompts are written to the same output as a plugin's stderr.
fn prompt_output(stderr: &Stderr) -> Arc<dyn Fn(&str) + Send + Sync> {
    match stderr.clone() {
        Stderr::Forward(receiver) => Arc::new(move |text| receiver(format!("{text}\n").as_bytes())),
        Stderr::Inherit | Stderr::Null | Stderr::Tail(_) => Arc::new(|text| {
            // If stderr is closed, the prompt cannot be shown.
            let _ = writeln!(std::io::stderr(), "{text}");
        }),
    }
}

impl CredentialSource for ExternalSigner {
    fn cached(&self) -> Option<Arc<Credential>> {
        self.fresh()
    }

    fn get(&self, origin: RequestOrigin) -> BoxFuture<'_, Result<Arc<Credential>, CredentialError>> {
        Box::pin(async move {
            self.check_policy()?;
            match self.fresh() {
                Some(credential) => Ok(credential),
                None => self.fetch(origin).await,
            }
        })
    }

    fn may_preconnect(&self) -> bool {
        false
    }

    /// A 401 says nothing about a certificate that was accepted in the handshake; a TLS alert does.
    // C435
    fn refresh_rejected(
        &self,
        generation: Generation,
        reason: Rejection,
    ) -> BoxFuture<'_, Result<Option<Arc<Credential>>, CredentialError>> {
        Box::pin(async move {
            if let Some(newer) = self.fresh().filter(|current| current.generation > generation) {
                return Ok(Some(newer));
            }
            if !matches!(reason, Rejection::TlsAlert) {
                return Ok(None);
            }
            let credential = self.fetch(RequestOrigin::Background).await?;
            Ok((credential.generation > generation).then_some(credential))
        })
    }
}

impl fmt::Debug for SharedSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedSigner")
    }
}

impl fmt::Debug for ExternalSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExternalSigner").field("program", &self.settings.program).finish_non_exhaustive()
    }
}
