//! The inputs of a run: environment, clock, network, sysfs.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use navicert_plugin::Environment;
use navicert_types::{Clock, Secret};

use crate::error::RegistryError;
use crate::explain::Journal;
use crate::http::{HttpRequest, HttpResponse, RegistryHttpClient, Sleep};

/// Maximum size of a token or configuration file.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// The inputs of one run.
#[derive(Debug)]
pub(crate) struct ProviderContext {
    /// The environment.
    pub environment: Environment,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The HTTP client.
    pub http: RegistryHttpClient,
    /// The steps for `--explain` and warnings.
    pub journal: Journal,
    /// The sysfs mount point, `/sys`, for detecting the cloud.
    pub sysfs: PathBuf,
}

impl ProviderContext {
    /// Creates a context whose calls together take at most `total`.
    pub(crate) fn new(
        environment: Environment,
        clock: Arc<dyn Clock>,
        pause: Box<dyn Sleep>,
        total: Duration,
    ) -> Self {
        let http = RegistryHttpClient::new(&environment, Arc::clone(&clock), pause, total);
        let system = PathBuf::from("/sys");
        ProviderContext { environment, clock, http, journal: Journal::new(), sysfs: system }
    }

    /// The value of a variable that is set and not empty.
    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        self.environment.variable(name).and_then(|value| value.to_str()).filter(|value| !value.is_empty())
    }

    /// The value of a boolean variable; `None` if it is not set.
    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        self.variable(name).map(|value| value.eq_ignore_ascii_case("true"))
    }

    /// Sends a request to `service`, which errors name.
    ///
    /// # Errors
    /// If there is no response.
    pub(crate) fn send(
        &self,
        service: &'static str,
        request: &HttpRequest,
    ) -> Result<HttpResponse, RegistryError> {
        self.http
            .send(request, &self.journal)
            .map_err(|source| RegistryError::Unreachable { service, source })
    }

    /// Reads a text file and trims white space.
    ///
    /// # Errors
    /// If it cannot be read, is too large or is not UTF-8.
    pub(crate) fn read_file(&self, path: &Path) -> Result<Secret<String>, RegistryError> {
        let failed =
            |what: &str, source| RegistryError::File { path: path.to_owned(), what: what.to_owned(), source };
        let size = fs::metadata(path).map_err(|error| failed("read failed", Some(error)))?.len();
        if size > MAX_FILE_BYTES {
            return Err(failed("file is too large", None));
        }
        let bytes =
            zeroize::Zeroizing::new(fs::read(path).map_err(|error| failed("read failed", Some(error)))?);
        let text = std::str::from_utf8(&bytes).map_err(|_| failed("not UTF-8 text", None))?;
        Ok(Secret::new(text.trim().to_owned()))
    }
}
