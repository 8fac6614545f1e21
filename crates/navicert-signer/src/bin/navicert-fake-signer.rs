//! A signer for tests, with a software key in a file. Its environment says how it misbehaves; its answers to both versions
//! are made by the same code as the real one's.

use std::env;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use navicert_signer::remote::{KeyRing, answer, answer_v1alpha1, wire};
use navicert_signer::{Identity, SignError, SoftwareKey};
use navicert_types::external_signer::{CONFIG_VARIABLE, Configuration, REQUEST_FD_VARIABLE, v1, v1alpha1};

/// A key in DER and its chain in PEM, in a folder.
#[derive(Debug)]
struct Folder(PathBuf);

impl KeyRing for Folder {
    fn find(&self, _: &Configuration, _: bool) -> Result<Arc<Identity>, SignError> {
        let read = |name: &str| {
            std::fs::read(self.0.join(name)).map_err(|error| SignError::Internal(error.to_string()))
        };
        let key = SoftwareKey::from_der(&read("key.der")?)
            .map_err(|error| SignError::Internal(error.to_string()))?;
        let chain =
            wire::chain(&read("chain.pem")?).ok_or_else(|| SignError::Internal("no chain".to_owned()))?;
        Identity::new(chain, Arc::new(key))
            .map(Arc::new)
            .map_err(|error| SignError::Internal(error.to_string()))
    }
}

fn main() -> ExitCode {
    let folder = PathBuf::from(variable("FAKE_SIGNER_FOLDER").unwrap_or_default());
    let question = match variable(REQUEST_FD_VARIABLE) {
        Some(_) => {
            let mut question = String::new();
            let _ = io::stdin().read_to_string(&mut question);
            question
        }
        None => variable(CONFIG_VARIABLE).unwrap_or_default(),
    };
    write_down(&folder, &question);
    let is_sign = question.contains("\"kind\":\"Sign");
    match variable("FAKE_SIGNER_MODE").as_deref() {
        // Waits for a writer that never comes.
        Some("hang") if is_sign => {
            let _ = std::fs::read(folder.join("pipe"));
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
    let ring = Folder(if is_sign && variable("FAKE_SIGNER_MODE").as_deref() == Some("wrong-key") {
        folder.join("other")
    } else {
        folder
    });
    if let Ok(request) = v1::Request::from_json(question.as_bytes()) {
        return print(&format!("{}\n", answer(&ring, &request).to_json()));
    }
    match v1alpha1::Request::from_json(question.as_bytes())
        .map(|request| answer_v1alpha1(&ring, &request, false))
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

/// What was asked, one line per run, and what the environment held.
fn write_down(folder: &std::path::Path, question: &str) {
    let open = |name: &str| std::fs::OpenOptions::new().create(true).append(true).open(folder.join(name));
    if let Ok(mut log) = open("asked") {
        let _ = writeln!(log, "{question}");
    }
    if let Ok(mut log) = open("environment") {
        for (name, value) in all() {
            let _ = writeln!(log, "{name}={value}");
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "this program's one look at a variable of its environment")]
fn variable(name: &str) -> Option<String> {
    env::var(name).ok()
}

#[expect(clippy::disallowed_methods, reason = "a test looks at what a signer inherits")]
fn all() -> Vec<(String, String)> {
    env::vars().collect()
}
