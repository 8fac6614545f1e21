//! Conformance checks for plugin authors: runs a plugin as a kubelet does and reports each violated rule.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use navicert_plugin::{
    Command, Completed, Environment, Policy, ProcessGroup, RunError, Runner, Stderr, Stdin,
};
use navicert_types::image_credential::{CredentialProviderRequest, WireVersion};
use navicert_types::{Secret, error_chain};

use crate::keyring::Keyring;
use crate::profile::Profile;
use crate::request;
use crate::response::{Response, ResponseError};

/// A plugin under test.
#[derive(Clone, Debug)]
pub struct ImagePluginUnderTest {
    /// The executable.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// The environment it inherits.
    pub environment: Environment,
    /// An image it should have credentials for.
    pub image: String,
    /// The API version of the requests.
    pub version: WireVersion,
    /// How long a run may take.
    pub limit: Duration,
}

/// A rule of the plugin protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ConformanceRule {
    /// Starts, and exits with 0 for a valid request.
    // I98
    Runs,
    /// Responds within the time limit.
    // I95
    TimeLimit,
    /// Prints at most one megabyte.
    // I94
    OutputSize,
    /// Leaves no child process that keeps stdout open.
    // I96
    #[serde(rename = "leaves-nothing-running")]
    ClosesStdout,
    /// Prints exactly one JSON object.
    // I101
    OneJsonObject,
    /// Responds in the API version of the request.
    // I102
    ApiVersion,
    /// Every field is known and of the right type.
    // I103, I105
    Schema,
    /// Sets a valid `cacheKeyType`.
    // I106
    CacheKeyType,
    /// Every key is valid.
    // I107, I132
    Keys,
    /// At least one key matches the requested image.
    // I138
    #[serde(rename = "serves-the-image")]
    MatchesImage,
    /// Prints no password on stderr, which is logged.
    // I98, I244
    #[serde(rename = "quiet-about-secrets")]
    NoSecretsOnStderr,
    /// Ignores unknown request fields, since newer kubelets add some.
    // I164
    #[serde(rename = "tolerates-new-fields")]
    AcceptsUnknownFields,
    /// Exits non-zero for input that is not a request.
    // I164
    #[serde(rename = "refuses-garbage")]
    RejectsInvalidInput,
    /// Exits non-zero for an unknown API version.
    // I164
    #[serde(rename = "refuses-unknown-versions")]
    RejectsUnknownVersions,
    /// Exits non-zero for an empty image.
    // I164
    #[serde(rename = "refuses-an-empty-image")]
    RejectsEmptyImage,
    /// Does not return the service account token as a password.
    // I117
    #[serde(rename = "keeps-tokens-to-itself")]
    DoesNotEchoToken,
}

/// The result of checking one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConformanceResult {
    /// The rule.
    pub rule: ConformanceRule,
    /// `Ok` if the rule holds, otherwise how it is violated. The message contains no secret.
    pub result: Result<(), String>,
}

/// Checks a plugin against every rule. Omits rules that cannot be decided because an earlier one failed.
pub fn check(plugin: &ImagePluginUnderTest, runner: &dyn Runner) -> Vec<ConformanceResult> {
    let mut conformance = ConformanceRun { plugin, runner, results: Vec::new() };
    let plain = CredentialProviderRequest { image: plugin.image.clone(), ..Default::default() };
    let good = request::encode(&plain, plugin.version);
    let completed = conformance.run(good.expose());
    let ran = conformance.check_run(&completed);
    // A plugin that fails for every request does not pass the rejection rules.
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
    plugin: &'a ImagePluginUnderTest,
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
        let permitted = Policy::AllowAll.permit(command).map_err(|error| error_chain(&error))?;
        self.runner.run(permitted).map_err(|error| match error {
            RunError::TimedOut { .. } => TIMED_OUT.to_owned(),
            RunError::StdoutTooLarge { .. } => TOO_LARGE.to_owned(),
            error => error_chain(&error),
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
                let message = format!("still running after {:?}, killed", self.plugin.limit);
                return self.record(ConformanceRule::TimeLimit, Some(message));
            }
            Err(error) if error == TOO_LARGE => {
                return self.record(
                    ConformanceRule::OutputSize,
                    Some("printed more than a megabyte, killed".to_owned()),
                );
            }
            Err(error) => return self.record(ConformanceRule::Runs, Some(error.clone())),
            Ok(completed) if !completed.exit.is_success() => {
                return self.record(
                    ConformanceRule::Runs,
                    Some(format!("exited with {} for a valid request", completed.exit)),
                );
            }
            Ok(completed) => {
                self.record(ConformanceRule::Runs, None);
                self.record(ConformanceRule::TimeLimit, None);
                self.record(ConformanceRule::OutputSize, None);
                let held = (!completed.stdout_closed)
                    .then(|| "a child process keeps stdout open; the kubelet waits for it".to_owned());
                self.record(ConformanceRule::ClosesStdout, held);
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
        let broken = decoded.as_ref().err().map(|error| (rule_for_error(error), error_chain(error)));
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
        let invalid = keyring
            .rejected_keys()
            .first()
            .map(|rejected| format!("invalid key `{}`: {}", rejected.key, rejected.reason));
        self.record(ConformanceRule::Keys, invalid);
        let serves = !keyring.lookup(&self.plugin.image).is_empty() || response.auth.is_empty();
        let nothing = format!("no key matches the requested image `{}`", self.plugin.image);
        self.record(ConformanceRule::MatchesImage, (!serves).then_some(nothing));
        let stderr = completed.stderr.as_ref().map(navicert_plugin::StderrTail::text).unwrap_or_default();
        let leaks = response.auth.iter().any(|(_, credential)| {
            let password = credential.password.expose();
            password.len() >= MIN_SECRET_BYTES && stderr.contains(password.as_str())
        });
        self.record(
            ConformanceRule::NoSecretsOnStderr,
            leaks.then(|| "stderr contains a password of the response, and stderr is logged".to_owned()),
        );
    }

    fn check_unknown_field(&mut self, plain: &CredentialProviderRequest) {
        let good = request::encode(plain, self.plugin.version);
        let text = String::from_utf8_lossy(good.expose()).replacen('{', "{\"unknownFutureField\":true,", 1);
        let accepted = self.run(text.as_bytes()).is_ok_and(|completed| completed.exit.is_success());
        self.record(
            ConformanceRule::AcceptsUnknownFields,
            (!accepted).then(|| "failed for a request with an unknown field".to_owned()),
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
            "returned the service account token as a password, which works only with `cacheType: Token`";
        self.record(ConformanceRule::DoesNotEchoToken, echoes.then(|| message.to_owned()));
    }

    fn check_rejections(&mut self, plain: &CredentialProviderRequest) {
        let good = request::encode(plain, self.plugin.version);
        let text = String::from_utf8_lossy(good.expose()).into_owned();
        let unknown_version =
            text.replace(self.plugin.version.api_version(), "credentialprovider.kubelet.k8s.io/v99");
        let empty = request::encode(&CredentialProviderRequest::default(), self.plugin.version);
        for (rule, stdin, what) in [
            (ConformanceRule::RejectsInvalidInput, &b"not a request\n"[..], "input that is not a request"),
            (ConformanceRule::RejectsUnknownVersions, unknown_version.as_bytes(), "an unknown apiVersion"),
            (ConformanceRule::RejectsEmptyImage, empty.expose().as_slice(), "an empty image"),
        ] {
            let accepted = self.run(stdin).is_ok_and(|completed| completed.exit.is_success());
            self.record(rule, accepted.then(|| format!("exited with 0 for {what}")));
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
    /// Every rule.
    #[cfg(test)]
    pub(crate) const ALL: [ConformanceRule; ConformanceRule::DoesNotEchoToken as usize + 1] = [
        ConformanceRule::Runs,
        ConformanceRule::TimeLimit,
        ConformanceRule::OutputSize,
        ConformanceRule::ClosesStdout,
        ConformanceRule::OneJsonObject,
        ConformanceRule::ApiVersion,
        ConformanceRule::Schema,
        ConformanceRule::CacheKeyType,
        ConformanceRule::Keys,
        ConformanceRule::MatchesImage,
        ConformanceRule::NoSecretsOnStderr,
        ConformanceRule::AcceptsUnknownFields,
        ConformanceRule::RejectsInvalidInput,
        ConformanceRule::RejectsUnknownVersions,
        ConformanceRule::RejectsEmptyImage,
        ConformanceRule::DoesNotEchoToken,
    ];

    /// A stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            ConformanceRule::Runs => "runs",
            ConformanceRule::TimeLimit => "time-limit",
            ConformanceRule::OutputSize => "output-size",
            ConformanceRule::ClosesStdout => "leaves-nothing-running",
            ConformanceRule::OneJsonObject => "one-json-object",
            ConformanceRule::ApiVersion => "api-version",
            ConformanceRule::Schema => "schema",
            ConformanceRule::CacheKeyType => "cache-key-type",
            ConformanceRule::Keys => "keys",
            ConformanceRule::MatchesImage => "serves-the-image",
            ConformanceRule::NoSecretsOnStderr => "quiet-about-secrets",
            ConformanceRule::AcceptsUnknownFields => "tolerates-new-fields",
            ConformanceRule::RejectsInvalidInput => "refuses-garbage",
            ConformanceRule::RejectsUnknownVersions => "refuses-unknown-versions",
            ConformanceRule::RejectsEmptyImage => "refuses-an-empty-image",
            ConformanceRule::DoesNotEchoToken => "keeps-tokens-to-itself",
        }
    }
}

impl fmt::Display for ConformanceRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
