//! `image explain`: every step of a credential lookup, with the reason for each decision.
// I264

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use navicert_image::default_paths::DefaultPaths;
use navicert_image::metrics::{MetricsEvent, MetricsRecorder};
use navicert_image::provider::{Provider, ProviderOutcome, Providers};
use navicert_image::socket::{DaemonVerb, call as ask_daemon};
use navicert_image::{Location, Repository};
use navicert_types::{error_chain, redact};
use serde_json::{Value, json};

use super::lookup::{NodeCredentials, attempts_json};
use super::{provider_paths, pull_identity, recorded_providers, repository};
use crate::args::image::ExplainArgs;
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Prints what a kubelet does for an image and, without `--dry-run`, runs the providers.
pub(super) fn run(
    args: &ExplainArgs,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let image = repository(&args.image)?;
    let places = provider_paths(&args.providers, environment)?;
    let (asker, service_accounts) = pull_identity(&args.account, environment)?;
    let stopwatch = Arc::new(Stopwatch::default());
    let with = (service_accounts, Arc::clone(&stopwatch) as _);
    let providers = recorded_providers(&args.providers, with, environment, output)?;
    let mut steps: Vec<Value> = providers
        .providers()
        .iter()
        .map(|provider| describe(provider, &image, &places.bin_dir.to_string_lossy()))
        .collect();
    let remembered = cached_by_daemon(image.as_str(), environment);
    for step in &mut steps {
        let of_this = |line: &&Value| line.get("provider") == step.get("name");
        let found: Vec<Value> = remembered.iter().filter(of_this).cloned().collect();
        set(step, "rememberedByDaemon", Value::Array(found));
    }
    let matched = !providers.matching_providers(image.as_str()).is_empty();
    let mut report = json!({"written": args.image, "image": image.as_str(), "hash": providers.hash()});
    if !args.dry_run {
        let node = NodeCredentials::read(args.kubelet_root_dir.as_deref(), providers.profile(), environment);
        let (outcomes, attempts) = run_providers(&providers, &node, &image, &asker);
        set(&mut report, "nodeDockerConfig", json!(node.file()));
        for step in &mut steps {
            let name = step.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
            if let Some(mut outcome) = outcomes.get(&name).cloned() {
                set(&mut outcome, "tookMilliseconds", json!(stopwatch.milliseconds(&name)));
                set(step, "outcome", outcome);
            }
        }
        set(&mut report, "attempts", Value::Array(attempts));
    }
    set(&mut report, "providers", Value::Array(steps));
    if output.is_json() {
        output.json(&report)?;
    } else {
        output.text(&render(&report))?;
    }
    Ok(if matched { Exit::Done } else { Exit::No })
}

/// Responses in the per-user daemon's cache; empty if no daemon is running.
fn cached_by_daemon(image: &str, environment: &Environment) -> Vec<Value> {
    let socket = DefaultPaths::socket(&|name| environment.variable(name));
    let reply = socket.and_then(|socket| ask_daemon(&socket, DaemonVerb::Cached, image).ok()?);
    let text = reply.map(|reply| String::from_utf8_lossy(&reply.stdout).into_owned()).unwrap_or_default();
    let line = |line: &str| match line.split('\t').collect::<Vec<_>>().as_slice() {
        [provider, key_type, base, until] => {
            Some(json!({"provider": provider, "cacheKeyType": key_type, "for": base, "expires": until}))
        }
        _ => None,
    };
    text.lines().filter_map(line).collect()
}

/// Run time of each plugin.
#[derive(Debug, Default)]
struct Stopwatch(Mutex<BTreeMap<String, Duration>>);

impl Stopwatch {
    fn milliseconds(&self, provider: &str) -> Option<u64> {
        let runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        runs.get(provider).and_then(|took| u64::try_from(took.as_millis()).ok())
    }
}

impl MetricsRecorder for Stopwatch {
    fn record(&self, event: &MetricsEvent<'_>) {
        if let MetricsEvent::RunEnded { provider, took, .. } = *event {
            let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            runs.insert(provider.to_owned(), took);
        }
    }
}

fn set(report: &mut Value, name: &str, value: Value) {
    if let Some(members) = report.as_object_mut() {
        members.insert(name.to_owned(), value);
    }
}

/// Describes a provider without running it.
fn describe(provider: &Provider, image: &Repository, bin_dir: &str) -> Value {
    let config = provider.config();
    let location = Location::parse(image.as_str().as_bytes());
    let patterns = config.patterns.iter().map(|(text, pattern)| {
        let reason = match &location {
            Ok(location) => pattern.compare(location).err().map(|mismatch| mismatch.to_string()),
            Err(error) => Some(error.to_string()),
        };
        json!({"pattern": text, "matches": reason.is_none(), "reason": reason})
    });
    let patterns: Vec<Value> = patterns.collect();
    let arguments: Vec<&str> = config.args.iter().map(|argument| argument.expose().as_str()).collect();
    let variables: Vec<&str> = config.env.iter().map(|(name, _)| name.as_str()).collect();
    json!({
        "name": config.name,
        "matches": patterns.iter().any(|pattern| pattern.get("matches") == Some(&Value::Bool(true))),
        "patterns": patterns,
        "program": format!("{bin_dir}/{}", config.name),
        "arguments": redact::arguments(&arguments),
        "variables": variables,
        "apiVersion": config.wire_version.api_version(),
        "defaultCacheDuration": written(config.default_cache_duration),
        "serviceAccountTokenAudience": config.token.as_ref().map(|token| token.audience.clone()),
    })
}

fn written(duration: Duration) -> String {
    navicert_types::time::Duration::from(duration).to_string()
}

/// Runs the providers. Returns the outcome by provider, and the credentials in the order they are tried.
fn run_providers(
    providers: &Providers,
    node: &NodeCredentials,
    image: &Repository,
    asker: &navicert_image::service_account::PullIdentity,
) -> (serde_json::Map<String, Value>, Vec<Value>) {
    let lookup = providers.lookup(image.as_str(), asker);
    let outcomes = lookup.outcomes().map(|(name, outcome)| {
        let stderr = providers.providers().iter().find(|provider| provider.name() == name).map(|found| found.last_stderr());
        let outcome = match outcome {
            ProviderOutcome::Skipped(reason) => json!({"result": "passed over", "reason": reason.to_string()}),
            ProviderOutcome::Failed(error) => {
                json!({"result": "failed", "reason": error_chain(error), "stderr": error.stderr()})
            }
            ProviderOutcome::Answered(response) => json!({
                "result": "answered",
                "from": response.origin.to_string(),
                "cacheKeyType": response.entry.key_type().as_str(),
                "rememberedFor": response.entry.lifetime().map(written),
                "keys": response.entry.keyring().entries().map(|(key, _)| String::from_utf8_lossy(key).into_owned()).collect::<Vec<_>>(),
                "refusedKeys": response.entry.keyring().rejected_keys().iter().map(|refused| format!("{}: {}", refused.key, refused.reason)).collect::<Vec<_>>(),
                "stderr": stderr,
            }),
        };
        (name.to_owned(), outcome)
    });
    (outcomes.collect(), attempts_json(&node.attempts(&lookup), false))
}

fn render(report: &Value) -> String {
    let text = |value: &Value| redact::terminal(value.as_str().unwrap_or_default()).into_owned();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let of = |value: &Value, name: &str| value.get(name).cloned().unwrap_or_default();
    let mut out = format!("image      {}\n", text(&of(report, "image")));
    if let Some(file) = of(report, "nodeDockerConfig").as_str() {
        let _ = writeln!(out, "node       {}", redact::terminal(file));
    }
    for provider in list(&of(report, "providers")) {
        let matches = of(&provider, "matches") == true;
        let _ = writeln!(
            out,
            "provider   {}: {}",
            text(&of(&provider, "name")),
            if matches { "matches" } else { "does not match" }
        );
        for pattern in list(&of(&provider, "patterns")) {
            let verdict = if of(&pattern, "matches") == true {
                "matches".to_owned()
            } else {
                text(&of(&pattern, "reason"))
            };
            let _ = writeln!(out, "  pattern    {}: {verdict}", text(&of(&pattern, "pattern")));
        }
        if matches {
            let words = |name: &str| {
                list(&of(&provider, name)).iter().map(|word| format!(" {}", text(word))).collect::<String>()
            };
            let _ = writeln!(out, "  runs       {}{}", text(&of(&provider, "program")), words("arguments"));
            if !words("variables").is_empty() {
                let _ = writeln!(out, "  variables {}", words("variables"));
            }
            let audience = text(&of(&provider, "serviceAccountTokenAudience"));
            if !audience.is_empty() {
                let _ = writeln!(out, "  token      service account token for audience {audience}");
            }
        }
        for line in list(&of(&provider, "rememberedByDaemon")) {
            let _ = writeln!(
                out,
                "  daemon     cached response for {} ({}) until {}",
                text(&of(&line, "for")),
                text(&of(&line, "cacheKeyType")),
                text(&of(&line, "expires"))
            );
        }
        render_outcome(&of(&provider, "outcome"), &mut out);
    }
    render_attempts(report, &mut out);
    out
}

fn render_outcome(outcome: &Value, out: &mut String) {
    let text = |name: &str| {
        redact::terminal(outcome.get(name).and_then(Value::as_str).unwrap_or_default()).into_owned()
    };
    match text("result").as_str() {
        "" => return,
        "answered" => {
            let remembered = text("rememberedFor");
            let remembered = if remembered.is_empty() {
                "not cached".to_owned()
            } else {
                format!("cached for {remembered}")
            };
            let _ = writeln!(
                out,
                "  response   from {}, applies to {}, {remembered}",
                text("from"),
                cache_scope(&text("cacheKeyType"))
            );
        }
        result => {
            let label = if result == "passed over" { "skipped" } else { result };
            let _ = writeln!(out, "  {label:<10} {}", text("reason"));
        }
    }
    // Print the run time of slow plugins only: they delay every pull.
    if let Some(slow @ 1_000..) = outcome.get("tookMilliseconds").and_then(Value::as_u64) {
        let _ = writeln!(out, "  took       {}.{} s", slow / 1_000, slow % 1_000 / 100);
    }
    for key in outcome.get("refusedKeys").and_then(Value::as_array).into_iter().flatten() {
        let _ = writeln!(out, "  rejected key {}", redact::terminal(key.as_str().unwrap_or_default()));
    }
    for line in text("stderr").lines() {
        let _ = writeln!(out, "  stderr     {line}");
    }
}

/// The images a cached response applies to.
pub(super) fn cache_scope(key_type: &str) -> &'static str {
    match key_type {
        "Image" => "this image",
        "Registry" => "its registry",
        _ => "every image",
    }
}

fn render_attempts(report: &Value, out: &mut String) {
    let Some(attempts) = report.get("attempts").and_then(Value::as_array) else { return };
    if attempts.is_empty() {
        out.push_str("pull       anonymous: no credentials\n");
    }
    for (number, attempt) in attempts.iter().enumerate() {
        let text = |name: &str| {
            redact::terminal(attempt.get(name).and_then(Value::as_str).unwrap_or_default()).into_owned()
        };
        let same = attempt.get("sameAsAttempt").and_then(Value::as_u64);
        let account = text("serviceAccount");
        let _ = writeln!(
            out,
            "attempt {}  {} under key {} from {}{}{}",
            number + 1,
            text("username"),
            text("key"),
            text("provider"),
            if account.is_empty() { account } else { format!(", only for pods of {account}") },
            same.map(|earlier| format!(" (same credential as attempt {earlier})")).unwrap_or_default(),
        );
    }
}
