//! Parser of `WWW-Authenticate`: quoted and bare values, several challenges.
// I204, I205

use thiserror::Error;

/// A registry's `Bearer` challenge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Challenge {
    /// The URL of the token server.
    pub realm: String,
    /// The service the token is for.
    pub service: String,
}

/// Why there is no usable challenge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum ChallengeError {
    /// No `Bearer` challenge.
    #[error("missing `Bearer` challenge")]
    NoBearer,
    /// More than one `Bearer` challenge, which is ambiguous.
    #[error("more than one `Bearer` challenge")]
    Several,
    /// A parameter is missing, empty or given twice.
    #[error("`Bearer` challenge without exactly one `realm` and one `service`")]
    Incomplete,
    /// Invalid syntax.
    #[error("malformed challenge")]
    Malformed,
}

impl Challenge {
    /// Finds the only `Bearer` challenge in all headers.
    ///
    /// # Errors
    /// [`ChallengeError`].
    pub(crate) fn from_headers<'a>(headers: impl Iterator<Item = &'a str>) -> Result<Self, ChallengeError> {
        let mut found = None;
        for header in headers {
            for (scheme, parameters) in challenges(header).ok_or(ChallengeError::Malformed)? {
                if !scheme.eq_ignore_ascii_case("bearer") {
                    continue;
                }
                if found.is_some() {
                    return Err(ChallengeError::Several);
                }
                found = Some(parameters);
            }
        }
        let parameters = found.ok_or(ChallengeError::NoBearer)?;
        let one = |name: &str| {
            let mut values = parameters.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
            match (values.next(), values.next()) {
                (Some((_, value)), None) if !value.is_empty() => Ok(value.clone()),
                _ => Err(ChallengeError::Incomplete),
            }
        };
        Ok(Challenge { realm: one("realm")?, service: one("service")? })
    }
}

type Parameters = Vec<(String, String)>;

/// Parses the challenges of one header: a scheme, then comma-separated parameters; a word without `=` starts the next.
fn challenges(header: &str) -> Option<Vec<(String, Parameters)>> {
    let mut rest = header.trim();
    let mut found: Vec<(String, Parameters)> = Vec::new();
    while !rest.is_empty() {
        let (word, behind) = token(rest)?;
        let after = behind.trim_start();
        if let Some(value) = after.strip_prefix('=').filter(|_| !found.is_empty()) {
            let (value, behind) = parameter_value(value.trim_start())?;
            found.last_mut()?.1.push((word.to_owned(), value));
            rest = skip_comma(behind)?;
        } else {
            found.push((word.to_owned(), Vec::new()));
            // A scheme is followed by a space and a parameter, or by a comma and the next scheme.
            rest = if behind.starts_with([' ', '\t']) { after } else { skip_comma(behind)? };
            rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
        }
    }
    Some(found)
}

/// The text after a comma, or empty at the end.
fn skip_comma(text: &str) -> Option<&str> {
    let text = text.trim_start();
    if text.is_empty() { Some(text) } else { Some(text.strip_prefix(',')?.trim_start()) }
}

/// Parses an RFC 9110 token.
fn token(text: &str) -> Option<(&str, &str)> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    if end == 0 { None } else { text.split_at_checked(end) }
}

fn parameter_value(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        // Bare URLs violate the grammar, but some registries send them; they end at a comma.
        let end = text.find([',', ' ', '\t', '"']).unwrap_or(text.len());
        return text.split_at_checked(end).map(|(value, behind)| (value.to_owned(), behind));
    };
    let mut value = String::new();
    let mut characters = quoted.chars();
    loop {
        match characters.next()? {
            '"' => return Some((value, characters.as_str())),
            '\\' => value.push(characters.next()?),
            other => value.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(headers: &[&str]) -> Result<(String, String), ChallengeError> {
        Challenge::from_headers(headers.iter().copied()).map(|challenge| (challenge.realm, challenge.service))
    }

    #[test]
    fn parses_challenges_of_every_spelling() {
        // I204, I205
        let expected = Ok(("https://foo.azurecr.io/oauth2/token".to_owned(), "foo.azurecr.io".to_owned()));
        for headers in [
            &[r#"Bearer realm="https://foo.azurecr.io/oauth2/token",service="foo.azurecr.io""#][..],
            &[r#"bearer  service=foo.azurecr.io ,  realm = "https://foo.azurecr.io/oauth2/token""#],
            &["Bearer realm=https://foo.azurecr.io/oauth2/token,service=foo.azurecr.io"],
            &[
                r#"Bearer realm="https:\/\/foo.azurecr.io/oauth2/token",service="foo.azurecr.io",error="a, b=c""#,
            ],
            &[
                r#"Basic realm="x", Bearer realm="https://foo.azurecr.io/oauth2/token", service="foo.azurecr.io""#,
            ],
            &[
                "Basic realm=x",
                r#"Bearer realm="https://foo.azurecr.io/oauth2/token",service="foo.azurecr.io""#,
            ],
            &[r#"Negotiate, Bearer realm="https://foo.azurecr.io/oauth2/token",service="foo.azurecr.io""#],
        ] {
            assert_eq!(read(headers), expected, "{headers:?}");
        }
    }

    #[test]
    fn rejects_malformed_challenges_without_panic() {
        // I205: the last of these crash the upstream provider.
        use ChallengeError::{Incomplete, Malformed, NoBearer, Several};
        for (headers, error) in [
            (&[][..], NoBearer),
            (&[""], NoBearer),
            (&["Basic realm=\"x\""], NoBearer),
            (&["Bearer"], Incomplete),
            (&["Bearer realm=\"\",service=\"s\""], Incomplete),
            (&["Bearer realm=\"r\",realm=\"r2\",service=\"s\""], Incomplete),
            (&["Bearer realm=\"r\""], Incomplete),
            (&["Bearer service=s"], Incomplete),
            (&["Bearer realm=\"r\",service=\"s\"", "Bearer realm=\"r\",service=\"s\""], Several),
            (&["Bearer realm=\"r"], Malformed),
            (&["Bearer realm=\"r\\"], Malformed),
            (&["=\"r\""], Malformed),
            (&["Bearer realm=\"r\" service=\"s\""], Malformed),
        ] {
            assert_eq!(read(headers), Err(error), "{headers:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_headers_do_not_panic(header in "[Bear lm=\"\\\\,s;é\t]{0,40}") {
            let _ = Challenge::from_headers(std::iter::once(header.as_str()));
        }
    }
}
