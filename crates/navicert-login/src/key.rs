//! The key of a cache entry: a hash of everything that decides whose token it is, and how it is obtained.
//!
//! The text that is hashed is canonical JSON: members sorted by name, no white space. The order of flags never changes it.

use std::collections::BTreeMap;

use aws_lc_rs::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use crate::error::LoginError;
use crate::request::{GrantType, LoginRequest, TokenKind};

/// What an entry is for. Everything but the value of a secret.
///
/// Members are in the order of their names, which makes the derived JSON canonical.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyFields {
    /// The label of the account.
    pub account: String,
    /// The client id.
    pub client_id: String,
    /// The audience of the token that is exchanged for the session's access token.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exchange_audience: Option<String>,
    /// The family of grants.
    pub grant: String,
    /// Headers of every request.
    pub headers: BTreeMap<String, String>,
    /// The issuer.
    pub issuer: String,
    /// Parameters that can change whose token it is, sorted.
    pub params: Vec<(String, String)>,
    /// Scopes, sorted and unique.
    pub scopes: Vec<String>,
    /// Where the subject token comes from.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub subject_token: Option<String>,
    /// Which token is handed over.
    pub token: String,
    /// How the provider is trusted.
    pub trust: TrustFields,
    /// The user name of the password grant.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub username: Option<String>,
    /// The version of this list.
    pub v: u32,
}

/// How the provider is reached. An entry is never used over a connection that another configuration would not trust.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TrustFields {
    /// Hash of the TLS client certificate.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub client_certificate: Option<String>,
    /// Whether any server certificate is accepted.
    pub insecure: bool,
    /// The proxy.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub proxy_url: Option<String>,
    /// Hashes of the root certificates, sorted.
    pub roots: Vec<String>,
    /// The name that the certificate is verified for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tls_server_name: Option<String>,
}

/// The hash of [`KeyFields`] as 64 hexadecimal digits: the name of the entry's files.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CacheKey(String);

impl CacheKey {
    /// The 64 hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The key in the name of a file, if it is one.
    pub fn from_text(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (text.len() == 64 && text.bytes().all(is_digit)).then(|| CacheKey(text.to_owned()))
    }
}

impl KeyFields {
    /// The fields of a request. Reads the certificates that it names.
    ///
    /// # Errors
    /// A certificate cannot be read.
    pub fn new(request: &LoginRequest) -> Result<Self, LoginError> {
        let parameters = &request.parameters;
        let mut params: Vec<(String, String)> = parameters.extra.clone();
        let mut add = |name: &str, value: Option<String>| {
            params.extend(value.map(|value| (name.to_owned(), value)));
        };
        add("login_hint", parameters.login_hint.clone());
        add("prompt", parameters.prompt.clone());
        add("max_age", parameters.max_age.map(|age| age.to_string()));
        add("acr_values", parameters.acr_values.clone());
        add("subject_token_type", request.exchange.subject_type.clone());
        add("requested_token_type", request.exchange.requested_type.clone());
        add("actor_token", request.exchange.actor.as_ref().map(|(source, _)| source.as_text()));
        add("actor_token_type", request.exchange.actor.as_ref().map(|(_, kind)| kind.clone()));
        for audience in &parameters.audiences {
            add("audience", Some(audience.clone()));
        }
        for resource in &parameters.resources {
            add("resource", Some(resource.clone()));
        }
        params.sort();
        let mut scopes = request.extra_scopes.clone();
        scopes.sort();
        scopes.dedup();
        Ok(KeyFields {
            account: request.account.clone(),
            client_id: request.client_id.clone(),
            exchange_audience: request.exchange.audience.clone(),
            grant: grant_family(request.grant_by_flags()).to_owned(),
            headers: request.connection.headers.iter().cloned().collect(),
            issuer: request.issuer.clone(),
            params,
            scopes,
            subject_token: request.exchange.subject.as_ref().map(crate::request::TokenSource::as_text),
            token: match request.token_kind {
                TokenKind::Id => "id".to_owned(),
                TokenKind::Access => "access".to_owned(),
            },
            trust: TrustFields::new(request)?,
            username: request.username.clone(),
            v: 1,
        })
    }

    /// The key of the entry.
    pub fn cache_key(&self) -> CacheKey {
        CacheKey(hash_json(self))
    }

    /// The name of the file with the provider's documents.
    pub(crate) fn provider_key(&self) -> CacheKey {
        CacheKey(hash_json(&(&self.issuer, &self.headers, &self.trust)))
    }
}

impl TrustFields {
    fn new(request: &LoginRequest) -> Result<Self, LoginError> {
        let connection = &request.connection;
        let mut roots = Vec::new();
        for path in &connection.authorities {
            roots.extend(certificate_hashes(&read_file(path)?));
        }
        for data in &connection.authority_data {
            roots.extend(certificate_hashes(data));
        }
        roots.sort();
        roots.dedup();
        let certificate = connection.client_certificate.as_ref();
        let certificate = certificate.map(|(path, _)| read_file(path)).transpose()?;
        let filled = |text: &String| (!text.is_empty()).then(|| text.clone());
        Ok(TrustFields {
            client_certificate: certificate.map(|pem| hex(&pem)),
            insecure: connection.is_insecure,
            // Not the text itself: it may contain a password.
            proxy_url: filled(&connection.proxy_url).map(|url| hex(url.as_bytes())),
            roots,
            tls_server_name: filled(&connection.tls_server_name),
        })
    }
}

fn grant_family(grant: GrantType) -> &'static str {
    match grant {
        GrantType::Auto | GrantType::Authcode | GrantType::AuthcodeKeyboard | GrantType::DeviceCode => {
            "person"
        }
        other => other.as_str(),
    }
}

/// The hash of each certificate, or of the whole text if it contains none.
fn certificate_hashes(pem: &[u8]) -> Vec<String> {
    let blocks = navicert_go::pem::blocks(pem);
    let hashes: Vec<String> =
        blocks.iter().filter(|block| block.label == "CERTIFICATE").map(|block| hex(&block.der)).collect();
    if hashes.is_empty() { vec![hex(pem)] } else { hashes }
}

fn hash_json(value: &impl Serialize) -> String {
    // Serialization of these types to memory cannot fail.
    hex(serde_json::to_string(value).unwrap_or_default().as_bytes())
}

/// The SHA-256 hash in hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(64);
    for byte in digest(&SHA256, bytes).as_ref() {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Reads a file that a flag names.
pub(crate) fn read_file(path: &std::path::Path) -> Result<Vec<u8>, LoginError> {
    let failed =
        |error: std::io::Error| LoginError::File { path: path.display().to_string(), why: error.to_string() };
    std::fs::read(path).map_err(failed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::request::{Form, SecretSource};

    fn request() -> LoginRequest {
        LoginRequest::new(Form::Own, "https://id.example", "c")
    }

    fn key(request: &LoginRequest) -> CacheKey {
        KeyFields::new(request).unwrap().cache_key()
    }

    // L410
    #[test]
    fn text_of_the_key_is_canonical_json() {
        let mut request = request();
        request.extra_scopes = vec!["b".to_owned(), "a".to_owned(), "b".to_owned()];
        let text = serde_json::to_string(&KeyFields::new(&request).unwrap()).unwrap();
        assert_eq!(
            text,
            r#"{"account":"","clientId":"c","grant":"person","headers":{},"issuer":"https://id.example","params":[],"scopes":["a","b"],"token":"id","trust":{"insecure":false,"roots":[]},"v":1}"#
        );
        assert_eq!(key(&request), CacheKey::from_text(key(&request).as_str()).unwrap());
        assert_eq!(CacheKey::from_text("abc"), None);
        assert_eq!(CacheKey::from_text(&"A".repeat(64)), None);
    }

    // L410, L411, L1307
    #[test]
    fn whatever_decides_whose_token_it_is_changes_the_key() {
        let changes: [fn(&mut LoginRequest); 16] = [
            |request| request.issuer.push('/'),
            |request| request.client_id.push('x'),
            |request| request.account = "b".to_owned(),
            |request| request.exchange.audience = Some("b".to_owned()),
            |request| request.token_kind = TokenKind::Access,
            |request| request.extra_scopes.push("groups".to_owned()),
            |request| request.grant = GrantType::ClientCredentials,
            |request| request.username = Some("ann".to_owned()),
            |request| request.parameters.extra.push(("p".to_owned(), "1".to_owned())),
            |request| request.parameters.audiences.push("a".to_owned()),
            |request| request.parameters.login_hint = Some("ann".to_owned()),
            |request| request.connection.headers.push(("X-A".to_owned(), "1".to_owned())),
            |request| request.connection.is_insecure = true,
            |request| request.connection.proxy_url = "http://proxy".to_owned(),
            |request| request.connection.tls_server_name = "other".to_owned(),
            |request| request.connection.authority_data.push(b"root".to_vec()),
        ];
        let mut keys = vec![key(&request())];
        for change in changes {
            let mut changed = request();
            change(&mut changed);
            keys.push(key(&changed));
        }
        let count = keys.len();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), count);
    }

    // L412
    #[test]
    fn other_flags_do_not_change_the_key() {
        let mut changed = request();
        changed.form = Form::Compatible;
        changed.browser.listen.push("127.0.0.1:8000".to_owned());
        changed.browser.redirect_url = Some("http://localhost:8000".to_owned());
        changed.client.secret = Some(SecretSource::Argument("s".to_owned().into()));
        changed.verbosity = 9;
        changed.force_refresh = true;
        changed.grant = GrantType::DeviceCode;
        assert_eq!(key(&changed), key(&request()));
    }

    proptest! {
        // L413
        #[test]
        fn order_of_flags_and_map_members_never_changes_the_key(
            pairs in proptest::collection::btree_map("[a-z]{1,4}", "[a-z]{0,4}", 0..6),
            scopes in proptest::collection::vec("[a-z]{1,4}", 0..6),
            seed in any::<prop::sample::Index>(),
        ) {
            let mut one = request();
            one.parameters.extra = pairs.clone().into_iter().collect();
            one.connection.headers = pairs.clone().into_iter().collect();
            one.parameters.audiences = scopes.clone();
            one.extra_scopes = scopes;
            let mut other = one.clone();
            let rotate = |length: usize| if length == 0 { 0 } else { seed.index(length) };
            let middle = rotate(other.parameters.extra.len());
            other.parameters.extra.rotate_left(middle);
            other.connection.headers.reverse();
            other.extra_scopes.reverse();
            other.parameters.audiences.reverse();
            prop_assert_eq!(key(&one), key(&other));
        }
    }
}
