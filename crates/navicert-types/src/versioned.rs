//! Selects the decoder of a document by `apiVersion` and `kind`. Every version of a kind decodes into the same hub
//! type.

use crate::decode::{DecodeMode, Decoder};
use crate::diagnostic::{Diagnostic, DiagnosticKind, Diagnostics};
use crate::field_path::FieldPath;
use crate::tree::{self, Mapping, Node, Span, Syntax, Value};

/// `apiVersion` of navicert's own kinds.
pub const NAVICERT_API_VERSION: &str = "navicert/v1alpha1";

/// The document versions that decode into one hub type, and how such a document is parsed.
///
/// ```
/// use navicert_types::decode::{Decode, Decoder, DecodeMode};
/// use navicert_types::tree::{Node, Syntax};
/// use navicert_types::versioned::{Kind, Versions};
///
/// #[derive(Debug, Default, PartialEq)]
/// struct Greeting { text: String }
///
/// impl Decode for Greeting {
///     fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
///         decoder.object(node, |fields| Greeting { text: fields.default("text") })
///     }
/// }
///
/// static GREETING: Versions<Greeting> = Versions {
///     syntax: Syntax::JsonOrYaml,
///     mode: DecodeMode::Strict,
///     default_api_version: None,
///     default_kind: None,
///     kinds: &[Kind { api_version: "example.com/v1", kind: "Greeting", decode: Greeting::decode }],
/// };
///
/// let text = b"apiVersion: example.com/v1\nkind: Greeting\ntext: hello\n";
/// assert_eq!(GREETING.decode(text).unwrap(), Greeting { text: "hello".into() });
///
/// let error = GREETING.decode(b"apiVersion: example.com/v2\nkind: Greeting\n").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "apiVersion: unsupported version `example.com/v2` of kind `Greeting`; expected `example.com/v1` (line 1, column 13)"
/// );
/// ```
#[derive(Debug)]
pub struct Versions<T: 'static> {
    /// The language of the text.
    pub syntax: Syntax,
    /// How unknown and repeated fields are handled.
    pub mode: DecodeMode,
    /// Replaces a missing or empty `apiVersion`, if one may be omitted.
    pub default_api_version: Option<&'static str>,
    /// Replaces a missing or empty `kind`, if one may be omitted.
    pub default_kind: Option<&'static str>,
    /// Supported kinds, newest version first.
    pub kinds: &'static [Kind<T>],
}

/// One version of one kind.
#[derive(Debug)]
pub struct Kind<T> {
    /// Group and version, as in `apiserver.config.k8s.io/v1`.
    pub api_version: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// Decodes the document; it need not read `apiVersion` and `kind`.
    pub decode: fn(&Node, &mut Decoder) -> Option<T>,
}

impl<T: Default> Versions<T> {
    /// Parses and decodes a document.
    ///
    /// # Errors
    /// One diagnostic for a syntax error or an unsupported version; otherwise every error, in the order of the text.
    pub fn decode(&self, bytes: &[u8]) -> Result<T, Diagnostics> {
        self.decode_tree(&tree::parse(bytes, self.syntax)?)
    }

    /// Decodes a parsed document.
    ///
    /// # Errors
    /// As [`Versions::decode`], except for syntax errors.
    pub fn decode_tree(&self, node: &Node) -> Result<T, Diagnostics> {
        let kind = self.find_kind(node)?;
        let mut decoder = Decoder::after_type_meta(self.mode);
        let value = (kind.decode)(node, &mut decoder).unwrap_or_default();
        decoder.finish(value)
    }

    /// The entry of [`Versions::kinds`] for a document.
    ///
    /// # Errors
    /// One diagnostic: `apiVersion` or `kind` is missing, not a string, or not supported.
    pub fn find_kind(&self, node: &Node) -> Result<&'static Kind<T>, Diagnostic> {
        let nothing = Mapping::default();
        let mapping = match &node.value {
            Value::Mapping(mapping) => mapping,
            Value::Null => &nothing,
            _ => {
                let message =
                    format!("expected a mapping with `apiVersion` and `kind`, found {}", node.kind());
                return Err(diagnostic("", node.span, DiagnosticKind::WrongType, message));
            }
        };
        let api_version = type_meta(mapping, "apiVersion", node.span)?.or_default(self.default_api_version);
        let kind = type_meta(mapping, "kind", node.span)?.or_default(self.default_kind);
        let versions = || self.kinds.iter().map(|known| known.api_version);
        let kinds = || self.kinds.iter().map(|known| known.kind);
        if kind.text.is_empty() {
            return Err(kind.unsupported("missing `kind`", DiagnosticKind::Version, kinds()));
        }
        if api_version.text.is_empty() {
            return Err(api_version.unsupported("missing `apiVersion`", DiagnosticKind::Version, versions()));
        }
        let found =
            self.kinds.iter().find(|known| (known.api_version, known.kind) == (api_version.text, kind.text));
        found.ok_or_else(|| {
            if kinds().any(|known| known == kind.text) {
                let of_kind =
                    self.kinds.iter().filter(|known| known.kind == kind.text).map(|known| known.api_version);
                let problem =
                    format!("unsupported version{} of kind `{}`", api_version.display_value(), kind.text);
                api_version.unsupported(&problem, DiagnosticKind::Version, of_kind)
            } else {
                kind.unsupported(
                    &format!("unknown kind{}", kind.display_value()),
                    DiagnosticKind::Version,
                    kinds(),
                )
            }
        })
    }
}

/// `apiVersion` or `kind` as written in the document.
struct TypeMeta<'a> {
    name: &'static str,
    text: &'a str,
    span: Span,
}

/// Kubernetes reads these two fields before it knows the schema and ignores their case: every spelling must be a string
/// or null, the last non-null one wins.
// C242
fn type_meta<'a>(
    mapping: &'a Mapping,
    name: &'static str,
    document: Span,
) -> Result<TypeMeta<'a>, Diagnostic> {
    let mut found = TypeMeta { name, text: "", span: Span { end: document.start, ..document } };
    let named = mapping.effective().into_iter().filter(|entry| entry.key.eq_ignore_ascii_case(name));
    for entry in named.filter(|entry| !entry.value.is_null()) {
        match entry.value.as_str() {
            // Kubernetes treats the version `/` as missing.
            Some("/") if name == "apiVersion" => found = TypeMeta { name, text: "", span: entry.value.span },
            Some(text) => found = TypeMeta { name, text, span: entry.value.span },
            None => {
                let message = format!("expected a string, found {}", entry.value.kind());
                return Err(diagnostic(name, entry.value.span, DiagnosticKind::WrongType, message));
            }
        }
    }
    Ok(found)
}

impl<'a> TypeMeta<'a> {
    fn or_default(self, default: Option<&'a str>) -> Self {
        match default {
            Some(default) if self.text.is_empty() => TypeMeta { text: default, ..self },
            _ => self,
        }
    }

    /// A space and the value in backticks if it looks like a version or kind, so that a misplaced token is never printed.
    fn display_value(&self) -> String {
        let sane = self.text.len() <= 80
            && self.text.bytes().all(|b| b.is_ascii_alphanumeric() || b"./-_".contains(&b));
        if sane { format!(" `{}`", self.text) } else { String::new() }
    }

    fn unsupported(
        &self,
        problem: &str,
        kind: DiagnosticKind,
        known: impl Iterator<Item = &'static str>,
    ) -> Diagnostic {
        let mut names: Vec<String> = Vec::new();
        for name in known.map(|name| format!("`{name}`")) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let one_of = if names.len() == 1 { "" } else { "one of " };
        let message = format!("{problem}; expected {one_of}{}", names.join(", "));
        diagnostic(self.name, self.span, kind, message)
    }
}

fn diagnostic(name: &str, span: Span, kind: DiagnosticKind, message: String) -> Diagnostic {
    let path = if name.is_empty() { FieldPath::root() } else { FieldPath::root().field(name) };
    Diagnostic { path, span, kind, message, hint: None, is_secret: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::Decode;

    #[derive(Debug, Default, PartialEq)]
    struct Hub {
        version: u8,
        size: i64,
    }

    fn old(node: &Node, decoder: &mut Decoder) -> Option<Hub> {
        decoder.object(node, |fields| Hub { version: 1, size: fields.default("length") })
    }

    impl Decode for Hub {
        fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
            decoder.object(node, |fields| Hub { version: 2, size: fields.default("size") })
        }
    }

    static HUB: Versions<Hub> = Versions {
        syntax: Syntax::JsonOrYaml,
        mode: DecodeMode::Strict,
        default_api_version: None,
        default_kind: None,
        kinds: &[
            Kind { api_version: "example.com/v2", kind: "Box", decode: Hub::decode },
            Kind { api_version: "example.com/v1", kind: "Box", decode: old },
        ],
    };

    fn error(text: &str) -> String {
        HUB.decode(text.as_bytes()).expect_err(text).to_string()
    }

    #[test]
    fn every_version_decodes_into_the_hub_type() {
        let read = |text: &str| HUB.decode(text.as_bytes()).unwrap();
        let new = read("apiVersion: example.com/v2\nkind: Box\nsize: 5\n");
        let old = read(r#"{"kind": "Box", "apiVersion": "example.com/v1", "length": 5}"#);
        assert_eq!((new, old), (Hub { version: 2, size: 5 }, Hub { version: 1, size: 5 }));
    }

    #[test]
    fn unsupported_document_gives_one_diagnostic_naming_supported_versions() {
        let cases = [
            (
                "apiVersion: example.com/v3\nkind: Box\nfoo: 1\n",
                "apiVersion: unsupported version `example.com/v3` of kind `Box`; expected one of `example.com/v2`, `example.com/v1` (line 1, column 13)",
            ),
            (
                "apiVersion: example.com/v2\nkind: box\n",
                "kind: unknown kind `box`; expected `Box` (line 2, column 7)",
            ),
            (
                "kind: Box\n",
                "apiVersion: missing `apiVersion`; expected one of `example.com/v2`, `example.com/v1` (line 1, column 1)",
            ),
            ("apiVersion: example.com/v2\n", "kind: missing `kind`; expected `Box` (line 1, column 1)"),
            (
                "apiVersion: example.com/v2\nkind: ''\n",
                "kind: missing `kind`; expected `Box` (line 2, column 7)",
            ),
            ("", "kind: missing `kind`; expected `Box` (line 1, column 1)"),
            ("- a\n", "line 1, column 1: expected a mapping with `apiVersion` and `kind`, found a list"),
            (
                "apiVersion: 2\nkind: Box\n",
                "apiVersion: expected a string, found a number (line 1, column 13)",
            ),
            (
                "apiVersion: example.com/v2\nkind: 's3cret!'\n",
                "kind: unknown kind; expected `Box` (line 2, column 7)",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(error(text), expected);
        }
    }

    #[test]
    fn supported_version_reports_every_error() {
        let text = "apiVersion: example.com/v2\nkind: Box\nlength: 1\napiVersion: example.com/v2\nsize: x\n";
        assert_eq!(
            error(text),
            "length: unknown field (line 3, column 1); apiVersion: duplicate field, first on line 1 \
            (line 4, column 1); size: expected an integer, found a string (line 5, column 7)"
        );
    }

    // C242: Kubernetes looks for the two names in any case, the schema's own only in theirs.
    #[test]
    fn case_of_kind_is_ignored_until_the_schema_is_known() {
        assert_eq!(
            error("APIVersion: example.com/v2\nkind: Box\n"),
            "APIVersion: unknown field (line 1, column 1); did you mean `apiVersion`?"
        );
        let lenient = Versions { mode: DecodeMode::Lenient, ..HUB };
        assert!(lenient.decode(b"APIVersion: example.com/v2\nKIND: Box\n").is_ok());
        assert!(lenient.decode(b"apiVersion: example.com/v2\nkind: Box\nKind: Pod\n").is_err());
        assert!(lenient.decode(b"apiVersion: example.com/v2\nkind: Box\nKind: null\n").is_ok());
    }

    #[test]
    fn missing_kind_and_version_may_have_defaults() {
        let lax = Versions { default_api_version: Some("example.com/v1"), default_kind: Some("Box"), ..HUB };
        assert_eq!(lax.decode(b"length: 3\n").unwrap(), Hub { version: 1, size: 3 });
        assert_eq!(lax.decode(b"").unwrap(), Hub { version: 1, size: 0 });
    }

    // C242
    #[test]
    fn every_spelling_of_kind_must_be_a_string() {
        let text = |line: &str| format!("apiVersion: example.com/v2\n{line}\nsize: 1\n");
        for line in ["Kind: []\nkind: Box", "kind: Box\nKIND: 1", "Kind: {}\nkind: Box"] {
            let wrong = HUB.decode(text(line).as_bytes()).unwrap_err();
            assert!(wrong.to_string().contains("expected a string"), "{line}: {wrong}");
        }
        // Null is not a value; strict decoding still rejects the spelling itself.
        let strict = HUB.decode(text("Kind: null\nkind: Box").as_bytes()).unwrap_err();
        assert!(strict.to_string().contains("Kind"), "{strict}");
    }
}
