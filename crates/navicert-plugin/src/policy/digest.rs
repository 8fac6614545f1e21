//! SHA-256 digests of programs.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::str::FromStr;

use sha2::{Digest, Sha256};

use crate::error::PolicyError;

/// A sha256 digest: 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Sha256Digest([u8; 32]);

impl Sha256Digest {
    /// Hashes the whole file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn from_file(mut file: &File) -> io::Result<Self> {
        file.seek(SeekFrom::Start(0))?;
        let mut hasher = Sha256::new();
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let count = match file.read(&mut buffer) {
                Ok(0) => return Ok(Sha256Digest(hasher.finalize().into())),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            hasher.update(buffer.get(..count).unwrap_or_default());
        }
    }
}

impl FromStr for Sha256Digest {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let bad = || PolicyError::Digest(text.to_owned());
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        let mut bytes = [0; 32];
        if pairs.len() != bytes.len() || !rest.is_empty() {
            return Err(bad());
        }
        for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
            let digit =
                |character: u8| char::from(character).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
            *byte = digit(*high).ok_or_else(bad)? << 4 | digit(*low).ok_or_else(bad)?;
        }
        Ok(Sha256Digest(bytes))
    }
}

impl fmt::Display for Sha256Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Sha256Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sha256Digest({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn digest_round_trips_as_hexadecimal() {
        let digest: Sha256Digest = ABC.parse().unwrap();
        assert_eq!(digest.to_string(), ABC);
        assert_eq!(ABC.to_uppercase().parse(), Ok(digest));
        for bad in [
            "",
            "ba78",
            ABC.trim_start_matches('b'),
            &ABC.replace('b', "g"),
            &format!("{ABC}00"),
            &format!("{ABC}0"),
        ] {
            assert_eq!(bad.parse::<Sha256Digest>(), Err(PolicyError::Digest(bad.to_owned())));
        }
    }
}
