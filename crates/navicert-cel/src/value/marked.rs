//! Names that are told apart by a number: most of what is looked for by name is found, or found missing, without
//! comparing letters.

use std::ops::Deref;

/// A name with its [`mark`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Marked<T> {
    mark: u64,
    name: T,
}

impl<T: Deref<Target = str>> Marked<T> {
    pub(crate) fn new(name: T) -> Self {
        Marked { mark: mark(&name), name }
    }

    pub(crate) fn mark(&self) -> u64 {
        self.mark
    }

    pub(crate) fn into_inner(self) -> T {
        self.name
    }

    /// Whether this is the name, of which the mark is given too. Of names of one length, eight bytes or fewer, no two
    /// have the same mark.
    #[inline]
    pub(crate) fn is(&self, name: &str, mark: u64) -> bool {
        self.mark == mark
            && self.name.len() == name.len()
            && (name.len() <= size_of::<u64>() || *self.name == *name)
    }
}

impl<T> Deref for Marked<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.name
    }
}

/// A number made of a name's first bytes, or of both its ends, and of its length: different for most names.
#[inline]
pub(crate) fn mark(name: &str) -> u64 {
    let bytes = name.as_bytes();
    let ends = match (bytes.first_chunk::<8>(), bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        (Some(first), ..) => u64::from_le_bytes(*first),
        (None, Some(first), Some(last)) => {
            u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << 32
        }
        _ => bytes.iter().fold(0, |mark, byte| mark << 8 | u64::from(*byte)),
    };
    ends ^ (bytes.len() as u64) << 56
}

#[cfg(test)]
mod tests {
    use super::*;

    // Every pair of names that differ in one letter, or in length; those of eight bytes or fewer by their marks alone.
    #[test]
    fn a_name_is_itself_and_no_other() {
        let name = |length: usize| "abcdefghijklmnop".split_at(length).0.to_owned();
        for length in 0..=12 {
            let this = Marked::new(name(length));
            assert!(this.is(&name(length), mark(&name(length))));
            for other in 0..=12 {
                assert_eq!(this.is(&name(other), mark(&name(other))), length == other, "{length} {other}");
            }
            for at in 0..length {
                for letter in ['a', 'x', '\0', '\u{7f}', 'é'] {
                    let mut letters: Vec<char> = name(length).chars().collect();
                    letters[at] = letter;
                    let other: String = letters.into_iter().collect();
                    assert_eq!(this.is(&other, mark(&other)), other == name(length), "{other}");
                }
            }
        }
    }
}
