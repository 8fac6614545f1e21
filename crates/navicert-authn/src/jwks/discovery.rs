//! An issuer's discovery document: where it is, what it has to say, and where the keys are (S156–S160).

use std::borrow::Cow;
use std::time::Duration;

use crate::config::{CompiledIssuer, url_form};
use crate::json::{Kind, Raw};
use crate::jwks::fetch::{Fetch, FetchError, FetchRequest};
use crate::jwt::registry::is_named;
use crate::profile::{Profile, Rule};

/// What a discovery document says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discovered {
    /// Where the keys are.
    pub jwks_uri: String,
    /// The algorithms that the issuer says it signs with. They decide nothing (S160).
    pub algorithms: Vec<String>,
}

/// Why there is no use in a discovery document.
#[derive(Debug, thiserror::Error)]
pub enum DiscoveryError {
    /// There is no answer.
    #[error("{}", .0.chain())]
    Fetch(FetchError),
    /// The answer is not 200.
    #[error("the answer is {status}, not 200")]
    Status {
        /// What it is.
        status: u16,
    },
    /// The document is not what it has to be.
    #[error("not a discovery document: {0}")]
    Document(&'static str),
    /// It is another issuer's.
    #[error(
        "oidc: issuer did not match: the configuration says {configured:?}, the document says {stated:?}"
    )]
    Issuer {
        /// What the configuration says.
        configured: String,
        /// What the document says.
        stated: String,
    },
    /// It does not say where the keys are.
    #[error("the document names no `jwks_uri`")]
    NoKeys,
    /// The keys are where they may not be (H19).
    #[error("`jwks_uri` is {0:?}, and keys come over https, from a whole address")]
    KeysAddress(String),
}

/// Where an issuer's discovery document is by itself: below its URL, of which one slash at the end goes (S156).
pub fn well_known(issuer: &str) -> String {
    format!("{}/.well-known/openid-configuration", issuer.strip_suffix('/').unwrap_or(issuer))
}

/// Gets and reads an issuer's discovery document.
///
/// # Errors
/// It cannot be had, or it is not this issuer's.
pub async fn discover(
    issuer: &CompiledIssuer,
    fetch: &dyn Fetch,
    profile: &Profile,
) -> Result<Discovered, DiscoveryError> {
    discover_within(issuer, fetch, profile, None).await
}

/// The same in another time than usual.
pub(crate) async fn discover_within(
    issuer: &CompiledIssuer,
    fetch: &dyn Fetch,
    profile: &Profile,
    time_limit: Option<Duration>,
) -> Result<Discovered, DiscoveryError> {
    let usual = well_known(&issuer.url);
    let url = issuer.discovery_url.as_deref().unwrap_or(&usual);
    let mut request = FetchRequest::to(issuer, url, profile);
    request.limits.time = time_limit.unwrap_or(request.limits.time);
    // Upstream rewrites the request below its HTTP client, which resolves redirects against what it asked for.
    request.known_as = (url != usual && !profile.has(Rule::H18)).then_some(&usual);
    let answer = fetch.get(request).await.map_err(DiscoveryError::Fetch)?;
    if answer.status != 200 {
        return Err(DiscoveryError::Status { status: answer.status });
    }
    read(&issuer.url, &answer.body, profile)
}

/// Reads a discovery document.
pub(crate) fn read(issuer: &str, body: &[u8], profile: &Profile) -> Result<Discovered, DiscoveryError> {
    let raw = Raw::parse(body).map_err(|_| DiscoveryError::Document("it is not JSON"))?;
    if raw.kind() != Kind::Object {
        return Err(DiscoveryError::Document("it is not an object"));
    }
    let document = Document { raw, is_exact: profile.has(Rule::H7) };
    for name in ["authorization_endpoint", "token_endpoint", "userinfo_endpoint"] {
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
    let is_secure = url_form::parse(&jwks_uri)
        .is_ok_and(|url| url.scheme == "https" && !url.is_opaque && !url.host.is_empty() && !url.has_user);
    if profile.has(Rule::H19) && !is_secure {
        return Err(DiscoveryError::KeysAddress(jwks_uri));
    }
    Ok(Discovered { jwks_uri, algorithms })
}

struct Document<'t> {
    raw: Raw<'t>,
    /// H7: names are exact and occur once. Otherwise any case will do, and the last counts.
    is_exact: bool,
}

impl<'t> Document<'t> {
    fn find(&self, wanted: &'static str) -> Result<Option<Raw<'t>>, DiscoveryError> {
        let is_wanted = |(name, _): &(Cow<'_, str>, Raw<'_>)| {
            if self.is_exact { name == wanted } else { is_named(name, wanted) }
        };
        let mut found = self.raw.members().filter(is_wanted).map(|(_, value)| value);
        if self.is_exact {
            let first = found.next();
            return match found.next() {
                None => Ok(first.filter(|value| !value.is_null())),
                Some(_) => Err(DiscoveryError::Document("a member occurs twice")),
            };
        }
        // `null` leaves what an earlier one of the same name said.
        Ok(found.filter(|value| !value.is_null()).last())
    }

    fn text(&self, name: &'static str) -> Result<String, DiscoveryError> {
        match self.find(name)? {
            None => Ok(String::new()),
            Some(value) => value
                .string()
                .map(Cow::into_owned)
                .ok_or(DiscoveryError::Document("a member that has to be a string is none")),
        }
    }

    fn texts(&self, name: &'static str) -> Result<Vec<String>, DiscoveryError> {
        let wrong = DiscoveryError::Document("a member that has to be a list of strings is none");
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

    fn outcome(members: &str, profile: &Profile) -> Result<Discovered, String> {
        read(ISSUER, members.as_bytes(), profile).map_err(|error| error.to_string())
    }

    // S156
    #[test]
    fn one_slash_at_the_end_of_an_issuer_goes() {
        assert_eq!(well_known("https://i"), "https://i/.well-known/openid-configuration");
        assert_eq!(well_known("https://i/"), "https://i/.well-known/openid-configuration");
        assert_eq!(well_known("https://i//"), "https://i//.well-known/openid-configuration");
    }

    // S157, S158 (XV1), S159 (XV3, XV5, XV6), S160, XV1–XV7; A57, A58; H7, H19
    #[test]
    fn documents_are_judged_as_kube_apiserver_does_or_more_strictly() {
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
            let outcome_kube = outcome(&text, &Profile::KUBE);
            assert_eq!(outcome_kube.is_ok(), kube, "{name}: {outcome_kube:?}");
            let outcome_hardened = outcome(&text, &Profile::HARDENED);
            assert_eq!(outcome_hardened.is_ok(), hardened, "{name}: {outcome_hardened:?}");
        }
        for text in ["", "null", "[]", "<html>", "{} x"] {
            assert!(outcome(text, &Profile::KUBE).is_err(), "{text}");
        }
    }
}
