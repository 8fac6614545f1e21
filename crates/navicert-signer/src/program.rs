//! Handles the requests of `navicert-signer-pkcs11`, and the parts that `navicert signer` shares with it: the socket path
//! and the choice of PIN provider. The environment and streams are passed in as values.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use navicert_io::runtime_directory::RuntimeDirectory;
use navicert_plugin::{Environment, ProcessRunner, Runner};
use navicert_types::external_signer::{CONFIG_VARIABLE, REQUEST_FD_VARIABLE, v1, v1alpha1};
use navicert_types::{SystemClock, error_chain};

use crate::error::{Reason, SignError};
use crate::pin::{NoPin, PinFile, PinProvider, Pinentry, StaticPin, TerminalPin};
use crate::pkcs11::{KeySelection, PinProviderFactory, Pkcs11KeyStore};
use crate::remote::{
    KeyStore as _, SESSION_VARIABLE, SocketSigner, error_message, handle_request, handle_v1alpha1_request,
};

/// The environment variable with the default PKCS#11 module, for kubeconfigs that name none.
// X3
pub(crate) const MODULE_VARIABLE: &str = "NAVICERT_PKCS11_MODULE";
/// The environment variable with the pinentry program.
pub(crate) const PINENTRY_VARIABLE: &str = "NAVICERT_PINENTRY";
/// The environment variable with the socket path of `navicert signer serve`.
pub const SOCKET_VARIABLE: &str = "NAVICERT_SIGNER_SOCKET";

/// The name of the socket in the user's runtime directory.
const SOCKET_NAME: &str = "signer.sock";

/// How long a signer server may take to respond.
const SOCKET_TIMEOUT: Duration = Duration::from_secs(60);

/// The process environment of a signer.
#[derive(Clone, Debug)]
pub struct SignerEnvironment {
    /// The environment variables.
    pub environment: Environment,
    /// Runs the pinentry program.
    pub runner: Arc<dyn Runner>,
}

impl SignerEnvironment {
    /// The environment of this process; runs programs as its children.
    #[expect(clippy::disallowed_methods, reason = "the default of library users; programs pass their own")]
    pub fn from_process() -> Self {
        let runner = Arc::new(ProcessRunner::new(Arc::new(SystemClock)));
        SignerEnvironment { environment: std::env::vars_os().collect(), runner }
    }

    fn variable(&self, name: &str) -> Option<OsString> {
        self.environment.variable(name).filter(|value| !value.is_empty()).map(OsString::from)
    }

    /// The default PKCS#11 module.
    pub fn default_module(&self) -> Option<PathBuf> {
        self.variable(MODULE_VARIABLE).map(PathBuf::from)
    }

    /// Where a client finds the socket of the signer server: `NAVICERT_SIGNER_SOCKET`, or a path in one of the user's
    /// [runtime directories](RuntimeDirectory).
    pub fn socket(&self) -> Option<PathBuf> {
        self.named_socket().or_else(|| self.runtime_directory().file(SOCKET_NAME))
    }

    /// Where the signer server creates its socket; creates the runtime directory.
    ///
    /// # Errors
    /// No private directory can be created.
    pub fn new_socket(&self) -> io::Result<PathBuf> {
        let named = self.named_socket().map(Ok);
        named.unwrap_or_else(|| Ok(self.runtime_directory().create()?.join(SOCKET_NAME)))
    }

    fn named_socket(&self) -> Option<PathBuf> {
        self.variable(SOCKET_VARIABLE).map(PathBuf::from)
    }

    fn runtime_directory(&self) -> RuntimeDirectory {
        RuntimeDirectory::locate(&|name| self.variable(name))
    }

    /// Chooses the PIN provider: the PIN of the configuration, the file it names, pinentry, then the terminal.
    pub fn pin_provider_factory(&self) -> PinProviderFactory {
        let environment = self.clone();
        Arc::new(move |selection, interactive| environment.pin_provider_for(selection, interactive))
    }

    fn pin_provider_for(
        &self,
        selection: &KeySelection,
        interactive: bool,
    ) -> Result<Arc<dyn PinProvider>, SignError> {
        if let Some(pin) = &selection.pin {
            return Ok(Arc::new(StaticPin(pin.clone())));
        }
        if let Some(source) = &selection.uri.pin_source {
            let token = selection.uri.token.clone().unwrap_or_default();
            let file =
                PinFile::from_source(source).map_err(|source| SignError::PinNeeded { token, source })?;
            return Ok(Arc::new(file));
        }
        if let Some(program) = self.variable(PINENTRY_VARIABLE) {
            // The request may contain a PIN, so pinentry must not inherit it.
            let request_variables = [CONFIG_VARIABLE, REQUEST_FD_VARIABLE];
            let inherited =
                self.environment.iter().filter(|(name, _)| !request_variables.iter().any(|own| name == own));
            let environment = inherited.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            return Ok(Arc::new(Pinentry::new(program, environment, Arc::clone(&self.runner))));
        }
        match TerminalPin::find().filter(|_| interactive) {
            Some(terminal) => Ok(Arc::new(terminal)),
            None => Ok(Arc::new(NoPin)),
        }
    }
}

/// The output of the signer program.
#[derive(Debug)]
#[non_exhaustive]
pub struct ProgramOutput {
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// Whether the exit code is zero.
    pub success: bool,
}

/// The signer program. Keys stay open, and tokens logged in, until it is dropped.
#[derive(Debug)]
pub struct SignerProgram {
    environment: SignerEnvironment,
    store: Pkcs11KeyStore,
    is_session: bool,
}

impl SignerProgram {
    /// Opens nothing yet.
    pub fn new(environment: SignerEnvironment) -> Self {
        let store = Pkcs11KeyStore::new(environment.default_module(), environment.pin_provider_factory());
        let is_session = environment.variable(SESSION_VARIABLE).is_some_and(|value| value == "1");
        SignerProgram { environment, store, is_session }
    }

    /// Whether the client makes further requests.
    pub fn is_session(&self) -> bool {
        self.is_session
    }

    /// Handles one request of either protocol version.
    pub fn respond(&self, request: &[u8]) -> ProgramOutput {
        if let Ok(request) = v1::Request::from_json(request) {
            let (socket, message) = from_socket(&request, &self.environment)
                .unwrap_or_else(|| (None, self.handle_request(&request)));
            let ready = socket.map(|socket| format!("{}\n", v1::Message::Ready { socket }.to_json()));
            return ProgramOutput {
                stdout: format!("{}{}\n", ready.unwrap_or_default(), message.to_json()),
                stderr: String::new(),
                success: true,
            };
        }
        let answered = match v1alpha1::Request::from_json(request) {
            // The protocol does not say whether there is a user; the terminal does, also if standard input is a pipe.
            Ok(request) => handle_v1alpha1_request(&self.store, &request, true),
            Err(error) => Err(SignError::Internal(format!("invalid request: {error}"))),
        };
        match answered {
            Ok(text) => ProgramOutput { stdout: format!("{text}\n"), stderr: String::new(), success: true },
            Err(error) => {
                let stderr = format!("navicert-signer-pkcs11: {}\n", error_chain(&error));
                ProgramOutput { stdout: String::new(), stderr, success: false }
            }
        }
    }

    /// Logs in with the certificate if there will be signatures: the user then enters the PIN before a server waits.
    // C842
    fn handle_request(&self, request: &v1::Request) -> v1::Message {
        if let v1::Request::Certificate(certificate) = request
            && self.is_session
        {
            let found = self.store.find(&certificate.configuration, certificate.interactive);
            if let Err(error) = found.and_then(|identity| identity.key().log_in()) {
                return error_message(&error);
            }
        }
        handle_request(&self.store, request)
    }
}

/// Forwards the request to a running signer server. Returns its response, and the socket path for the client's further
/// requests, if the server runs and has the key.
fn from_socket(
    request: &v1::Request,
    environment: &SignerEnvironment,
) -> Option<(Option<String>, v1::Message)> {
    let path = environment.socket()?;
    let socket = SocketSigner::new(path.clone(), "signer");
    let quiet: Arc<dyn Fn(&str) + Send + Sync> = Arc::new(|_| {});
    let message = socket.request(request, SOCKET_TIMEOUT, &quiet).ok()?;
    match &message {
        v1::Message::Error { reason, .. } if Reason::by_name(reason) == Reason::NoObject => None,
        _ => Some((path.to_str().map(str::to_owned), message)),
    }
}
