//! `oidc-provider` from npm, run by node with the program beside this file. `scripts/install-tools` installs it.

use std::path::{Path, PathBuf};

use crate::pki::ca::Ca;
use crate::services::node_program::{NodeProgram, text};

/// The provider, running until dropped.
#[derive(Debug)]
pub struct NpmProvider {
    program: NodeProgram,
    address: String,
    issuer: String,
    ca_file: PathBuf,
}

impl NpmProvider {
    /// Starts it with a certificate of `ca`, and its files in `dir`. The issuer is its own address unless another one is given.
    /// `None`, reported as skipped, if it is not installed.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start(ca: &Ca, dir: &Path, issuer: Option<&str>) -> Option<Self> {
        let files = super::write_identity(ca, dir);
        let mut arguments = vec![files.certificate, files.key];
        arguments.extend(issuer.map(PathBuf::from));
        let variables = [("NODE_EXTRA_CA_CERTS", files.ca.as_path())];
        let script = "openid_provider/openid-provider.mjs";
        let program = NodeProgram::start(script, "oidc-provider", arguments, &variables)?;
        let answer = program.ask("address").await;
        Some(NpmProvider {
            address: text(&answer, "address"),
            issuer: text(&answer, "issuer"),
            program,
            ca_file: files.ca,
        })
    }

    /// The URL where it listens.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Its issuer.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// The certificate of its CA.
    pub fn ca_file(&self) -> &Path {
        &self.ca_file
    }

    /// A new ID token, signed with the newest key.
    ///
    /// # Panics
    /// If the login fails.
    pub async fn token(&self) -> String {
        text(&self.program.ask("token").await, "token")
    }

    /// Signs with a new key from now on; the earlier ones stay published.
    ///
    /// # Panics
    /// If it does not answer.
    pub async fn rotate(&self) {
        self.program.ask("rotate").await;
    }

    /// How many requests of this grant its token endpoint has answered with tokens, such as `refresh_token`.
    ///
    /// # Panics
    /// If it does not answer.
    pub async fn grants(&self, grant_type: &str) -> u64 {
        let answer = self.program.ask("grants").await;
        answer
            .pointer(&format!("/grants/{grant_type}"))
            .and_then(serde_json::Value::as_u64)
            .unwrap_or_default()
    }
}
