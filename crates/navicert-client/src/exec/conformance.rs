//! Which rules a plugin breaks: it is run in every version, with and without a cluster and a terminal, and each of its
//! answers is judged as a client would, and a little more (client-credentials.md C607).

#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use navicert_plugin::{Completed, Policy, RunError, Stderr, StderrTail};
use navicert_types::Timestamp;
use navicert_types::exec_credential::{Cluster, DecodeError, Version};
use navicert_types::tree::{Node, Syntax, parse};

use super::plugin::Plugin;
use super::response::{self, Output, ResponseError};
use super::settings::{Settings, Surroundings};

/// How a plugin is run once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// The version it is asked in.
    pub version: Version,
    /// Whether it is told about a cluster.
    pub cluster: bool,
    /// Whether it has a terminal on standard input. Whoever runs the case sees to that.
    pub terminal: bool,
}

impl Case {
    /// Every case, or those of one version.
    pub fn all(only: Option<Version>) -> Vec<Case> {
        let versions =
            Version::ALL.iter().copied().filter(|version| only.is_none_or(|only| only == *version));
        let mut cases = Vec::new();
        for version in versions {
            for terminal in [false, true] {
                for cluster in [false, true] {
                    if version.has_cluster() || !cluster {
                        cases.push(Case { version, cluster, terminal });
                    }
                }
            }
        }
        cases
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = self.version.api_version().rsplit('/').next().unwrap_or_default();
        let cluster = if self.cluster { "with" } else { "without" };
        let terminal = if self.terminal { "with" } else { "without" };
        write!(f, "{short}, {cluster} cluster info, {terminal} a terminal")
    }
}

macro_rules! rules {
    ($($(#[$doc:meta])* $rule:ident = $name:literal $demand:literal,)*) => {
        /// What is demanded of a plugin.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Rule { $($(#[$doc])* $rule,)* }

        impl Rule {
            /// Every rule.
            pub const ALL: &[Rule] = &[$(Rule::$rule,)*];

            /// Its name, for searching and for machines.
            pub fn name(self) -> &'static str {
                match self { $(Rule::$rule => $name,)* }
            }

            /// What it demands.
            pub fn demand(self) -> &'static str {
                match self { $(Rule::$rule => $demand,)* }
            }
        }
    };
}

rules! {
    /// C320, C321.
    Starts = "starts" "the program exists and can be started",
    /// C306.
    EndsInTime = "ends-in-time" "it ends by itself within the limit",
    /// C307.
    LeavesNothing = "leaves-nothing" "nothing it leaves behind holds its standard output open",
    /// C305.
    FitsTheLimit = "fits-the-limit" "it prints at most a megabyte",
    /// C323.
    ExitsZero = "exits-zero" "it exits with 0 when it has a credential to give, as it has been asked to",
    /// C332.
    OneDocument = "one-document" "standard output holds one document and nothing else: no log lines",
    /// C331.
    HasVersion = "has-version" "the answer names its apiVersion",
    /// C201.
    KnownVersion = "known-version" "the answer is an ExecCredential of a version that clients know",
    /// §3.4, third row.
    AskedVersion = "asked-version" "the answer is in the version that KUBERNETES_EXEC_INFO asks in",
    /// §3.4, fifth row.
    FieldTypes = "field-types" "every field has its type, and times are RFC 3339",
    /// §3.4, sixth row.
    HasStatus = "has-status" "the answer has a status",
    /// C330.
    HasCredential = "has-credential" "the status has a token, or a certificate and its key",
    /// C330.
    WholePair = "whole-pair" "a certificate comes with its key",
    /// §3.4, ninth row.
    PairMatches = "pair-matches" "certificate and key can be read and belong together",
    /// C336.
    TokenFits = "token-fits-header" "the token has no control characters and no white space around it",
    /// C412.
    NotExpired = "not-expired" "what it gives has not expired yet",
    /// C334.
    CertificateValid = "certificate-valid" "the certificate is valid now",
    /// C195.
    KeepsSecrets = "keeps-secrets" "the token is not repeated on standard error",
    /// Other clients than Go's read JSON only.
    PrintsJson = "prints-json" "the answer is JSON, which every client reads; some read YAML",
    /// C241.
    NamesItsKind = "names-its-kind" "the answer says `kind: ExecCredential`",
}

impl Rule {
    /// Whether client-go would go on all the same.
    pub fn is_advice(self) -> bool {
        matches!(
            self,
            Rule::NotExpired
                | Rule::CertificateValid
                | Rule::KeepsSecrets
                | Rule::PrintsJson
                | Rule::NamesItsKind
        )
    }
}

/// A rule that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// What happened, in the words of a client.
    pub message: String,
}

/// A plugin under examination.
#[derive(Clone, Debug)]
pub struct Subject {
    command: String,
    args: Vec<String>,
    limit: Duration,
}

impl Subject {
    /// This command, which has so long for each run.
    pub fn new(command: impl Into<String>, args: Vec<String>, limit: Duration) -> Self {
        Subject { command: command.into(), args, limit }
    }

    /// Runs it once and says what it breaks; nothing if it is fine. Blocks while it runs. What it says on standard
    /// error is kept, not shown. The policy is not asked: whoever examines a plugin has named it himself.
    pub fn run(&self, case: Case, around: &Surroundings) -> Vec<Finding> {
        const KEPT: usize = 64 * 1024;
        let settings = Settings {
            limit: Some(self.limit),
            interactive_limit: Some(self.limit),
            stderr: Stderr::Tail(KEPT),
            ..Settings::default()
        };
        let plugin = self.plugin(case);
        let found = |rule, message: String| vec![Finding { rule, message }];
        let question = match plugin.question(case.terminal) {
            Ok(question) => question,
            Err(error) => return found(Rule::Starts, error.to_string()),
        };
        let command = plugin.to_command(case.terminal, &question, &settings, around);
        let permitted = match Policy::AllowAll.permit(command) {
            Ok(permitted) => permitted,
            Err(error) => return found(Rule::Starts, with_cause(&error)),
        };
        match around.runner.run(permitted) {
            Ok(completed) => judge(&completed, case, around.clock.now()),
            Err(error @ RunError::TimedOut { .. }) => found(Rule::EndsInTime, error.to_string()),
            Err(error @ RunError::StdoutTooLarge { .. }) => found(Rule::FitsTheLimit, error.to_string()),
            Err(error) => found(Rule::Starts, with_cause(&error)),
        }
    }

    fn plugin(&self, case: Case) -> Plugin {
        let server = "https://kubernetes.example:6443".to_owned();
        let cluster = Cluster { server: server.clone(), ..Cluster::default() };
        Plugin {
            command: self.command.clone(),
            args: self.args.clone(),
            env: Vec::new(),
            version: case.version,
            install_hint: String::new(),
            interactive_mode: "IfAvailable".to_owned(),
            server,
            config: Node::default(),
            cluster: case.cluster.then_some(cluster),
        }
    }
}

fn with_cause(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}

/// In the order a client would find it: how it ended, what it printed, what that is worth.
fn judge(completed: &Completed, case: Case, now: Timestamp) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut broken = |rule, message: String| findings.push(Finding { rule, message });
    let stdout = completed.stdout.expose();
    if !completed.stdout_closed {
        broken(Rule::LeavesNothing, "something it started still holds its standard output open".to_owned());
    }
    if !completed.exit.is_success() {
        let message = response::status_message(stdout).map(|message| format!(": {message}"));
        broken(Rule::ExitsZero, format!("it ended with {}{}", completed.exit, message.unwrap_or_default()));
        return findings;
    }
    match response::read(stdout, case.version) {
        Ok(output) => {
            let said = completed.stderr.as_ref().map(StderrTail::bytes).unwrap_or_default();
            advise(&output, stdout, said, now, &mut broken);
        }
        Err(error) => broken(rule_of(&error), error.to_string()),
    }
    findings
}

fn rule_of(error: &ResponseError) -> Rule {
    match error {
        ResponseError::Undecodable(error) => match **error {
            DecodeError::NotRegistered { .. } => Rule::KnownVersion,
            DecodeError::Fields(_) => Rule::FieldTypes,
            _ => Rule::OneDocument,
        },
        ResponseError::NoVersion => Rule::HasVersion,
        ResponseError::OtherVersion { .. } => Rule::AskedVersion,
        ResponseError::NoStatus => Rule::HasStatus,
        ResponseError::NoCredential => Rule::HasCredential,
        ResponseError::HalfAPair => Rule::WholePair,
        ResponseError::Identity(_) => Rule::PairMatches,
        ResponseError::TokenCharacters | ResponseError::TokenSpace => Rule::TokenFits,
    }
}

fn advise(
    output: &Output,
    stdout: &[u8],
    stderr: &[u8],
    now: Timestamp,
    broken: &mut dyn FnMut(Rule, String),
) {
    if let Some(expires) = output.expires.filter(|expires| expires.timestamp() < now) {
        broken(Rule::NotExpired, format!("the credential expired at {expires}"));
    }
    if let Some(warning) = output.certificate_warning(now) {
        broken(Rule::CertificateValid, warning.to_owned());
    }
    let token = output.token.expose().as_bytes();
    if !token.is_empty() && stderr.windows(token.len()).any(|window| window == token) {
        broken(
            Rule::KeepsSecrets,
            "the token is on standard error too, where logs are taken from".to_owned(),
        );
    }
    match parse(stdout, Syntax::Json) {
        Err(_) => broken(Rule::PrintsJson, "the answer is YAML".to_owned()),
        Ok(node) if node.as_mapping().is_none_or(|mapping| mapping.last("kind").is_none()) => {
            broken(Rule::NamesItsKind, "the answer has no kind".to_owned());
        }
        Ok(_) => {}
    }
}
