//! Reads DER elements.

/// Splits off the first element, which must have this tag: its content and the rest.
pub fn split(tag: u8, input: &[u8]) -> Option<(&[u8], &[u8])> {
    let (first, rest) = input.split_first()?;
    let (length, rest) = rest.split_first()?;
    if *first != tag {
        return None;
    }
    let (length, rest) = match length {
        0..=127 => (usize::from(*length), rest),
        0x81..=0x84 => {
            let (octets, rest) = rest.split_at_checked(usize::from(length & 0x7f))?;
            (octets.iter().fold(0usize, |sum, octet| sum << 8 | usize::from(*octet)), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}
