//! A client certificate whose key stays in another program: `auth-provider: name: externalSigner`
//! (client-credentials.md §8). The certificate is asked for before the first connection, so that a PIN is typed before
//! the server waits (C842); the key signs in the handshake.

use std::fmt;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use navicert_plugin::{Backoff, Environment, FlightError, Lost, Policy, SingleFlight, Stderr};
use navicert_signer::SignError;
use navicert_signer::pkcs11::Selection;
use navicert_signer::remote::{ExecSigner, Limits, Protocol, Settings as SignerSettings};
use navicert_types::external_signer::{Configuration, v1};
use navicert_types::kubeconfig::AuthProviderConfig;
use navicert_types::{Clock, redact};
use thiserror::Error;

use super::{
    Asking, BoxFuture, Credential, CredentialError, CredentialSource, Generation, Identity, Refused,
};
use crate::exec::interactive::Stdin;
use crate::exec::{PluginPolicy, Settings, Surroundings};
use crate::kubeconfig::Effective;
use crate::kuberc::KubercError;

/// What is wrong with a user that has an external signer, before anything runs.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SignerConfigError {
    /// No program; the prototype's words (C810).
    #[error("auth-provider `externalSigner`: Must provide pathExec")]
    NoProgram,
    /// Another credential beside it (C812).
    #[error(
        "auth-provider `externalSigner` cannot be combined with {0}: a hardware key would silently not be used"
    )]
    AnotherCredential(&'static str),
    /// A PIN in the file (X2).
    #[error(
        "auth-provider `externalSigner`: a `pin` in a kubeconfig is refused; remove it, and the signer asks for it, or use `pin-source=file:…` in `uri`"
    )]
    Pin,
    /// A setting with a value nobody knows.
    #[error("auth-provider `externalSigner`: the value of `{0}` is not understood")]
    Setting(&'static str),
}

/// Why a signer gave no certificate.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum SignerError {
    /// The policy does not name it (X1, X3).
    #[error(
        "the signer `{program}` may not run: {reason}; to allow it, put this into your kuberc (~/.kube/kuberc):\n\n{lines}"
    )]
    Denied {
        /// The program.
        program: String,
        /// The policy's word.
        reason: String,
        /// What to add, whole.
        lines: String,
    },
    /// There is a policy that cannot be read, so nothing may run (C740).
    #[error("the signer `{program}` is not run: {policy}")]
    PolicyUnreadable {
        /// The program.
        program: String,
        /// What is wrong.
        #[source]
        policy: Arc<KubercError>,
    },
    /// It ran, or could not.
    #[error("external signer: {}", .0.with_sources())]
    Sign(SignError),
    /// The thread that was to ask it did not come back.
    #[error("external signer: {0}")]
    Lost(#[source] Lost),
}

/// A certificate from an external signer, asked for once and again when it has expired or was turned down (C821).
///
/// Clients of one process whose configurations are the same share it (C841); whether a client may use it is decided by
/// that client's own policy.
#[derive(Clone)]
pub struct HardwareKey {
    shared: Arc<SharedKey>,
    settings: SignerSettings,
    policy: PluginPolicy,
    /// Set once this client's policy has agreed.
    permitted: Arc<AtomicBool>,
}

/// What clients share.
pub(crate) struct SharedKey {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    flights: SingleFlight<(), Arc<Credential>, SignerError>,
}

struct State {
    current: Option<Arc<Credential>>,
    backoff: Option<Backoff>,
    failure: Option<SignerError>,
}

impl HardwareKey {
    /// The signer of the selected user. Nothing is run.
    ///
    /// # Errors
    /// [`SignerConfigError`].
    pub fn of(
        provider: &AuthProviderConfig,
        effective: &Effective,
        settings: &Settings,
        around: &Surroundings,
    ) -> Result<Self, SignerConfigError> {
        let exposed = provider.config.iter().map(|(name, value)| (name.clone(), value.expose().clone()));
        let configuration = Configuration(exposed.collect());
        let program = configuration.value("pathExec").ok_or(SignerConfigError::NoProgram)?.to_owned();
        another_credential(effective)?;
        if configuration.value("pin").is_some() && !settings.allow_pin_in_kubeconfig {
            return Err(SignerConfigError::Pin);
        }
        let protocol = Protocol::of(&configuration).map_err(SignerConfigError::Setting)?;
        let limits = Limits {
            certificate: settings.limit.unwrap_or(Limits::default().certificate),
            interactive: settings.interactive_limit.unwrap_or(Limits::default().interactive),
            ..Limits::default()
        };
        let settings = SignerSettings {
            program: program.into(),
            configuration,
            protocol,
            policy: Arc::default(),
            environment: without(&around.environment, &settings.drop_env),
            runner: Arc::clone(&around.runner),
            clock: Arc::clone(&around.clock),
            interactive: settings.stdin == Stdin::Free && around.terminal.stdin_is_terminal(),
            cluster: Some(v1::Cluster {
                server: effective.server(),
                tls_server_name: effective.cluster.tls_server_name.clone(),
            }),
            limits,
            show: shown_at(&settings.stderr),
            allow_pin: settings.allow_pin_in_kubeconfig,
        };
        let shared = around.registry.signer(alike(&settings), || SharedKey {
            clock: Arc::clone(&around.clock),
            state: Mutex::new(State { current: None, backoff: None, failure: None }),
            flights: SingleFlight::new(),
        });
        let (policy, permitted) = (around.policy.clone(), Arc::default());
        Ok(HardwareKey { shared, settings, policy, permitted })
    }

    /// Asks the signer, unless somebody else is asking already.
    async fn ask(&self, asking: Asking) -> Result<Arc<Credential>, CredentialError> {
        self.permit()?;
        if let Some(failure) = self.shared.still_waiting(asking) {
            return Err(failure.into());
        }
        let asker = self.clone();
        let landed = self.shared.flights.join((), move || asker.connect()).await;
        landed.map_err(|error| match error {
            FlightError::Failed(error) => error.into(),
            FlightError::Lost(lost) => SignerError::Lost(lost).into(),
        })
    }
}

/// What makes two clients' signers one: the configuration without its PIN, and the cluster that the signer is told (C841,
/// X9).
fn alike(settings: &SignerSettings) -> String {
    let cluster = settings.cluster.as_ref();
    let server = cluster.map(|cluster| cluster.server.as_str()).unwrap_or_default();
    let name = cluster.map(|cluster| cluster.tls_server_name.as_str()).unwrap_or_default();
    format!("{}\n{server}\n{name}\n{}", settings.configuration.identity(), settings.allow_pin)
}

impl SharedKey {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fresh(&self) -> Option<Arc<Credential>> {
        let current = self.lock().current.clone()?;
        let is_over = current.expires.is_some_and(|expires| expires < self.clock.now());
        (!is_over).then_some(current)
    }

    /// The last failure, while it is too early for another attempt (C441). A person who asks is not made to wait.
    fn still_waiting(&self, asking: Asking) -> Option<SignerError> {
        let state = self.lock();
        state.backoff.as_ref().filter(|_| asking == Asking::Background)?.remaining()?;
        state.failure.clone()
    }
}

impl HardwareKey {
    /// A key that this client may use and that is there.
    fn fresh(&self) -> Option<Arc<Credential>> {
        self.shared.fresh().filter(|_| self.permitted.load(Ordering::Acquire))
    }

    /// Whether this client's policy lets it use the signer, also where another client has the key already.
    fn permit(&self) -> Result<(), SignerError> {
        if !self.permitted.load(Ordering::Acquire) {
            let settings = SignerSettings { policy: self.policy()?, ..self.settings.clone() };
            ExecSigner::may_run(&settings).map_err(|error| self.explained(error))?;
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

    /// A policy's no becomes the lines that would change it.
    fn explained(&self, error: SignError) -> SignerError {
        match error {
            SignError::Denied { source } => {
                let (reason, lines) = (source.to_string(), self.lines());
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
                let identity = Arc::new(Identity::external(Arc::new(identity)));
                let before = state.current.as_ref();
                let generation = match before {
                    Some(before) if before.identity.as_ref().is_some_and(|one| one.is_same(&identity)) => {
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
                let error = self.explained(error);
                let clock = Arc::clone(&self.settings.clock);
                state.backoff.get_or_insert_with(|| Backoff::new(Default::default(), clock)).failed();
                state.failure = Some(error.clone());
                Err(error)
            }
        }
    }

    /// The kuberc that would allow this signer, and no more than that.
    fn lines(&self) -> String {
        let mut entry = format!("- command: {}\n", quoted(&self.settings.program.to_string_lossy()));
        let modules = Selection::named_module(&self.settings.configuration.0);
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

/// A YAML string in double quotes, which is JSON's.
fn quoted(text: &str) -> String {
    format!("{:?}", redact::terminal(text))
}

fn without(environment: &Environment, dropped: &[std::ffi::OsString]) -> Environment {
    let kept = environment.iter().filter(|(name, _)| !dropped.iter().any(|gone| gone == name));
    kept.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Prompts go where a plugin's own words would.
fn shown_at(stderr: &Stderr) -> Arc<dyn Fn(&str) + Send + Sync> {
    match stderr.clone() {
        Stderr::Forward(receiver) => Arc::new(move |text| receiver(format!("{text}\n").as_bytes())),
        Stderr::Inherit | Stderr::Tail(_) => Arc::new(|text| {
            // If nobody reads it there is nobody to tell.
            let _ = writeln!(std::io::stderr(), "{text}");
        }),
    }
}

fn another_credential(effective: &Effective) -> Result<(), SignerConfigError> {
    let user = &effective.user;
    let others = [
        (
            "a client certificate",
            !user.client_certificate.is_empty() || !user.client_certificate_data.is_empty(),
        ),
        ("a client key", !user.client_key.is_empty() || !user.client_key_data.is_empty()),
        ("a token", !user.token.is_empty() || !user.token_file.is_empty()),
        ("a password", !user.username.is_empty() || !user.password.is_empty()),
    ];
    match others.into_iter().find(|(_, there)| *there) {
        Some((name, _)) => Err(SignerConfigError::AnotherCredential(name)),
        None => Ok(()),
    }
}

impl CredentialSource for HardwareKey {
    fn ready(&self) -> Option<Arc<Credential>> {
        self.fresh()
    }

    fn current(&self, asking: Asking) -> BoxFuture<'_, Result<Arc<Credential>, CredentialError>> {
        Box::pin(async move {
            self.permit()?;
            match self.fresh() {
                Some(credential) => Ok(credential),
                None => self.ask(asking).await,
            }
        })
    }

    fn may_call_ahead(&self) -> bool {
        false
    }

    /// A 401 says nothing about a certificate that was accepted in TLS; an alert does (C435).
    fn refused(
        &self,
        generation: Generation,
        reason: Refused,
    ) -> BoxFuture<'_, Result<Option<Arc<Credential>>, CredentialError>> {
        Box::pin(async move {
            if let Some(newer) = self.fresh().filter(|current| current.generation > generation) {
                return Ok(Some(newer));
            }
            if !matches!(reason, Refused::TlsAlert) {
                return Ok(None);
            }
            let credential = self.ask(Asking::Background).await?;
            Ok((credential.generation > generation).then_some(credential))
        })
    }
}

impl fmt::Debug for SharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedKey")
    }
}

impl fmt::Debug for HardwareKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HardwareKey").field("program", &self.settings.program).finish_non_exhaustive()
    }
}
