//! Decodes a text into the hub type in client-go's order: syntax, version and kind, fields.
// §3.4

use super::{DecodeError, ExecCredential, ExecVersion, GROUP, KIND, v1, v1beta1};
use crate::decode::{DecodeMode, Decoder};
use crate::diagnostic::{Diagnostic, DiagnosticKind};
use crate::field_path::FieldPath;
use crate::tree::{Mapping, Node, Syntax, Value, parse};

/// Decodes an `ExecCredential` of any version: JSON if the first character is `{`, otherwise YAML. `kind` is optional,
/// `apiVersion` is required, unknown fields are ignored.
///
/// ```
/// use navicert_types::exec_credential::{ExecVersion, decode};
///
/// let output = br#"{"apiVersion":"client.authentication.k8s.io/v1","status":{"token":"t0ken"}}"#;
/// let (version, credential) = decode(output).unwrap();
/// assert_eq!(version, ExecVersion::V1);
/// assert_eq!(credential.status.unwrap().token.expose(), "t0ken");
/// ```
///
/// # Errors
/// The first error in the order syntax, version, fields; all errors of the fields.
// C241, C242
pub fn decode(bytes: &[u8]) -> Result<(ExecVersion, ExecCredential), DecodeError> {
    let looks_like_json = bytes.trim_ascii_start().starts_with(b"{");
    let unreadable = if looks_like_json { DecodeError::Json } else { DecodeError::Yaml };
    let node = parse(bytes, Syntax::JsonOrYaml).map_err(unreadable)?;
    let version = version_of(&node, looks_like_json)?;
    let read = match version {
        ExecVersion::V1 => v1::read,
        ExecVersion::V1Beta1 => v1beta1::read,
        #[cfg(feature = "exec-v1alpha1")]
        ExecVersion::V1Alpha1 => super::v1alpha1::read,
    };
    // YAML is first converted to JSON without duplicate fields.
    let mode = if looks_like_json { DecodeMode::LenientJson } else { DecodeMode::Lenient };
    let mut decoder = Decoder::new(mode);
    let credential = read(&node, &mut decoder).unwrap_or_default();
    let credential = decoder.finish(credential).map_err(DecodeError::Fields)?;
    Ok((version, credential))
}

fn version_of(node: &Node, is_json: bool) -> Result<ExecVersion, DecodeError> {
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
    // Upstream treats an empty version and `__internal` like a missing one.
    let is_none = api_version.strip_prefix(GROUP).is_some_and(|rest| matches!(rest, "/" | "/__internal"));
    if api_version.is_empty() || is_none {
        return Err(DecodeError::NoVersion);
    }
    ExecVersion::from_api_version(api_version).filter(|_| kind == KIND).ok_or_else(|| {
        DecodeError::NotRegistered { kind: display_name(kind), api_version: display_name(api_version) }
    })
}

/// `apiVersion` or `kind` in any case: Kubernetes reads them before it knows the schema. Every spelling must be a string or
/// null, and the last non-null one wins. YAML is first converted to JSON with sorted keys.
// C242
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

/// The name if it is well-formed, so that a misplaced token is never printed.
fn display_name(name: &str) -> String {
    let sane =
        name.len() <= 80 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b" ./-_".contains(&byte));
    if sane { name.to_owned() } else { "…".to_owned() }
}
