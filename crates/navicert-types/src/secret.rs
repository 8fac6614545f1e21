//! The type of every secret in the workspace: cleared from memory when dropped, masked in `Debug`, without `Display` and
//! never serialized by derived code.

use std::fmt;

use serde::{Deserialize, Deserializer};
use zeroize::{Zeroize, Zeroizing};

/// A value that must not be printed.
///
/// `Debug` shows a mask, and `Display` and `Serialize` are not implemented: code that sends the value calls
/// [`Secret::expose`].
///
/// ```
/// use navicert_types::Secret;
///
/// let token = Secret::from("ey.secret".to_owned());
/// assert_eq!(format!("{token:?}"), "Secret(…)");
/// assert_eq!(token.expose(), "ey.secret");
/// ```
#[derive(Clone, Default)]
pub struct Secret<T: Zeroize>(Zeroizing<T>);

impl<T: Zeroize> Secret<T> {
    /// Wraps a value; it is cleared when the secret is dropped.
    pub fn new(value: T) -> Self {
        Secret(Zeroizing::new(value))
    }

    /// Returns the value. Search for this name to audit every use.
    pub fn expose(&self) -> &T {
        &self.0
    }
}

impl Secret<String> {
    /// Whether the secret is empty; most of Kubernetes treats an empty secret as absent.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Secret<Vec<u8>> {
    /// Whether the secret is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T: Zeroize> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl<T: Zeroize> From<T> for Secret<T> {
    fn from(value: T) -> Self {
        Secret::new(value)
    }
}

/// For comparing configuration and wire types. Not constant-time: do not use it to verify a caller's secret.
impl<T: Zeroize + PartialEq> PartialEq for Secret<T> {
    fn eq(&self, other: &Self) -> bool {
        *self.0 == *other.0
    }
}

impl<T: Zeroize + Eq> Eq for Secret<T> {}

impl<'de, T: Zeroize + Deserialize<'de>> Deserialize<'de> for Secret<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Secret::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_never_shows_the_value() {
        let secret = Secret::from("canary".to_owned());
        for shown in [format!("{secret:?}"), format!("{secret:#?}"), format!("{:?}", Some(&secret))] {
            assert!(!shown.contains("canary"), "{shown}");
        }
    }

    #[test]
    fn bytes_are_masked_too() {
        let secret = Secret::from(b"canary".to_vec());
        assert_eq!(format!("{secret:?}"), "Secret(…)");
        assert!(!secret.is_empty());
    }
}
