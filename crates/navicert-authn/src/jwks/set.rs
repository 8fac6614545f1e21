//! A JWKS document: the keys of one issuer, in order. Upstream one bad key spoils the set; with H21 it is skipped.

use std::borrow::Cow;

use super::key::{Key, KeyError};
use crate::json::{Kind, Raw};
use crate::jwt::header::Header;
use crate::jwt::registry::is_named;
use crate::profile::{Profile, Rule};

/// The keys of one issuer.
#[derive(Debug, Default)]
pub struct KeySet {
    keys: Vec<Key>,
    skipped: usize,
}

/// Why a document is no key set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeySetError {
    /// Not JSON, or not of this shape.
    #[error("failed to decode keys: not a JSON Web Key Set")]
    Shape,
    /// One key cannot be read, and so none is taken (S165).
    #[error("failed to decode keys: keys[{index}]: {error}")]
    Key {
        /// Which one.
        index: usize,
        /// What is wrong with it.
        error: KeyError,
    },
}

impl KeySet {
    /// Reads a document (S164).
    ///
    /// # Errors
    /// The document is none, or one key cannot be read and the profile does not skip it.
    pub fn parse(body: &[u8], profile: &Profile) -> Result<Self, KeySetError> {
        let raw = Raw::parse(body).map_err(|_| KeySetError::Shape)?;
        if !matches!(raw.kind(), Kind::Object | Kind::Null) {
            return Err(KeySetError::Shape);
        }
        let mut set = KeySet::default();
        let is_keys = |(name, _): &(Cow<'_, str>, Raw<'_>)| is_named(name, "keys");
        for (_, list) in raw.members().filter(is_keys) {
            if !matches!(list.kind(), Kind::Array | Kind::Null) {
                return Err(KeySetError::Shape);
            }
            set = KeySet::default();
            for (index, raw) in list.elements().enumerate() {
                match Key::read(raw, profile.has(Rule::H21)) {
                    Ok(key) => set.keys.push(key),
                    Err(_) if profile.has(Rule::H21) => set.skipped += 1,
                    Err(error) => return Err(KeySetError::Key { index, error }),
                }
            }
        }
        Ok(set)
    }

    /// The keys in the order of the document.
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// How many were skipped because they cannot be read.
    pub fn skipped(&self) -> usize {
        self.skipped
    }

    /// What a header's text says, if it is one that some key remembers.
    pub(crate) fn remembered(&self, header: &str) -> Option<Header<'_>> {
        self.keys
            .iter()
            .find_map(|key| key.remembered(header).map(|algorithm| Header::plain(algorithm, key.kid())))
    }

    /// The keys to try for a token: those of its `kid`, or all if it names none (S116).
    pub(crate) fn candidates<'s>(&'s self, kid: &'s str) -> impl Iterator<Item = &'s Key> {
        self.keys.iter().filter(move |key| kid.is_empty() || key.kid() == kid)
    }
}
