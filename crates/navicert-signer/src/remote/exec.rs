//! The client's side with one process per question (C821, C881): the first version's request in a variable, the second's
//! on a pipe.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use navicert_plugin::{
    Backoff, BackoffSettings, Command, Environment, Policy, ProcessGroup, RunError, Runner, Stdin,
    TerminalTurn,
};
use navicert_types::external_signer::{CONFIG_VARIABLE, Configuration, REQUEST_FD_VARIABLE, v1, v1alpha1};
use navicert_types::{Clock, Secret, redact};
use rustls_pki_types::CertificateDer;

use super::answer::remote_error;
use super::socket::SocketSigner;
use super::wire;
use crate::error::SignError;
use crate::identity::Identity;
use crate::key::Key;
use crate::pkcs11::Selection;
use crate::public_key::PublicKey;
use crate::scheme::{Input, Scheme};

/// A signer shows no more than this of a prompt (C851).
const LONGEST_PROMPT: usize = 1024;
/// After a human said no, or a device is locked, nothing happens by itself for so long (C884).
const AFTER_REFUSAL: Duration = Duration::from_secs(30);

/// Which messages a signer understands (C820, C880).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// The KEP's, or its prototype's.
    V1Alpha1(v1alpha1::Kinds),
    /// Ours.
    V1,
}

impl Protocol {
    /// As a configuration says.
    ///
    /// # Errors
    /// The setting that is not understood.
    pub fn of(configuration: &Configuration) -> Result<Self, &'static str> {
        let kinds = match configuration.value("signerProtocol") {
            None => v1alpha1::Kinds::Kep,
            Some("prototype") => v1alpha1::Kinds::Prototype,
            Some(_) => return Err("signerProtocol"),
        };
        match configuration.value("signerApiVersion") {
            None | Some(v1alpha1::API_VERSION | "v1alpha1") => Ok(Protocol::V1Alpha1(kinds)),
            Some(v1::API_VERSION | "v1") => Ok(Protocol::V1),
            Some(_) => Err("signerApiVersion"),
        }
    }
}

/// How long things may take (C306, C842).
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// A certificate, with nobody to ask.
    pub certificate: Duration,
    /// A certificate, with a human who may be looking for the token.
    pub interactive: Duration,
    /// A signature: it is wanted in the middle of a handshake.
    pub sign: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            certificate: Duration::from_secs(300),
            interactive: Duration::from_secs(900),
            sign: Duration::from_secs(60),
        }
    }
}

/// What a signer needs to be run.
#[derive(Clone)]
pub struct Settings {
    /// `pathExec`.
    pub program: OsString,
    /// All settings, as the kubeconfig has them.
    pub configuration: Configuration,
    /// Which messages.
    pub protocol: Protocol,
    /// Who may run: the program has to be listed (C744).
    pub policy: Arc<Policy>,
    /// What the child inherits.
    pub environment: Environment,
    /// Who runs it.
    pub runner: Arc<dyn Runner>,
    /// For waits after failures.
    pub clock: Arc<dyn Clock>,
    /// Whether there is a user at a terminal.
    pub interactive: bool,
    /// Which cluster it is for; only the second version says so (X9).
    pub cluster: Option<v1::Cluster>,
    /// How long things may take.
    pub limits: Limits,
    /// Who shows prompts, already cleaned.
    pub show: Arc<dyn Fn(&str) + Send + Sync>,
    /// Whether a PIN in the configuration is handed on (X2).
    pub allow_pin: bool,
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("program", &self.program)
            .field("configuration", &self.configuration)
            .field("protocol", &self.protocol)
            .finish_non_exhaustive()
    }
}

/// A key in a program that is run for every question.
pub struct ExecSigner {
    settings: Settings,
    name: String,
    public_key: PublicKey,
    schemes: Vec<Scheme>,
    socket: Option<SocketSigner>,
    /// One process at a time (C821).
    turn: Mutex<Backoff>,
    last: Mutex<Option<SignError>>,
}

impl ExecSigner {
    /// Asks the program for its certificate, once.
    ///
    /// # Errors
    /// [`SignError`]: it may not run, gives no certificate, or one that cannot be used.
    pub fn connect(settings: Settings) -> Result<Identity, SignError> {
        let name = redact::terminal(&settings.program.to_string_lossy()).into_owned();
        let backoff = Backoff::new(BackoffSettings::default(), Arc::clone(&settings.clock));
        let limit =
            if settings.interactive { settings.limits.interactive } else { settings.limits.certificate };
        let answered = match settings.protocol {
            Protocol::V1Alpha1(kinds) => {
                let configuration = settings.configuration.without_pin();
                let request = v1alpha1::Request::Certificate { configuration, kinds };
                let output = run(&settings, &name, request.to_json(), limit)?;
                let garbage = |problem: String| SignError::Garbage { signer: name.clone(), problem };
                let bytes = v1alpha1::read_certificate(output.expose(), kinds)
                    .map_err(|error| garbage(error.to_string()))?;
                let chain = wire::chain(&bytes).ok_or_else(|| garbage("no certificate".to_owned()))?;
                Certificate { chain, schemes: None, socket: None }
            }
            Protocol::V1 => {
                let request = v1::Request::Certificate(v1::CertificateRequest {
                    configuration: settings.configuration.without_pin(),
                    cluster: settings.cluster.clone(),
                    interactive: settings.interactive,
                });
                let output = run(&settings, &name, request.to_json(), limit)?;
                certificate(&name, output.expose())?
            }
        };
        let garbage = |problem: String| SignError::Garbage { signer: name.clone(), problem };
        let leaf = answered.chain.first().ok_or_else(|| garbage("no certificate".to_owned()))?;
        let public_key = PublicKey::of_certificate(leaf).map_err(|error| garbage(error.to_string()))?;
        let possible = Scheme::of_key(public_key.algorithm());
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
        Identity::new(answered.chain, Arc::new(signer)).map_err(|error| garbage(error.to_string()))
    }

    /// Whether the policy lets this signer run. Nothing is run.
    ///
    /// # Errors
    /// [`SignError::Denied`].
    pub fn may_run(settings: &Settings) -> Result<(), SignError> {
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
        let signed = self.ask(scheme, input);
        match &signed {
            Ok(_) => backoff.succeeded(),
            // The caller's mistake: nothing ran.
            Err(SignError::Input { .. }) => {}
            Err(error) => {
                let floor = if error.reason().forbids_retry() { AFTER_REFUSAL } else { Duration::ZERO };
                backoff.failed_at_least(floor);
                *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.clone());
            }
        }
        signed
    }

    fn ask(&self, scheme: Scheme, input: Input<'_>) -> Result<Vec<u8>, SignError> {
        let (settings, name) = (&self.settings, &self.name);
        let garbage = |problem: String| SignError::Garbage { signer: name.clone(), problem };
        match settings.protocol {
            Protocol::V1Alpha1(kinds) => {
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
                    .map_err(|error| garbage(error.to_string()))?;
                Ok(wire::signature(scheme, bytes))
            }
            Protocol::V1 => {
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

    /// At the socket, if the signer stays; if it does not any more, by a process.
    fn sign(&self, scheme: Scheme, input: Input<'_>) -> Result<Vec<u8>, SignError> {
        if !self.schemes.contains(&scheme) {
            return Err(SignError::UnsupportedScheme { scheme: scheme.to_string() });
        }
        if let Some(socket) = &self.socket {
            let request = sign_request(&self.settings, scheme, input)?;
            match socket.ask(&request, self.settings.limits.sign, &self.settings.show) {
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

/// What a signer said about itself.
struct Certificate {
    chain: Vec<CertificateDer<'static>>,
    schemes: Option<Vec<Scheme>>,
    socket: Option<SocketSigner>,
}

fn certificate(name: &str, output: &[u8]) -> Result<Certificate, SignError> {
    let (ready, last) = messages(name, output)?;
    let garbage = |problem: &str| SignError::Garbage { signer: name.to_owned(), problem: problem.to_owned() };
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
        _ => Err(garbage("a signature where a certificate was asked for")),
    }
}

/// A sign request of the second version; the whole message or nothing (C883).
pub(super) fn sign_request(
    settings: &Settings,
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
    let garbage = |problem: &str| SignError::Garbage { signer: name.to_owned(), problem: problem.to_owned() };
    match last {
        v1::Message::Signature { signature, scheme: made } if made == scheme.name() => {
            Ok(wire::signature(scheme, signature))
        }
        v1::Message::Signature { .. } => Err(garbage("a signature of another scheme than was asked for")),
        v1::Message::Error { reason, message, .. } => Err(remote_error(name, &reason, &message)),
        _ => Err(garbage("a certificate where a signature was asked for")),
    }
}

/// The lines of an answer: any number of prompts, perhaps where to go from now on, and exactly one last word (C881).
fn messages(name: &str, output: &[u8]) -> Result<(Option<String>, v1::Message), SignError> {
    let garbage = |problem: String| SignError::Garbage { signer: name.to_owned(), problem };
    let (mut ready, mut last) = (None, None);
    for line in output.split(|octet| *octet == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
        if last.is_some() {
            return Err(garbage("something after its last word".to_owned()));
        }
        match v1::Message::from_json(line).map_err(|error| garbage(error.to_string()))? {
            v1::Message::Ready { socket } => ready = Some(socket),
            v1::Message::Prompt { .. } => {}
            message => last = Some(message),
        }
    }
    let last = last.ok_or_else(|| garbage("nothing".to_owned()))?;
    Ok((ready, last))
}

/// The program and what it will be told that a policy has to know: modules by their values, settings by their names.
fn command(settings: &Settings) -> Command {
    // A name that the user's own list knows is the program that the list says (C880).
    let program = settings.policy.signer(&settings.program).unwrap_or(&settings.program);
    let command = Command::new(program, settings.environment.clone())
        .drop_env(CONFIG_VARIABLE)
        .drop_env(REQUEST_FD_VARIABLE)
        .declare_names(settings.configuration.names_for_the_signer());
    let modules = Selection::named_module(&settings.configuration.0);
    modules.into_iter().fold(command, |command, module| command.declare("pathLib", module))
}

/// One run under the policy. The environment is the client's and the request; a kubeconfig cannot add to it (C821).
fn run(
    settings: &Settings,
    name: &str,
    request: String,
    limit: Duration,
) -> Result<Secret<Vec<u8>>, SignError> {
    let mut command = command(settings)
        .process_group(if settings.interactive { ProcessGroup::Inherit } else { ProcessGroup::New })
        .limit(Some(limit));
    let mut turn = None;
    command = match settings.protocol {
        Protocol::V1Alpha1(_) => command.env(CONFIG_VARIABLE, request).stdin(if settings.interactive {
            Stdin::Inherit
        } else {
            Stdin::Null
        }),
        Protocol::V1 => {
            turn = settings.interactive.then(TerminalTurn::take);
            let prompts =
                Prompts { name: name.to_owned(), line: Mutex::default(), show: Arc::clone(&settings.show) };
            command
                .env(REQUEST_FD_VARIABLE, "0")
                .stdin(Stdin::Bytes(Secret::new(request.into_bytes())))
                .on_stdout(Arc::new(move |piece| prompts.hear(piece)))
        }
    };
    let permitted =
        settings.policy.permit_if_listed(command).map_err(|source| SignError::Denied { source })?;
    let completed = settings.runner.run(permitted).map_err(|source| late(name, limit, source));
    drop(turn);
    completed?.require_success().map_err(|source| SignError::Run { source })
}

fn late(name: &str, limit: Duration, source: RunError) -> SignError {
    match source {
        RunError::TimedOut { .. } => SignError::Slow { signer: name.to_owned(), after: limit },
        source => SignError::Run { source },
    }
}

/// Shows prompts while the signer waits for the user to do what they say.
struct Prompts {
    name: String,
    line: Mutex<Vec<u8>>,
    show: Arc<dyn Fn(&str) + Send + Sync>,
}

impl Prompts {
    fn hear(&self, piece: &[u8]) {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        for octet in piece {
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

/// One line, cleaned, with the name of whoever says it (C851).
pub(super) fn show_prompt(name: &str, message: &str, show: &Arc<dyn Fn(&str) + Send + Sync>) {
    let short: String = message.chars().take(LONGEST_PROMPT).collect();
    let one_line = short.replace(['\n', '\r'], " ");
    show(&format!("{name}: {}", redact::terminal(&one_line)));
}
