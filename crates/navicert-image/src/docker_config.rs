//! Reads docker's configuration files as the kubelet does: `config.json` and the legacy `.dockercfg`.
// I143–I146

use base64::Engine as _;
use indexmap::IndexMap;
use navicert_go::base64::{RAW_STANDARD, STANDARD, without_line_breaks};
use navicert_types::tree::{Mapping, Node, Syntax, Value, parse};
use navicert_types::{Diagnostic, Secret};
use thiserror::Error;
use zeroize::Zeroizing;

use crate::credential::RegistryCredential;

/// The credentials of a file by key, in file order.
pub type DockerConfig = IndexMap<String, RegistryCredential>;

/// Why a docker configuration is invalid. One invalid entry invalidates the whole file.
// I145
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum DockerConfigError {
    /// The text is not JSON.
    #[error("invalid JSON")]
    Syntax {
        /// The position and cause.
        source: Diagnostic,
    },
    /// A value has the wrong type.
    #[error("{path}: expected {expected}, found {found} (line {line})")]
    WrongType {
        /// The field path.
        path: String,
        /// The expected type.
        expected: &'static str,
        /// The actual type.
        found: &'static str,
        /// The line, starting at 1.
        line: usize,
    },
    /// `auth` is not valid base64.
    #[error("{path}: invalid base64 (line {line})")]
    NotBase64 {
        /// The field path.
        path: String,
        /// The line, starting at 1.
        line: usize,
    },
    /// The decoded `auth` has no colon.
    #[error("{path}: missing colon in decoded `username:password` (line {line})")]
    NoColon {
        /// The field path.
        path: String,
        /// The line, starting at 1.
        line: usize,
    },
}

/// Reads the credentials under `auths` of a `config.json` and ignores everything else.
///
/// # Errors
/// [`DockerConfigError`].
pub fn read_config_json(text: &[u8]) -> Result<DockerConfig, DockerConfigError> {
    let node = parse_json(text)?;
    let mut config = DockerConfig::new();
    for (_, value) in members(&node, "")?.with_name("auths") {
        match value.value {
            // Go's decoder clears a map for null and merges another object into it.
            Value::Null => config.clear(),
            _ => add_entries(&mut config, value, "auths")?,
        }
    }
    Ok(config)
}

/// Reads a `.dockercfg`, whose top-level object holds the entries.
///
/// # Errors
/// [`DockerConfigError`].
pub fn read_legacy(text: &[u8]) -> Result<DockerConfig, DockerConfigError> {
    let mut config = DockerConfig::new();
    add_entries(&mut config, &parse_json(text)?, "")?;
    Ok(config)
}

/// Reads a pull secret by its type; other secrets are ignored.
///
/// # Errors
/// [`DockerConfigError`]: the kubelet fails the pull.
// I143
pub fn read_secret(
    secret_type: &str,
    data: &[(&str, &[u8])],
) -> Result<Option<DockerConfig>, DockerConfigError> {
    let value = |name: &str| data.iter().find(|(found, _)| *found == name).map(|(_, bytes)| *bytes);
    match secret_type {
        "kubernetes.io/dockerconfigjson" => value(".dockerconfigjson").map(read_config_json).transpose(),
        "kubernetes.io/dockercfg" => value(".dockercfg").map(read_legacy).transpose(),
        _ => Ok(None),
    }
}

fn parse_json(text: &[u8]) -> Result<Node, DockerConfigError> {
    parse(text, Syntax::Json).map_err(|source| DockerConfigError::Syntax { source })
}

fn add_entries(config: &mut DockerConfig, node: &Node, path: &str) -> Result<(), DockerConfigError> {
    for entry in members(node, path)?.0.entries() {
        let path =
            if path.is_empty() { format!("[{}]", entry.key) } else { format!("{path}[{}]", entry.key) };
        config.insert(entry.key.clone(), read_entry(&entry.value, &path)?);
    }
    Ok(())
}

fn read_entry(node: &Node, path: &str) -> Result<RegistryCredential, DockerConfigError> {
    let members = members(node, path)?;
    let text = |name: &str| -> Result<(Zeroizing<String>, usize), DockerConfigError> {
        let mut last = (Zeroizing::default(), node.span.line);
        for (_, value) in members.with_name(name).filter(|(_, value)| !value.is_null()) {
            let found =
                value.as_str().ok_or_else(|| wrong_type(value, &format!("{path}.{name}"), "a string"))?;
            last = (Zeroizing::new(found.to_owned()), value.span.line);
        }
        Ok(last)
    };
    let (username, password, email) = (text("username")?.0, text("password")?.0, text("email")?.0);
    let (auth, line) = text("auth")?;
    if auth.is_empty() {
        let email = email.to_string();
        return Ok(RegistryCredential {
            email,
            ..RegistryCredential::new(username.to_string(), password.to_string())
        });
    }
    let path = format!("{path}.auth");
    let decoded =
        decode_base64(&auth).ok_or_else(|| DockerConfigError::NotBase64 { path: path.clone(), line })?;
    let (username, password) = decoded.split_once(':').ok_or(DockerConfigError::NoColon { path, line })?;
    let password = Secret::from(password.to_owned());
    Ok(RegistryCredential { username: username.to_owned(), password, email: email.to_string() })
}

/// Decodes base64: padded if the text ends in `=`, otherwise unpadded; ignores line breaks.
// I145
fn decode_base64(text: &str) -> Option<Zeroizing<String>> {
    let padded = text.trim().ends_with('=');
    let engine = if padded { STANDARD } else { RAW_STANDARD };
    let packed = Zeroizing::new(without_line_breaks(text.as_bytes()));
    let decoded = Zeroizing::new(engine.decode(&*packed).ok()?);
    Some(Zeroizing::new(String::from_utf8_lossy(&decoded).into_owned()))
}

/// The members of an object. As in Go, names are case-insensitive and the last of several values wins.
struct Members<'a>(&'a Mapping);

impl<'a> Members<'a> {
    fn with_name(&self, name: &str) -> impl Iterator<Item = (&'a str, &'a Node)> {
        let has_name = |entry: &&navicert_types::tree::MappingEntry| entry.key.eq_ignore_ascii_case(name);
        self.0.entries().iter().filter(has_name).map(|entry| (&*entry.key, &entry.value))
    }
}

fn members<'a>(node: &'a Node, path: &str) -> Result<Members<'a>, DockerConfigError> {
    static EMPTY: Mapping = Mapping::EMPTY;
    match &node.value {
        Value::Mapping(mapping) => Ok(Members(mapping)),
        Value::Null => Ok(Members(&EMPTY)),
        _ => Err(wrong_type(node, path, "an object")),
    }
}

fn wrong_type(node: &Node, path: &str, expected: &'static str) -> DockerConfigError {
    let path = if path.is_empty() { "the document".to_owned() } else { path.to_owned() };
    DockerConfigError::WrongType { path, expected, found: node.kind(), line: node.span.line }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> RegistryCredential {
        let config = read_config_json(text.as_bytes()).unwrap();
        assert_eq!(config.len(), 1);
        config["a.io"].clone()
    }

    #[test]
    fn reads_entries_as_the_kubelet_does() {
        // I145
        let me = RegistryCredential::new("me", "devpw".to_owned());
        for entry in [
            r#"{"auth": "bWU6ZGV2cHc="}"#,
            r#"{"AUTH": "bWU6ZGV2cHc=", "username": "x", "password": "y"}"#,
            r#"{"auth": "bWU6\nZGV2cHc=\r\n"}"#,
            r#"{"Username": "me", "PASSWORD": "devpw", "identitytoken": "t"}"#,
            r#"{"username": "x", "username": "me", "password": "devpw", "password": null}"#,
        ] {
            assert_eq!(one(&format!(r#"{{"auths": {{"a.io": {entry}}}}}"#)), me, "{entry}");
        }
        assert_eq!(one(r#"{"auths": {"a.io": null}}"#), RegistryCredential::default());
        assert_eq!(one(r#"{"auths": {"a.io": {"auth": "bWU6YTpiOmRldg"}}}"#).password.expose(), "a:b:dev");
    }

    #[test]
    fn rejects_file_with_one_invalid_entry_without_repeating_its_value() {
        // I145
        for (entry, message) in [
            (r#"{"auth": "canary!"}"#, "auths[a.io].auth: invalid base64 (line 1)"),
            (r#"{"auth": "bWU6ZGV2cHc= "}"#, "auths[a.io].auth: invalid base64 (line 1)"),
            (
                r#"{"auth": "bm9jb2xvbmRldg=="}"#,
                "auths[a.io].auth: missing colon in decoded `username:password` (line 1)",
            ),
            (r#"{"password": 5}"#, "auths[a.io].password: expected a string, found a number (line 1)"),
            (r#""canary""#, "auths[a.io]: expected an object, found a string (line 1)"),
        ] {
            let text = format!(r#"{{"auths": {{"a.io": {entry}, "b.io": {{}}}}}}"#);
            assert_eq!(read_config_json(text.as_bytes()).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn config_json_read_as_legacy_gives_a_bogus_entry() {
        // I146
        let config = read_legacy(br#"{"auths": {"a.io": {"auth": "bWU6ZGV2cHc="}}}"#).unwrap();
        assert_eq!(config.keys().collect::<Vec<_>>(), ["auths"]);
        assert!(config["auths"].is_anonymous());
    }

    #[test]
    fn ignores_secrets_of_other_types() {
        // I143
        let json: &[u8] = br#"{"auths": {"a.io": {}}}"#;
        let read = |kind: &str, name: &str, text: &[u8]| read_secret(kind, &[(name, text)]);
        assert_eq!(
            read("kubernetes.io/dockerconfigjson", ".dockerconfigjson", json).unwrap().unwrap().len(),
            1
        );
        assert_eq!(
            read("kubernetes.io/dockercfg", ".dockercfg", br#"{"a.io": {}}"#).unwrap().unwrap().len(),
            1
        );
        assert!(read("Opaque", ".dockerconfigjson", json).unwrap().is_none());
        assert!(read("kubernetes.io/dockerconfigjson", "other", json).unwrap().is_none());
        assert!(read("kubernetes.io/dockerconfigjson", ".dockerconfigjson", b"{").is_err());
    }
}
