//! What a run may look at: environment, clock, network, the machine it is on. All of it is passed in.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use navicert_plugin::Environment;
use navicert_types::{Clock, Secret};

use crate::error::RegistryError;
use crate::explain::Journal;
use crate::http::{HttpClient, HttpRequest, HttpResponse, Sleep};

/// More than any token or configuration file.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// Everything one run sees of the world.
#[derive(Debug)]
pub struct ProviderContext {
    /// The environment.
    pub environment: Environment,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The network.
    pub http: HttpClient,
    /// What was done so far.
    pub journal: Journal,
    /// Where the kernel says what machine this is: `/sys`.
    pub sysfs: PathBuf,
}

impl ProviderContext {
    /// A context whose calls together take at most `total`.
    ///
    /// # Errors
    /// If the environment names a proxy that cannot be one.
    pub fn new(
        environment: Environment,
        clock: Arc<dyn Clock>,
        pause: Box<dyn Sleep>,
        total: Duration,
    ) -> Result<Self, RegistryError> {
        let http = HttpClient::new(&environment, Arc::clone(&clock), pause, total)?;
        let system = PathBuf::from("/sys");
        Ok(ProviderContext { environment, clock, http, journal: Journal::new(), sysfs: system })
    }

    /// A variable that is set to something.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.environment.variable(name).and_then(|value| value.to_str()).filter(|value| !value.is_empty())
    }

    /// Whether a variable says yes.
    pub fn flag(&self, name: &str) -> Option<bool> {
        self.variable(name).map(|value| value.eq_ignore_ascii_case("true"))
    }

    /// Sends a request on behalf of `service`.
    ///
    /// # Errors
    /// If there is no answer.
    pub fn send(&self, service: &'static str, request: &HttpRequest) -> Result<HttpResponse, RegistryError> {
        self.http
            .send(request, &self.journal)
            .map_err(|source| RegistryError::Unreachable { service, source })
    }

    /// A file's text, without white space around it.
    ///
    /// # Errors
    /// If it cannot be read or is no text.
    pub fn read_file(&self, path: &Path) -> Result<Secret<String>, RegistryError> {
        let failed =
            |what: &str, source| RegistryError::File { path: path.to_owned(), what: what.to_owned(), source };
        let size = fs::metadata(path).map_err(|error| failed("cannot be read", Some(error)))?.len();
        if size > MAX_FILE_BYTES {
            return Err(failed("is too large", None));
        }
        let bytes =
            zeroize::Zeroizing::new(fs::read(path).map_err(|error| failed("cannot be read", Some(error)))?);
        let text = std::str::from_utf8(&bytes).map_err(|_| failed("is no text", None))?;
        Ok(Secret::new(text.trim().to_owned()))
    }
}
