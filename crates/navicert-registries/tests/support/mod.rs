//! Runs a provider as a kubelet does, with only the environment variables a test sets.

use std::path::{Path, PathBuf};

use navicert_testkit::Program;
use navicert_testkit::cli::program::Outcome;
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) const ECR: &str = env!("CARGO_BIN_EXE_ecr-credential-provider");
pub(crate) const GCP: &str = env!("CARGO_BIN_EXE_auth-provider-gcp");
pub(crate) const ACR: &str = env!("CARGO_BIN_EXE_acr-credential-provider");

/// One run of a provider.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    program: PathBuf,
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
    request: Value,
}

/// Output of a run.
pub(crate) struct RunOutput {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    pub(crate) fn new(program: impl Into<PathBuf>, image: &str) -> Self {
        let request = json!({
            "kind": "CredentialProviderRequest", "apiVersion": "credentialprovider.kubelet.k8s.io/v1", "image": image,
        });
        Run { program: program.into(), arguments: Vec::new(), variables: Vec::new(), request }
    }

    pub(crate) fn arguments(mut self, arguments: &[&str]) -> Self {
        self.arguments.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        self
    }

    pub(crate) fn variable(mut self, name: &str, value: impl AsRef<Path>) -> Self {
        self.variables.push((name.to_owned(), value.as_ref().to_str().unwrap().to_owned()));
        self
    }

    pub(crate) fn service_account(mut self, token: &str, annotations: &[(&str, &str)]) -> Self {
        self.request["serviceAccountToken"] = json!(token);
        for (name, value) in annotations {
            self.request["serviceAccountAnnotations"][name] = json!(value);
        }
        self
    }

    pub(crate) fn run(&self) -> RunOutput {
        self.run_with(self.request.to_string())
    }

    pub(crate) fn run_with(&self, stdin: impl Into<Vec<u8>>) -> RunOutput {
        let program = Program::new(&self.program).arguments(&self.arguments).own_environment().stdin(stdin);
        let program =
            self.variables.iter().fold(program, |program, (name, value)| program.variable(name, value));
        RunOutput::from_outcome(program.run().unwrap())
    }
}

impl RunOutput {
    pub(crate) fn from_outcome(outcome: Outcome) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        RunOutput {
            code: outcome.code().unwrap(),
            stdout: text(outcome.stdout),
            stderr: text(outcome.stderr),
        }
    }

    /// The response of a successful run.
    pub(crate) fn response(&self) -> Value {
        assert_eq!(self.code, 0, "{}", self.stderr);
        let response: Value = serde_json::from_str(&self.stdout).unwrap();
        assert_eq!(response["kind"], "CredentialProviderResponse");
        response
    }

    /// User name and password of the only credential, under this key.
    pub(crate) fn login(&self, key: &str) -> (String, String) {
        let response = self.response();
        let auth = &response["auth"][key];
        let text =
            |name: &str| auth[name].as_str().unwrap_or_else(|| panic!("nothing under {key}")).to_owned();
        (text("username"), text("password"))
    }

    pub(crate) fn assert_error(&self, code: i32, said: &str) {
        assert_eq!((self.code, self.stdout.as_str()), (code, ""), "{}", self.stderr);
        assert!(self.stderr.contains(said), "expected `{said}` in: {}", self.stderr);
    }

    /// Whether the response has no credentials: the image is in another registry (I200).
    pub(crate) fn is_empty(&self) -> bool {
        let response = self.response();
        response["auth"] == json!({})
            && response["cacheDuration"] == "0s"
            && response["cacheKeyType"] == "Registry"
    }
}

/// A directory with a link to a program under another name.
pub(crate) fn linked(program: &str, name: &str) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let link = dir.path().join(name);
    std::os::unix::fs::symlink(program, &link).unwrap();
    (dir, link)
}

/// Seconds since the epoch, now.
pub(crate) fn now() -> i64 {
    use navicert_types::Clock as _;
    navicert_types::SystemClock.now().as_second()
}
