//! Which API servers may get a token: a kubeconfig from elsewhere can name the true provider and a foreign server, to which the
//! client would send the person's token. A new server is shown with the identity and confirmed once on a terminal.

use std::io;

use navicert_go::url::Url;
use navicert_types::{Timestamp, redact};
use serde::{Deserialize, Serialize};

use crate::cache::CacheFolder;
use crate::cache::time_text;
use crate::context::LoginContext;
use crate::error::LoginError;
use crate::grant::{needs_person, prompt};
use crate::person::Person;
use crate::request::{LoginRequest, Storage, TrustServer};

/// The servers that were confirmed or rejected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct KnownServers {
    servers: Vec<KnownServer>,
}

/// One server, for one issuer and client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct KnownServer {
    issuer: String,
    client_id: String,
    server: String,
    /// When the person last answered.
    #[serde(with = "time_text")]
    at: Timestamp,
    is_trusted: bool,
}

/// The question about the API server of a run, open or answered.
#[derive(Debug)]
pub(crate) struct ServerQuestion<'q> {
    request: &'q LoginRequest,
    context: &'q LoginContext,
    folder: &'q CacheFolder,
    server: String,
}

impl<'q> ServerQuestion<'q> {
    /// The question that has to be answered before the token is handed over; `None` if there is none. Reads the known servers if
    /// the client names its server.
    ///
    /// # Errors
    /// The server is new, and the person cannot be asked.
    // L1306
    pub(crate) fn open(
        request: &'q LoginRequest,
        context: &'q LoginContext,
        folder: &'q CacheFolder,
    ) -> Result<Option<Self>, LoginError> {
        let Some(server) = &context.server else { return Ok(None) };
        let is_asked = match request.trust_server {
            Some(trust) => trust == TrustServer::Ask,
            None => needs_person(request),
        };
        // Without a cache nothing could be remembered.
        if !is_asked || request.storage == Storage::None {
            return Ok(None);
        }
        let question = ServerQuestion { request, context, folder, server: origin(server) };
        if question.answer().is_some_and(|known| known.is_trusted) {
            return Ok(None);
        }
        if !Person::decide(request, context).can_type {
            return Err(question.not_trusted(", and you cannot be asked here"));
        }
        Ok(Some(question))
    }

    /// Asks the person, and remembers the answer. One process asks; the others wait and take its answer.
    ///
    /// # Errors
    /// The person says no.
    pub(crate) fn ask(&self, identity: &str) -> Result<(), LoginError> {
        let waiting_since = self.context.clock.now();
        let limit = self.request.login_limit();
        let deadline = self.context.clock.monotonic().saturating_add(limit);
        let lock = self.folder.open_servers_lock().map_err(|error| self.failed(&error))?;
        let _held = lock.acquire(self.context, || (deadline, 0))?;
        if let Some(known) = self.answer() {
            if known.is_trusted {
                return Ok(());
            }
            if known.at >= waiting_since {
                return Err(self.not_trusted("; you said no"));
            }
        }
        let text = format!(
            "{} is a new API server. Send it your identity {} of {}? [y/N] ",
            redact::line(&self.server),
            redact::line(identity),
            redact::line(self.request.host()),
        );
        let typed = prompt::read_line(&text, self.context, limit)?;
        let is_trusted = matches!(typed.expose().trim().to_ascii_lowercase().as_str(), "y" | "yes");
        self.remember(is_trusted).map_err(|error| self.failed(&error))?;
        if is_trusted { Ok(()) } else { Err(self.not_trusted("; you said no")) }
    }

    fn answer(&self) -> Option<KnownServer> {
        let known: KnownServers = self.folder.known_servers();
        known.servers.into_iter().find(|known| self.is_about(known))
    }

    fn is_about(&self, known: &KnownServer) -> bool {
        let request = self.request;
        (&known.issuer, &known.client_id, &known.server)
            == (&request.issuer, &request.client_id, &self.server)
    }

    fn remember(&self, is_trusted: bool) -> io::Result<()> {
        let mut known: KnownServers = self.folder.known_servers();
        known.servers.retain(|known| !self.is_about(known));
        known.servers.push(KnownServer {
            issuer: self.request.issuer.clone(),
            client_id: self.request.client_id.clone(),
            server: self.server.clone(),
            at: self.context.clock.now(),
            is_trusted,
        });
        self.folder.write_known_servers(&known)
    }

    fn not_trusted(&self, why: &str) -> LoginError {
        LoginError::ServerNotTrusted {
            server: redact::line(&self.server).into_owned(),
            host: self.request.host().to_owned(),
            why: why.to_owned(),
        }
    }

    fn failed(&self, error: &io::Error) -> LoginError {
        LoginError::CacheFolder(format!(
            "failed to remember API servers in `{}`: {error}",
            self.folder.path().display()
        ))
    }
}

/// Scheme, host and port of a server, in one form. Text that is not a URL stands for itself.
fn origin(server: &str) -> String {
    let Ok(url) = Url::parse(server) else { return server.to_owned() };
    let scheme = url.scheme.to_ascii_lowercase();
    let host = url.host.to_ascii_lowercase();
    let has_port = host
        .rsplit_once(':')
        .is_some_and(|(_, port)| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()));
    match (has_port, scheme.as_str()) {
        (true, _) => format!("{scheme}://{host}"),
        (false, "http") => format!("{scheme}://{}:80", host.trim_end_matches(':')),
        (false, _) => format!("{scheme}://{}:443", host.trim_end_matches(':')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_compared_by_scheme_host_and_port() {
        for (server, expected) in [
            ("https://API.example", "https://api.example:443"),
            ("https://api.example:443/path?x", "https://api.example:443"),
            ("https://api.example:6443", "https://api.example:6443"),
            ("https://u:p@api.example:6443", "https://api.example:6443"),
            ("http://api.example", "http://api.example:80"),
            ("https://[::1]:6443/", "https://[::1]:6443"),
            ("https://[::1]", "https://[::1]:443"),
        ] {
            assert_eq!(origin(server), expected);
        }
    }
}
