//! Names with a fingerprint, so that most lookups compare one integer instead of strings.

use std::ops::Deref;

/// A name with its [`fingerprint`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct HashedName<T> {
    fingerprint: u64,
    name: T,
}

impl<T: Deref<Target = str>> HashedName<T> {
    pub(crate) fn new(name: T) -> Self {
        HashedName { fingerprint: fingerprint(&name), name }
    }

    pub(crate) fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    pub(crate) fn into_inner(self) -> T {
        self.name
    }

    /// Whether this is `name`, whose fingerprint is passed as well. Names of the same length of at most eight bytes
    /// have distinct fingerprints.
    #[inline]
    pub(crate) fn is(&self, name: &str, fingerprint: u64) -> bool {
        self.fingerprint == fingerprint
            && self.name.len() == name.len()
            && (name.len() <= size_of::<u64>() || *self.name == *name)
    }
}

impl<T> Deref for HashedName<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.name
    }
}

/// Combines the first bytes of a name, or its first and last bytes, with its length. Distinct for most names.
#[inline]
pub(crate) fn fingerprint(name: &str) -> u64 {
    let bytes = name.as_bytes();
    let ends = match (bytes.first_chunk::<8>(), bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        (Some(first), ..) => u64::from_le_bytes(*first),
        (None, Some(first), Some(last)) => {
            u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << 32
        }
        _ => bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
    };
    ends ^ (bytes.len() as u64) << 56
}

#[cfg(test)]
mod tests {
    use super::*;

    // Pairs of names that differ in one letter or in length. Names of at most eight bytes are compared by
    // fingerprint alone.
    #[test]
    fn name_matches_only_itself() {
        let name = |length: usize| "abcdefghijklmnop".split_at(length).0.to_owned();
        for length in 0..=12 {
            let this = HashedName::new(name(length));
            assert!(this.is(&name(length), fingerprint(&name(length))));
            for other in 0..=12 {
                assert_eq!(
                    this.is(&name(other), fingerprint(&name(other))),
                    length == other,
                    "{length} {other}"
                );
            }
            for at in 0..length {
                for letter in ['a', 'x', '\0', '\u{7f}', 'é'] {
                    let mut letters: Vec<char> = name(length).chars().collect();
                    letters[at] = letter;
                    let other: String = letters.into_iter().collect();
                    assert_eq!(this.is(&other, fingerprint(&other)), other == name(length), "{other}");
                }
            }
        }
    }
}
