//! Decodes a plugin's response as strictly as the kubelet, with more specific errors.
// I101–I108, I268

use std::fmt;

use navicert_types::Diagnostics;
use navicert_types::image_credential::{
    CREDENTIAL_PROVIDER_RESPONSE, CredentialProviderResponse, RESPONSE_KIND, WireVersion,
};
use navicert_types::time::Duration;
use navicert_types::tree::{self, Node, Syntax};
use thiserror::Error;

use crate::cache_key::CacheKeyType;
use crate::credential::RegistryCredential;

/// A valid response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The cache scope.
    pub cache_key_type: CacheKeyType,
    /// The cache duration; `None` means the configured default. May be negative.
    // I127
    pub cache_duration: Option<Duration>,
    /// Credentials by key, sorted.
    // I135
    pub auth: Vec<(String, RegistryCredential)>,
}

/// Why a response is invalid. Messages never contain values of the response, which may be secrets.
// I104
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum ResponseError {
    /// Nothing was printed.
    #[error("the plugin printed nothing; it must print a {RESPONSE_KIND} even without credentials")]
    Empty,
    /// The output is not a single JSON object.
    #[error("the plugin's output is not a single JSON object: {shape}")]
    NotJson {
        /// What it looks like instead.
        shape: OutputShape,
        /// Where parsing stopped.
        source: Diagnostics,
    },
    /// The version is not the configured one.
    #[error("the plugin responded with apiVersion {found}, but the provider is configured with `{expected}`")]
    Version {
        /// The configured version.
        expected: String,
        /// The value in the response, if it is safe to show.
        found: FoundVersion,
    },
    /// Fields are unknown, duplicate, or of the wrong type.
    #[error("the plugin's response does not follow the schema")]
    Schema {
        /// All invalid fields.
        source: Diagnostics,
    },
    /// `cacheKeyType` is not one of the three values.
    #[error("cacheKeyType must be `Image`, `Registry` or `Global`, even without credentials{}", hint(.found))]
    CacheKeyType {
        /// The value in the response, if it is safe to show.
        found: Option<String>,
    },
}

/// What output that is not JSON looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputShape {
    /// It starts with a byte order mark.
    ByteOrderMark,
    /// It looks like YAML.
    Yaml,
    /// There is text before the object, such as a log line.
    LeadingText,
    /// There is text after the object.
    TrailingText,
    /// It is truncated.
    CutShort,
    /// It is a JSON value other than an object.
    OtherJson,
    /// Something else.
    Malformed,
}

/// The `apiVersion` of a response, if it is safe to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundVersion(Option<String>);

/// The stage at which the kubelet rejects a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ResponseStage {
    /// Parsing the JSON and decoding its fields.
    // I101, I103
    Decode,
    /// Comparing `apiVersion` with the configured one.
    // I102
    Version,
    /// Reading `cacheKeyType`.
    // I106
    CacheKeyType,
}

impl Response {
    /// Decodes a plugin's stdout.
    ///
    /// # Errors
    /// [`ResponseError`] exactly if the kubelet rejects the response.
    pub fn decode(stdout: &[u8], version: WireVersion) -> Result<Self, ResponseError> {
        Response::decode_as(stdout, version.api_version())
    }

    /// Like [`decode`](Self::decode), for an API version that may be unknown.
    ///
    /// # Errors
    /// [`ResponseError`].
    pub fn decode_as(stdout: &[u8], api_version: &str) -> Result<Self, ResponseError> {
        let node = tree::parse(stdout, Syntax::Json).map_err(|source| not_json(stdout, source.into()))?;
        check_version(&node, stdout, api_version)?;
        let response = CREDENTIAL_PROVIDER_RESPONSE
            .decode_tree(&node)
            .map_err(|source| ResponseError::Schema { source })?;
        Response::check(response)
    }

    fn check(response: CredentialProviderResponse) -> Result<Self, ResponseError> {
        let Some(cache_key_type) = CacheKeyType::from_wire(&response.cache_key_type) else {
            return Err(ResponseError::CacheKeyType { found: shown(&response.cache_key_type) });
        };
        let auth = response.auth.into_iter();
        let mut auth: Vec<_> =
            auth.map(|(key, entry)| (key, RegistryCredential::new(entry.username, entry.password))).collect();
        auth.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(Response { cache_key_type, cache_duration: response.cache_duration, auth })
    }
}

impl ResponseError {
    /// The stage at which the kubelet rejects the response.
    pub fn stage(&self) -> ResponseStage {
        match self {
            ResponseError::Empty | ResponseError::NotJson { .. } | ResponseError::Schema { .. } => {
                ResponseStage::Decode
            }
            ResponseError::Version { .. } => ResponseStage::Version,
            ResponseError::CacheKeyType { .. } => ResponseStage::CacheKeyType,
        }
    }

    /// A stable metric label value.
    // I163
    pub fn reason(&self) -> &'static str {
        match self {
            ResponseError::Empty => "empty",
            ResponseError::NotJson { .. } => "not_json",
            ResponseError::Version { .. } => "version",
            ResponseError::Schema { .. } => "schema",
            ResponseError::CacheKeyType { .. } => "cache_key_type",
        }
    }
}

impl ResponseStage {
    /// The name in the test vectors.
    pub fn as_str(self) -> &'static str {
        match self {
            ResponseStage::Decode => "decode",
            ResponseStage::Version => "version",
            ResponseStage::CacheKeyType => "cacheKeyType",
        }
    }
}

/// Checks the version first, like the kubelet, with Go's case-insensitive names and null handling.
// I102
fn check_version(node: &Node, stdout: &[u8], expected: &str) -> Result<(), ResponseError> {
    let wrong_shape = || not_json(stdout, Diagnostics::default());
    let entries = match node.as_mapping() {
        Some(mapping) => mapping.entries(),
        None if node.is_null() => &[],
        None => return Err(wrong_shape()),
    };
    let mut found = "";
    for entry in entries.iter().filter(|entry| !entry.value.is_null()) {
        let is_version = entry.key.eq_ignore_ascii_case("apiVersion");
        if is_version || entry.key.eq_ignore_ascii_case("kind") {
            let Some(text) = entry.value.as_str() else {
                let source = CREDENTIAL_PROVIDER_RESPONSE.find_kind(node).err().map(Diagnostics::from);
                return Err(ResponseError::Schema { source: source.unwrap_or_default() });
            };
            found = if is_version { text } else { found };
        }
    }
    if found == expected {
        return Ok(());
    }
    Err(ResponseError::Version { expected: expected.to_owned(), found: FoundVersion(shown(found)) })
}

fn not_json(stdout: &[u8], source: Diagnostics) -> ResponseError {
    let text = stdout.trim_ascii();
    if text.is_empty() {
        return ResponseError::Empty;
    }
    ResponseError::NotJson { shape: OutputShape::detect(text), source }
}

impl OutputShape {
    /// Classifies output that is not a single JSON object, by structure only.
    fn detect(text: &[u8]) -> Self {
        let is_json =
            |text: &[u8]| tree::parse(text, Syntax::Json).is_ok_and(|node| node.as_mapping().is_some());
        let object_at = text.iter().position(|&byte| byte == b'{');
        let object_end = text.iter().rposition(|&byte| byte == b'}').map(|at| at + 1);
        let object = object_at.zip(object_end).and_then(|(start, end)| text.get(start..end));
        match text {
            [0xEF, 0xBB, 0xBF, ..] => OutputShape::ByteOrderMark,
            _ if tree::parse(text, Syntax::Json).is_ok() => OutputShape::OtherJson,
            [b'{', ..] if object.is_some_and(is_json) => OutputShape::TrailingText,
            [b'{', ..] if starts_with_object(text) => OutputShape::TrailingText,
            [b'{', ..]
                if tree::parse(text, Syntax::Json).is_err_and(|error| error.span.end >= text.len()) =>
            {
                OutputShape::CutShort
            }
            [b'{', ..] => OutputShape::Malformed,
            _ if object.is_some_and(is_json) => OutputShape::LeadingText,
            _ if text
                .split(|&byte| byte == b'\n')
                .any(|line| line.starts_with(b"kind:") || line.starts_with(b"apiVersion:")) =>
            {
                OutputShape::Yaml
            }
            _ => OutputShape::Malformed,
        }
    }
}

/// Whether the text starts with a complete object.
fn starts_with_object(text: &[u8]) -> bool {
    let ends = text.iter().enumerate().filter(|(_, byte)| **byte == b'}').map(|(at, _)| at + 1).take(64);
    ends.filter_map(|end| text.get(..end)).any(|text| tree::parse(text, Syntax::Json).is_ok())
}

impl fmt::Display for OutputShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OutputShape::ByteOrderMark => "it starts with a byte order mark",
            OutputShape::Yaml => "it looks like YAML",
            OutputShape::LeadingText => "there is text before the object; logs belong on stderr",
            OutputShape::TrailingText => "there is text after the object; logs belong on stderr",
            OutputShape::CutShort => "it is truncated",
            OutputShape::OtherJson => "it is a JSON value other than an object",
            OutputShape::Malformed => "it is malformed",
        })
    }
}

impl fmt::Display for FoundVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(version) if version.is_empty() => f.write_str("missing"),
            Some(version) => write!(f, "`{version}`"),
            None => f.write_str("of unknown form"),
        }
    }
}

/// Returns known values and short words that cannot be a misplaced password.
fn shown(text: &str) -> Option<String> {
    let plain = |byte: u8| byte.is_ascii_alphabetic() || b"./".contains(&byte) || byte.is_ascii_digit();
    let known = text.is_empty()
        || WireVersion::from_api_version(text).is_some()
        || ["ServiceAccount", "Token"].contains(&text)
        || CacheKeyType::LOOKUP_ORDER.iter().any(|known| known.as_str().eq_ignore_ascii_case(text.trim()))
        || text.len() <= 64 && text.bytes().all(plain) && text.contains(".k8s.io/");
    known.then(|| text.to_owned())
}

fn hint(found: &Option<String>) -> String {
    match found.as_deref() {
        Some("") => "; it is missing".to_owned(),
        Some(found @ ("ServiceAccount" | "Token")) => {
            format!("; `{found}` is a value of `cacheType` in the configuration, not of `cacheKeyType`")
        }
        Some(found) => format!("; found `{found}`"),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HEAD: &str =
        r#""kind":"CredentialProviderResponse","apiVersion":"credentialprovider.kubelet.k8s.io/v1""#;

    fn decode(text: &str) -> Result<Response, String> {
        Response::decode(text.as_bytes(), WireVersion::V1)
            .map_err(|error| navicert_types::error_chain(&error))
    }

    #[test]
    fn specification_examples_hold() {
        // I101–I106
        for (text, good) in [
            (format!(r#"{{{HEAD},"cacheKeyType":"Image"}}"#), true),
            (format!(" \n{{{HEAD},\"cacheKeyType\":\"Image\"}}\n "), true),
            (format!(r#"{{{HEAD},"cacheKeyType":"Image","cacheDuration":0}}"#), false),
            (format!(r#"{{{HEAD},"cacheKeyType":"Image","cacheDuration":"0"}}"#), true),
            (format!(r#"{{{HEAD},"cacheKeyType":"Image","cacheDuration":null}}"#), true),
            (format!(r#"{{{HEAD},"cacheKeyType":"Image","extra":1}}"#), false),
            (format!(r#"{{{HEAD},"cacheKeyType":"Image","metadata":{{}}}}"#), false),
            (format!(r#"{{{HEAD},"CacheKeyType":"Image"}}"#), false),
            (format!(r#"{{{HEAD},"cacheKeyType":"Image","auth":[]}}"#), false),
            (format!(r#"{{{HEAD},"cacheKeyType":"Image","auth":{{"a":null}}}}"#), true),
            ("{}".to_owned(), false),
            ("null".to_owned(), false),
            ("[]".to_owned(), false),
            (String::new(), false),
        ] {
            assert_eq!(decode(&text).is_ok(), good, "{text}");
        }
    }

    #[test]
    fn sorts_keys_by_text() {
        // I135: two keys of the same registry are tried in a fixed order, independent of the plugin's order.
        let auth = |keys: [&str; 3]| {
            let entries = keys.map(|key| format!(r#""{key}":{{"username":"u","password":"p"}}"#)).join(",");
            let text = format!(r#"{{{HEAD},"cacheKeyType":"Image","auth":{{{entries}}}}}"#);
            let auth = decode(&text).unwrap().auth;
            auth.into_iter().map(|(key, _)| key).collect::<Vec<String>>()
        };
        let sorted = ["a.io", "gcr.io", "https://gcr.io"];
        assert_eq!(auth(["https://gcr.io", "gcr.io", "a.io"]), sorted);
        assert_eq!(auth(["gcr.io", "a.io", "https://gcr.io"]), sorted);
    }

    #[test]
    fn errors_name_the_cause() {
        // I102, I242, I268
        let good = format!(r#"{{{HEAD},"cacheKeyType":"Image"}}"#);
        let old = good.replace("/v1\"", "/v1beta1\"");
        for (text, expected) in [
            (String::new(), "the plugin printed nothing"),
            ("\u{feff}{}".to_owned(), "it starts with a byte order mark"),
            ("kind: CredentialProviderResponse\n".to_owned(), "it looks like YAML"),
            (format!("starting\n{good}"), "there is text before the object"),
            (format!("{good} done"), "there is text after the object"),
            (format!("{good}{{}}"), "there is text after the object"),
            (good.trim_end_matches('}').to_owned(), "it is truncated"),
            ("[]".to_owned(), "it is a JSON value other than an object"),
            ("{}".to_owned(), "apiVersion missing"),
            (old, "responded with apiVersion `credentialprovider.kubelet.k8s.io/v1beta1`"),
            (
                good.replace("Image", "ServiceAccount"),
                "`ServiceAccount` is a value of `cacheType` in the configuration",
            ),
            (good.replace("Image", "image"), "found `image`"),
            (good.replace("CredentialProviderResponse", "Response"), "kind: "),
            (good.replace("}", r#","auth":{"a":{"user":"x"}}}"#), "auth[a].user: unknown field"),
            (good.replace("}", r#","cacheDuration":"1d"}"#), "cacheDuration: "),
        ] {
            let error = decode(&text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn errors_do_not_repeat_values() {
        // I104
        for text in [
            format!(r#"{{{HEAD},"cacheKeyType":"canary-1"}}"#),
            format!(r#"{{{HEAD},"cacheKeyType":"Image","cacheDuration":"canary"}}"#),
            format!(r#"{{{HEAD},"cacheKeyType":"Image","auth":{{"a":{{"password":["canary"]}}}}}}"#),
            r#"{"kind":"canary!","apiVersion":"canary!"}"#.to_owned(),
            "canary".to_owned(),
            format!(r#"{{{HEAD},"cacheKeyType":"Image"}} canary"#),
        ] {
            let error = Response::decode(text.as_bytes(), WireVersion::V1).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Response::decode(&bytes, WireVersion::V1);
        }

        #[test]
        fn rejects_text_around_the_response(before in "[a-z{}:\" ]{0,8}", after in "[a-z{}:\" ]{0,8}") {
            let good = format!(r#"{{{HEAD},"cacheKeyType":"Image"}}"#);
            let blank = before.trim().is_empty() && after.trim().is_empty();
            prop_assert_eq!(decode(&format!("{before}{good}{after}")).is_ok(), blank);
        }
    }
}
