//! For people who write a provider plugin: runs it as a kubelet would, and names each rule it breaks.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use navicert_plugin::{
    Command, Completed, Environment, Policy, ProcessGroup, RunError, Runner, Stderr, Stdin,
};
use navicert_types::Secret;
use navicert_types::image_credential::{CredentialProviderRequest, WireVersion};

use crate::keyring::Keyring;
use crate::profile::Profile;
use crate::request;
use crate::response::{Response, ResponseError};

/// A plugin under test.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The executable.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// The environment it inherits.
    pub environment: Environment,
    /// An image it should have credentials for.
    pub image: String,
    /// The version it is spoken to in.
    pub version: WireVersion,
    /// How long a run may take.
    pub limit: Duration,
}

/// What a plugin has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// It starts, and exits with 0 for a good request (I98).
    Runs,
    /// It answers in time (I95).
    TimeLimit,
    /// It prints no more than a megabyte (I94).
    OutputSize,
    /// It leaves nothing running that holds its output open (I96).
    LeavesNothingRunning,
    /// It prints one JSON object and nothing else (I101).
    OneJsonObject,
    /// It answers in the version it was asked in (I102).
    ApiVersion,
    /// Every field is known and of the right type (I103, I105).
    Schema,
    /// It says what its answer is good for (I106).
    CacheKeyType,
    /// Every key could be one (I107, I132).
    Keys,
    /// Some key is for the image that was asked for (I138).
    ServesTheImage,
    /// It prints no password on stderr, which is logged (I98, I244).
    QuietAboutSecrets,
    /// It does not mind a field it does not know: kubelets get new ones (I164).
    ToleratesNewFields,
    /// It exits unsuccessfully for what is no request (I164).
    RefusesGarbage,
    /// It exits unsuccessfully for a version it cannot know (I164).
    RefusesUnknownVersions,
    /// It exits unsuccessfully for an empty image (I164).
    RefusesAnEmptyImage,
    /// It does not hand a service account's token back as a password (I117).
    KeepsTokensToItself,
}

/// What came of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The rule.
    pub rule: Rule,
    /// Whether it holds, and how it is broken if not. No secret is in the sentence.
    pub result: Result<(), String>,
}

/// Puts a plugin through every rule. A rule that another broken one leaves undecided is left out.
pub fn check(subject: &Subject, runner: &dyn Runner) -> Vec<Verdict> {
    let mut trial = Trial { subject, runner, verdicts: Vec::new() };
    let plain = CredentialProviderRequest { image: subject.image.clone(), ..Default::default() };
    let good = request::encode(&plain, subject.version);
    let completed = trial.run(good.expose());
    let ran = trial.judge_run(&completed);
    // What fails for every request refuses nothing.
    let (true, Ok(completed)) = (ran, &completed) else { return trial.verdicts };
    if let Some(response) = trial.judge_response(completed) {
        trial.judge_credentials(completed, &response);
        trial.judge_tolerance(&plain);
        trial.judge_token(&plain);
    }
    trial.judge_refusals(&plain);
    trial.verdicts
}

struct Trial<'a> {
    subject: &'a Subject,
    runner: &'a dyn Runner,
    verdicts: Vec<Verdict>,
}

impl Trial<'_> {
    fn run(&self, stdin: &[u8]) -> Result<Completed, String> {
        let command = Command::new(self.subject.program.clone(), self.subject.environment.clone())
            .args(self.subject.args.iter().cloned())
            .stdin(Stdin::Bytes(Secret::new(stdin.to_vec())))
            .stderr(Stderr::Tail(64 << 10))
            .limit(Some(self.subject.limit))
            .grace(Duration::ZERO)
            .eof_wait(Duration::from_millis(500))
            .process_group(ProcessGroup::NewKilledAtEnd);
        let permitted = Policy::AllowAll.permit(command).map_err(|error| error.to_string())?;
        self.runner.run(permitted).map_err(|error| match error {
            RunError::TimedOut { .. } => TIMED_OUT.to_owned(),
            RunError::StdoutTooLarge { .. } => TOO_LARGE.to_owned(),
            error => error.to_string(),
        })
    }

    fn note(&mut self, rule: Rule, broken: Option<String>) -> bool {
        let result = broken.map_or(Ok(()), Err);
        self.verdicts.push(Verdict { rule, result });
        self.verdicts.last().is_some_and(|verdict| verdict.result.is_ok())
    }

    fn judge_run(&mut self, completed: &Result<Completed, String>) -> bool {
        match completed {
            Err(error) if error == TIMED_OUT => {
                let message = format!("it was still running after {:?} and was killed", self.subject.limit);
                return self.note(Rule::TimeLimit, Some(message));
            }
            Err(error) if error == TOO_LARGE => {
                return self.note(
                    Rule::OutputSize,
                    Some("it printed more than a megabyte and was killed".to_owned()),
                );
            }
            Err(error) => return self.note(Rule::Runs, Some(error.clone())),
            Ok(completed) if !completed.exit.is_success() => {
                return self
                    .note(Rule::Runs, Some(format!("it ended with {} for a good request", completed.exit)));
            }
            Ok(completed) => {
                self.note(Rule::Runs, None);
                self.note(Rule::TimeLimit, None);
                self.note(Rule::OutputSize, None);
                let held = (!completed.stdout_closed).then(|| {
                    "a process it left behind holds its output open; a kubelet waits for it".to_owned()
                });
                self.note(Rule::LeavesNothingRunning, held);
            }
        }
        true
    }

    fn judge_response(&mut self, completed: &Completed) -> Option<Response> {
        let decoded = Response::decode(completed.stdout.expose(), self.subject.version);
        let order = [Rule::OneJsonObject, Rule::ApiVersion, Rule::Schema, Rule::CacheKeyType];
        let broken = decoded.as_ref().err().map(|error| (rule_of(error), error.to_string()));
        for rule in order {
            match &broken {
                Some((broken, message)) if *broken == rule => {
                    self.note(rule, Some(message.clone()));
                    return None;
                }
                _ => self.note(rule, None),
            };
        }
        decoded.ok()
    }

    fn judge_credentials(&mut self, completed: &Completed, response: &Response) {
        let keyring = Keyring::new(response.auth.clone(), Profile::Kube);
        let refused = keyring
            .refused_keys()
            .first()
            .map(|refused| format!("`{}` is no key: {}", refused.key, refused.reason));
        self.note(Rule::Keys, refused);
        let serves = !keyring.lookup(&self.subject.image).is_empty() || response.auth.is_empty();
        let nothing = format!("none of its keys is for `{}`, the image it was asked for", self.subject.image);
        self.note(Rule::ServesTheImage, (!serves).then_some(nothing));
        let stderr = completed.stderr.as_ref().map(navicert_plugin::StderrTail::text).unwrap_or_default();
        let leaks = response.auth.iter().any(|(_, credential)| {
            let password = credential.password.expose();
            password.len() >= SHORTEST_SECRET && stderr.contains(password.as_str())
        });
        self.note(
            Rule::QuietAboutSecrets,
            leaks.then(|| "a password of its answer is on stderr, which ends in logs".to_owned()),
        );
    }

    fn judge_tolerance(&mut self, plain: &CredentialProviderRequest) {
        let good = request::encode(plain, self.subject.version);
        let text = String::from_utf8_lossy(good.expose()).replacen('{', "{\"fieldOfTomorrow\":true,", 1);
        let accepted = self.run(text.as_bytes()).is_ok_and(|completed| completed.exit.is_success());
        self.note(
            Rule::ToleratesNewFields,
            (!accepted).then(|| "a request with a field it does not know made it fail".to_owned()),
        );
    }

    fn judge_token(&mut self, plain: &CredentialProviderRequest) {
        if !self.subject.version.has_service_accounts() {
            return;
        }
        let token = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJuYXZpY2VydC1wbHVnaW4tY2hlY2sifQ.c2ln";
        let request = CredentialProviderRequest {
            service_account_token: Secret::from(token.to_owned()),
            ..plain.clone()
        };
        let Ok(completed) = self.run(request::encode(&request, self.subject.version).expose()) else {
            return;
        };
        let Ok(response) = Response::decode(completed.stdout.expose(), self.subject.version) else { return };
        let echoes = response.auth.iter().any(|(_, credential)| credential.password.expose() == token);
        let message =
            "it returned the service account's token as a password; that works only with `cacheType: Token`";
        self.note(Rule::KeepsTokensToItself, echoes.then(|| message.to_owned()));
    }

    fn judge_refusals(&mut self, plain: &CredentialProviderRequest) {
        let good = request::encode(plain, self.subject.version);
        let text = String::from_utf8_lossy(good.expose()).into_owned();
        let tomorrow =
            text.replace(self.subject.version.api_version(), "credentialprovider.kubelet.k8s.io/v99");
        let empty = request::encode(&CredentialProviderRequest::default(), self.subject.version);
        for (rule, stdin, what) in [
            (Rule::RefusesGarbage, &b"this is no request\n"[..], "what is no request"),
            (Rule::RefusesUnknownVersions, tomorrow.as_bytes(), "a version it cannot know"),
            (Rule::RefusesAnEmptyImage, empty.expose().as_slice(), "an empty image"),
        ] {
            let accepted = self.run(stdin).is_ok_and(|completed| completed.exit.is_success());
            self.note(rule, accepted.then(|| format!("it exited with 0 for {what}")));
        }
    }
}

const TIMED_OUT: &str = "timed out";
const TOO_LARGE: &str = "too large";
const SHORTEST_SECRET: usize = 4;

fn rule_of(error: &ResponseError) -> Rule {
    match error {
        ResponseError::Empty | ResponseError::NotJson { .. } => Rule::OneJsonObject,
        ResponseError::Version { .. } => Rule::ApiVersion,
        ResponseError::Schema { .. } => Rule::Schema,
        ResponseError::CacheKeyType { .. } => Rule::CacheKeyType,
    }
}

impl Rule {
    /// A stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Rule::Runs => "runs",
            Rule::TimeLimit => "time-limit",
            Rule::OutputSize => "output-size",
            Rule::LeavesNothingRunning => "leaves-nothing-running",
            Rule::OneJsonObject => "one-json-object",
            Rule::ApiVersion => "api-version",
            Rule::Schema => "schema",
            Rule::CacheKeyType => "cache-key-type",
            Rule::Keys => "keys",
            Rule::ServesTheImage => "serves-the-image",
            Rule::QuietAboutSecrets => "quiet-about-secrets",
            Rule::ToleratesNewFields => "tolerates-new-fields",
            Rule::RefusesGarbage => "refuses-garbage",
            Rule::RefusesUnknownVersions => "refuses-unknown-versions",
            Rule::RefusesAnEmptyImage => "refuses-an-empty-image",
            Rule::KeepsTokensToItself => "keeps-tokens-to-itself",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
