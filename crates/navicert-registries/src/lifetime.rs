//! Computes the cache duration of a response from the credential's actual expiry.
// I177, I212

use std::time::Duration;

use navicert_types::Timestamp;

/// A response is never cached into the last minutes of a credential's lifetime.
const EXPIRY_MARGIN: Duration = Duration::from_secs(5 * 60);

/// `max(0, min(remaining/2, remaining − 5 min))`, in whole seconds. Without an expiry the response is not cached.
// I176
pub(crate) fn cache_duration(expires: Option<Timestamp>, now: Timestamp) -> Duration {
    cache_duration_for(
        expires.map(|expires| Duration::try_from(expires.duration_since(now)).unwrap_or_default()),
    )
}

/// Like [`cache_duration`], for a remaining lifetime.
pub(crate) fn cache_duration_for(remaining: Option<Duration>) -> Duration {
    let remaining = remaining.unwrap_or_default();
    let kept = (remaining / 2).min(remaining.saturating_sub(EXPIRY_MARGIN));
    Duration::from_secs(kept.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_caches_past_the_expiry() {
        // I176, I177, I212
        let now = Timestamp::from_second(1_000_000).unwrap();
        for (remaining, kept) in [
            (12 * 3600, 6 * 3600),
            (3600, 1800),
            (599, 299),
            (601, 300),
            (301, 1),
            (300, 0),
            (1, 0),
            (0, 0),
            (-3600, 0),
            (-900_000, 0),
        ] {
            let expires = Timestamp::from_second(1_000_000 + remaining).unwrap();
            assert_eq!(cache_duration(Some(expires), now).as_secs(), kept, "{remaining}");
        }
        assert_eq!(cache_duration(None, now), Duration::ZERO);
        assert_eq!(cache_duration(Some(Timestamp::MIN), Timestamp::MAX), Duration::ZERO);
    }
}
