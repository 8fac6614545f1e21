//! A short text on the stack, so that numbers and times can be formatted without an allocation.

use std::fmt;

/// Holds up to `N` bytes of text; writing more is a [`fmt::Error`] and leaves what was there.
#[derive(Clone, Copy)]
pub struct StackText<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> StackText<N> {
    /// An empty text.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: [0; N], length: 0 }
    }

    /// Formats `value`; text that does not fit is cut off at the last whole piece.
    #[must_use]
    pub fn of(value: impl fmt::Display) -> Self {
        let mut text = Self::new();
        // The caller chose N for the longest text its value can have.
        let _ = fmt::Write::write_fmt(&mut text, format_args!("{value}"));
        text
    }

    /// What was written so far.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // Only whole `&str`s are ever appended, so this cannot fail.
        self.bytes.get(..self.length).and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or_default()
    }
}

impl<const N: usize> Default for StackText<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> fmt::Write for StackText<N> {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        let end = self.length.checked_add(piece.len()).ok_or(fmt::Error)?;
        self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?.copy_from_slice(piece.as_bytes());
        self.length = end;
        Ok(())
    }
}

impl<const N: usize> fmt::Debug for StackText<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::StackText;
    use std::fmt::Write as _;

    #[test]
    fn a_piece_that_does_not_fit_is_refused_whole() {
        let mut text = StackText::<4>::new();
        assert!(text.write_str("abc").is_ok());
        assert!(text.write_str("é").is_err());
        assert!(text.write_str("d").is_ok());
        assert_eq!(text.as_str(), "abcd");
    }
}
