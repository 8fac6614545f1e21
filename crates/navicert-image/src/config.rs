//! Loads `--image-credential-provider-config`: reads the files, decodes, merges and validates them. Reports all errors
//! at once, each with file, line and provider.
//!
//! ```text
//! path ──files──▶ texts ──decode──▶ hub types ──merge──▶ one list ──validate──▶ ImageConfig
//! ```

mod files;
mod lint;
mod validate;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use navicert_types::image_credential::WireVersion;
use navicert_types::image_provider_config::{CREDENTIAL_PROVIDER_CONFIG, CredentialProvider};
use navicert_types::tree::{self, Node, Span, Syntax};
use navicert_types::{Diagnostics, Secret};
use sha2::{Digest, Sha256};
use thiserror::Error;

pub use files::{ConfigFile, ConfigFileError, read_files};
pub use lint::{ExecutableCheck, LintFinding, LintSeverity, lint};

use crate::cache_key::hex;
use crate::pattern::ImagePattern;
use crate::profile::Profile;

/// A valid configuration. Only [`ImageConfig::decode`] constructs this type.
#[derive(Clone, Debug)]
pub struct ImageConfig {
    providers: Vec<ProviderConfig>,
    hash: String,
}

/// One provider of a valid configuration.
#[derive(Clone, Debug)]
pub struct ProviderConfig {
    /// The name, and the file name of the executable.
    pub name: String,
    /// The patterns with their source text.
    pub patterns: Vec<(String, ImagePattern)>,
    /// Cache duration for responses that do not set their own.
    pub default_cache_duration: Duration,
    /// The API version of requests to the plugin.
    pub wire_version: WireVersion,
    /// Command-line arguments; they may contain secrets.
    pub args: Vec<Secret<String>>,
    /// Variables added to the inherited environment, in order.
    pub env: Vec<(String, Secret<String>)>,
    /// Service-account settings, if the provider receives tokens.
    pub token: Option<TokenSettings>,
}

/// A provider's service-account settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenSettings {
    /// The audience of the token.
    pub audience: String,
    /// What responses may be shared between.
    pub cache_type: TokenCacheType,
    /// Whether the provider is skipped for pulls without a service account.
    pub require_service_account: bool,
    /// Annotations that the service account must have, otherwise the provider is skipped.
    pub required_annotations: Vec<String>,
    /// Annotations passed to the plugin if present.
    pub optional_annotations: Vec<String>,
}

/// What responses in service-account mode may be shared between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenCacheType {
    /// One token only.
    Token,
    /// Every pod of the service account.
    ServiceAccount,
}

/// All problems of a configuration; at least one.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("invalid credential provider configuration: {}", ProblemList(.0))]
pub struct ConfigErrors(Vec<ConfigProblem>);

/// One problem of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblem {
    /// The file.
    pub file: PathBuf,
    /// The stage that failed.
    pub stage: ConfigStage,
    /// Kubernetes' error type; only from [`ConfigStage::Validate`].
    pub error_type: Option<FieldErrorType>,
    /// The kubelet's field path, without indexes; only from [`ConfigStage::Validate`].
    // I36
    pub field: String,
    /// The field path with indexes: `providers[1](ecr).matchImages[0]`.
    pub path: String,
    /// The message, without values that may be secrets.
    pub message: String,
    /// How to fix it, if that is not obvious.
    pub hint: Option<String>,
    /// The position in the file.
    pub span: Option<Span>,
}

/// The stage at which a configuration is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ConfigStage {
    /// The text does not decode.
    Decode,
    /// The files cannot be merged.
    Merge,
    /// A value is invalid.
    Validate,
}

/// Kubernetes' field error types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub enum FieldErrorType {
    /// The field is required.
    #[serde(rename = "FieldValueRequired")]
    Required,
    /// The value is invalid.
    #[serde(rename = "FieldValueInvalid")]
    Invalid,
    /// The value is a duplicate.
    #[serde(rename = "FieldValueDuplicate")]
    Duplicate,
    /// The field is not allowed.
    #[serde(rename = "FieldValueForbidden")]
    Forbidden,
    /// The value is not one of the supported ones.
    #[serde(rename = "FieldValueNotSupported")]
    NotSupported,
}

impl ImageConfig {
    /// Decodes, merges and validates files.
    ///
    /// # Errors
    /// All problems. If a file does not decode, only decoding problems.
    // I16–I59
    pub fn decode(files: &[ConfigFile], profile: Profile) -> Result<ImageConfig, ConfigErrors> {
        let mut sources = Vec::new();
        let mut problems = Vec::new();
        for file in files {
            match decode_file(file, profile) {
                Ok(found) => sources.extend(found),
                Err(found) => problems.extend(found),
            }
        }
        if problems.is_empty() {
            problems = duplicate_names(&sources);
        }
        if !problems.is_empty() {
            return Err(ConfigErrors(problems));
        }
        let path = files.first().map_or(Path::new(""), |file| file.path.as_path());
        let providers = validate::validate(&sources, path, profile).map_err(ConfigErrors)?;
        Ok(ImageConfig { providers, hash: hash(files) })
    }

    /// The providers in the order of the configuration.
    pub fn providers(&self) -> &[ProviderConfig] {
        &self.providers
    }

    /// The configuration hash that the kubelet publishes as a metric.
    // I19
    pub fn hash(&self) -> &str {
        &self.hash
    }
}

impl ConfigErrors {
    /// The problems in the order of the files.
    pub fn problems(&self) -> &[ConfigProblem] {
        &self.0
    }
}

/// SHA-256 over each file's length and bytes.
// I19
pub fn hash(files: &[ConfigFile]) -> String {
    let mut digest = Sha256::new();
    for file in files {
        digest.update(u64::try_from(file.text.len()).unwrap_or(u64::MAX).to_be_bytes());
        digest.update(&file.text);
    }
    format!("sha256:{}", hex(&digest.finalize()))
}

/// A provider with its position in the source file.
#[derive(Debug)]
struct ProviderSource<'a> {
    file: &'a Path,
    /// Index among the file's providers.
    index: usize,
    provider: CredentialProvider,
    node: Option<Node>,
}

impl ProviderSource<'_> {
    /// `providers[1](ecr)`, followed by a field.
    fn path(&self, field: &str) -> String {
        let name =
            if self.provider.name.is_empty() { String::new() } else { format!("({})", self.provider.name) };
        let dot = if field.is_empty() { "" } else { "." };
        format!("providers[{}]{name}{dot}{field}", self.index)
    }

    /// The position of a field, or of its closest existing parent.
    fn span(&self, steps: &[Step<'_>]) -> Option<Span> {
        let mut node = self.node.as_ref()?;
        for step in steps {
            let next = match *step {
                Step::Field(name) => {
                    node.as_mapping().and_then(|mapping| mapping.last(name)).map(|entry| &entry.value)
                }
                Step::Element(at) => node.as_sequence().and_then(|items| items.get(at)),
            };
            match next {
                Some(next) => node = next,
                None => break,
            }
        }
        Some(node.span)
    }
}

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    Field(&'a str),
    Element(usize),
}

fn decode_file(file: &ConfigFile, profile: Profile) -> Result<Vec<ProviderSource<'_>>, Vec<ConfigProblem>> {
    let problems = |diagnostics: Diagnostics| {
        diagnostics.into_iter().map(|found| ConfigProblem {
            file: file.path.clone(),
            stage: ConfigStage::Decode,
            error_type: None,
            field: String::new(),
            path: found.path.to_string(),
            message: found.message,
            hint: found.hint,
            span: Some(found.span),
        })
    };
    if profile == Profile::Hardened
        && let Some(span) = second_document(&file.text)
    {
        return Err(vec![ConfigProblem {
            file: file.path.clone(),
            stage: ConfigStage::Decode,
            error_type: None,
            field: String::new(),
            path: String::new(),
            message: "a second YAML document starts here; the kubelet silently ignores it".to_owned(),
            hint: Some("move it to its own file and configure the directory".to_owned()),
            span: Some(span),
        }]);
    }
    let node = tree::parse(&file.text, Syntax::JsonOrYaml)
        .map_err(|found| problems(found.into()).collect::<Vec<_>>())?;
    let config =
        CREDENTIAL_PROVIDER_CONFIG.decode_tree(&node).map_err(|found| problems(found).collect::<Vec<_>>())?;
    let nodes = node.as_mapping().and_then(|mapping| mapping.last("providers")?.value.as_sequence());
    let sources = config.providers.into_iter().enumerate().map(|(index, provider)| ProviderSource {
        file: &file.path,
        index,
        provider,
        node: nodes.and_then(|nodes| nodes.get(index)).cloned(),
    });
    Ok(sources.collect())
}

/// The position of a second YAML document, if there is one.
// I22
fn second_document(text: &[u8]) -> Option<Span> {
    if text.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{') {
        return None;
    }
    let (mut has_content, mut start) = (false, 0);
    for (number, line) in text.split_inclusive(|&byte| byte == b'\n').enumerate() {
        let content = line.trim_ascii_end();
        let is_marker = content == b"---" || content.starts_with(b"--- ");
        if is_marker && has_content {
            return Some(Span { start, end: start + content.len(), line: number + 1, column: 1 });
        }
        has_content |= !content.is_empty()
            && !content.starts_with(b"#")
            && !content.starts_with(b"%")
            && content != b"---";
        start += line.len();
    }
    None
}

/// Providers with the name of an earlier one; the kubelet rejects such a merge.
// I17
fn duplicate_names(sources: &[ProviderSource<'_>]) -> Vec<ConfigProblem> {
    let is_repeated =
        |at: usize, name: &str| sources.iter().take(at).any(|earlier| earlier.provider.name == name);
    let repeated = sources.iter().enumerate().filter(|(at, source)| is_repeated(*at, &source.provider.name));
    let problem = |(_, source): (usize, &ProviderSource<'_>)| ConfigProblem {
        file: source.file.to_owned(),
        stage: ConfigStage::Merge,
        error_type: None,
        field: String::new(),
        path: source.path("name"),
        message: "duplicate provider name".to_owned(),
        hint: Some(
            "the name is the file name of the executable; link the executable under another name".to_owned(),
        ),
        span: source.span(&[Step::Field("name")]),
    };
    repeated.map(problem).collect()
}

impl FieldErrorType {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            FieldErrorType::Required => "FieldValueRequired",
            FieldErrorType::Invalid => "FieldValueInvalid",
            FieldErrorType::Duplicate => "FieldValueDuplicate",
            FieldErrorType::Forbidden => "FieldValueForbidden",
            FieldErrorType::NotSupported => "FieldValueNotSupported",
        }
    }
}

impl ConfigStage {
    /// The name in the test vectors.
    pub fn as_str(self) -> &'static str {
        match self {
            ConfigStage::Decode => "decode",
            ConfigStage::Merge => "merge",
            ConfigStage::Validate => "validate",
        }
    }
}

/// Writes file, line, column and field path, as far as they are known.
fn write_location(f: &mut fmt::Formatter<'_>, file: &Path, span: Option<Span>, path: &str) -> fmt::Result {
    write!(f, "{}", file.display())?;
    if let Some(span) = span {
        write!(f, ":{}:{}", span.line, span.column)?;
    }
    if path.is_empty() { Ok(()) } else { write!(f, ": {path}") }
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_location(f, &self.file, self.span, &self.path)?;
        write!(f, ": {}", self.message)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "; {hint}"))
    }
}

struct ProblemList<'a>(&'a [ConfigProblem]);

impl fmt::Display for ProblemList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, problem) in self.0.iter().enumerate() {
            if number > 0 {
                f.write_str("; ")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
