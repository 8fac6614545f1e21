//! Which type a document is: `apiVersion` and `kind` choose the reader, and every reader of one table ends in the
//! same hub type.

use crate::decode::{Decoder, Mode};
use crate::diagnostic::{Diagnostic, DiagnosticKind, Diagnostics};
use crate::field_path::FieldPath;
use crate::tree::{self, Mapping, Node, Span, Syntax, Value};

/// The kinds of document that give one hub type, and how such a document is read.
///
/// ```
/// use navicert_types::decode::{Decode, Decoder, Mode};
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
///     mode: Mode::Strict,
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
///     "apiVersion: `example.com/v2` is not known for kind `Greeting`; known is `example.com/v1` (line 1, column 13)"
/// );
/// ```
#[derive(Debug)]
pub struct Versions<T: 'static> {
    /// The language of the text.
    pub syntax: Syntax,
    /// How unknown and repeated fields are taken.
    pub mode: Mode,
    /// What an absent or empty `apiVersion` means, if that is allowed.
    pub default_api_version: Option<&'static str>,
    /// What an absent or empty `kind` means, if that is allowed.
    pub default_kind: Option<&'static str>,
    /// What is known, newest version first.
    pub kinds: &'static [Kind<T>],
}

/// One version of one kind.
#[derive(Debug)]
pub struct Kind<T> {
    /// Group and version, as in `apiserver.config.k8s.io/v1`.
    pub api_version: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// Reads the document; `apiVersion` and `kind` need not be asked for.
    pub decode: fn(&Node, &mut Decoder) -> Option<T>,
}

impl<T: Default> Versions<T> {
    /// Reads a document from its text.
    ///
    /// # Errors
    /// A text that is not in the language or an unknown version gives one diagnostic; a known version gives
    /// everything that is wrong, in the order of the text.
    pub fn decode(&self, bytes: &[u8]) -> Result<T, Diagnostics> {
        self.decode_tree(&tree::parse(bytes, self.syntax)?)
    }

    /// Reads a document that has been parsed.
    ///
    /// # Errors
    /// As [`Versions::decode`], without the text's own.
    pub fn decode_tree(&self, node: &Node) -> Result<T, Diagnostics> {
        let kind = self.choose(node)?;
        let mut decoder = Decoder::after_type_meta(self.mode);
        let value = (kind.decode)(node, &mut decoder).unwrap_or_default();
        decoder.finish(value)
    }

    /// The reader for a document.
    ///
    /// # Errors
    /// One diagnostic: `apiVersion` or `kind` is absent, is not a string, or is not known.
    pub fn choose(&self, node: &Node) -> Result<&'static Kind<T>, Diagnostic> {
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
            return Err(kind.refused("is missing", DiagnosticKind::Version, kinds()));
        }
        if api_version.text.is_empty() {
            return Err(api_version.refused("is missing", DiagnosticKind::Version, versions()));
        }
        let found =
            self.kinds.iter().find(|known| (known.api_version, known.kind) == (api_version.text, kind.text));
        found.ok_or_else(|| {
            if kinds().any(|known| known == kind.text) {
                let of_kind =
                    self.kinds.iter().filter(|known| known.kind == kind.text).map(|known| known.api_version);
                let problem = format!("{} is not known for kind `{}`", api_version.shown(), kind.text);
                api_version.refused(&problem, DiagnosticKind::Version, of_kind)
            } else {
                kind.refused(&format!("{} is not known here", kind.shown()), DiagnosticKind::Version, kinds())
            }
        })
    }
}

/// `apiVersion` or `kind` as the document has it.
struct TypeMeta<'a> {
    name: &'static str,
    text: &'a str,
    span: Span,
}

/// Kubernetes looks at these two before it knows the schema, and passes over case while doing so (C242): each spelling
/// has to be a string or null, the last counts, and null leaves an earlier value alone.
fn type_meta<'a>(
    mapping: &'a Mapping,
    name: &'static str,
    document: Span,
) -> Result<TypeMeta<'a>, Diagnostic> {
    let mut found = TypeMeta { name, text: "", span: Span { end: document.start, ..document } };
    let named = mapping.effective().into_iter().filter(|entry| entry.key.eq_ignore_ascii_case(name));
    for entry in named.filter(|entry| !entry.value.is_null()) {
        match entry.value.as_str() {
            // A version of nothing but a slash is none.
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

    /// The value, if it is one that could be meant: a token in the wrong place is not.
    fn shown(&self) -> String {
        let sane = self.text.len() <= 80
            && self.text.bytes().all(|b| b.is_ascii_alphanumeric() || b"./-_".contains(&b));
        if sane { format!("`{}`", self.text) } else { "the value".to_owned() }
    }

    fn refused(
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
        let verb = if names.len() == 1 { "is" } else { "are" };
        let message = format!("{problem}; known {verb} {}", names.join(", "));
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
        mode: Mode::Strict,
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
    fn every_version_ends_in_the_hub_type() {
        let read = |text: &str| HUB.decode(text.as_bytes()).unwrap();
        let new = read("apiVersion: example.com/v2\nkind: Box\nsize: 5\n");
        let old = read(r#"{"kind": "Box", "apiVersion": "example.com/v1", "length": 5}"#);
        assert_eq!((new, old), (Hub { version: 2, size: 5 }, Hub { version: 1, size: 5 }));
    }

    #[test]
    fn an_unknown_document_gives_one_sentence_that_says_what_is_known() {
        let cases = [
            (
                "apiVersion: example.com/v3\nkind: Box\nfoo: 1\n",
                "apiVersion: `example.com/v3` is not known for kind `Box`; known are `example.com/v2`, `example.com/v1` (line 1, column 13)",
            ),
            (
                "apiVersion: example.com/v2\nkind: box\n",
                "kind: `box` is not known here; known is `Box` (line 2, column 7)",
            ),
            (
                "kind: Box\n",
                "apiVersion: is missing; known are `example.com/v2`, `example.com/v1` (line 1, column 1)",
            ),
            ("apiVersion: example.com/v2\n", "kind: is missing; known is `Box` (line 1, column 1)"),
            ("apiVersion: example.com/v2\nkind: ''\n", "kind: is missing; known is `Box` (line 2, column 7)"),
            ("", "kind: is missing; known is `Box` (line 1, column 1)"),
            ("- a\n", "line 1, column 1: expected a mapping with `apiVersion` and `kind`, found a list"),
            (
                "apiVersion: 2\nkind: Box\n",
                "apiVersion: expected a string, found a number (line 1, column 13)",
            ),
            (
                "apiVersion: example.com/v2\nkind: 's3cret!'\n",
                "kind: the value is not known here; known is `Box` (line 2, column 7)",
            ),
        ];
        for (text, sentence) in cases {
            assert_eq!(error(text), sentence);
        }
    }

    #[test]
    fn a_known_version_gives_every_error() {
        let text = "apiVersion: example.com/v2\nkind: Box\nlength: 1\napiVersion: example.com/v2\nsize: x\n";
        assert_eq!(
            error(text),
            "length: unknown field (line 3, column 1); apiVersion: given more than once, first on line 1 \
            (line 4, column 1); size: expected an integer, found a string (line 5, column 7)"
        );
    }

    // C242: Kubernetes looks for the two names in any case, the schema's own only in theirs.
    #[test]
    fn the_case_of_kind_is_passed_over_until_the_schema_is_known() {
        assert_eq!(
            error("APIVersion: example.com/v2\nkind: Box\n"),
            "APIVersion: unknown field (line 1, column 1); did you mean `apiVersion`?"
        );
        let lenient = Versions { mode: Mode::Lenient, ..HUB };
        assert!(lenient.decode(b"APIVersion: example.com/v2\nKIND: Box\n").is_ok());
        assert!(lenient.decode(b"apiVersion: example.com/v2\nkind: Box\nKind: Pod\n").is_err());
        assert!(lenient.decode(b"apiVersion: example.com/v2\nkind: Box\nKind: null\n").is_ok());
    }

    #[test]
    fn absent_names_may_have_a_default() {
        let lax = Versions { default_api_version: Some("example.com/v1"), default_kind: Some("Box"), ..HUB };
        assert_eq!(lax.decode(b"length: 3\n").unwrap(), Hub { version: 1, size: 3 });
        assert_eq!(lax.decode(b"").unwrap(), Hub { version: 1, size: 0 });
    }

    // C242
    #[test]
    fn every_spelling_of_kind_has_to_be_a_string() {
        let text = |line: &str| format!("apiVersion: example.com/v2\n{line}\nsize: 1\n");
        for line in ["Kind: []\nkind: Box", "kind: Box\nKIND: 1", "Kind: {}\nkind: Box"] {
            let wrong = HUB.decode(text(line).as_bytes()).unwrap_err();
            assert!(wrong.to_string().contains("expected a string"), "{line}: {wrong}");
        }
        // Null is no value; what a strict reader says of the spelling itself is another matter.
        let strict = HUB.decode(text("Kind: null\nkind: Box").as_bytes()).unwrap_err();
        assert!(strict.to_string().contains("Kind"), "{strict}");
    }
}
