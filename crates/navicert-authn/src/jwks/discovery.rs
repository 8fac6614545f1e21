//! An issuer's discovery document: its URL, its contents, and the location of the keys.
// S156–S160

use std::borrow::Cow;
use std::time::Duration;

use navicert_go::json::{Kind, Raw};
use navicert_go::url::Url;

use crate::config::CompiledIssuer;
use crate::jwks::fetch::{Fetch, FetchError, FetchRequest};
use crate::jwt::registered_claim::go_name_matches;
use crate::profile::{AuthnProfile, Hardening};

/// The contents of a discovery document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discovered {
    /// URL of the key set.
    pub jwks_uri: String,
    /// The algorithms that the issuer lists. They have no effect on verification.
    // S160
    pub algorithms: Vec<String>,
}

/// Why discovery failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiscoveryError {
    /// The request failed.
    #[error(transparent)]
    Fetch(FetchError),
    /// The status is not 200.
    #[error("discovery endpoint returned status {status}, expected 200")]
    Status {
        /// The status.
        status: u16,
    },
    /// The document is malformed.
    #[error("invalid discovery document: {0}")]
    Document(&'static str),
    /// The document belongs to another issuer.
    #[error(
        "oidc: issuer did not match: configured {configured:?}, discovery document states {stated:?}{}",
        slash_hint(configured, stated)
    )]
    Issuer {
        /// The configured issuer.
        configured: String,
        /// The issuer in the document.
        stated: String,
    },
    /// The document has no `jwks_uri`.
    #[error("missing `jwks_uri` in the discovery document")]
    NoKeys,
    /// `jwks_uri` is not an absolute HTTPS URL.
    // H19
    #[error("invalid `jwks_uri` {0:?}: an absolute https URL is required")]
    KeysAddress(String),
}

/// What to do if two issuers differ only by a trailing slash.
fn slash_hint(configured: &str, stated: &str) -> &'static str {
    let is_slash = configured.trim_end_matches('/') == stated.trim_end_matches('/');
    match is_slash {
        true if stated.ends_with('/') => "; add the trailing slash to `issuer.url`",
        true => "; remove the trailing slash from `issuer.url`",
        false => "",
    }
}

/// The default URL of an issuer's discovery document: below the issuer's URL, without one trailing slash.
// S156
pub fn well_known(issuer: &str) -> String {
    format!("{}/.well-known/openid-configuration", issuer.strip_suffix('/').unwrap_or(issuer))
}

/// Fetches and parses an issuer's discovery document.
///
/// # Errors
/// The request failed, or the document is not this issuer's.
pub async fn discover(
    issuer: &CompiledIssuer,
    fetch: &dyn Fetch,
    profile: &AuthnProfile,
) -> Result<Discovered, DiscoveryError> {
    discover_within(issuer, fetch, profile, None).await
}

/// Fetches with another time limit than the default.
pub(crate) async fn discover_within(
    issuer: &CompiledIssuer,
    fetch: &dyn Fetch,
    profile: &AuthnProfile,
    time_limit: Option<Duration>,
) -> Result<Discovered, DiscoveryError> {
    let usual = well_known(&issuer.url);
    let url = issuer.discovery_url.as_deref().unwrap_or(&usual);
    let mut request = FetchRequest::for_issuer(issuer, url, profile);
    request.limits.time = time_limit.unwrap_or(request.limits.time);
    // Upstream rewrites the request below its HTTP client, which resolves redirects against the original URL.
    request.redirect_base = (url != usual && !profile.has(Hardening::BoundedResponses)).then_some(&usual);
    let answer = fetch.get(request).await.map_err(DiscoveryError::Fetch)?;
    if answer.status != 200 {
        return Err(DiscoveryError::Status { status: answer.status });
    }
    read(&issuer.url, &answer.body, profile)
}

/// Parses a discovery document.
pub(crate) fn read(issuer: &str, body: &[u8], profile: &AuthnProfile) -> Result<Discovered, DiscoveryError> {
    let raw = Raw::parse(body).map_err(|_| DiscoveryError::Document("not valid JSON"))?;
    if raw.kind() != Kind::Object {
        return Err(DiscoveryError::Document("not a JSON object"));
    }
    let document = Document { raw, is_exact: profile.has(Hardening::ExactClaimNames) };
    for name in profile.facts().discovery_texts {
        document.text(name)?;
    }
    let algorithms = document.texts("id_token_signing_alg_values_supported")?;
    let stated = document.text("issuer")?;
    let jwks_uri = document.text("jwks_uri")?;
    if stated != issuer {
        return Err(DiscoveryError::Issuer { configured: issuer.to_owned(), stated });
    }
    if jwks_uri.is_empty() {
        return Err(DiscoveryError::NoKeys);
    }
    let is_secure = Url::parse(&jwks_uri).is_ok_and(|url| {
        url.scheme == "https" && !url.is_opaque && !url.host.is_empty() && url.user_info.is_none()
    });
    if profile.has(Hardening::HttpsKeys) && !is_secure {
        return Err(DiscoveryError::KeysAddress(jwks_uri));
    }
    Ok(Discovered { jwks_uri, algorithms })
}

struct Document<'t> {
    raw: Raw<'t>,
    /// Names are exact and occur once. Otherwise names match in any case, and the last one counts.
    // H7
    is_exact: bool,
}

impl<'t> Document<'t> {
    fn find(&self, wanted: &'static str) -> Result<Option<Raw<'t>>, DiscoveryError> {
        let is_wanted = |(name, _): &(Cow<'_, str>, Raw<'_>)| {
            if self.is_exact { name == wanted } else { go_name_matches(name, wanted) }
        };
        let mut found = self.raw.members().filter(is_wanted).map(|(_, value)| value);
        if self.is_exact {
            let first = found.next();
            return match found.next() {
                None => Ok(first.filter(|value| !value.is_null())),
                Some(_) => Err(DiscoveryError::Document("a member occurs more than once")),
            };
        }
        // `null` keeps the value of an earlier member with the same name.
        Ok(found.filter(|value| !value.is_null()).last())
    }

    fn text(&self, name: &'static str) -> Result<String, DiscoveryError> {
        match self.find(name)? {
            None => Ok(String::new()),
            Some(value) => value
                .string()
                .map(Cow::into_owned)
                .ok_or(DiscoveryError::Document("a member has the wrong type, expected a string")),
        }
    }

    fn texts(&self, name: &'static str) -> Result<Vec<String>, DiscoveryError> {
        let wrong = DiscoveryError::Document("a member has the wrong type, expected a list of strings");
        let Some(value) = self.find(name)? else { return Ok(Vec::new()) };
        if value.kind() != Kind::Array {
            return Err(wrong);
        }
        let text = |item: Raw<'_>| {
            if item.is_null() { Some(String::new()) } else { item.string().map(Cow::into_owned) }
        };
        value.elements().map(text).collect::<Option<_>>().ok_or(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ISSUER: &str = "https://issuer.example";

    fn outcome(members: &str, profile: &AuthnProfile) -> Result<Discovered, String> {
        read(ISSUER, members.as_bytes(), profile).map_err(|error| error.to_string())
    }

    // S156
    #[test]
    fn strips_one_trailing_slash_of_the_issuer() {
        assert_eq!(well_known("https://i"), "https://i/.well-known/openid-configuration");
        assert_eq!(well_known("https://i/"), "https://i/.well-known/openid-configuration");
        assert_eq!(well_known("https://i//"), "https://i//.well-known/openid-configuration");
    }

    // S158
    #[test]
    fn trailing_slash_is_named() {
        for (configured, stated, end) in [
            ("https://i", "https://i/", "; add the trailing slash to `issuer.url`"),
            ("https://i/", "https://i", "; remove the trailing slash from `issuer.url`"),
            ("https://i", "https://j", "discovery document states \"https://j\""),
        ] {
            let document = format!(r#"{{"issuer":"{stated}","jwks_uri":"https://i/k"}}"#);
            let error = read(configured, document.as_bytes(), &AuthnProfile::KUBE).unwrap_err().to_string();
            assert!(error.ends_with(end), "{error}");
        }
    }

    // S157, S158 (XV1), S159 (XV3, XV5, XV6), S160, XV1–XV7; A57, A58; H7, H19
    #[test]
    fn documents_are_validated_as_kube_apiserver_does_or_more_strictly() {
        let good = r#""issuer":"https://issuer.example","jwks_uri":"https://issuer.example/keys""#;
        let cases = [
            (
                "XV1 slash",
                r#""issuer":"https://issuer.example/","jwks_uri":"https://i/k""#.to_owned(),
                false,
                false,
            ),
            ("XV1 missing", r#""jwks_uri":"https://i/k""#.to_owned(), false, false),
            (
                "XV2 case",
                r#""ISSUER":"https://issuer.example","JWKS_URI":"https://i/k""#.to_owned(),
                true,
                false,
            ),
            ("XV2 twice", format!(r#""issuer":"https://other",{good}"#), true, false),
            ("XV3 missing", r#""issuer":"https://issuer.example""#.to_owned(), false, false),
            ("XV3 empty", r#""issuer":"https://issuer.example","jwks_uri":"""#.to_owned(), false, false),
            ("XV4 number", r#""issuer":"https://issuer.example","jwks_uri":5"#.to_owned(), false, false),
            (
                "XV4 algorithms",
                format!(r#"{good},"id_token_signing_alg_values_supported":"RS256""#),
                false,
                false,
            ),
            ("XV4 endpoint", format!(r#"{good},"authorization_endpoint":5"#), false, false),
            ("XV5", r#""issuer":"https://issuer.example","jwks_uri":"http://i/k""#.to_owned(), true, false),
            ("XV6 file", r#""issuer":"https://issuer.example","jwks_uri":"file:/k""#.to_owned(), true, false),
            ("XV6 relative", r#""issuer":"https://issuer.example","jwks_uri":"/k""#.to_owned(), true, false),
            ("XV7", format!(r#"{good},"id_token_signing_alg_values_supported":["HS256"]"#), true, true),
            ("good", good.to_owned(), true, true),
        ];
        for (name, members, kube, hardened) in cases {
            let text = format!("{{{members}}}");
            let outcome_kube = outcome(&text, &AuthnProfile::KUBE);
            assert_eq!(outcome_kube.is_ok(), kube, "{name}: {outcome_kube:?}");
            let outcome_hardened = outcome(&text, &AuthnProfile::HARDENED);
            assert_eq!(outcome_hardened.is_ok(), hardened, "{name}: {outcome_hardened:?}");
        }
        for text in ["", "null", "[]", "<html>", "{} x"] {
            assert!(outcome(text, &AuthnProfile::KUBE).is_err(), "{text}");
        }
    }
}
