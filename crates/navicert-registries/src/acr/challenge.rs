//! `WWW-Authenticate`, read by its grammar: quoted and bare values, several challenges, and no panic.
// I204, I205

use thiserror::Error;

/// Where a registry sends whoever wants a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// The URL of the token server.
    pub realm: String,
    /// What the token is for.
    pub service: String,
}

/// Why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ChallengeError {
    /// No `Bearer` challenge.
    #[error("no `Bearer` challenge")]
    NoBearer,
    /// Several, and nobody can tell which one is meant.
    #[error("several `Bearer` challenges")]
    Several,
    /// A parameter is missing, empty or given twice.
    #[error("a `Bearer` challenge without one `realm` and one `service`")]
    Incomplete,
    /// Not by the grammar.
    #[error("a challenge that cannot be read")]
    Malformed,
}

impl Challenge {
    /// The one bearer challenge of all the headers.
    ///
    /// # Errors
    /// [`ChallengeError`].
    pub fn from_headers<'a>(headers: impl Iterator<Item = &'a str>) -> Result<Self, ChallengeError> {
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

/// The challenges of one header: a scheme, then parameters with commas between; a word without `=` begins the next.
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
            // After a scheme comes a space and a parameter, or a comma and the next scheme.
            rest = if behind.starts_with([' ', '\t']) { after } else { skip_comma(behind)? };
            rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
        }
    }
    Some(found)
}

/// What is behind a comma, or nothing at the end.
fn skip_comma(text: &str) -> Option<&str> {
    let text = text.trim_start();
    if text.is_empty() { Some(text) } else { Some(text.strip_prefix(',')?.trim_start()) }
}

/// A word of RFC 9110.
fn token(text: &str) -> Option<(&str, &str)> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    if end == 0 { None } else { text.split_at_checked(end) }
}

fn parameter_value(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        // Bare URLs break the grammar, and some send them; they end at a comma.
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
    fn challenges_of_every_spelling_are_read() {
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
    fn broken_challenges_are_refused_and_never_a_panic() {
        // I205: the last of these crash upstream.
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
        fn no_header_makes_it_panic(header in "[Bear lm=\"\\\\,s;é\t]{0,40}") {
            let _ = Challenge::from_headers(std::iter::once(header.as_str()));
        }
    }
}
