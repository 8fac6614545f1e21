//! From a text to the hub type, in upstream's order: the text, version and kind, the fields (§3.4).

use super::{DecodeError, ExecCredential, GROUP, KIND, Version, v1, v1beta1};
use crate::decode::{Decoder, Mode};
use crate::diagnostic::{Diagnostic, DiagnosticKind};
use crate::field_path::FieldPath;
use crate::tree::{Mapping, Node, Syntax, Value, parse};

/// Reads an `ExecCredential` of any version. JSON if the first character is `{`, YAML if not; `kind` may be left out,
/// `apiVersion` may not; unknown fields are passed over (C241, C242).
///
/// ```
/// use navicert_types::exec_credential::{Version, decode};
///
/// let output = br#"{"apiVersion":"client.authentication.k8s.io/v1","status":{"token":"t0ken"}}"#;
/// let (version, credential) = decode(output).unwrap();
/// assert_eq!(version, Version::V1);
/// assert_eq!(credential.status.unwrap().token.expose(), "t0ken");
/// ```
///
/// # Errors
/// The first thing that is wrong in the order above; of the fields, everything.
pub fn decode(bytes: &[u8]) -> Result<(Version, ExecCredential), DecodeError> {
    let looks_like_json = bytes.trim_ascii_start().starts_with(b"{");
    let unreadable = if looks_like_json { DecodeError::Json } else { DecodeError::Yaml };
    let node = parse(bytes, Syntax::JsonOrYaml).map_err(unreadable)?;
    let version = version_of(&node, looks_like_json)?;
    let read = match version {
        Version::V1 => v1::read,
        Version::V1Beta1 => v1beta1::read,
        #[cfg(feature = "exec-v1alpha1")]
        Version::V1Alpha1 => super::v1alpha1::read,
    };
    let mut decoder = Decoder::new(Mode::Lenient);
    let credential = read(&node, &mut decoder).unwrap_or_default();
    let credential = decoder.finish(credential).map_err(DecodeError::Fields)?;
    Ok((version, credential))
}

fn version_of(node: &Node, is_json: bool) -> Result<Version, DecodeError> {
    let nothing = Mapping::default();
    let mapping = match &node.value {
        Value::Mapping(mapping) => mapping,
        Value::Null => &nothing,
        _ => {
            let message = format!("expected an object, found {}", node.kind());
            return Err(DecodeError::Json(wrong(FieldPath::root(), node, message)));
        }
    };
    let api_version = name_in(mapping, "apiVersion", is_json)?.unwrap_or_default();
    let kind = name_in(mapping, "kind", is_json)?.filter(|kind| !kind.is_empty()).unwrap_or(KIND);
    // An empty version, and the one Kubernetes keeps to itself, are what an absent one becomes upstream.
    let is_none = api_version.strip_prefix(GROUP).is_some_and(|rest| matches!(rest, "/" | "/__internal"));
    if api_version.is_empty() || is_none {
        return Err(DecodeError::NoVersion);
    }
    Version::of(api_version)
        .filter(|_| kind == KIND)
        .ok_or_else(|| DecodeError::NotRegistered { kind: shown(kind), api_version: shown(api_version) })
}

/// `apiVersion` or `kind`, in whatever case: Kubernetes looks at them before it knows the schema (C242). Each has to be
/// a string or null, the last counts, and null leaves an earlier value alone. YAML becomes JSON with sorted keys first.
fn name_in<'a>(mapping: &'a Mapping, name: &str, is_json: bool) -> Result<Option<&'a str>, DecodeError> {
    let mut entries = if is_json { mapping.entries().iter().collect() } else { mapping.effective() };
    entries.retain(|entry| entry.key.eq_ignore_ascii_case(name) && !entry.value.is_null());
    if !is_json {
        entries.sort_by(|one, another| one.key.cmp(&another.key));
    }
    if let Some(entry) = entries.iter().find(|entry| entry.value.as_str().is_none()) {
        let message = format!("expected a string, found {}", entry.value.kind());
        return Err(DecodeError::Json(wrong(FieldPath::root().field(name), &entry.value, message)));
    }
    Ok(entries.last().and_then(|entry| entry.value.as_str()))
}

fn wrong(path: FieldPath, node: &Node, message: String) -> Diagnostic {
    let kind = DiagnosticKind::WrongType;
    Diagnostic { path, span: node.span, kind, message, hint: None, is_secret: true }
}

/// A name as it may be shown: a token in the wrong place is not.
fn shown(name: &str) -> String {
    let sane =
        name.len() <= 80 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b" ./-_".contains(&byte));
    if sane { name.to_owned() } else { "…".to_owned() }
}
