//! Bearer token of the `Authorization` header, parsed as kube-apiserver does.
// S97

use http::HeaderMap;
use http::header::AUTHORIZATION;
use memchr::memchr;

use crate::problem::Problem;

/// The token of a request, if any.
///
/// # Errors
/// More than one such header: another proxy or server in the chain might use the other one.
// S244
pub fn token(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    token_in(headers, AUTHORIZATION)
}

/// The token in another header, such as `Proxy-Authorization`.
///
/// # Errors
/// More than one such header.
pub(crate) fn token_in(headers: &HeaderMap, name: http::HeaderName) -> Result<Option<&str>, Problem> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(Problem::Malformed("more than one Authorization header"));
    }
    // A token has hundreds of bytes: `to_str` and `splitn` look at them one by one, which took 1,560 instructions per request.
    let Some(value) = std::str::from_utf8(value.as_bytes()).ok().filter(|value| value.is_ascii()) else {
        return Ok(None);
    };
    let Some((scheme, rest)) = value.trim().split_once(' ') else { return Ok(None) };
    let token = memchr(b' ', rest.as_bytes()).and_then(|end| rest.get(..end)).unwrap_or(rest);
    Ok(Some(token).filter(|token| scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    // S97, S244; capsule-proxy's empty bearer token (CVE-2023-48312)
    #[test]
    fn token_is_the_second_word_after_bearer_and_never_empty() {
        for (value, expected) in [
            ("Bearer abc", Some("abc")),
            ("bearer abc", Some("abc")),
            ("bEaReR abc", Some("abc")),
            ("BEARER abc more", Some("abc")),
            ("Bearer abc def ghi", Some("abc")),
            ("  Bearer abc  ", Some("abc")),
            ("Bearer", None),
            ("Bearer ", None),
            ("Bearer  abc", None),
            ("Bearer\tabc", None),
            ("Basic abc", None),
            ("abc", None),
            ("", None),
        ] {
            let headers = HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_str(value).unwrap())]);
            assert_eq!(token(&headers).unwrap(), expected, "{value:?}");
        }
        for not_ascii in [b"Bearer \xc3\xa9".as_slice(), b"Bearer \xff"] {
            let value = HeaderValue::from_bytes(not_ascii).unwrap();
            assert_eq!(token(&HeaderMap::from_iter([(AUTHORIZATION, value)])).unwrap(), None);
        }
        assert_eq!(token(&HeaderMap::new()).unwrap(), None);
        let one = || (AUTHORIZATION, HeaderValue::from_static("Bearer abc"));
        assert!(token(&HeaderMap::from_iter([one(), one()])).is_err());
    }
}
