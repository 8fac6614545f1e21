//! Freshness lifetime of a response from its headers, computed as kube-apiserver does.
// S167

use std::time::Duration;

use jiff::fmt::rfc2822::DateTimeParser;
use navicert_types::Timestamp;

use super::fetch::FetchResponse;

/// Maximum lifetime derived from `Last-Modified`.
const MAX_HEURISTIC_LIFETIME: Duration = Duration::from_secs(24 * 3600);

/// How long the response is fresh from its arrival; zero if the headers do not say.
pub(crate) fn lifetime(answer: &FetchResponse, now: Timestamp) -> Duration {
    let directives = answer.header("cache-control").unwrap_or_default();
    let Some(directives) = parse(&directives) else { return Duration::ZERO };
    if let Some(seconds) = directives.shared.or(directives.own) {
        return Duration::from_secs(seconds);
    }
    let time = |name| answer.header(name).and_then(|text| http_date(&text));
    let date = time("date").unwrap_or(now);
    if let Some(expires) = time("expires") {
        return between(date, expires);
    }
    // Heuristic freshness: a tenth of the time since `Last-Modified`.
    let guessed = time("last-modified").map(|modified| between(modified, date) / 10);
    guessed.unwrap_or_default().min(MAX_HEURISTIC_LIFETIME)
}

#[derive(Default)]
struct Directives {
    shared: Option<u64>,
    own: Option<u64>,
}

/// `None` if a directive is malformed.
fn parse(text: &str) -> Option<Directives> {
    let mut directives = Directives::default();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let seconds = || value.trim().trim_matches('"').parse::<u64>().ok();
        if name.trim().eq_ignore_ascii_case("s-maxage") {
            directives.shared = Some(seconds()?);
        } else if name.trim().eq_ignore_ascii_case("max-age") {
            directives.own = Some(seconds()?);
        }
    }
    Some(directives)
}

fn http_date(text: &str) -> Option<Timestamp> {
    static PARSER: DateTimeParser = DateTimeParser::new();
    PARSER.parse_timestamp(text.trim()).ok()
}

fn between(earlier: Timestamp, later: Timestamp) -> Duration {
    Duration::try_from(later.duration_since(earlier)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    // S167, RV1, RV2
    #[test]
    fn lifetime_follows_the_headers() {
        let now = Timestamp::from_second(1_700_000_000).unwrap(); // Tue, 14 Nov 2023 22:13:20 GMT
        let date = ("date", "Tue, 14 Nov 2023 22:13:20 GMT");
        let hour = 3600;
        for (headers, seconds) in [
            (vec![], 0),
            (vec![("cache-control", "no-cache")], 0),
            (vec![("cache-control", "max-age=20")], 20),
            (vec![("cache-control", "max-age=bogus")], 0),
            (vec![("cache-control", "max-age=\"60\"")], 60),
            (vec![("cache-control", "no-store, max-age=3600")], hour),
            (vec![("cache-control", "private, max-age=3600")], hour),
            (vec![("cache-control", "private"), ("cache-control", "MAX-AGE=3600")], hour),
            (vec![("cache-control", "s-maxage=3600, max-age=0")], hour),
            (vec![date, ("expires", "Tue, 14 Nov 2023 23:13:20 GMT")], hour),
            (vec![("expires", "Tue, 14 Nov 2023 23:13:20 GMT")], hour),
            (vec![date, ("expires", "Tue, 14 Nov 2023 20:13:20 GMT")], 0),
            (vec![date, ("expires", "0")], 0),
            (vec![date, ("last-modified", "Fri, 10 Nov 2023 18:13:20 GMT")], 10 * hour),
            (vec![date, ("last-modified", "Fri, 10 Nov 2000 18:13:20 GMT")], 24 * hour),
        ] {
            let mut answer = FetchResponse::new(200, "https://i", b"");
            answer.headers =
                headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            assert_eq!(lifetime(&answer, now), Duration::from_secs(seconds), "{headers:?}");
        }
    }
}
