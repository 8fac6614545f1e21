//! A short string on the stack, for formatting numbers and times without allocation.

use std::fmt;

/// A buffer for up to `N` bytes of text. A write that does not fit is a [`fmt::Error`] and leaves the content
/// unchanged.
#[derive(Clone, Copy)]
pub(crate) struct StackText<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> StackText<N> {
    /// An empty buffer.
    #[must_use]
    pub(crate) const fn new() -> Self {
        Self { bytes: [0; N], length: 0 }
    }

    /// Formats `value`; a part that does not fit is dropped with everything after it.
    #[must_use]
    pub(crate) fn from_display(value: impl fmt::Display) -> Self {
        let mut text = Self::new();
        // The caller chose N for the longest text of its value.
        let _ = fmt::Write::write_fmt(&mut text, format_args!("{value}"));
        text
    }

    /// The content.
    #[must_use]
    pub(crate) fn as_str(&self) -> &str {
        // Only whole `&str`s are appended, so the content is valid UTF-8.
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
    fn write_that_does_not_fit_leaves_the_content_unchanged() {
        let mut text = StackText::<4>::new();
        assert!(text.write_str("abc").is_ok());
        assert!(text.write_str("é").is_err());
        assert!(text.write_str("d").is_ok());
        assert_eq!(text.as_str(), "abcd");
    }
}
