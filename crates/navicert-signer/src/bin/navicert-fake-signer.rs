//! A signer for tests with a software key in a file. Environment variables select faults; requests are handled by the same
//! code as in the real signer.

use std::env;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use navicert_signer::remote::{KeyStore, handle_request, handle_v1alpha1_request, wire};
use navicert_signer::{SignError, SigningIdentity, SoftwareKey};
use navicert_types::external_signer::{
    CONFIG_VARIABLE, REQUEST_FD_VARIABLE, SignerConfiguration, v1, v1alpha1,
};

/// A key store that reads a DER key and a PEM chain from a directory.
#[derive(Debug)]
struct FolderKeyStore(PathBuf);

impl KeyStore for FolderKeyStore {
    fn find(&self, _: &SignerConfiguration, _: bool) -> Result<Arc<SigningIdentity>, SignError> {
        let read = |name: &str| {
            std::fs::read(self.0.join(name)).map_err(|error| SignError::Internal(error.to_string()))
        };
        let key = SoftwareKey::from_der(&read("key.der")?)
            .map_err(|error| SignError::Internal(error.to_string()))?;
        let chain =
            wire::chain(&read("chain.pem")?).ok_or_else(|| SignError::Internal("no chain".to_owned()))?;
        SigningIdentity::new(chain, Arc::new(key))
            .map(Arc::new)
            .map_err(|error| SignError::Internal(error.to_string()))
    }
}

fn main() -> ExitCode {
    let dir = PathBuf::from(variable("FAKE_SIGNER_FOLDER").unwrap_or_default());
    let request_text = match variable(REQUEST_FD_VARIABLE) {
        Some(_) => {
            let mut text = String::new();
            let _ = io::stdin().read_to_string(&mut text);
            text
        }
        None => variable(CONFIG_VARIABLE).unwrap_or_default(),
    };
    record(&dir, &request_text);
    let is_sign = request_text.contains("\"kind\":\"Sign");
    match variable("FAKE_SIGNER_MODE").as_deref() {
        // Blocks forever: nothing writes to the pipe.
        Some("hang") if is_sign => {
            let _ = std::fs::read(dir.join("pipe"));
        }
        Some("garbage") if is_sign => return print("\u{1b}[2Jsegmentation fault\n"),
        Some("fail") if is_sign => return ExitCode::from(3),
        Some("prompt") => {
            let message = "touch \u{1b}[31mme\nnow".to_owned();
            print(&format!("{}\n", v1::Message::Prompt { message, kind: "touch".to_owned() }.to_json()));
        }
        Some("locked") if is_sign => {
            let (reason, message) = ("PinLocked".to_owned(), "locked \u{7}".to_owned());
            let locked = v1::Message::Error { reason, message, retry_after_seconds: None };
            return print(&format!("{}\n", locked.to_json()));
        }
        _ => {}
    }
    let store = FolderKeyStore(if is_sign && variable("FAKE_SIGNER_MODE").as_deref() == Some("wrong-key") {
        dir.join("other")
    } else {
        dir
    });
    if let Ok(request) = v1::Request::from_json(request_text.as_bytes()) {
        return print(&format!("{}\n", handle_request(&store, &request).to_json()));
    }
    match v1alpha1::Request::from_json(request_text.as_bytes())
        .map(|request| handle_v1alpha1_request(&store, &request, false))
    {
        Ok(Ok(text)) => print(&text),
        _ => ExitCode::from(1),
    }
}

fn print(text: &str) -> ExitCode {
    let _ = io::stdout().write_all(text.as_bytes());
    let _ = io::stdout().flush();
    ExitCode::SUCCESS
}

/// Appends the request and the environment variables to files in the directory.
fn record(dir: &std::path::Path, request: &str) {
    let open = |name: &str| std::fs::OpenOptions::new().create(true).append(true).open(dir.join(name));
    if let Ok(mut log) = open("asked") {
        let _ = writeln!(log, "{request}");
    }
    if let Ok(mut log) = open("environment") {
        for (name, value) in all_variables() {
            let _ = writeln!(log, "{name}={value}");
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "reads the program's environment")]
fn variable(name: &str) -> Option<String> {
    env::var(name).ok()
}

#[expect(clippy::disallowed_methods, reason = "a test checks the inherited environment")]
fn all_variables() -> Vec<(String, String)> {
    env::vars().collect()
}
