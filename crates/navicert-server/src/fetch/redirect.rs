//! Resolves redirects (RFC 9110 §15.4, RFC 3986 §5).

use http::{HeaderValue, StatusCode, Uri};

/// The `Location` of a redirect response.
pub(super) fn location(status: StatusCode, location: Option<&HeaderValue>) -> Option<&str> {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308).then_some(())?;
    location?.to_str().ok().filter(|location| !location.is_empty())
}

/// Resolves a reference against a base URL. `None` unless the result is an http or https URL.
pub(super) fn resolve(base: &Uri, reference: &str) -> Option<Uri> {
    let reference = reference.split_once('#').map_or(reference, |(before, _)| before);
    let (scheme, authority) = (base.scheme_str()?, base.authority()?.as_str());
    let has_scheme = reference.split(['/', '?']).next().is_some_and(|first| first.contains(':'));
    let whole = if has_scheme {
        reference.to_owned()
    } else if reference.starts_with("//") {
        format!("{scheme}:{reference}")
    } else if reference.starts_with('/') {
        format!("{scheme}://{authority}{reference}")
    } else if reference.starts_with('?') || reference.is_empty() {
        format!("{scheme}://{authority}{}{reference}", base.path())
    } else {
        let dir = base.path().rsplit_once('/').map_or("", |(dir, _)| dir);
        format!("{scheme}://{authority}{dir}/{reference}")
    };
    let url: Uri = whole.parse().ok()?;
    let is_http = matches!(url.scheme_str(), Some("http" | "https"));
    url.authority().filter(|_| is_http)?;
    let path = without_dots(url.path());
    let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
    format!("{}://{}{path}{query}", url.scheme_str()?, url.authority()?).parse().ok()
}

fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            "." => {}
            ".." => {
                kept.pop();
            }
            _ => {
                kept.push(segment);
                continue;
            }
        }
        if is_last {
            kept.push("");
        }
    }
    format!("/{}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_resolved_as_rfc_3986_does() {
        let base: Uri = "https://a:1/b/c/d?q".parse().unwrap();
        for (reference, expected) in [
            ("https://x/y", Some("https://x/y")),
            ("http://x", Some("http://x/")),
            ("//x/y", Some("https://x/y")),
            ("/y?z", Some("https://a:1/y?z")),
            ("y", Some("https://a:1/b/c/y")),
            ("./y#f", Some("https://a:1/b/c/y")),
            ("../y/.", Some("https://a:1/b/y/")),
            ("../../../y", Some("https://a:1/y")),
            ("?z", Some("https://a:1/b/c/d?z")),
            ("", Some("https://a:1/b/c/d")),
            ("file:///etc/passwd", None),
            ("ftp://x/", None),
            ("https://", None),
        ] {
            let found = resolve(&base, reference).map(|url| url.to_string());
            assert_eq!(found.as_deref(), expected, "{reference}");
        }
    }
}
