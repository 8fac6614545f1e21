//! Opens one key of a token in steps: which key, which module, where its PIN comes from.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use navicert_types::error_chain;

use super::configuration::{ConfigurationError, KeySelection};
use super::session::open;
use super::uri::Pkcs11Uri;
use crate::error::SignError;
use crate::identity::SigningIdentity;
use crate::pin::PinProvider;
use crate::program::SignerEnvironment;

/// Opens a key of a PKCS#11 token with its certificate.
///
/// ```no_run
/// use navicert_signer::pin::NoPin;
/// use navicert_signer::pkcs11::KeyBuilder;
///
/// let identity = KeyBuilder::new("pkcs11:token=My%20Key;id=%01").module("/usr/lib/libykcs11.so").pin(NoPin).open()?;
/// # Ok::<(), navicert_signer::SignError>(())
/// ```
#[derive(Clone)]
#[must_use = "a builder does nothing until `open` is called"]
pub struct KeyBuilder {
    uri: String,
    module: Option<PathBuf>,
    pin: Option<Arc<dyn PinProvider>>,
    environment: Option<SignerEnvironment>,
}

impl KeyBuilder {
    /// Selects a key by its `pkcs11:` URI (RFC 7512). Read by [`open`](KeyBuilder::open).
    pub fn new(uri: impl Into<String>) -> Self {
        KeyBuilder { uri: uri.into(), module: None, pin: None, environment: None }
    }

    /// Sets the module: the absolute path of a shared library, whose code runs in this process. By default the URI's
    /// `module-path`, else `NAVICERT_PKCS11_MODULE`.
    pub fn module(mut self, path: impl Into<PathBuf>) -> Self {
        self.module = Some(path.into());
        self
    }

    /// Sets where the PIN comes from. By default the file in the URI's `pin-source`, else the program in
    /// `NAVICERT_PINENTRY`, else the terminal.
    pub fn pin(mut self, provider: impl PinProvider + 'static) -> Self {
        self.pin = Some(Arc::new(provider));
        self
    }

    /// Sets the environment that the defaults come from. By default that of this process.
    pub fn environment(mut self, environment: SignerEnvironment) -> Self {
        self.environment = Some(environment);
        self
    }

    /// Loads the module, and finds the key and its certificates. Blocks. The token asks for its PIN now only if it hides its
    /// certificates without one, else with the first signature: call [`Key::log_in`](crate::Key::log_in) to enter it before.
    ///
    /// # Errors
    /// [`SignError::Configuration`]: the URI is invalid, or no module is set. Otherwise the token or key is missing or
    /// ambiguous, the PIN is rejected, or the certificate does not match the key.
    pub fn open(self) -> Result<SigningIdentity, SignError> {
        let invalid = |error: &ConfigurationError| SignError::Configuration { problem: error_chain(error) };
        let uri: Pkcs11Uri = self.uri.parse().map_err(|source| invalid(&ConfigurationError::Uri(source)))?;
        let environment = self.environment.unwrap_or_else(SignerEnvironment::from_process);
        let module = self.module.or_else(|| uri.module_path.as_ref().map(PathBuf::from));
        let module = module.or_else(|| environment.default_module());
        let module = module.ok_or_else(|| invalid(&ConfigurationError::NoModule))?;
        let selection = KeySelection { module, uri, pin: None };
        let pin = match self.pin {
            Some(pin) => pin,
            None => environment.pin_provider_factory()(&selection, true)?,
        };
        Ok(open(&selection, pin)?.0)
    }
}

impl fmt::Debug for KeyBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyBuilder").field("module", &self.module).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use navicert_plugin::{Environment, ScriptedRunner};

    use super::*;
    use crate::program::MODULE_VARIABLE;

    fn environment(module: &str) -> SignerEnvironment {
        let environment: Environment = [(MODULE_VARIABLE, module)].into_iter().collect();
        SignerEnvironment { environment, runner: Arc::new(ScriptedRunner::new([])) }
    }

    fn problem(builder: KeyBuilder, module: &str) -> String {
        builder.environment(environment(module)).open().unwrap_err().to_string()
    }

    #[test]
    fn named_module_comes_before_that_of_the_uri_and_the_default() {
        for (builder, module) in [
            (KeyBuilder::new("pkcs11:token=t?module-path=/no/uri.so").module("/no/named.so"), "/no/named.so"),
            (KeyBuilder::new("pkcs11:token=t?module-path=/no/uri.so"), "/no/uri.so"),
            (KeyBuilder::new("pkcs11:token=t"), "/no/default.so"),
        ] {
            let problem = problem(builder, "/no/default.so");
            assert!(problem.starts_with(&format!("failed to load PKCS#11 module `{module}`")), "{problem}");
        }
    }

    #[test]
    fn invalid_uri_and_missing_module_are_configuration_errors() {
        let invalid = problem(KeyBuilder::new("http:token=t"), "/no/default.so");
        assert!(invalid.contains("must begin with `pkcs11:`"), "{invalid}");
        let missing = problem(KeyBuilder::new("pkcs11:token=t"), "");
        assert!(missing.contains("missing PKCS#11 module"), "{missing}");
    }
}
