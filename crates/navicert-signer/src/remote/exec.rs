//! Client that runs one signer process per request. Protocol v1alpha1 passes the request in an environment variable, v1 on
//! standard input.
// C821, C881

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use navicert_plugin::{
    Backoff, BackoffSettings, Command, Environment, Policy, ProcessGroup, RunError, Runner, Stdin,
    TerminalLock,
};
use navicert_types::external_signer::{
    CONFIG_VARIABLE, REQUEST_FD_VARIABLE, SignerConfiguration, v1, v1alpha1,
};
use navicert_types::{Clock, Secret, redact};
use rustls_pki_types::CertificateDer;

use super::request_handler::remote_error;
use super::socket::SocketSigner;
use super::wire;
use crate::error::SignError;
use crate::identity::SigningIdentity;
use crate::key::Key;
use crate::pkcs11::KeySelection;
use crate::public_key::PublicKey;
use crate::scheme::{Input, Scheme};

/// The longest prompt shown; the rest is cut off.
// C851
const MAX_PROMPT_CHARS: usize = 1024;
/// The protocol version of a signer.
// C820, C880
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SignerProtocol {
    /// Version v1alpha1 of the KEP, or its prototype.
    V1Alpha1(v1alpha1::Kinds),
    /// navicert's version v1.
    V1,
}

impl SignerProtocol {
    /// Reads the version from a configuration.
    ///
    /// # Errors
    /// The name of the invalid setting.
    pub fn from_configuration(configuration: &SignerConfiguration) -> Result<Self, &'static str> {
        let kinds = match configuration.value("signerProtocol") {
            None => v1alpha1::Kinds::Kep,
            Some("prototype") => v1alpha1::Kinds::Prototype,
            Some(_) => return Err("signerProtocol"),
        };
        match configuration.value("signerApiVersion") {
            None | Some(v1alpha1::API_VERSION | "v1alpha1") => Ok(SignerProtocol::V1Alpha1(kinds)),
            Some(v1::API_VERSION | "v1") => Ok(SignerProtocol::V1),
            Some(_) => Err("signerApiVersion"),
        }
    }
}

/// Timeouts of signer requests.
// C306, C842
#[derive(Clone, Copy, Debug)]
pub struct SignerTimeouts {
    /// Certificate request without a user.
    pub certificate: Duration,
    /// Certificate request with a user, who may first have to plug in the token.
    pub interactive: Duration,
    /// Signature request, which happens during a handshake.
    pub sign: Duration,
}

impl Default for SignerTimeouts {
    fn default() -> Self {
        SignerTimeouts {
            certificate: Duration::from_secs(300),
            interactive: Duration::from_secs(900),
            sign: Duration::from_secs(60),
        }
    }
}

/// Settings of an [`ExecSigner`].
#[derive(Clone)]
pub struct ExecSignerSettings {
    /// `pathExec`.
    pub program: OsString,
    /// The signer configuration of the kubeconfig.
    pub configuration: SignerConfiguration,
    /// The protocol version.
    pub protocol: SignerProtocol,
    /// The plugin policy, which must list the program.
    // C744
    pub policy: Arc<Policy>,
    /// The environment the child inherits.
    pub environment: Environment,
    /// Runs the program.
    pub runner: Arc<dyn Runner>,
    /// Clock of the back-off.
    pub clock: Arc<dyn Clock>,
    /// Whether the signer may prompt the user on the controlling terminal. Standard input may be a pipe.
    pub interactive: bool,
    /// Whether standard input is the terminal. A signer of protocol v1alpha1 then inherits it.
    pub stdin_is_terminal: bool,
    /// The cluster, sent in protocol v1 only.
    // X9
    pub cluster: Option<v1::SignerCluster>,
    /// Timeouts.
    pub limits: SignerTimeouts,
    /// Shows prompts to the user. The text contains no control characters.
    pub show: Arc<dyn Fn(&str) + Send + Sync>,
    /// Whether a PIN in the configuration is passed to the signer.
    // X2
    pub allow_pin: bool,
}

impl fmt::Debug for ExecSignerSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecSignerSettings")
            .field("program", &self.program)
            .field("configuration", &self.configuration)
            .field("protocol", &self.protocol)
            .finish_non_exhaustive()
    }
}

/// A key in a program that is run for every request.
pub struct ExecSigner {
    settings: ExecSignerSettings,
    name: String,
    public_key: PublicKey,
    schemes: Vec<Scheme>,
    socket: Option<SocketSigner>,
    /// Held while a process runs, so that only one runs at a time.
    // C821
    turn: Mutex<Backoff>,
    last: Mutex<Option<SignError>>,
}

impl ExecSigner {
    /// Runs the program once to get its certificate.
    ///
    /// # Errors
    /// [`SignError`]: the program is not allowed, fails, or returns no usable certificate.
    pub fn connect(settings: ExecSignerSettings) -> Result<SigningIdentity, SignError> {
        let name = redact::terminal(&settings.program.to_string_lossy()).into_owned();
        let backoff = Backoff::new(BackoffSettings::default(), Arc::clone(&settings.clock));
        let limit =
            if settings.interactive { settings.limits.interactive } else { settings.limits.certificate };
        let answered = match settings.protocol {
            SignerProtocol::V1Alpha1(kinds) => {
                let configuration = settings.configuration.without_pin();
                let request = v1alpha1::Request::Certificate { configuration, kinds };
                let output = run(&settings, &name, request.to_json(), limit)?;
                let invalid = |problem: String| SignError::InvalidResponse { signer: name.clone(), problem };
                let bytes = v1alpha1::read_certificate(output.expose(), kinds)
                    .map_err(|error| invalid(error.to_string()))?;
                let chain = wire::chain(&bytes).ok_or_else(|| invalid("missing certificate".to_owned()))?;
                Certificate { chain, schemes: None, socket: None }
            }
            SignerProtocol::V1 => {
                let request = v1::Request::Certificate(v1::CertificateRequest {
                    configuration: settings.configuration.without_pin(),
                    cluster: settings.cluster.clone(),
                    interactive: settings.interactive,
                });
                let output = run(&settings, &name, request.to_json(), limit)?;
                certificate(&name, output.expose())?
            }
        };
        let invalid = |problem: String| SignError::InvalidResponse { signer: name.clone(), problem };
        let leaf = answered.chain.first().ok_or_else(|| invalid("missing certificate".to_owned()))?;
        let public_key = PublicKey::from_certificate(leaf).map_err(|error| invalid(error.to_string()))?;
        let possible = Scheme::for_key(public_key.algorithm());
        let schemes =
            possible.filter(|scheme| answered.schemes.as_ref().is_none_or(|can| can.contains(scheme)));
        let signer = ExecSigner {
            schemes: schemes.collect(),
            turn: Mutex::new(backoff),
            last: Mutex::new(None),
            socket: answered.socket,
            settings,
            public_key,
            name: name.clone(),
        };
        SigningIdentity::new(answered.chain, Arc::new(signer)).map_err(|error| invalid(error.to_string()))
    }

    /// Checks that the policy allows this signer, without running it.
    ///
    /// # Errors
    /// [`SignError::Denied`].
    pub fn check_policy(settings: &ExecSignerSettings) -> Result<(), SignError> {
        let permitted = settings.policy.permit_if_listed(command(settings));
        permitted.map(drop).map_err(|source| SignError::Denied { source })
    }

    fn sign_by_process(&self, scheme: Scheme, input: Input<'_>) -> Result<Vec<u8>, SignError> {
        let mut backoff = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if backoff.remaining().is_some()
            && let Some(error) = &*self.last.lock().unwrap_or_else(PoisonError::into_inner)
        {
            return Err(error.clone());
        }
        let signed = self.sign_once(scheme, input);
        match &signed {
            Ok(_) => backoff.record_success(),
            // Invalid input: no process ran.
            Err(SignError::Input { .. }) => {}
            Err(error) => {
                backoff.record_failure_with_min_delay(error.reason().min_backoff());
                *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.clone());
            }
        }
        signed
    }

    fn sign_once(&self, scheme: Scheme, input: Input<'_>) -> Result<Vec<u8>, SignError> {
        let (settings, name) = (&self.settings, &self.name);
        let invalid = |problem: String| SignError::InvalidResponse { signer: name.clone(), problem };
        match settings.protocol {
            SignerProtocol::V1Alpha1(kinds) => {
                let wrong = SignError::Input { scheme, expected: "the whole message, or a digest that fits" };
                let digest = match input {
                    // Ed25519's "digest" is the message (§8.4).
                    Input::Message(message) if scheme.hash().is_none() => message.to_vec(),
                    input => input.digest(scheme).ok_or(wrong)?.into_owned(),
                };
                let (options_type, options) = wire::go_options(scheme);
                let configuration = match settings.allow_pin {
                    true => settings.configuration.clone(),
                    false => settings.configuration.without_pin(),
                };
                let options_type = options_type.to_owned();
                let request = v1alpha1::Request::Sign { configuration, digest, options_type, options, kinds };
                let output = run(settings, name, request.to_json(), settings.limits.sign)?;
                let bytes = v1alpha1::read_signature(output.expose(), kinds)
                    .map_err(|error| invalid(error.to_string()))?;
                Ok(wire::signature(scheme, bytes))
            }
            SignerProtocol::V1 => {
                let request = sign_request(settings, scheme, input)?;
                let output = run(settings, name, request.to_json(), settings.limits.sign)?;
                let (_, last) = messages(name, output.expose())?;
                signature_of(name, scheme, last)
            }
        }
    }
}

impl Key for ExecSigner {
    fn public_key(&self) -> &PublicKey {
        &self.public_key
    }

    fn schemes(&self) -> &[Scheme] {
        &self.schemes
    }

    /// Signs through the socket of a running signer server; falls back to a process if that fails.
    fn sign(&self, scheme: Scheme, input: Input<'_>) -> Result<Vec<u8>, SignError> {
        if !self.schemes.contains(&scheme) {
            return Err(SignError::UnsupportedScheme { scheme: scheme.to_string() });
        }
        if let Some(socket) = &self.socket {
            let request = sign_request(&self.settings, scheme, input)?;
            match socket.request(&request, self.settings.limits.sign, &self.settings.show) {
                Err(SignError::Socket { .. }) => {}
                answered => return signature_of(&self.name, scheme, answered?),
            }
        }
        self.sign_by_process(scheme, input)
    }
}

impl fmt::Debug for ExecSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecSigner").field("program", &self.name).finish_non_exhaustive()
    }
}

/// A signer's response to a certificate request.
struct Certificate {
    chain: Vec<CertificateDer<'static>>,
    schemes: Option<Vec<Scheme>>,
    socket: Option<SocketSigner>,
}

fn certificate(name: &str, output: &[u8]) -> Result<Certificate, SignError> {
    let (ready, last) = messages(name, output)?;
    let invalid =
        |problem: &str| SignError::InvalidResponse { signer: name.to_owned(), problem: problem.to_owned() };
    match last {
        v1::Message::Certificate { chain, schemes, .. } => {
            let schemes: Vec<Scheme> = schemes.iter().filter_map(|name| Scheme::by_name(name)).collect();
            let socket = ready.map(|path| SocketSigner::new(PathBuf::from(path), name));
            Ok(Certificate {
                chain: chain.into_iter().map(CertificateDer::from).collect(),
                schemes: Some(schemes).filter(|schemes| !schemes.is_empty()),
                socket,
            })
        }
        v1::Message::Error { reason, message, .. } => Err(remote_error(name, &reason, &message)),
        _ => Err(invalid("expected a certificate, got a signature")),
    }
}

/// A sign request of protocol v1, which requires the whole message.
// C883
pub(super) fn sign_request(
    settings: &ExecSignerSettings,
    scheme: Scheme,
    input: Input<'_>,
) -> Result<v1::Request, SignError> {
    let Input::Message(message) = input else {
        return Err(SignError::Input { scheme, expected: "the whole message" });
    };
    Ok(v1::Request::Sign(v1::SignRequest {
        configuration: settings.configuration.without_pin(),
        cluster: settings.cluster.clone(),
        interactive: settings.interactive,
        key_handle: None,
        scheme: scheme.name().to_owned(),
        message: message.to_vec(),
        digest: None,
    }))
}

fn signature_of(name: &str, scheme: Scheme, last: v1::Message) -> Result<Vec<u8>, SignError> {
    let invalid =
        |problem: &str| SignError::InvalidResponse { signer: name.to_owned(), problem: problem.to_owned() };
    match last {
        v1::Message::Signature { signature, scheme: made } if made == scheme.name() => {
            Ok(wire::signature(scheme, signature))
        }
        v1::Message::Signature { .. } => Err(invalid("signature has another scheme than requested")),
        v1::Message::Error { reason, message, .. } => Err(remote_error(name, &reason, &message)),
        _ => Err(invalid("expected a signature, got a certificate")),
    }
}

/// Parses the lines of a response: any number of prompts, an optional `Ready` message with the socket of a server, and
/// exactly one final message.
// C881
fn messages(name: &str, output: &[u8]) -> Result<(Option<String>, v1::Message), SignError> {
    let invalid = |problem: String| SignError::InvalidResponse { signer: name.to_owned(), problem };
    let (mut ready, mut last) = (None, None);
    for line in output.split(|octet| *octet == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
        if last.is_some() {
            return Err(invalid("data after the final message".to_owned()));
        }
        match v1::Message::from_json(line).map_err(|error| invalid(error.to_string()))? {
            v1::Message::Ready { socket } => ready = Some(socket),
            v1::Message::Prompt { .. } => {}
            message => last = Some(message),
        }
    }
    let last = last.ok_or_else(|| invalid("empty response".to_owned()))?;
    Ok((ready, last))
}

/// The command with the declarations that the policy checks: values of modules and names of settings.
fn command(settings: &ExecSignerSettings) -> Command {
    // C880: the user's allowlist may map a signer name to a program.
    let program = settings.policy.signer(&settings.program).unwrap_or(&settings.program);
    let command = Command::new(program, settings.environment.clone())
        .drop_env(CONFIG_VARIABLE)
        .drop_env(REQUEST_FD_VARIABLE)
        .declare_names(settings.configuration.signer_setting_names());
    let modules = KeySelection::named_module(&settings.configuration.0);
    modules.into_iter().fold(command, |command, module| command.declare("pathLib", module))
}

/// Runs the program if the policy allows it. Its environment is the client's plus the request; a kubeconfig cannot add to
/// it.
// C821
fn run(
    settings: &ExecSignerSettings,
    name: &str,
    request: String,
    limit: Duration,
) -> Result<Secret<Vec<u8>>, SignError> {
    let mut command = command(settings)
        .process_group(if settings.interactive { ProcessGroup::Inherit } else { ProcessGroup::New })
        .limit(Some(limit));
    let is_v1alpha1 = matches!(settings.protocol, SignerProtocol::V1Alpha1(_));
    let inherits_stdin = is_v1alpha1 && settings.interactive && settings.stdin_is_terminal;
    // The runner takes the lock itself for a program that inherits standard input.
    let terminal_lock = (settings.interactive && !inherits_stdin).then(TerminalLock::acquire);
    command = if is_v1alpha1 {
        let stdin = if inherits_stdin { Stdin::Inherit } else { Stdin::Null };
        command.protocol_env(CONFIG_VARIABLE, request).stdin(stdin)
    } else {
        let prompts =
            Prompts { name: name.to_owned(), line: Mutex::default(), show: Arc::clone(&settings.show) };
        command
            .protocol_env(REQUEST_FD_VARIABLE, "0")
            .stdin(Stdin::Bytes(Secret::new(request.into_bytes())))
            .on_stdout(Arc::new(move |chunk| prompts.push(chunk)))
    };
    let permitted =
        settings.policy.permit_if_listed(command).map_err(|source| SignError::Denied { source })?;
    let completed = settings.runner.run(permitted).map_err(|source| run_error(name, limit, source));
    drop(terminal_lock);
    completed?.require_success().map_err(|source| SignError::Run { source })
}

fn run_error(name: &str, limit: Duration, source: RunError) -> SignError {
    match source {
        RunError::TimedOut { .. } => SignError::TimedOut { signer: name.to_owned(), after: limit },
        source => SignError::Run { source },
    }
}

/// Shows prompts as soon as the signer writes them.
struct Prompts {
    name: String,
    line: Mutex<Vec<u8>>,
    show: Arc<dyn Fn(&str) + Send + Sync>,
}

impl Prompts {
    fn push(&self, chunk: &[u8]) {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        for octet in chunk {
            if *octet != b'\n' {
                line.push(*octet);
                continue;
            }
            let whole = std::mem::take(&mut *line);
            if let Ok(v1::Message::Prompt { message, .. }) = v1::Message::from_json(&whole) {
                show_prompt(&self.name, &message, &self.show);
            }
        }
    }
}

/// Shows a prompt as one line without control characters, prefixed with the signer's name.
// C851
pub(super) fn show_prompt(name: &str, message: &str, show: &Arc<dyn Fn(&str) + Send + Sync>) {
    let short: String = message.chars().take(MAX_PROMPT_CHARS).collect();
    let one_line = short.replace(['\n', '\r'], " ");
    show(&format!("{name}: {}", redact::terminal(&one_line)));
}
