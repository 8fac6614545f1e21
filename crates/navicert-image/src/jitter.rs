//! Random jitter, so that processes started at the same time do not keep refreshing at the same time.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};

/// A random number from 0 to 1 from the standard library's hash keys. Not for security purposes.
pub(crate) fn random_fraction() -> f64 {
    let bits = u32::try_from(RandomState::new().build_hasher().finish() >> 32).unwrap_or_default();
    f64::from(bits) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::random_fraction;

    #[test]
    fn random_fractions_differ_and_stay_within_bounds() {
        let shares: Vec<f64> = (0..1_000).map(|_| random_fraction()).collect();
        assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)));
        assert!(shares.iter().any(|share| *share < 0.25) && shares.iter().any(|share| *share > 0.75));
    }
}
