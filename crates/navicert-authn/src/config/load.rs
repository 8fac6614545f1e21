//! Decodes a configuration strictly, then validates and compiles it. A file with any error is rejected as a whole.

use navicert_types::authentication_config::AuthenticationConfiguration;
use navicert_types::diagnostic::DiagnosticKind;
use navicert_types::tree::{self, Node, ParseLimits, Syntax};
use navicert_types::{Diagnostic, Diagnostics, FieldPath};

use super::compile::CompiledConfig;
use super::validate::validate_excluding_issuers;
use super::violation::Violations;
use crate::profile::{AuthnProfile, Hardening};

/// Maximum size of a configuration file in bytes.
// S14
const MAX_CONFIG_BYTES: usize = 1 << 20;

/// A configuration as written, and compiled.
#[derive(Debug)]
pub struct LoadedConfig {
    /// As written.
    pub configuration: AuthenticationConfiguration,
    /// Compiled.
    pub compiled: CompiledConfig,
}

/// Why a configuration is rejected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file is empty.
    // S4
    #[error("empty config data")]
    Empty,
    /// The text does not decode.
    #[error("{0}")]
    Decode(Diagnostics),
    /// The contents break validation rules. The tree locates them in the text.
    #[error("{violations}")]
    Invalid {
        /// The violations.
        violations: Violations,
        /// The syntax tree of the text.
        tree: Box<Node>,
    },
}

/// Adds a hint that names the parent of a misplaced field.
// S15
fn with_location_hint(mut wrong: Diagnostic) -> Diagnostic {
    const FIELDS_BY_PARENT: [(&str, &[&str]); 5] = [
        (
            "issuer",
            &[
                "url",
                "discoveryURL",
                "certificateAuthority",
                "audiences",
                "audienceMatchPolicy",
                "egressSelectorType",
            ],
        ),
        ("claimMappings", &["username", "groups", "uid", "extra"]),
        ("a claim mapping or a claim validation rule", &["claim", "prefix", "requiredValue"]),
        ("a rule", &["expression", "message"]),
        (
            "an authenticator (an item of `jwt`)",
            &["issuer", "claimMappings", "claimValidationRules", "userValidationRules"],
        ),
    ];
    if wrong.kind != DiagnosticKind::UnknownField {
        return wrong;
    }
    let path = wrong.path.to_string();
    let name = path.rsplit('.').next().unwrap_or_default();
    if let Some((location, _)) = FIELDS_BY_PARENT.iter().find(|(_, fields)| fields.contains(&name)) {
        let location = if location.contains(' ') { (*location).to_owned() } else { format!("`{location}`") };
        wrong.hint = Some(format!("`{name}` belongs in {location}"));
    } else if name == "metadata" {
        wrong.hint = Some("remove it: this kind has no metadata".to_owned());
    }
    wrong
}

/// Decodes, validates and compiles a configuration.
///
/// # Errors
/// Every decoding error, or every validation error.
pub fn load(text: &[u8], profile: &AuthnProfile) -> Result<LoadedConfig, ConfigError> {
    load_excluding_issuers(text, profile, &[])
}

/// Like [`load`], and rejects these issuers.
///
/// # Errors
/// As [`load`].
// S22
pub fn load_excluding_issuers(
    text: &[u8],
    profile: &AuthnProfile,
    disallowed_issuers: &[String],
) -> Result<LoadedConfig, ConfigError> {
    if text.is_empty() {
        return Err(ConfigError::Empty);
    }
    let limits = ParseLimits { bytes: MAX_CONFIG_BYTES, ..ParseLimits::default() };
    let tree = tree::parse_with(text, Syntax::JsonOrYaml, limits)
        .map_err(|wrong| ConfigError::Decode(wrong.into()))?;
    let configuration = AuthenticationConfiguration::from_tree(&tree)
        .map_err(|wrong| ConfigError::Decode(wrong.into_iter().map(with_location_hint).collect()))?;
    if profile.has(Hardening::SingleDocument)
        && let Some(span) = tree::second_document(text)
    {
        let message = "second document in the file: kube-apiserver would silently ignore it".to_owned();
        let (path, kind) = (FieldPath::root(), DiagnosticKind::Syntax);
        let hint = Some("put one document in each file".to_owned());
        let wrong = Diagnostic { path, span, kind, message, hint, is_secret: false };
        return Err(ConfigError::Decode(wrong.into()));
    }
    match validate_excluding_issuers(&configuration, profile, disallowed_issuers) {
        Ok(compiled) => Ok(LoadedConfig { configuration, compiled }),
        Err(violations) => Err(ConfigError::Invalid { violations, tree: Box::new(tree) }),
    }
}
