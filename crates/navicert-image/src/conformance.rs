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
pub struct PluginUnderTest {
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
pub enum ConformanceRule {
    /// It starts, and exits with 0 for a good request.
    // I98
    Runs,
    /// It answers in time.
    // I95
    TimeLimit,
    /// It prints no more than a megabyte.
    // I94
    OutputSize,
    /// It leaves nothing running that holds its output open.
    // I96
    LeavesNothingRunning,
    /// It prints one JSON object and nothing else.
    // I101
    OneJsonObject,
    /// It answers in the version it was asked in.
    // I102
    ApiVersion,
    /// Every field is known and of the right type.
    // I103, I105
    Schema,
    /// It says what its answer is good for.
    // I106
    CacheKeyType,
    /// Every key could be one.
    // I107, I132
    Keys,
    /// Some key is for the image that was asked for.
    // I138
    ServesTheImage,
    /// It prints no password on stderr, which is logged.
    // I98, I244
    QuietAboutSecrets,
    /// It does not mind a field it does not know: kubelets get new ones.
    // I164
    ToleratesNewFields,
    /// It exits unsuccessfully for what is no request.
    // I164
    RefusesGarbage,
    /// It exits unsuccessfully for a version it cannot know.
    // I164
    RefusesUnknownVersions,
    /// It exits unsuccessfully for an empty image.
    // I164
    RefusesAnEmptyImage,
    /// It does not hand a service account's token back as a password.
    // I117
    KeepsTokensToItself,
}

/// What came of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConformanceResult {
    /// The rule.
    pub rule: ConformanceRule,
    /// Whether it holds, and how it is broken if not. No secret is in the sentence.
    pub result: Result<(), String>,
}

/// Puts a plugin through every rule. A rule that another broken one leaves undecided is left out.
pub fn check(plugin: &PluginUnderTest, runner: &dyn Runner) -> Vec<ConformanceResult> {
    let mut conformance = ConformanceRun { plugin, runner, results: Vec::new() };
    let plain = CredentialProviderRequest { image: plugin.image.clone(), ..Default::default() };
    let good = request::encode(&plain, plugin.version);
    let completed = conformance.run(good.expose());
    let ran = conformance.check_run(&completed);
    // What fails for every request refuses nothing.
    let (true, Ok(completed)) = (ran, &completed) else { return conformance.results };
    if let Some(response) = conformance.check_response(completed) {
        conformance.check_credentials(completed, &response);
        conformance.check_unknown_field(&plain);
        conformance.check_token_echo(&plain);
    }
    conformance.check_rejections(&plain);
    conformance.results
}

struct ConformanceRun<'a> {
    plugin: &'a PluginUnderTest,
    runner: &'a dyn Runner,
    results: Vec<ConformanceResult>,
}

impl ConformanceRun<'_> {
    fn run(&self, stdin: &[u8]) -> Result<Completed, String> {
        let command = Command::new(self.plugin.program.clone(), self.plugin.environment.clone())
            .args(self.plugin.args.iter().cloned())
            .stdin(Stdin::Bytes(Secret::new(stdin.to_vec())))
            .stderr(Stderr::Tail(64 << 10))
            .limit(Some(self.plugin.limit))
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

    fn record(&mut self, rule: ConformanceRule, broken: Option<String>) -> bool {
        let result = broken.map_or(Ok(()), Err);
        self.results.push(ConformanceResult { rule, result });
        self.results.last().is_some_and(|result| result.result.is_ok())
    }

    fn check_run(&mut self, completed: &Result<Completed, String>) -> bool {
        match completed {
            Err(error) if error == TIMED_OUT => {
                let message = format!("it was still running after {:?} and was killed", self.plugin.limit);
                return self.record(ConformanceRule::TimeLimit, Some(message));
            }
            Err(error) if error == TOO_LARGE => {
                return self.record(
                    ConformanceRule::OutputSize,
                    Some("it printed more than a megabyte and was killed".to_owned()),
                );
            }
            Err(error) => return self.record(ConformanceRule::Runs, Some(error.clone())),
            Ok(completed) if !completed.exit.is_success() => {
                return self.record(
                    ConformanceRule::Runs,
                    Some(format!("it ended with {} for a good request", completed.exit)),
                );
            }
            Ok(completed) => {
                self.record(ConformanceRule::Runs, None);
                self.record(ConformanceRule::TimeLimit, None);
                self.record(ConformanceRule::OutputSize, None);
                let held = (!completed.stdout_closed).then(|| {
                    "a process it left behind holds its output open; a kubelet waits for it".to_owned()
                });
                self.record(ConformanceRule::LeavesNothingRunning, held);
            }
        }
        true
    }

    fn check_response(&mut self, completed: &Completed) -> Option<Response> {
        let decoded = Response::decode(completed.stdout.expose(), self.plugin.version);
        let order = [
            ConformanceRule::OneJsonObject,
            ConformanceRule::ApiVersion,
            ConformanceRule::Schema,
            ConformanceRule::CacheKeyType,
        ];
        let broken = decoded.as_ref().err().map(|error| (rule_for_error(error), error.to_string()));
        for rule in order {
            match &broken {
                Some((broken, message)) if *broken == rule => {
                    self.record(rule, Some(message.clone()));
                    return None;
                }
                _ => self.record(rule, None),
            };
        }
        decoded.ok()
    }

    fn check_credentials(&mut self, completed: &Completed, response: &Response) {
        let keyring = Keyring::new(response.auth.clone(), Profile::Kube);
        let refused = keyring
            .rejected_keys()
            .first()
            .map(|refused| format!("`{}` is no key: {}", refused.key, refused.reason));
        self.record(ConformanceRule::Keys, refused);
        let serves = !keyring.lookup(&self.plugin.image).is_empty() || response.auth.is_empty();
        let nothing = format!("none of its keys is for `{}`, the image it was asked for", self.plugin.image);
        self.record(ConformanceRule::ServesTheImage, (!serves).then_some(nothing));
        let stderr = completed.stderr.as_ref().map(navicert_plugin::StderrTail::text).unwrap_or_default();
        let leaks = response.auth.iter().any(|(_, credential)| {
            let password = credential.password.expose();
            password.len() >= MIN_SECRET_BYTES && stderr.contains(password.as_str())
        });
        self.record(
            ConformanceRule::QuietAboutSecrets,
            leaks.then(|| "a password of its answer is on stderr, which ends in logs".to_owned()),
        );
    }

    fn check_unknown_field(&mut self, plain: &CredentialProviderRequest) {
        let good = request::encode(plain, self.plugin.version);
        let text = String::from_utf8_lossy(good.expose()).replacen('{', "{\"fieldOfTomorrow\":true,", 1);
        let accepted = self.run(text.as_bytes()).is_ok_and(|completed| completed.exit.is_success());
        self.record(
            ConformanceRule::ToleratesNewFields,
            (!accepted).then(|| "a request with a field it does not know made it fail".to_owned()),
        );
    }

    fn check_token_echo(&mut self, plain: &CredentialProviderRequest) {
        if !self.plugin.version.has_service_accounts() {
            return;
        }
        let token = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJuYXZpY2VydC1wbHVnaW4tY2hlY2sifQ.c2ln";
        let request = CredentialProviderRequest {
            service_account_token: Secret::from(token.to_owned()),
            ..plain.clone()
        };
        let Ok(completed) = self.run(request::encode(&request, self.plugin.version).expose()) else {
            return;
        };
        let Ok(response) = Response::decode(completed.stdout.expose(), self.plugin.version) else { return };
        let echoes = response.auth.iter().any(|(_, credential)| credential.password.expose() == token);
        let message =
            "it returned the service account's token as a password; that works only with `cacheType: Token`";
        self.record(ConformanceRule::KeepsTokensToItself, echoes.then(|| message.to_owned()));
    }

    fn check_rejections(&mut self, plain: &CredentialProviderRequest) {
        let good = request::encode(plain, self.plugin.version);
        let text = String::from_utf8_lossy(good.expose()).into_owned();
        let tomorrow =
            text.replace(self.plugin.version.api_version(), "credentialprovider.kubelet.k8s.io/v99");
        let empty = request::encode(&CredentialProviderRequest::default(), self.plugin.version);
        for (rule, stdin, what) in [
            (ConformanceRule::RefusesGarbage, &b"this is no request\n"[..], "what is no request"),
            (ConformanceRule::RefusesUnknownVersions, tomorrow.as_bytes(), "a version it cannot know"),
            (ConformanceRule::RefusesAnEmptyImage, empty.expose().as_slice(), "an empty image"),
        ] {
            let accepted = self.run(stdin).is_ok_and(|completed| completed.exit.is_success());
            self.record(rule, accepted.then(|| format!("it exited with 0 for {what}")));
        }
    }
}

const TIMED_OUT: &str = "timed out";
const TOO_LARGE: &str = "too large";
const MIN_SECRET_BYTES: usize = 4;

fn rule_for_error(error: &ResponseError) -> ConformanceRule {
    match error {
        ResponseError::Empty | ResponseError::NotJson { .. } => ConformanceRule::OneJsonObject,
        ResponseError::Version { .. } => ConformanceRule::ApiVersion,
        ResponseError::Schema { .. } => ConformanceRule::Schema,
        ResponseError::CacheKeyType { .. } => ConformanceRule::CacheKeyType,
    }
}

impl ConformanceRule {
    /// A stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            ConformanceRule::Runs => "runs",
            ConformanceRule::TimeLimit => "time-limit",
            ConformanceRule::OutputSize => "output-size",
            ConformanceRule::LeavesNothingRunning => "leaves-nothing-running",
            ConformanceRule::OneJsonObject => "one-json-object",
            ConformanceRule::ApiVersion => "api-version",
            ConformanceRule::Schema => "schema",
            ConformanceRule::CacheKeyType => "cache-key-type",
            ConformanceRule::Keys => "keys",
            ConformanceRule::ServesTheImage => "serves-the-image",
            ConformanceRule::QuietAboutSecrets => "quiet-about-secrets",
            ConformanceRule::ToleratesNewFields => "tolerates-new-fields",
            ConformanceRule::RefusesGarbage => "refuses-garbage",
            ConformanceRule::RefusesUnknownVersions => "refuses-unknown-versions",
            ConformanceRule::RefusesAnEmptyImage => "refuses-an-empty-image",
            ConformanceRule::KeepsTokensToItself => "keeps-tokens-to-itself",
        }
    }
}

impl fmt::Display for ConformanceRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
