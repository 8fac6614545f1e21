//! `oidc-provider` from npm, run by node with the program beside this file. `scripts/install-tools` installs it.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use crate::cli::program::{Program, Running};
use crate::cli::tools;
use crate::pki::ca::Ca;

/// The provider, running until dropped.
#[derive(Debug)]
pub struct NpmProvider {
    running: Running,
    /// Number of the last command.
    commands: AtomicUsize,
    address: String,
    issuer: String,
}

impl NpmProvider {
    /// Starts it with a certificate of `ca`, and its files in `dir`. The issuer is its own address unless another one is given.
    /// `None`, reported as skipped, if it is not installed.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start(ca: &Ca, dir: &Path, issuer: Option<&str>) -> Option<Self> {
        let package = tools::unpacked("oidc-provider", "oidc-provider/node_modules/oidc-provider")?;
        let node = tools::installed("nodejs", "node")?;
        let modules = package.ancestors().nth(2).expect("a folder of modules").to_owned();
        let identity = ca.server().issue();
        for (name, text) in
            [("ca.pem", ca.pem()), ("certificate.pem", identity.chain_pem()), ("key.pem", identity.key_pem())]
        {
            std::fs::write(dir.join(name), text).expect("a file of the provider");
        }
        let script =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("src/services/openid_provider/openid-provider.mjs");
        let running = Program::new(node)
            .arguments([script, modules, dir.join("certificate.pem"), dir.join("key.pem")])
            .arguments(issuer)
            .variable("NODE_EXTRA_CA_CERTS", dir.join("ca.pem"))
            .stdin("0 address\n")
            .start_running()
            .expect("node starts");
        let mut provider = NpmProvider {
            running,
            commands: AtomicUsize::new(0),
            address: String::new(),
            issuer: String::new(),
        };
        let answer = provider.answer(0).await;
        provider.address = text(&answer, "address");
        provider.issuer = text(&answer, "issuer");
        Some(provider)
    }

    /// The URL where it listens.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Its issuer.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// A new ID token, signed with the newest key.
    ///
    /// # Panics
    /// If the login fails.
    pub async fn token(&self) -> String {
        text(&self.ask("token").await, "token")
    }

    /// Signs with a new key from now on; the earlier ones stay published.
    ///
    /// # Panics
    /// If it does not answer.
    pub async fn rotate(&self) {
        self.ask("rotate").await;
    }

    async fn ask(&self, command: &str) -> Value {
        let number = self.commands.fetch_add(1, Ordering::SeqCst) + 1;
        self.running.type_in(&format!("{number} {command}\n"));
        self.answer(number).await
    }

    /// The answer to a command. The provider also logs to the same stream.
    async fn answer(&self, number: usize) -> Value {
        let end = format!("\"number\":{number}}}\n");
        let output = self.running.wait_for_output(&end).await;
        let line = output.lines().find(|line| line.starts_with('{') && line.ends_with(end.trim_end()));
        serde_json::from_str(line.expect("a line that starts with `{`")).expect("an answer in JSON")
    }
}

fn text(answer: &Value, name: &str) -> String {
    let value = answer.get(name).and_then(Value::as_str);
    value.unwrap_or_else(|| panic!("missing `{name}` in the provider's answer")).to_owned()
}
