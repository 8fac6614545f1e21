//! Checks a plugin against the protocol's rules: runs it in every version, with and without cluster information and a
//! terminal, and checks each response like a client, plus recommendations.
// C607

mod report;
#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use navicert_plugin::{Completed, Policy, RunError, Stderr, StderrTail};
use navicert_types::exec_credential::{DecodeError, ExecCluster, ExecVersion};
use navicert_types::kubeconfig::InteractiveMode;
use navicert_types::tree::{Node, Syntax, parse};
use navicert_types::{Timestamp, error_chain};

use super::plugin::Plugin;
use super::response::{self, PluginOutput, PluginOutputError};
use super::settings::ExecSettings;
use crate::context::ClientContext;

pub use report::{CaseResult, ConformanceReport};

/// One run of the plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConformanceCase {
    /// The version of the request.
    pub version: ExecVersion,
    /// Whether the request has cluster information.
    pub cluster: bool,
    /// Whether standard input is a terminal. The caller provides the terminal.
    pub terminal: bool,
}

impl ConformanceCase {
    /// All cases, or those of one version.
    pub fn all(only: Option<ExecVersion>) -> Vec<ConformanceCase> {
        let versions =
            ExecVersion::ALL.iter().copied().filter(|version| only.is_none_or(|only| only == *version));
        let mut cases = Vec::new();
        for version in versions {
            for terminal in [false, true] {
                for cluster in [false, true] {
                    if version.has_cluster() || !cluster {
                        cases.push(ConformanceCase { version, cluster, terminal });
                    }
                }
            }
        }
        cases
    }
}

impl fmt::Display for ConformanceCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = self.version.api_version().rsplit('/').next().unwrap_or_default();
        let cluster = if self.cluster { "with" } else { "without" };
        let terminal = if self.terminal { "with" } else { "without" };
        write!(f, "{short}, {cluster} cluster info, {terminal} a terminal")
    }
}

macro_rules! rules {
    ($($rule:ident = $name:literal $requirement:literal,)*) => {
        /// A rule for exec plugins.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[non_exhaustive]
        pub enum PluginRule { $(#[doc = $requirement] #[serde(rename = $name)] $rule,)* }

        impl PluginRule {
            /// Every rule.
            pub const ALL: &[PluginRule] = &[$(PluginRule::$rule,)*];

            /// The stable name of the rule.
            pub fn name(self) -> &'static str {
                match self { $(PluginRule::$rule => $name,)* }
            }

            /// What the rule requires.
            pub fn requirement(self) -> &'static str {
                match self { $(PluginRule::$rule => $requirement,)* }
            }
        }
    };
}

rules! {
    // C320, C321
    Starts = "starts" "the program exists and can be started",
    // C306
    EndsInTime = "ends-in-time" "exits on its own within the timeout",
    // C307
    LeavesNothing = "leaves-nothing" "leaves no child process that holds standard output open",
    // C305
    FitsTheLimit = "fits-the-limit" "prints at most one megabyte",
    // C323
    ExitsZero = "exits-zero" "exits with 0 when it returns a credential",
    // C332
    OneDocument = "one-document" "standard output contains one document and no log lines",
    // C331
    HasVersion = "has-version" "the response has an apiVersion",
    // C201
    KnownVersion = "known-version" "the response is an ExecCredential of a supported version",
    // §3.4, third row.
    AskedVersion = "asked-version" "the response has the version of KUBERNETES_EXEC_INFO",
    // §3.4, fifth row.
    FieldTypes = "field-types" "every field has the right type, and times are RFC 3339",
    // §3.4, sixth row.
    HasStatus = "has-status" "the response has a status",
    // C330
    HasCredential = "has-credential" "the status has a token, or a certificate and its key",
    // C330
    WholePair = "whole-pair" "a certificate is returned with its key",
    // §3.4, ninth row.
    PairMatches = "pair-matches" "certificate and key are valid and match",
    // C336
    TokenFits = "token-fits-header" "the token has no control characters and no surrounding white space",
    // C412
    NotExpired = "not-expired" "the credential has not expired",
    // C334
    CertificateValid = "certificate-valid" "the certificate is currently valid",
    // C195
    KeepsSecrets = "keeps-secrets" "the token is not printed on standard error",
    // Clients other than client-go may accept only JSON.
    PrintsJson = "prints-json" "the response is JSON; not every client accepts YAML",
    // C241
    NamesItsKind = "names-its-kind" "the response has `kind: ExecCredential`",
}

impl PluginRule {
    /// Whether the rule is a recommendation: client-go accepts plugins that break it.
    pub fn is_advice(self) -> bool {
        matches!(
            self,
            PluginRule::NotExpired
                | PluginRule::CertificateValid
                | PluginRule::KeepsSecrets
                | PluginRule::PrintsJson
                | PluginRule::NamesItsKind
        )
    }
}

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleViolation {
    /// The rule.
    pub rule: PluginRule,
    /// What happened, as a client would report it.
    pub message: String,
}

/// A plugin to check.
#[derive(Clone, Debug)]
pub struct PluginUnderTest {
    command: String,
    args: Vec<String>,
    timeout: Duration,
}

impl PluginUnderTest {
    /// A command with a timeout for each run.
    pub fn new(command: impl Into<String>, args: Vec<String>, limit: Duration) -> Self {
        PluginUnderTest { command: command.into(), args, timeout: limit }
    }

    /// Runs the plugin once and returns the rules it breaks. Blocks while it runs. Standard error is captured, not shown.
    /// The plugin policy does not apply: the user named the plugin explicitly.
    pub fn run(&self, case: ConformanceCase, client_context: &ClientContext) -> Vec<RuleViolation> {
        const STDERR_TAIL_BYTES: usize = 64 * 1024;
        let settings = ExecSettings {
            timeout: Some(self.timeout),
            interactive_timeout: Some(self.timeout),
            stderr: Stderr::Tail(STDERR_TAIL_BYTES),
            ..ExecSettings::default()
        };
        let plugin = self.plugin(case);
        let found = |rule, message: String| vec![RuleViolation { rule, message }];
        let exec_info = match plugin.exec_info(case.terminal) {
            Ok(exec_info) => exec_info,
            Err(error) => return found(PluginRule::Starts, error_chain(&error)),
        };
        let command = plugin.to_command(case.terminal, &exec_info, &settings, client_context);
        let permitted = match Policy::AllowAll.permit(command) {
            Ok(permitted) => permitted,
            Err(error) => return found(PluginRule::Starts, error_chain(&error)),
        };
        match client_context.runner.run(permitted) {
            Ok(completed) => check_completed(&completed, case, client_context.clock.now()),
            Err(error @ RunError::TimedOut { .. }) => found(PluginRule::EndsInTime, error.to_string()),
            Err(error @ RunError::StdoutTooLarge { .. }) => {
                found(PluginRule::FitsTheLimit, error.to_string())
            }
            Err(error) => found(PluginRule::Starts, error_chain(&error)),
        }
    }

    fn plugin(&self, case: ConformanceCase) -> Plugin {
        let server = "https://kubernetes.example:6443".to_owned();
        let cluster = ExecCluster { server: server.clone(), ..ExecCluster::default() };
        Plugin {
            command: self.command.clone(),
            args: self.args.clone(),
            env: Vec::new(),
            version: case.version,
            install_hint: String::new(),
            interactive_mode: InteractiveMode::IfAvailable,
            server,
            config: Node::default(),
            cluster: case.cluster.then_some(cluster),
        }
    }
}

/// Checks in a client's order: exit code, output, credential.
fn check_completed(completed: &Completed, case: ConformanceCase, now: Timestamp) -> Vec<RuleViolation> {
    let mut findings = Vec::new();
    let mut broken = |rule, message: String| findings.push(RuleViolation { rule, message });
    let stdout = completed.stdout.expose();
    if !completed.stdout_closed {
        broken(PluginRule::LeavesNothing, "a child process still holds standard output open".to_owned());
    }
    if !completed.exit.is_success() {
        let message = response::status_message(stdout).map(|message| format!(": {message}"));
        broken(
            PluginRule::ExitsZero,
            format!("exited with {}{}", completed.exit, message.unwrap_or_default()),
        );
        return findings;
    }
    match response::read(stdout, case.version) {
        Ok(output) => {
            let stderr = completed.stderr.as_ref().map(StderrTail::bytes).unwrap_or_default();
            check_advice(&output, stdout, stderr, now, &mut broken);
        }
        Err(error) => broken(broken_rule(&error), error_chain(&error)),
    }
    findings
}

fn broken_rule(error: &PluginOutputError) -> PluginRule {
    match error {
        PluginOutputError::Undecodable(error) => match **error {
            DecodeError::NotRegistered { .. } => PluginRule::KnownVersion,
            DecodeError::Fields(_) => PluginRule::FieldTypes,
            _ => PluginRule::OneDocument,
        },
        PluginOutputError::NoVersion => PluginRule::HasVersion,
        PluginOutputError::OtherVersion { .. } => PluginRule::AskedVersion,
        PluginOutputError::NoStatus => PluginRule::HasStatus,
        PluginOutputError::NoCredential => PluginRule::HasCredential,
        PluginOutputError::IncompleteKeyPair => PluginRule::WholePair,
        PluginOutputError::Identity(_) => PluginRule::PairMatches,
        PluginOutputError::TokenCharacters | PluginOutputError::TokenWhitespace => PluginRule::TokenFits,
    }
}

fn check_advice(
    output: &PluginOutput,
    stdout: &[u8],
    stderr: &[u8],
    now: Timestamp,
    broken: &mut dyn FnMut(PluginRule, String),
) {
    if let Some(expires) = output.expires.filter(|expires| expires.timestamp() < now) {
        broken(PluginRule::NotExpired, format!("the credential expired at {expires}"));
    }
    if let Some(warning) = output.certificate_warning(now) {
        broken(PluginRule::CertificateValid, warning.to_owned());
    }
    let token = output.token.expose().as_bytes();
    if !token.is_empty() && stderr.windows(token.len()).any(|window| window == token) {
        broken(
            PluginRule::KeepsSecrets,
            "the token also appears on standard error, which is often logged".to_owned(),
        );
    }
    match parse(stdout, Syntax::Json) {
        Err(_) => broken(PluginRule::PrintsJson, "the response is YAML".to_owned()),
        Ok(node) if node.as_mapping().is_none_or(|mapping| mapping.last("kind").is_none()) => {
            broken(PluginRule::NamesItsKind, "the response has no kind".to_owned());
        }
        Ok(_) => {}
    }
}
