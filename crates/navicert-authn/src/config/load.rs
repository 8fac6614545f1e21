//! The first step: text to types, strictly; then validation. Nothing is kept of a file that has any error.

use navicert_types::authentication_config::AuthenticationConfiguration;
use navicert_types::diagnostic::DiagnosticKind;
use navicert_types::tree::{self, Limits, Node, Syntax};
use navicert_types::{Diagnostic, Diagnostics, FieldPath};

use super::compile::Compiled;
use super::validate::validate_beside;
use super::violation::Violations;
use crate::profile::{Profile, Rule};

/// The largest file that is read (S14).
const MOST_BYTES: usize = 1 << 20;

/// A configuration as it was written, and ready for use.
#[derive(Debug)]
pub struct Loaded {
    /// As it was written.
    pub configuration: AuthenticationConfiguration,
    /// Ready for use.
    pub compiled: Compiled,
}

/// Why a configuration is not used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Nothing is in the file (S4).
    #[error("empty config data")]
    Empty,
    /// The text is not such a configuration.
    #[error("{0}")]
    Decode(Diagnostics),
    /// It is one, and its content breaks rules. The tree tells where they are in the text.
    #[error("{violations}")]
    Invalid {
        /// Which ones.
        violations: Violations,
        /// The text's tree.
        tree: Box<Node>,
    },
}

/// Says where a field belongs that is known, but not here (S15).
fn with_place(mut wrong: Diagnostic) -> Diagnostic {
    const PLACES: [(&str, &[&str]); 5] = [
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
    if let Some((place, _)) = PLACES.iter().find(|(_, fields)| fields.contains(&name)) {
        let place = if place.contains(' ') { (*place).to_owned() } else { format!("`{place}`") };
        wrong.hint = Some(format!("`{name}` belongs into {place}"));
    } else if name == "metadata" {
        wrong.hint = Some("this kind has no metadata: leave it out".to_owned());
    }
    wrong
}

/// Reads, validates and compiles a file.
///
/// # Errors
/// Everything that is wrong with the text, or everything that is wrong with its content.
pub fn load(text: &[u8], profile: &Profile) -> Result<Loaded, ConfigError> {
    load_beside(text, profile, &[])
}

/// The same where some issuers are spoken for (S22).
///
/// # Errors
/// As [`load`].
pub fn load_beside(
    text: &[u8],
    profile: &Profile,
    disallowed_issuers: &[String],
) -> Result<Loaded, ConfigError> {
    if text.is_empty() {
        return Err(ConfigError::Empty);
    }
    let limits = Limits { bytes: MOST_BYTES, ..Limits::default() };
    let tree = tree::parse_with(text, Syntax::JsonOrYaml, limits)
        .map_err(|wrong| ConfigError::Decode(wrong.into()))?;
    let configuration = AuthenticationConfiguration::from_tree(&tree)
        .map_err(|wrong| ConfigError::Decode(wrong.into_iter().map(with_place).collect()))?;
    if profile.has(Rule::H1)
        && let Some(span) = tree::second_document(text)
    {
        let message =
            "a second document begins here, and Kubernetes would pass over it in silence".to_owned();
        let (path, kind) = (FieldPath::root(), DiagnosticKind::Syntax);
        let hint = Some("keep one document per file".to_owned());
        let wrong = Diagnostic { path, span, kind, message, hint, is_secret: false };
        return Err(ConfigError::Decode(wrong.into()));
    }
    match validate_beside(&configuration, profile, disallowed_issuers) {
        Ok(compiled) => Ok(Loaded { configuration, compiled }),
        Err(violations) => Err(ConfigError::Invalid { violations, tree: Box::new(tree) }),
    }
}
