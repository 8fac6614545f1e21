//! Every step of a credential lookup, with the reason for each decision.
// I264

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use navicert_types::{error_chain, redact};
use serde::Serialize;

use super::AttemptReport;
use crate::cache_key::CacheKeyType;
use crate::metrics::{MetricsEvent, MetricsRecorder};
use crate::node_keyring::NodeCredentials;
use crate::provider::{Lookup, Provider, ProviderOutcome, Providers};
use crate::{Location, Repository};

/// The result of `image explain`: what a kubelet does for an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ExplainReport {
    /// The image as the user wrote it.
    pub written: String,
    /// The image as a kubelet spells it.
    pub image: String,
    /// The hash of the configuration, as the kubelet's metric shows it.
    pub hash: String,
    /// Every provider, in order.
    pub providers: Vec<ProviderReport>,
    /// The node's docker configuration; `null` if none is used. Missing with `--dry-run`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_docker_config: Option<Option<String>>,
    /// The credentials, in the order they are tried; empty: the pull is anonymous. Missing with `--dry-run`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<Vec<AttemptReport>>,
}

/// What a provider does for an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ProviderReport {
    /// Its name.
    pub name: String,
    /// Whether a pattern matches the image.
    pub matches: bool,
    /// Its patterns, in order.
    pub patterns: Vec<PatternReport>,
    /// The path of its executable.
    pub program: String,
    /// Its arguments; values that may be secrets are redacted.
    pub arguments: Vec<String>,
    /// The names of the environment variables that the configuration adds.
    pub variables: Vec<String>,
    /// The API version of its requests.
    pub api_version: String,
    /// The cache duration for responses that do not set their own.
    pub default_cache_duration: String,
    /// The audience of the service account token that it receives.
    pub service_account_token_audience: Option<String>,
    /// Its responses in the cache of the running daemon.
    #[serde(rename = "rememberedByDaemon")]
    pub cached_by_daemon: Vec<DaemonCacheLine>,
    /// What became of it. Missing with `--dry-run`, and if it does not match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<ProviderOutcomeReport>,
}

/// A pattern of a provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PatternReport {
    /// The pattern.
    pub pattern: String,
    /// Whether it matches the image.
    pub matches: bool,
    /// Why it does not match.
    pub reason: Option<String>,
}

/// A response in the cache of the running daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DaemonCacheLine {
    /// The provider.
    pub provider: String,
    /// The scope of the response.
    pub cache_key_type: String,
    /// The image or registry that it is for.
    #[serde(rename = "for")]
    pub base: String,
    /// When it expires (RFC 3339).
    pub expires: String,
}

/// What became of a provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "result", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum ProviderOutcomeReport {
    /// It was skipped, which is not an error.
    #[serde(rename = "passed over")]
    Skipped {
        /// Why.
        reason: String,
        /// How long it ran.
        took_milliseconds: Option<u64>,
    },
    /// It failed.
    Failed {
        /// Why.
        reason: String,
        /// What it printed on standard error.
        stderr: String,
        /// How long it ran.
        took_milliseconds: Option<u64>,
    },
    /// It responded, possibly without credentials.
    Answered {
        /// Whether the response came from the cache or a run.
        from: String,
        /// The scope of the response.
        cache_key_type: CacheKeyType,
        /// How long the response is cached; `null`: not at all.
        #[serde(rename = "rememberedFor")]
        cached_for: Option<String>,
        /// The keys of its credentials.
        keys: Vec<String>,
        /// The keys that are not used, and why.
        #[serde(rename = "refusedKeys")]
        rejected_keys: Vec<String>,
        /// What it printed on standard error.
        stderr: Option<String>,
        /// How long it ran; `null` if the response came from the cache.
        took_milliseconds: Option<u64>,
    },
}

/// Run time of each plugin, as a recorder of metrics.
#[derive(Debug, Default)]
pub struct RunTimes(Mutex<BTreeMap<String, Duration>>);

impl RunTimes {
    fn milliseconds(&self, provider: &str) -> Option<u64> {
        let runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        runs.get(provider).and_then(|took| u64::try_from(took.as_millis()).ok())
    }
}

impl MetricsRecorder for RunTimes {
    fn record(&self, event: &MetricsEvent<'_>) {
        if let MetricsEvent::RunEnded { provider, took, .. } = *event {
            let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            runs.insert(provider.to_owned(), took);
        }
    }
}

impl DaemonCacheLine {
    /// Reads the daemon's reply: one response to a line.
    pub fn parse_reply(text: &str) -> Vec<Self> {
        let line = |line: &str| match line.split('\t').collect::<Vec<_>>().as_slice() {
            [provider, key_type, base, expires] => Some(DaemonCacheLine {
                provider: (*provider).to_owned(),
                cache_key_type: (*key_type).to_owned(),
                base: (*base).to_owned(),
                expires: (*expires).to_owned(),
            }),
            _ => None,
        };
        text.lines().filter_map(line).collect()
    }
}

impl ExplainReport {
    /// Describes every provider without running one. `cached` is what the daemon has cached for the image.
    pub fn new(
        written: &str,
        image: &Repository,
        providers: &Providers,
        bin_dir: &Path,
        cached: &[DaemonCacheLine],
    ) -> Self {
        let describe = |provider: &Provider| {
            let of_this = cached.iter().filter(|line| line.provider == provider.name());
            ProviderReport {
                cached_by_daemon: of_this.cloned().collect(),
                ..ProviderReport::new(provider, image, bin_dir)
            }
        };
        ExplainReport {
            written: written.to_owned(),
            image: image.as_str().to_owned(),
            hash: providers.hash().to_owned(),
            providers: providers.providers().iter().map(|provider| describe(provider)).collect(),
            node_docker_config: None,
            attempts: None,
        }
    }

    /// Adds what running the providers gave.
    #[must_use]
    pub fn with_lookup(
        mut self,
        providers: &Providers,
        lookup: &Lookup,
        node: &NodeCredentials,
        run_times: &RunTimes,
    ) -> Self {
        for (name, outcome) in lookup.outcomes() {
            let provider = providers.providers().iter().find(|provider| provider.name() == name);
            let stderr = provider.map(|provider| provider.last_stderr());
            if let Some(report) = self.providers.iter_mut().find(|report| report.name == name) {
                let took = run_times.milliseconds(name);
                report.outcome = Some(ProviderOutcomeReport::new(outcome, stderr, took));
            }
        }
        self.node_docker_config = Some(node.file().map(ToOwned::to_owned));
        self.attempts = Some(AttemptReport::list(&node.attempts(lookup), false));
        self
    }
}

impl ProviderReport {
    fn new(provider: &Provider, image: &Repository, bin_dir: &Path) -> Self {
        let config = provider.config();
        let location = Location::parse(image.as_str().as_bytes());
        let patterns = config.patterns.iter().map(|(text, pattern)| {
            let reason = match &location {
                Ok(location) => pattern.compare(location).err().map(|mismatch| mismatch.to_string()),
                Err(error) => Some(error.to_string()),
            };
            PatternReport { pattern: text.clone(), matches: reason.is_none(), reason }
        });
        let patterns: Vec<PatternReport> = patterns.collect();
        let arguments: Vec<&str> = config.args.iter().map(|argument| argument.expose().as_str()).collect();
        ProviderReport {
            name: config.name.clone(),
            matches: patterns.iter().any(|pattern| pattern.matches),
            patterns,
            program: format!("{}/{}", bin_dir.to_string_lossy(), config.name),
            arguments: redact::arguments(&arguments).into_iter().map(Cow::into_owned).collect(),
            variables: config.env.iter().map(|(name, _)| name.clone()).collect(),
            api_version: config.wire_version.api_version().to_owned(),
            default_cache_duration: written(config.default_cache_duration),
            service_account_token_audience: config.token.as_ref().map(|token| token.audience.clone()),
            cached_by_daemon: Vec::new(),
            outcome: None,
        }
    }
}

fn written(duration: Duration) -> String {
    navicert_types::time::Duration::from(duration).to_string()
}

impl ProviderOutcomeReport {
    fn new(outcome: &ProviderOutcome, last_stderr: Option<String>, took_milliseconds: Option<u64>) -> Self {
        match outcome {
            ProviderOutcome::Skipped(reason) => {
                ProviderOutcomeReport::Skipped { reason: reason.to_string(), took_milliseconds }
            }
            ProviderOutcome::Failed(error) => ProviderOutcomeReport::Failed {
                reason: error_chain(error),
                stderr: error.stderr().to_owned(),
                took_milliseconds,
            },
            ProviderOutcome::Answered(answer) => {
                let keyring = answer.entry.keyring();
                let rejected = keyring.rejected_keys().iter();
                ProviderOutcomeReport::Answered {
                    from: answer.origin.to_string(),
                    cache_key_type: answer.entry.key_type(),
                    cached_for: answer.entry.lifetime().map(written),
                    keys: keyring
                        .entries()
                        .map(|(key, _)| String::from_utf8_lossy(key).into_owned())
                        .collect(),
                    rejected_keys: rejected.map(|key| format!("{}: {}", key.key, key.reason)).collect(),
                    stderr: last_stderr,
                    took_milliseconds,
                }
            }
        }
    }
}

impl fmt::Display for ExplainReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "image      {}", redact::terminal(&self.image))?;
        if let Some(Some(file)) = &self.node_docker_config {
            writeln!(f, "node       {}", redact::terminal(file))?;
        }
        for provider in &self.providers {
            write!(f, "{provider}")?;
        }
        let Some(attempts) = &self.attempts else { return Ok(()) };
        if attempts.is_empty() {
            writeln!(f, "pull       anonymous: no credentials")?;
        }
        for (number, attempt) in attempts.iter().enumerate() {
            write!(
                f,
                "attempt {}  {} under key {} from {}",
                number + 1,
                redact::terminal(&attempt.username),
                redact::terminal(&attempt.key),
                redact::terminal(&attempt.provider),
            )?;
            if let Some(account) = &attempt.service_account {
                write!(f, ", only for pods of {}", redact::terminal(account))?;
            }
            if let Some(earlier) = attempt.same_as_attempt {
                write!(f, " (same credential as attempt {earlier})")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for ProviderReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.matches { "matches" } else { "does not match" };
        writeln!(f, "provider   {}: {verdict}", redact::terminal(&self.name))?;
        for PatternReport { pattern, reason, .. } in &self.patterns {
            let verdict = reason.as_deref().unwrap_or("matches");
            writeln!(f, "  pattern    {}: {}", redact::terminal(pattern), redact::terminal(verdict))?;
        }
        if self.matches {
            let words = |words: &[String]| -> String {
                words.iter().map(|word| format!(" {}", redact::terminal(word))).collect()
            };
            writeln!(f, "  runs       {}{}", redact::terminal(&self.program), words(&self.arguments))?;
            if !self.variables.is_empty() {
                writeln!(f, "  variables {}", words(&self.variables))?;
            }
            if let Some(audience) =
                self.service_account_token_audience.as_ref().filter(|text| !text.is_empty())
            {
                writeln!(
                    f,
                    "  token      service account token for audience {}",
                    redact::terminal(audience)
                )?;
            }
        }
        for line in &self.cached_by_daemon {
            writeln!(
                f,
                "  daemon     cached response for {} ({}) until {}",
                redact::terminal(&line.base),
                redact::terminal(&line.cache_key_type),
                redact::terminal(&line.expires)
            )?;
        }
        self.outcome.as_ref().map_or(Ok(()), |outcome| write!(f, "{outcome}"))
    }
}

impl fmt::Display for ProviderOutcomeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (took, stderr, rejected) = match self {
            ProviderOutcomeReport::Skipped { reason, took_milliseconds } => {
                writeln!(f, "  skipped    {}", redact::terminal(reason))?;
                (took_milliseconds, "", &[][..])
            }
            ProviderOutcomeReport::Failed { reason, stderr, took_milliseconds } => {
                writeln!(f, "  failed     {}", redact::terminal(reason))?;
                (took_milliseconds, stderr.as_str(), &[][..])
            }
            ProviderOutcomeReport::Answered {
                from,
                cache_key_type,
                cached_for,
                rejected_keys,
                stderr,
                took_milliseconds,
                ..
            } => {
                let cached =
                    cached_for.as_ref().map_or("not cached".to_owned(), |time| format!("cached for {time}"));
                let (from, scope) = (redact::terminal(from), cache_key_type.scope());
                writeln!(f, "  response   from {from}, applies to {scope}, {cached}")?;
                (took_milliseconds, stderr.as_deref().unwrap_or_default(), rejected_keys.as_slice())
            }
        };
        // Print the run time of slow plugins only: they delay every pull.
        if let Some(slow @ 1_000..) = took {
            writeln!(f, "  took       {}.{} s", slow / 1_000, slow % 1_000 / 100)?;
        }
        for key in rejected {
            writeln!(f, "  rejected key {}", redact::terminal(key))?;
        }
        redact::terminal(stderr).lines().try_for_each(|line| writeln!(f, "  stderr     {line}"))
    }
}
