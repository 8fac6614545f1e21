//! Number parsing: the end of a number, and the value of plain digits.

/// The value of up to 18 digits, which most numbers in claims are; `None` for
/// anything else.
#[inline]
pub fn plain_digits(text: &[u8]) -> Option<i64> {
    const ALWAYS_FIT: usize = 18;
    let (eights, rest) = text.as_chunks::<8>();
    if text.is_empty() || text.len() > ALWAYS_FIT {
        return None;
    }
    let mut value = 0;
    for eight in eights {
        if !are_digits(eight) {
            return None;
        }
        value = value * 100_000_000 + i64::from(eight_digits(*eight));
    }
    for byte in rest {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + i64::from(digit);
    }
    Some(value)
}

/// Whether eight bytes are all digits.
#[inline(always)]
fn are_digits(eight: &[u8; 8]) -> bool {
    const ONES: u64 = u64::MAX / 0xff;
    let word = u64::from_le_bytes(*eight);
    // Above `9` the addition sets the high bit, below `0` the subtraction does; a borrow or carry comes only from a byte that is
    // not a digit either.
    (word.wrapping_add(ONES * (0x7f - b'9' as u64)) | word.wrapping_sub(ONES * b'0' as u64) | word)
        & (ONES * 0x80)
        == 0
}

/// The value of eight digits: pairs first, then pairs of pairs, then both halves.
#[inline(always)]
fn eight_digits(digits: [u8; 8]) -> u32 {
    let digits = u64::from_le_bytes(digits) & 0x0f0f_0f0f_0f0f_0f0f;
    let pairs = (digits.wrapping_mul(10 << 8 | 1) >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul(100 << 16 | 1) >> 16) & 0x0000_ffff_0000_ffff;
    u32::try_from(fours.wrapping_mul(10_000 << 32 | 1) >> 32).unwrap_or_default()
}

/// Length of the JSON number at the start of the text; 0 if there is none.
pub fn number_length(text: &[u8]) -> usize {
    let mut at = usize::from(text.first() == Some(&b'-'));
    match text.get(at) {
        Some(b'0') => at += 1,
        Some(b'1'..=b'9') => at = end_of_digits(text, at),
        _ => return 0,
    }
    match text.get(at) {
        Some(b'.' | b'e' | b'E') => end_of_fraction(text, at),
        _ => at,
    }
}

#[inline(always)]
fn end_of_digits(text: &[u8], start: usize) -> usize {
    let mut at = start;
    while text.get(at..).and_then(<[u8]>::first_chunk::<8>).is_some_and(are_digits) {
        at += 8;
    }
    while text.get(at).is_some_and(u8::is_ascii_digit) {
        at += 1;
    }
    at
}

/// The end of a fraction and exponent that start here; 0 if they are invalid.
fn end_of_fraction(text: &[u8], start: usize) -> usize {
    let mut at = start;
    if text.get(at) == Some(&b'.') {
        at = end_of_digits(text, start + 1);
        if at == start + 1 {
            return 0;
        }
    }
    if let Some(b'e' | b'E') = text.get(at) {
        let sign = usize::from(matches!(text.get(at + 1), Some(b'+' | b'-')));
        let digits = at + 1 + sign;
        at = end_of_digits(text, digits);
        if at == digits {
            return 0;
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_parse_to_their_value_and_other_bytes_are_rejected() {
        let mut number = 1_u64;
        for _ in 0..5_000 {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            for length in 1..=20 {
                let text = format!("{number:020}");
                let text = text.split_at(20 - length).1;
                let expected = text.parse().ok().filter(|_| length <= 18);
                assert_eq!(plain_digits(text.as_bytes()), expected, "{text}");
            }
        }
        for length in 1..=18 {
            for at in 0..length {
                for other in (0..=u8::MAX).filter(|byte| !byte.is_ascii_digit()) {
                    for digit in [b'0', b'9'] {
                        let mut text = vec![digit; length];
                        text[at] = other;
                        assert_eq!(plain_digits(&text), None, "{other} at {at} of {length}");
                        assert_eq!(end_of_digits(&text, 0), at, "{other} at {at} of {length}");
                    }
                }
            }
            assert_eq!(end_of_digits(&vec![b'5'; length], 0), length);
        }
        assert_eq!(plain_digits(b""), None);
    }
}
