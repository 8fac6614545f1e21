//! What `navicert-signer-pkcs11` does with one question, and what `navicert signer` shares with it: where the socket is,
//! and who is asked for a PIN. Environment and streams come in as values.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use navicert_plugin::{Environment, Runner};
use navicert_types::external_signer::{CONFIG_VARIABLE, REQUEST_FD_VARIABLE, v1, v1alpha1};

use crate::error::{Reason, SignError};
use crate::pin::{AskPin, GivenPin, Nobody, PinFile, Pinentry, TerminalPin};
use crate::pkcs11::{ChooseAsk, Pkcs11Ring, Selection};
use crate::remote::{SocketSigner, answer, answer_v1alpha1};

/// A variable that names this machine's own module, for kubeconfigs that name none (X3).
pub const MODULE_VARIABLE: &str = "NAVICERT_PKCS11_MODULE";
/// A variable that names a pinentry program.
pub const PINENTRY_VARIABLE: &str = "NAVICERT_PINENTRY";
/// A variable that names the socket of `navicert signer serve`.
pub const SOCKET_VARIABLE: &str = "NAVICERT_SIGNER_SOCKET";

/// How long a signer that stays may take to answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a signer knows of the machine it runs on.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// The environment.
    pub environment: Environment,
    /// Who starts pinentry.
    pub runner: Arc<dyn Runner>,
}

impl Surroundings {
    fn variable(&self, name: &str) -> Option<OsString> {
        self.environment.variable(name).filter(|value| !value.is_empty()).map(OsString::from)
    }

    /// This machine's own module.
    pub fn default_module(&self) -> Option<PathBuf> {
        self.variable(MODULE_VARIABLE).map(PathBuf::from)
    }

    /// Where a signer that stays listens: `NAVICERT_SIGNER_SOCKET`, or in the user's runtime folder.
    pub fn socket(&self) -> Option<PathBuf> {
        let runtime = || {
            self.variable("XDG_RUNTIME_DIR").map(|folder| PathBuf::from(folder).join("navicert/signer.sock"))
        };
        self.variable(SOCKET_VARIABLE).map(PathBuf::from).or_else(runtime)
    }

    /// Who is asked for a PIN: what came with the configuration, the file it names, pinentry, the terminal.
    pub fn choose_ask(&self) -> ChooseAsk {
        let surroundings = self.clone();
        Arc::new(move |selection, interactive| surroundings.ask_for(selection, interactive))
    }

    fn ask_for(&self, selection: &Selection, interactive: bool) -> Result<Arc<dyn AskPin>, SignError> {
        if let Some(pin) = &selection.pin {
            return Ok(Arc::new(GivenPin(pin.clone())));
        }
        if let Some(source) = &selection.uri.pin_source {
            let token = selection.uri.token.clone().unwrap_or_default();
            let file =
                PinFile::from_source(source).map_err(|source| SignError::PinNeeded { token, source })?;
            return Ok(Arc::new(file));
        }
        if let Some(program) = self.variable(PINENTRY_VARIABLE) {
            // What we were asked may hold a PIN: it is not pinentry's to inherit.
            let ours = [CONFIG_VARIABLE, REQUEST_FD_VARIABLE];
            let inherited = self.environment.iter().filter(|(name, _)| !ours.iter().any(|own| name == own));
            let environment = inherited.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            return Ok(Arc::new(Pinentry::new(program, environment, Arc::clone(&self.runner))));
        }
        match TerminalPin::find().filter(|_| interactive) {
            Some(terminal) => Ok(Arc::new(terminal)),
            None => Ok(Arc::new(Nobody)),
        }
    }
}

/// What a signer prints.
#[derive(Debug)]
pub struct Printed {
    /// For standard output.
    pub stdout: String,
    /// For standard error.
    pub stderr: String,
    /// Whether the exit code is zero.
    pub success: bool,
}

/// Answers one question of either version.
pub fn respond(question: &[u8], stdin_is_terminal: bool, surroundings: &Surroundings) -> Printed {
    let ring = Pkcs11Ring::new(surroundings.default_module(), surroundings.choose_ask());
    if let Ok(request) = v1::Request::from_json(question) {
        let (socket, message) =
            from_socket(&request, surroundings).unwrap_or_else(|| (None, answer(&ring, &request)));
        let ready =
            socket.map(|socket| format!("{}\n", v1::Message::Ready { socket }.to_json())).unwrap_or_default();
        return Printed {
            stdout: format!("{ready}{}\n", message.to_json()),
            stderr: String::new(),
            success: true,
        };
    }
    let answered = match v1alpha1::Request::from_json(question) {
        Ok(request) => answer_v1alpha1(&ring, &request, stdin_is_terminal),
        Err(error) => Err(SignError::Internal(format!("the request cannot be used: {error}"))),
    };
    match answered {
        Ok(text) => Printed { stdout: format!("{text}\n"), stderr: String::new(), success: true },
        Err(error) => {
            let stderr = format!("navicert-signer-pkcs11: {}\n", error.with_sources());
            Printed { stdout: String::new(), stderr, success: false }
        }
    }
}

/// The answer of a signer that stays, if there is one and it has the key: from now on it is to be asked itself.
fn from_socket(request: &v1::Request, surroundings: &Surroundings) -> Option<(Option<String>, v1::Message)> {
    let path = surroundings.socket()?;
    let socket = SocketSigner::new(path.clone(), "signer");
    let quiet: Arc<dyn Fn(&str) + Send + Sync> = Arc::new(|_| {});
    let message = socket.ask(request, PATIENCE, &quiet).ok()?;
    match &message {
        v1::Message::Error { reason, .. } if Reason::by_name(reason) == Reason::NoObject => None,
        _ => Some((path.to_str().map(str::to_owned), message)),
    }
}
