//! Splits a token into its three parts and decodes them. A token that does not split or decode belongs to no issuer.

use std::borrow::Cow;

use base64::Engine as _;
// Accepts canonical encodings only: trailing bits have to be zero.
use base64_simd::{AsOut as _, URL_SAFE_NO_PAD};
use navicert_go::base64::{RAW_URL, without_line_breaks};

use crate::model::outcome::NoOpinion;

/// A token in its three parts, unchecked.
pub(crate) struct RawToken<'t> {
    text: &'t str,
    header: &'t str,
    payload: &'t str,
    signature: &'t str,
}

impl<'t> RawToken<'t> {
    /// Splits a token.
    ///
    /// # Errors
    /// The text is not a token in compact form.
    // S100, S101
    pub(crate) fn new(text: &'t str) -> Result<Self, NoOpinion> {
        // Texts that start with one of these are neither blank nor JSON.
        let is_plain = matches!(text.as_bytes().first(), Some(b'!'..=b'z'));
        if !is_plain && text.trim_start().starts_with('{') {
            return Err(NoOpinion::NotCompact);
        }
        let mut dots = memchr::memchr_iter(b'.', text.as_bytes());
        let parts = match (dots.next(), dots.next(), dots.next()) {
            (Some(first), Some(second), None) => {
                (text.get(..first), text.get(first + 1..second), text.get(second + 1..))
            }
            _ => (None, None, None),
        };
        match parts {
            (Some(header), Some(payload), Some(signature)) => {
                Ok(RawToken { text, header, payload, signature })
            }
            _ => Err(NoOpinion::NotCompact),
        }
    }

    /// The decoded payload.
    // S102
    pub(crate) fn payload(&self) -> Result<TokenPart, NoOpinion> {
        decode(self.payload).ok_or(NoOpinion::PayloadEncoding)
    }

    /// The decoded header; white space is ignored.
    // S109
    pub(crate) fn header(&self) -> Option<TokenPart> {
        decode_spaced(self.header)
    }

    /// The encoded header.
    pub(crate) fn header_text(&self) -> &'t str {
        self.header
    }

    /// The decoded signature, in the given buffer if it is large enough, and whether its encoding is canonical; white space
    /// is ignored.
    // S109
    pub(crate) fn signature<'r>(
        &self,
        room: &'r mut [u8; SIGNATURE_BUFFER_BYTES],
    ) -> Option<(Cow<'r, [u8]>, bool)> {
        // The usual case: no white space.
        if self.signature.len() <= SIGNATURE_BUFFER_BYTES
            && let Ok(bytes) = URL_SAFE_NO_PAD.decode(self.signature.as_bytes(), room.as_mut_slice().as_out())
        {
            return Some((Cow::Borrowed(bytes), true));
        }
        decode_spaced(self.signature).map(|part| (Cow::Owned(part.bytes), part.is_canonical))
    }

    /// The signed message: header and payload in canonical encoding, or with `b64: false` the raw payload.
    /// A canonical header needs no decoded bytes.
    // S115
    pub(crate) fn signed(&self, header: &TokenPart, payload: &TokenPart, is_encoded: bool) -> Cow<'t, [u8]> {
        if header.is_canonical && payload.is_canonical && is_encoded {
            let length = self.header.len() + 1 + self.payload.len();
            return Cow::Borrowed(self.text.as_bytes().get(..length).unwrap_or_default());
        }
        let mut signed = match header.is_canonical {
            true => self.header.to_owned().into_bytes(),
            false => URL_SAFE_NO_PAD.encode_to_string(&header.bytes).into_bytes(),
        };
        signed.push(b'.');
        if is_encoded {
            signed.extend(URL_SAFE_NO_PAD.encode_to_string(&payload.bytes).bytes());
        } else {
            signed.extend(&payload.bytes);
        }
        Cow::Owned(signed)
    }

    /// Header and signature without white space.
    pub(crate) fn spaceless(&self) -> (String, String) {
        let spaceless = |text: &str| text.chars().filter(|symbol| !symbol.is_whitespace()).collect();
        (spaceless(self.header), spaceless(self.signature))
    }

    /// Length of the token and of its header in bytes.
    pub(crate) fn lengths(&self) -> (usize, usize) {
        (self.text.len(), self.header.len())
    }
}

/// Length of an encoded RSA-4096 signature, which bounds the decoded length.
pub(crate) const SIGNATURE_BUFFER_BYTES: usize = 683;

/// A decoded part, and whether its encoding is canonical.
pub(crate) struct TokenPart {
    pub(crate) bytes: Vec<u8>,
    pub(crate) is_canonical: bool,
}

impl TokenPart {
    /// A canonical part whose bytes are not needed.
    pub(crate) const CANONICAL: TokenPart = TokenPart { bytes: Vec::new(), is_canonical: true };
}

fn decode(text: &str) -> Option<TokenPart> {
    if let Ok(bytes) = URL_SAFE_NO_PAD.decode_to_vec(text) {
        return Some(TokenPart { bytes, is_canonical: true });
    }
    RAW_URL
        .decode(without_line_breaks(text.as_bytes()))
        .ok()
        .map(|bytes| TokenPart { bytes, is_canonical: false })
}

fn decode_spaced(text: &str) -> Option<TokenPart> {
    if let Ok(bytes) = URL_SAFE_NO_PAD.decode_to_vec(text) {
        return Some(TokenPart { bytes, is_canonical: true });
    }
    if text.chars().any(char::is_whitespace) {
        let text: String = text.chars().filter(|symbol| !symbol.is_whitespace()).collect();
        return decode(&text).map(|part| TokenPart { is_canonical: false, ..part });
    }
    decode(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    // S100, S101, TV36, A24, A25, A41
    #[test]
    fn token_without_three_parts_belongs_to_no_issuer() {
        let dots = ".".repeat(1 << 20);
        for text in ["", "opaque", "a.b", "a.b.c.d", "a.b.c.d.e", " {\"payload\":\"a.b.c\"}", dots.as_str()] {
            assert!(RawToken::new(text).is_err(), "{text:.20}");
        }
        assert!(RawToken::new("..").is_ok());
    }

    // S102, S109, A26–A29
    #[test]
    fn decoding_is_as_lenient_as_gos_and_detects_canonical_encodings() {
        let token = |payload: &str| {
            let text = format!("e30.{payload}.AA");
            RawToken::new(&text).unwrap().payload().ok().map(|part| (part.bytes, part.is_canonical))
        };
        assert_eq!(token("e30"), Some((b"{}".to_vec(), true)));
        assert_eq!(token("e31"), Some((b"{}".to_vec(), false)));
        assert_eq!(token("e3\r\n0"), Some((b"{}".to_vec(), false)));
        for bad in ["e30=", "e 30", "e+//", "e"] {
            assert_eq!(token(bad), None, "{bad}");
        }
        let text = "\u{a0}e30.e30. AA";
        let raw = RawToken::new(text).unwrap();
        assert!(!raw.header().unwrap().is_canonical);
        assert!(!raw.signature(&mut [0; SIGNATURE_BUFFER_BYTES]).unwrap().1);
    }

    // S102, A26–A29: the fast decoder accepts the canonical encoding of every length, and nothing else.
    #[test]
    fn only_one_encoding_is_canonical() {
        use base64::engine::general_purpose::URL_SAFE_NO_PAD as STRICT;
        let bytes: Vec<u8> = (0..200_u32).map(|number| (number * 37 % 251) as u8).collect();
        for length in 0..bytes.len() {
            let text = STRICT.encode(&bytes[..length]);
            let part = decode(&text).unwrap();
            assert!(part.is_canonical && part.bytes == bytes[..length], "{length}");
            for at in 0..text.len() {
                for other in *b"A-_=+/ \n\x00z" {
                    let mut changed = text.clone().into_bytes();
                    changed[at] = other;
                    let changed = String::from_utf8(changed).unwrap();
                    let strict = STRICT.decode(&changed).ok();
                    let ours = decode(&changed).filter(|part| part.is_canonical).map(|part| part.bytes);
                    assert_eq!(ours, strict, "{changed:?}");
                }
            }
        }
    }

    #[test]
    fn signature_is_decoded_with_and_without_the_buffer() {
        for length in [0, 1, 64, 256, 511, 512, 513, 1_024] {
            let text = format!("e30.e30.{}", URL_SAFE_NO_PAD.encode_to_string(vec![0xa5_u8; length]));
            let mut room = [0; SIGNATURE_BUFFER_BYTES];
            let (bytes, is_canonical) = RawToken::new(&text).unwrap().signature(&mut room).unwrap();
            assert!(is_canonical && *bytes == vec![0xa5; length], "{length}");
        }
    }
}
