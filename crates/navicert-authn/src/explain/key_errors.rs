//! Error messages of kube-apiserver's libraries for keys and key sets that they cannot parse.
// S165

use std::collections::HashSet;

use navicert_go::base64::{raw_url_error, standard_error};
use navicert_go::json::{Kind, Raw, syntax_error};
use navicert_go::quote::quoted;
use navicert_go::url::Url;

use crate::jwks::key::{self, Jwk, JwkError, KeyRules};
use crate::jwks::set::read_key;
use crate::jwt::registered_claim::go_name_matches;
use crate::profile::{AuthnProfile, JsonErrors, KeyFormat, UnreadableKeys};

/// The error for a response that is not a valid key set, if it is not.
pub(super) fn fetching(body: &str, profile: &AuthnProfile) -> Option<String> {
    let message = set(body.as_bytes(), profile)?;
    Some(format!(
        "oidc: failed to decode keys: got Content-Type = application/json, but could not unmarshal as JSON: {message} {body}"
    ))
}

fn set(body: &[u8], profile: &AuthnProfile) -> Option<String> {
    if let Some(message) = syntax_error(body) {
        return Some(message);
    }
    // The types that the document is decoded into.
    let facts = profile.facts();
    let (document, field, list_type) = match (facts.unreadable_keys, facts.json_errors) {
        (UnreadableKeys::RejectSet, _) => ("jose.JSONWebKeySet", "JSONWebKeySet.keys", "[]jose.JSONWebKey"),
        (UnreadableKeys::SkipUnsupported, JsonErrors::Go126) => {
            ("struct { Keys []json.RawMessage \"json:\\\"keys\\\"\" }", ".keys", "[]json.RawMessage")
        }
        (UnreadableKeys::SkipUnsupported, JsonErrors::Go127) => {
            ("struct { Keys []jsontext.Value \"json:\\\"keys\\\"\" }", ".keys", "[]jsontext.Value")
        }
    };
    let raw = Raw::parse(body).ok()?;
    if !matches!(raw.kind(), Kind::Object | Kind::Null) {
        return Some(raw.kind().type_mismatch(document));
    }
    for (_, list) in raw.members().filter(|(name, _)| go_name_matches(name, "keys")) {
        if !matches!(list.kind(), Kind::Array | Kind::Null) {
            let found = list.kind().name();
            return Some(format!(
                "json: cannot unmarshal {found} into Go struct field {field} of type {list_type}"
            ));
        }
        let unreadable = list.elements().find(|key| read_key(*key, profile).is_err());
        if let Some(key) = unreadable {
            return metadata(key, profile).or_else(|| one(key, KeyRules::upstream(profile)));
        }
    }
    None
}

/// The error of a key's `alg`, which newer versions read before the key itself.
fn metadata(raw: Raw<'_>, profile: &AuthnProfile) -> Option<String> {
    if profile.facts().unreadable_keys == UnreadableKeys::RejectSet {
        return None;
    }
    if !matches!(raw.kind(), Kind::Object | Kind::Null) {
        return Some(raw.kind().type_mismatch("struct { Alg string \"json:\\\"alg\\\"\" }"));
    }
    let is_wrong = |(name, value): &(std::borrow::Cow<'_, str>, Raw<'_>)| {
        go_name_matches(name, "alg") && !matches!(value.kind(), Kind::String | Kind::Null)
    };
    let (_, value) = raw.members().find(is_wrong)?;
    let found = value.kind().name();
    Some(format!("json: cannot unmarshal {found} into Go struct field .alg of type string"))
}

/// The error for a key that does not parse, if it does not.
fn one(raw: Raw<'_>, rules: KeyRules) -> Option<String> {
    let error = Jwk::read(raw, rules).err()?;
    if !matches!(raw.kind(), Kind::Object | Kind::Null) {
        return Some(raw.kind().type_mismatch("jose.rawJSONWebKey"));
    }
    let member = |wanted: &str| {
        raw.members()
            .find(|(name, _)| name == wanted)
            .map(|(_, value)| value)
            .filter(|value| !value.is_null())
    };
    let text = |name: &str| member(name).and_then(Raw::string).unwrap_or_default().into_owned();
    let has = |name: &str| member(name).is_some();
    let jose = |message: &str| format!("go-jose/go-jose: {message}");
    let is_newer = rules.format() == KeyFormat::Jose4;
    Some(match error {
        JwkError::Shape => repeated(raw)
            .map_or_else(|| jose("invalid JWK"), |name| format!("json: duplicate key '{name}' in object")),
        JwkError::Member("x5u") => certificate_url(member("x5u"), rules),
        JwkError::Member("x5c") if member("x5c").is_some_and(|value| value.kind() != Kind::Array) => {
            member("x5c").map_or(Kind::Null, Raw::kind).type_mismatch("[]string")
        }
        JwkError::Member(name @ ("x5t" | "x5t#S256"))
            if member(name).is_some_and(|value| value.kind() == Kind::String) =>
        {
            jose(&format!("invalid JWK, {name} header has invalid encoding"))
        }
        JwkError::Private => "modulus must be > 1".to_owned(),
        JwkError::Member("x5c") => {
            let message = member("x5c").and_then(certificates).unwrap_or_default();
            jose(&format!("failed to unmarshal x5c field: {message}"))
        }
        JwkError::Member(name) => match member(name) {
            Some(value) if value.kind() == Kind::String => raw_url_error(&text(name)).unwrap_or_default(),
            value => value.map_or(Kind::Null, Raw::kind).type_mismatch("string"),
        },
        JwkError::NoType if is_newer => jose("missing json web key type"),
        JwkError::Type if is_newer => jose("unsupported key type/format"),
        JwkError::Type | JwkError::NoType => jose(&format!("unknown json web key type '{}'", text("kty"))),
        JwkError::Curve if text("kty") == "OKP" => jose(&format!("unknown curve {}'", text("crv"))),
        JwkError::Curve => jose(&format!("unsupported elliptic curve '{}'", text("crv"))),
        JwkError::Missing => match text("kty").as_str() {
            "RSA" if is_newer && has("d") => jose(&missing("RSA", &["n", "e", "p", "q"], has)),
            "EC" if is_newer && has("d") => jose(&missing("EC", &["x", "y"], has)),
            "OKP" if is_newer && has("d") => jose(&missing("Ed25519", &["x"], has)),
            "OKP" if is_newer => jose("invalid Ed key, missing x value"),
            "RSA" if has("d") && has("n") && has("e") => jose("invalid RSA private key, missing P value(s)"),
            "RSA" => jose("invalid RSA key, missing n/e values"),
            "EC" => jose("invalid EC key, missing x/y values"),
            "OKP" => jose(&format!("unknown curve {}'", text("crv"))),
            _ => jose("invalid OCT (symmetric) key, missing k value"),
        },
        JwkError::Point if text("kty") == "OKP" => jose(ed25519(&text("x"), has("d").then(|| text("d")))),
        JwkError::Point => point(&text("crv"), &text("x"), &text("y")),
        JwkError::Certificate => thumbprint(&text("x5t"), &text("x5t#S256")),
    })
}

/// The members of a private key that are missing.
fn missing(kind: &str, names: &[&str], has: impl Fn(&str) -> bool) -> String {
    let names: Vec<String> = names.iter().filter(|name| !has(name)).map(|name| name.to_uppercase()).collect();
    format!("invalid {kind} private key, missing {} value(s)", names.join(", "))
}

fn ed25519(public: &str, seed: Option<String>) -> &'static str {
    const BYTES: usize = 32;
    let length = |text: &str| text.len() * 3 / 4;
    match seed {
        _ if length(public) != BYTES => "invalid Ed25519 public key, wrong length for x",
        None => "invalid Ed25519 public key, low-order point",
        Some(seed) if length(&seed) != BYTES => "invalid Ed25519 private key, wrong length for d",
        Some(_) => "invalid Ed25519 private key, x does not match d",
    }
}

/// The error of a certificate URL.
fn certificate_url(value: Option<Raw<'_>>, rules: KeyRules) -> String {
    let kind = value.map_or(Kind::Null, Raw::kind);
    if rules.format() == KeyFormat::Jose2 {
        return kind.type_mismatch("url.URL");
    }
    match value.and_then(Raw::string) {
        None => kind.type_mismatch("string"),
        Some(text) => {
            let why = Url::parse(&text).err().map(|error| error.go_message()).unwrap_or_default();
            let text = quoted(&text);
            format!("go-jose/go-jose: invalid JWK, x5u header is invalid URL: parse {text}: {why}")
        }
    }
}

fn point(curve: &str, x: &str, y: &str) -> String {
    let bytes = match curve {
        "P-256" => 32,
        "P-384" => 48,
        _ => 66,
    };
    let length = |text: &str| text.len() * 3 / 4;
    for (name, text) in [("x", x), ("y", y)] {
        if length(text) != bytes {
            return format!("go-jose/go-jose: invalid EC public key, wrong length for {name}");
        }
    }
    "go-jose/go-jose: invalid EC key, X/Y are not on declared curve".to_owned()
}

fn thumbprint(sha1: &str, sha256: &str) -> String {
    let length = |text: &str| text.len() * 3 / 4;
    let has_wrong_size = |text: &str, bytes: usize| {
        !matches!(length(text), 0) && length(text) != bytes && length(text) != 2 * bytes
    };
    if has_wrong_size(sha1, 20) {
        return "go-jose/go-jose: invalid JWK, x5t header is of incorrect size".to_owned();
    }
    if has_wrong_size(sha256, 32) {
        return "go-jose/go-jose: invalid JWK, x5t#S256 header is of incorrect size".to_owned();
    }
    "go-jose/go-jose: invalid JWK, public keys in key and x5c fields do not match".to_owned()
}

/// Why a key in a token's header is invalid.
#[derive(PartialEq, Eq)]
pub(super) enum EmbeddedKeyError {
    /// The key does not parse, with the message.
    Invalid(String),
    /// It is not a public key.
    NotPublic,
}

/// The error for a key embedded in a token's header.
pub(super) fn embedded(raw: Raw<'_>, rules: KeyRules) -> Option<EmbeddedKeyError> {
    let invalid = one(raw, rules).map(EmbeddedKeyError::Invalid);
    invalid.or_else(|| key::check_embedded(raw, rules).err().map(|_| EmbeddedKeyError::NotPublic))
}

/// The error for an invalid certificate chain.
pub(super) fn certificates(raw: Raw<'_>) -> Option<String> {
    key::certificates(raw).err()?;
    if raw.kind() != Kind::Array {
        return Some(raw.kind().type_mismatch("[]string"));
    }
    for element in raw.elements() {
        match element.kind() {
            Kind::String | Kind::Null => {
                let text = element.string().unwrap_or_default();
                if let Some(message) = standard_error(&text) {
                    return Some(message);
                }
            }
            other => return Some(other.type_mismatch("string")),
        }
    }
    Some("x509: malformed certificate".to_owned())
}

/// The first duplicated name of an object.
pub(super) fn repeated(raw: Raw<'_>) -> Option<String> {
    let mut names = HashSet::new();
    raw.members()
        .find_map(|(name, _)| if names.insert(name.clone()) { None } else { Some(name.into_owned()) })
}

/// The first duplicated name at any depth.
pub(super) fn repeated_deep(raw: Raw<'_>) -> Option<String> {
    let mut todo = vec![raw];
    while let Some(raw) = todo.pop() {
        if let Some(name) = repeated(raw) {
            return Some(name);
        }
        todo.extend(raw.members().map(|(_, value)| value));
        todo.extend(raw.elements());
    }
    None
}

/// The error for the first number at any depth that is out of range of a double.
pub(super) fn large_number(raw: Raw<'_>) -> Option<String> {
    let mut todo = vec![raw];
    while let Some(raw) = todo.pop() {
        if let Some(text) = raw.number().filter(|text| text.parse::<f64>().is_ok_and(f64::is_infinite)) {
            return Some(format!("json: cannot unmarshal number {text} into Go value of type float64"));
        }
        todo.extend(raw.members().map(|(_, value)| value));
        todo.extend(raw.elements());
    }
    None
}
