//! Parses PEM as Go's `encoding/pem` does: skips everything that is not a well-formed block.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use zeroize::Zeroizing;

/// One block.
pub(super) struct Block {
    /// The text between `BEGIN` and the dashes.
    pub(super) label: String,
    /// Whether its headers mark it as encrypted.
    pub(super) encrypted: bool,
    /// The content, which may be a key.
    pub(super) der: Zeroizing<Vec<u8>>,
}

/// Every well-formed block, in order.
pub(super) fn blocks(text: &[u8]) -> Vec<Block> {
    let mut lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let mut found = Vec::new();
    while let Some(line) = lines.next() {
        let Some(label) = label_of(line, b"-----BEGIN ") else { continue };
        // A truncated block is skipped; the search continues after its first line.
        let mut ahead = lines.clone();
        if let Some(block) = block(label, &mut ahead) {
            found.push(block);
            lines = ahead;
        }
    }
    found
}

fn label_of<'a>(line: &'a [u8], start: &[u8]) -> Option<&'a str> {
    let label = line.strip_prefix(start)?.strip_suffix(b"-----")?;
    str::from_utf8(label).ok()
}

/// Go ignores the bits left over by padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireCanonical),
);

fn block<'a>(label: &str, lines: &mut impl Iterator<Item = &'a [u8]>) -> Option<Block> {
    let mut encrypted = false;
    let mut packed = Zeroizing::new(Vec::new());
    for line in lines {
        if let Some(end) = label_of(line, b"-----END ") {
            let der = (end == label).then(|| BASE64.decode(&*packed).ok()).flatten()?;
            return Some(Block { label: label.to_owned(), encrypted, der: Zeroizing::new(der) });
        }
        if packed.is_empty() && line.contains(&b':') {
            encrypted |= line.ends_with(b"ENCRYPTED");
        } else {
            packed.extend(line.iter().filter(|byte| !byte.is_ascii_whitespace()));
        }
    }
    None
}
