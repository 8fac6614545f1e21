//! Lints valid configurations: patterns that never match, missing executables, and other causes of silent anonymous
//! pulls.
// I78, I79, I241, I265

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::PathBuf;

use navicert_types::image_credential::WireVersion;
use navicert_types::image_provider_config::EnvironmentVariable;
use navicert_types::tree::Span;

use super::{
    ConfigErrors, ConfigFile, ConfigProblem, ImageConfig, ProviderSource, Step, decode_file, second_document,
};
use crate::location::Location;
use crate::profile::Profile;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum LintSeverity {
    /// Works, but is probably a mistake.
    Warning,
    /// Does not work.
    Error,
}

/// One result of [`lint`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LintFinding {
    /// The severity.
    pub severity: LintSeverity,
    /// A stable name for the rule.
    pub rule: &'static str,
    /// Whether a kubelet accepts the configuration anyway.
    pub kubelet_accepts: bool,
    /// The file.
    pub file: PathBuf,
    /// The field path: `providers[1](ecr).matchImages[0]`.
    pub path: String,
    /// The position in the file.
    pub span: Option<Span>,
    /// The message.
    pub message: String,
    /// How to fix it.
    pub hint: Option<String>,
}

/// Checks that a provider name resolves to an executable; the error says why not.
pub type ExecutableCheck<'a> = &'a dyn Fn(&str) -> Result<(), String>;

/// Returns all findings: errors that prevent a kubelet from starting, additional errors of the hardened profile, and
/// valid settings that never work. `executable` checks a provider's executable if the directory is known.
pub fn lint(files: &[ConfigFile], executable: Option<ExecutableCheck<'_>>) -> Vec<LintFinding> {
    let problems = |profile| ImageConfig::decode(files, profile).err();
    let (kube, hardened) = (problems(Profile::Kube), problems(Profile::Hardened));
    let mut findings: Vec<LintFinding> = error_findings(kube.as_ref(), false);
    let known: Vec<LintFinding> = error_findings(hardened.as_ref(), true);
    findings.extend(known.into_iter().filter(|found| {
        !matches!(&kube, Some(ConfigErrors(kube)) if kube.iter().any(|problem| problem.path == found.path && problem.message == found.message))
    }));
    let mut seen = HashMap::new();
    for file in files {
        let text = first_document(file);
        let file = ConfigFile { path: file.path.clone(), text };
        for source in decode_file(&file, Profile::Kube).unwrap_or_default() {
            let mut rules = Rules { source: &source, findings: &mut findings };
            rules.check(&mut seen);
            if let Some(executable) = executable {
                rules.executable(executable);
            }
        }
    }
    findings
}

fn error_findings(errors: Option<&ConfigErrors>, kubelet_accepts: bool) -> Vec<LintFinding> {
    let finding = |problem: &ConfigProblem| LintFinding {
        severity: LintSeverity::Error,
        rule: problem.stage.as_str(),
        kubelet_accepts,
        file: problem.file.clone(),
        path: problem.path.clone(),
        span: problem.span,
        message: problem.message.clone(),
        hint: problem.hint.clone(),
    };
    errors.map(|errors| errors.problems().iter().map(finding).collect()).unwrap_or_default()
}

fn first_document(file: &ConfigFile) -> Vec<u8> {
    let end = second_document(&file.text).map_or(file.text.len(), |span| span.start);
    file.text.get(..end).unwrap_or_default().to_vec()
}

/// The lint rules for one provider.
struct Rules<'a> {
    source: &'a ProviderSource<'a>,
    findings: &'a mut Vec<LintFinding>,
}

impl Rules<'_> {
    fn check(&mut self, seen: &mut HashMap<String, String>) {
        let provider = &self.source.provider;
        for (at, text) in provider.match_images.iter().enumerate() {
            let steps = [Step::Field("matchImages"), Step::Element(at)];
            let path = format!("matchImages[{at}]");
            for (rule, message, hint) in pattern_findings(text) {
                // The user info before `@` may be a password.
                let message = if text.contains('@') { message } else { format!("`{text}`: {message}") };
                self.push(rule, LintSeverity::Warning, &path, &steps, message, hint);
            }
            if let Some(earlier) = seen.insert(text.clone(), self.source.path(&path)) {
                let message = format!("duplicate of {earlier}");
                self.push("duplicate-pattern", LintSeverity::Warning, &path, &steps, message, None);
            }
        }
        if provider.default_cache_duration.is_some_and(|duration| duration.nanoseconds() == 0) {
            let message = "responses without `cacheDuration` are not cached".to_owned();
            self.field(
                "cache-duration-zero",
                "defaultCacheDuration",
                message,
                Some("set a duration such as `10m`"),
            );
        }
        if WireVersion::from_api_version(&provider.api_version)
            .is_some_and(|version| version != WireVersion::V1)
        {
            let newest = WireVersion::V1.api_version();
            self.field("old-wire-version", "apiVersion", format!("the current version is `{newest}`"), None);
        }
        if provider.name.contains(['\t', '\\', '\n', '\r']) {
            let message = "the name contains a tab, line break or backslash".to_owned();
            self.field("odd-name", "name", message, None);
        }
        self.environment(&provider.env);
    }

    fn environment(&mut self, variables: &[EnvironmentVariable]) {
        let mut names = HashSet::new();
        for (at, variable) in variables.iter().enumerate() {
            let (steps, path) = ([Step::Field("env"), Step::Element(at)], format!("env[{at}]"));
            let name = &variable.name;
            if name.is_empty() || name.contains(['=', '\0']) {
                let message = "invalid environment variable name".to_owned();
                self.push("variable-name", LintSeverity::Error, &path, &steps, message, None);
            } else if !names.insert(name) {
                let message = format!("`{name}` is set twice; the last value is used");
                self.push("duplicate-variable", LintSeverity::Warning, &path, &steps, message, None);
            }
            let upper = name.to_uppercase();
            let secret_words =
                ["PASSWORD", "PASSWD", "SECRET", "TOKEN", "PRIVATE_KEY", "ACCESS_KEY", "API_KEY"];
            let is_path = upper.ends_with("_FILE") || upper.ends_with("_PATH") || upper.ends_with("_DIR");
            if !variable.value.is_empty() && !is_path && secret_words.iter().any(|word| upper.contains(word))
            {
                let message =
                    format!("`{name}` looks like a secret; the kubelet prints this file in some errors");
                let hint = Some("make the plugin read it from a file".to_owned());
                self.push("secret-in-environment", LintSeverity::Warning, &path, &steps, message, hint);
            }
        }
    }

    fn executable(&mut self, executable: ExecutableCheck<'_>) {
        let name = &self.source.provider.name;
        if let Err(message) = if name.is_empty() { Ok(()) } else { executable(name) } {
            self.push("executable", LintSeverity::Error, "name", &[Step::Field("name")], message, None);
        }
    }

    fn field(&mut self, rule: &'static str, field: &str, message: String, hint: Option<&str>) {
        let hint = hint.map(str::to_owned);
        self.push(rule, LintSeverity::Warning, field, &[Step::Field(field)], message, hint);
    }

    fn push(
        &mut self,
        rule: &'static str,
        severity: LintSeverity,
        path: &str,
        steps: &[Step<'_>],
        message: String,
        hint: Option<String>,
    ) {
        self.findings.push(LintFinding {
            severity,
            rule,
            kubelet_accepts: rule != "executable",
            file: self.source.file.to_owned(),
            path: self.source.path(path),
            span: self.source.span(steps),
            message,
            hint,
        });
    }
}

type PatternFinding = (&'static str, String, Option<String>);

/// Findings for a pattern that parses.
fn pattern_findings(text: &str) -> Vec<PatternFinding> {
    let Ok(location) = Location::parse(text.as_bytes()) else { return Vec::new() };
    let path = String::from_utf8_lossy(location.path()).into_owned();
    let host = String::from_utf8_lossy(location.host()).into_owned();
    let checks = [
        text.contains("://").then(|| {
            (
                "scheme",
                "a pattern must not have a scheme; this never matches".to_owned(),
                corrected(text).map(|pattern| format!("write `{pattern}`")),
            )
        }),
        host_finding(text, &host, location.port()),
        path_finding(text, &path),
        breadth_finding(&host),
        address_finding(text, &host, location.port()),
    ];
    // With a scheme every other check fires too; report only the scheme.
    let only_first = checks.first().is_some_and(Option::is_some);
    checks.into_iter().flatten().take(if only_first { 1 } else { usize::MAX }).collect()
}

/// The pattern without what no image has: a scheme, user info, upper case in the host, globs in the path. `None` if
/// nothing of a host is left. User info may be a password and must not be repeated in a hint.
fn corrected(text: &str) -> Option<String> {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (authority, path) = match rest.split_once('/') {
        Some((authority, path)) => (authority, format!("/{path}")),
        None => (rest, String::new()),
    };
    let host = authority.rsplit('@').next().unwrap_or_default().to_lowercase();
    let host = if host == "index.docker.io" { "docker.io" } else { &host };
    let path = match path.split_once('*') {
        Some(("/", _)) => "",
        Some((before, _)) => before,
        None => path.as_str(),
    };
    (!host.is_empty()).then(|| format!("{host}{path}"))
}

fn host_finding(text: &str, host: &str, port: &[u8]) -> Option<PatternFinding> {
    let never = |message: &str, hint: Option<&str>| {
        Some(("never-matches", message.to_owned(), hint.map(str::to_owned)))
    };
    let suggestion = || corrected(text).map(|pattern| format!("write `{pattern}`"));
    let labels: Vec<&str> = host.split('.').collect();
    let is_bracketed = host.starts_with('[');
    match host {
        "" => never("an empty pattern matches no image", None),
        "index.docker.io" => never(
            "Docker Hub images are normalized to `docker.io/…` before matching; this never matches",
            suggestion().as_deref(),
        ),
        _ if is_bracketed => None,
        _ if labels.iter().any(|label| label.is_empty()) => {
            never("image hosts have no empty labels; this never matches", Some("remove the extra dot"))
        }
        _ if labels.len() == 1
            && port.is_empty()
            && host != "localhost"
            && !host.contains('*')
            && !host.chars().any(char::is_uppercase) =>
        {
            never(
                "a host without a dot or port is read as part of a Docker Hub name; this never matches",
                None,
            )
        }
        _ if host.chars().any(char::is_uppercase) => Some((
            "upper-case-host",
            "hosts are compared case-sensitively; this matches only images written in the same case"
                .to_owned(),
            suggestion(),
        )),
        _ if port == b"443" => Some((
            "port-443",
            "this matches only images that spell out `:443`".to_owned(),
            Some("omit the port".to_owned()),
        )),
        _ => None,
    }
}

fn path_finding(text: &str, path: &str) -> Option<PatternFinding> {
    let never = |message: &str, hint: Option<String>| Some(("never-matches", message.to_owned(), hint));
    if path.contains('*') {
        let message = "`*` in a path is an ordinary character; this never matches";
        let hint = corrected(text).map(|pattern| format!("paths match by prefix: write `{pattern}`"));
        return Some(("glob-in-path", message.to_owned(), hint));
    }
    if path.chars().any(char::is_uppercase) {
        return never("repository names are lowercase; this never matches", None);
    }
    if path.contains(':') || path.contains('@') {
        return never("tags and digests are removed before matching; this never matches", None);
    }
    if path.contains("//") || path.contains("/../") || path.contains("/./") || path.contains(' ') {
        return never("no valid repository name has such a path; this never matches", None);
    }
    None
}

fn breadth_finding(host: &str) -> Option<PatternFinding> {
    let all_stars = !host.is_empty()
        && host.split('.').all(|label| !label.is_empty() && label.bytes().all(|byte| byte == b'*'));
    all_stars.then(|| {
        let labels = host.split('.').count();
        let message =
            format!("this matches every image whose host has {labels} label(s), including Docker Hub");
        let message = if labels == 2 { message } else { message.replace(", including Docker Hub", "") };
        ("broad-pattern", message, None)
    })
}

fn address_finding(text: &str, host: &str, port: &[u8]) -> Option<PatternFinding> {
    if host.starts_with('[') && port.is_empty() {
        let message = "the kubelet parses an IPv6 address without a port as a character class; it never matches that address";
        return Some(("ipv6-without-port", message.to_owned(), Some("add the port".to_owned())));
    }
    let authority = text.split('/').next().unwrap_or_default();
    if authority.contains('@') {
        return Some((
            "user-info",
            "user info before `@` is ignored and may contain a secret".to_owned(),
            None,
        ));
    }
    if text.contains(['?', '#']) {
        return Some(("query", "everything from `?` or `#` onward is ignored".to_owned(), None));
    }
    None
}

impl fmt::Display for LintFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        super::write_location(f, &self.file, self.span, &self.path)?;
        write!(f, ": {} [{}]", self.message, self.rule)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "; {hint}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // I79, I265
    #[test]
    fn every_suggested_pattern_is_free_of_the_mistakes_it_corrects() {
        for (written, expected) in [
            (
                "123456789012.dkr.ecr.eu-west-1.amazonaws.com/*",
                "123456789012.dkr.ecr.eu-west-1.amazonaws.com",
            ),
            ("*.dkr.ecr.*.amazonaws.com/*", "*.dkr.ecr.*.amazonaws.com"),
            ("registry.example/team/*", "registry.example/team/"),
            ("registry.example:5000/team-*/x", "registry.example:5000/team-"),
            ("https://registry.example/*", "registry.example"),
            ("https://ann:canary@registry.example/app", "registry.example/app"),
            ("ann:canary@registry.example/*", "registry.example"),
            ("https://Registry.example", "registry.example"),
            ("Registry.example/team", "registry.example/team"),
            ("index.docker.io/library/*", "docker.io/library/"),
        ] {
            let findings = pattern_findings(written);
            let hints: Vec<&str> = findings.iter().filter_map(|(_, _, hint)| hint.as_deref()).collect();
            assert!(!hints.is_empty(), "{written}");
            for hint in hints {
                assert!(hint.ends_with(&format!("write `{expected}`")), "{written}: {hint}");
            }
            assert!(pattern_findings(expected).is_empty(), "{expected}: {:?}", pattern_findings(expected));
        }
    }

    #[test]
    fn pattern_without_a_host_gets_no_empty_suggestion() {
        for written in ["/*", "https://", "https:///*"] {
            for (_, _, hint) in pattern_findings(written) {
                assert!(hint.as_deref().is_none_or(|hint| !hint.contains("``")), "{written}: {hint:?}");
            }
        }
    }
}
