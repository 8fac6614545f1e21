//! From `--image-credential-provider-config` to providers that may be asked: find the files, decode, merge, validate,
//! every error at once and each with its file, line and provider (§1 of the specification).
//!
//! ```text
//! path ──files──▶ texts ──decode──▶ hub types ──merge──▶ one list ──validate──▶ Config
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

/// A configuration that passed every check. Only [`Config::decode`] builds one.
#[derive(Clone, Debug)]
pub struct ImageConfig {
    providers: Vec<ProviderConfig>,
    hash: String,
}

/// One provider of a checked configuration.
#[derive(Clone, Debug)]
pub struct ProviderConfig {
    /// The name, and the file name of the executable.
    pub name: String,
    /// The patterns, each with its text.
    pub patterns: Vec<(String, ImagePattern)>,
    /// How long an answer is good that does not say so itself.
    pub default_cache_duration: Duration,
    /// The version the plugin is spoken to in.
    pub wire_version: WireVersion,
    /// Arguments. They may hold secrets.
    pub args: Vec<Secret<String>>,
    /// Variables on top of the caller's environment, in order.
    pub env: Vec<(String, Secret<String>)>,
    /// Service-account mode.
    pub token: Option<TokenSettings>,
}

/// What a provider wants of a pod's service account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenSettings {
    /// The audience of the token.
    pub audience: String,
    /// What answers may be shared between.
    pub cache_type: TokenCacheType,
    /// Whether lookups without a service account are passed over.
    pub require_service_account: bool,
    /// Annotations without which the provider is passed over.
    pub required_annotations: Vec<String>,
    /// Annotations that are handed over if they are there.
    pub optional_annotations: Vec<String>,
}

/// What answers in service-account mode may be shared between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenCacheType {
    /// One token only.
    Token,
    /// Every pod of the service account.
    ServiceAccount,
}

/// What is wrong with a configuration: at least one thing.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("the credential provider configuration is not valid: {}", ProblemList(.0))]
pub struct ConfigErrors(Vec<ConfigProblem>);

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblem {
    /// In which file.
    pub file: PathBuf,
    /// At which step.
    pub stage: ConfigStage,
    /// What sort of error Kubernetes calls it; only from [`Stage::Validate`].
    pub error_type: Option<FieldErrorType>,
    /// The kubelet's name for the place, without an index; only from [`Stage::Validate`].
    // I36
    pub field: String,
    /// Our name for the place: `providers[1](ecr).matchImages[0]`.
    pub path: String,
    /// One clause, without values that may be secrets.
    pub message: String,
    /// What to do about it, where that is not plain.
    pub hint: Option<String>,
    /// Where in the file.
    pub span: Option<Span>,
}

/// The step at which something is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigStage {
    /// The text is no configuration.
    Decode,
    /// The files do not go together.
    Merge,
    /// The values are not acceptable.
    Validate,
}

/// Kubernetes' names for what can be wrong with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FieldErrorType {
    /// Has to be there.
    Required,
    /// Is not acceptable.
    Invalid,
    /// Is there already.
    Duplicate,
    /// May not be there.
    Forbidden,
    /// Is none of the known values.
    NotSupported,
}

impl ImageConfig {
    /// Decodes, merges and validates files.
    ///
    /// # Errors
    /// Everything that is wrong: where a file does not decode, only what concerns decoding.
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
        let place = files.first().map_or(Path::new(""), |file| file.path.as_path());
        let providers = validate::validate(&sources, place, profile).map_err(ConfigErrors)?;
        Ok(ImageConfig { providers, hash: hash(files) })
    }

    /// The providers, in the order in which they are asked.
    pub fn providers(&self) -> &[ProviderConfig] {
        &self.providers
    }

    /// The hash the kubelet publishes of its files.
    // I19
    pub fn hash(&self) -> &str {
        &self.hash
    }
}

impl ConfigErrors {
    /// What is wrong, in the order of the files.
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

/// A provider with where it came from.
#[derive(Debug)]
struct ProviderSource<'a> {
    file: &'a Path,
    /// Which of the file's providers it is, counted from 0.
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

    /// Where a field stands, or what holds it.
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
    let refused = |diagnostics: Diagnostics| {
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
            message: "a second YAML document begins here, and the kubelet ignores it without a word"
                .to_owned(),
            hint: Some("put it into a file of its own and configure the folder".to_owned()),
            span: Some(span),
        }]);
    }
    let node = tree::parse(&file.text, Syntax::JsonOrYaml)
        .map_err(|found| refused(found.into()).collect::<Vec<_>>())?;
    let config =
        CREDENTIAL_PROVIDER_CONFIG.decode_tree(&node).map_err(|found| refused(found).collect::<Vec<_>>())?;
    let nodes = node.as_mapping().and_then(|mapping| mapping.last("providers")?.value.as_sequence());
    let sources = config.providers.into_iter().enumerate().map(|(index, provider)| ProviderSource {
        file: &file.path,
        index,
        provider,
        node: nodes.and_then(|nodes| nodes.get(index)).cloned(),
    });
    Ok(sources.collect())
}

/// Where a second document begins, if there is one.
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

/// A name that an earlier provider has already aborts the kubelet's merge.
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
        message: "another provider has this name already".to_owned(),
        hint: Some("names are file names of executables: link the executable under a second name".to_owned()),
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
    /// The name in the shared vectors.
    pub fn as_str(self) -> &'static str {
        match self {
            ConfigStage::Decode => "decode",
            ConfigStage::Merge => "merge",
            ConfigStage::Validate => "validate",
        }
    }
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(span) = self.span {
            write!(f, ":{}:{}", span.line, span.column)?;
        }
        if !self.path.is_empty() {
            write!(f, ": {}", self.path)?;
        }
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
