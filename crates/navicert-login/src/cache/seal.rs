//! Sealed entries: AES-256-GCM with a key that only the desktop's keyring has. The file stays beside the others, so that a
//! refresh never changes the keyring and the size of a token does not matter.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::entry::API_VERSION;
use crate::keyring::SealKey;

/// `kind` of a sealed entry.
pub(super) const SEALED_KIND: &str = "LoginSessionSealed";
/// Bytes of the key's hash that name it.
const KEY_ID_BYTES: usize = 8;

/// The file of a sealed entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SealedEntry {
    api_version: String,
    kind: String,
    key_id: String,
    nonce: String,
    sealed: String,
}

impl SealedEntry {
    /// The sealed entry in a file; `None` if the file is something else.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let found = serde_json::from_slice::<SealedEntry>(bytes).ok()?;
        (found.api_version == API_VERSION && found.kind == SEALED_KIND).then_some(found)
    }

    /// Seals the text of an entry for the file with this name. `None` without random numbers.
    // L421
    pub(super) fn seal(key: &SealKey, file_name: &str, text: &[u8]) -> Option<Self> {
        let mut nonce = [0; NONCE_LEN];
        aws_lc_rs::rand::fill(&mut nonce).ok()?;
        let mut sealed = Zeroizing::new(text.to_vec());
        let cipher = cipher(key)?;
        let nonce_value = Nonce::assume_unique_for_key(nonce);
        cipher.seal_in_place_append_tag(nonce_value, associated(file_name), &mut *sealed).ok()?;
        Some(SealedEntry {
            api_version: API_VERSION.to_owned(),
            kind: SEALED_KIND.to_owned(),
            key_id: key_id(key),
            nonce: STANDARD.encode(nonce),
            sealed: STANDARD.encode(sealed.as_slice()),
        })
    }

    /// The text of the entry, if this key sealed it for this file.
    pub(super) fn open(&self, key: &SealKey, file_name: &str) -> Option<Zeroizing<Vec<u8>>> {
        if self.key_id != key_id(key) {
            return None;
        }
        let nonce: [u8; NONCE_LEN] = STANDARD.decode(&self.nonce).ok()?.try_into().ok()?;
        let mut text = Zeroizing::new(STANDARD.decode(&self.sealed).ok()?);
        let cipher = cipher(key)?;
        let length = {
            let opened = cipher.open_in_place(
                Nonce::assume_unique_for_key(nonce),
                associated(file_name),
                text.as_mut_slice(),
            );
            opened.ok()?.len()
        };
        text.truncate(length);
        Some(text)
    }
}

fn cipher(key: &SealKey) -> Option<LessSafeKey> {
    UnboundKey::new(&AES_256_GCM, key.expose()).ok().map(LessSafeKey::new)
}

/// A sealed text is bound to its file and its kind: it cannot be moved to another entry.
fn associated(file_name: &str) -> Aad<Vec<u8>> {
    Aad::from([file_name.as_bytes(), &[0], SEALED_KIND.as_bytes()].concat())
}

fn key_id(key: &SealKey) -> String {
    let hash = digest(&SHA256, key.expose());
    hash.as_ref().iter().take(KEY_ID_BYTES).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // L421
    #[test]
    fn text_opens_only_with_its_key_and_in_its_file() {
        let (key, other) = (SealKey::generate().unwrap(), SealKey::generate().unwrap());
        let sealed = SealedEntry::seal(&key, "a.json", b"canary-text").unwrap();
        let file = serde_json::to_vec(&sealed).unwrap();
        assert!(!String::from_utf8_lossy(&file).contains("canary"));
        let sealed = SealedEntry::read(&file).unwrap();
        assert_eq!(sealed.open(&key, "a.json").unwrap().as_slice(), b"canary-text");
        assert_eq!(sealed.open(&key, "b.json"), None);
        assert_eq!(sealed.open(&other, "a.json"), None);
        let mut broken = sealed.clone();
        broken.sealed = STANDARD.encode(b"short");
        assert_eq!(broken.open(&key, "a.json"), None);
        let again = SealedEntry::seal(&key, "a.json", b"canary-text").unwrap();
        assert_ne!(again.nonce, sealed.nonce, "a nonce is used once");
        assert_eq!(SealedEntry::read(b"{}"), None);
    }
}
