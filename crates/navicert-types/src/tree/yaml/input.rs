//! The parser's input: a text whose long plain scalars, such as certificates in base64, are skipped in stretches instead
//! of character by character.

use granit_parser::input::{SkipTabs, WhitespaceResult};
use granit_parser::{BorrowedInput, ErrorKind, Input, StrInput};

/// A text, and the parser's own input over the part that has not been consumed.
pub(super) struct TextInput<'t> {
    text: &'t str,
    /// Offset of `rest` in the text.
    start: usize,
    rest: StrInput<'t>,
}

/// Bytes looked at together.
const STRETCH: usize = 32;

impl<'t> TextInput<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        TextInput { text, start: 0, rest: StrInput::new(text) }
    }

    fn offset(&self) -> usize {
        self.start + self.rest.byte_offset().unwrap_or_default()
    }

    /// Consumes stretches that belong to a plain scalar outside brackets as a whole; returns the number of characters.
    fn skip_stretches(&mut self) -> usize {
        let offset = self.offset();
        let ahead = self.text.as_bytes().get(offset..).unwrap_or_default();
        let length = STRETCH * ahead.chunks_exact(STRETCH).take_while(|stretch| is_plain(stretch)).count();
        // Nothing but ASCII was skipped, so this is the boundary of a character.
        if let Some(rest) = self.text.get(offset + length..).filter(|_| length > 0) {
            let window = self.rest.buflen();
            self.start = offset + length;
            self.rest = StrInput::new(rest);
            self.rest.lookahead(window);
            return length;
        }
        0
    }
}

/// Whether none of these bytes can end a plain scalar outside brackets. Without an early end, so that the compiler can
/// compare all at once.
fn is_plain(stretch: &[u8]) -> bool {
    stretch.iter().fold(true, |all, byte| all & matches!(byte, b'!'..=b'9' | b';'..=b'~'))
}

/// Methods that are those of the remaining text.
macro_rules! of_rest {
    ($(fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {$(
        #[inline]
        fn $name(&mut self, $($argument: $type),*) $(-> $result)? {
            self.rest.$name($($argument),*)
        }
    )*};
    (&self: $(fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {$(
        #[inline]
        fn $name(&self, $($argument: $type),*) $(-> $result)? {
            self.rest.$name($($argument),*)
        }
    )*};
}

impl Input for TextInput<'_> {
    #[inline]
    fn byte_offset(&self) -> Option<usize> {
        Some(self.offset())
    }

    fn slice_bytes(&self, start: usize, end: usize) -> Option<&str> {
        self.text.get(start..end)
    }

    fn skip_plain_scalar_chunk(&mut self, count: usize, in_brackets: bool) -> (bool, usize) {
        let skipped = if in_brackets { 0 } else { self.skip_stretches() };
        let (is_over, characters) = self.rest.skip_plain_scalar_chunk(count, in_brackets);
        (is_over, skipped + characters)
    }

    of_rest! { &self:
        fn buflen() -> usize;
        fn bufmaxlen() -> usize;
        fn peek() -> char;
        fn peek_nth(n: usize) -> char;
        fn next_2_are(first: char, second: char) -> bool;
        fn next_3_are(first: char, second: char, third: char) -> bool;
        fn next_is_document_indicator() -> bool;
        fn next_is_document_start() -> bool;
        fn next_is_document_end() -> bool;
        fn next_is_blank_or_break() -> bool;
        fn next_is_blank_or_breakz() -> bool;
        fn next_is_blank() -> bool;
        fn next_is_break() -> bool;
        fn next_is_breakz() -> bool;
        fn next_is_z() -> bool;
        fn next_is_flow() -> bool;
        fn next_is_digit() -> bool;
        fn next_is_alpha() -> bool;
    }

    of_rest! {
        fn lookahead(count: usize);
        fn raw_read_ch() -> char;
        fn raw_read_non_breakz_ch() -> Option<char>;
        fn skip();
        fn skip_n(count: usize);
        fn skip_ws_to_eol(tabs: SkipTabs) -> (usize, Result<WhitespaceResult, ErrorKind>);
        fn skip_ws_to_eol_blanks(tabs: SkipTabs) -> (usize, WhitespaceResult);
        fn skip_while_non_breakz() -> usize;
        fn skip_while_blank() -> usize;
        fn fetch_while_is_alpha(out: &mut String) -> usize;
        fn fetch_while_is_yaml_non_space(out: &mut String) -> usize;
        fn fetch_block_scalar_line(out: &mut String) -> usize;
        fn take_quoted_scalar_ascii_chunk(single: bool) -> &str;
        fn take_quoted_scalar_chunk(single: bool) -> (&str, usize);
        fn fetch_plain_scalar_chunk(out: &mut String, count: usize, in_brackets: bool) -> (bool, usize);
    }
}

impl<'t> BorrowedInput<'t> for TextInput<'t> {
    fn slice_borrowed(&self, start: usize, end: usize) -> Option<&'t str> {
        self.text.get(start..end)
    }
}

#[cfg(test)]
mod tests {
    use granit_parser::Parser;
    use proptest::prelude::*;

    use super::*;

    /// Events with their positions, or the error.
    fn events<'t>(input: impl BorrowedInput<'t>) -> Vec<String> {
        Parser::new(input).map(|event| format!("{event:?}")).collect()
    }

    /// Lines that are longer than a stretch, with everything that may end a scalar, at any offset.
    fn text() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            "[A-Za-z0-9+/=]{1,100}",
            "[!-~]{1,40}",
            "(a: |- |\\? |: |:|#| #|,|\\[|\\]|\\{|\\}|\n|\r\n|\t| |\n  |\n- |ü|€|𝄞|\u{85}|\u{feff}|\u{7f}|\"|'|\n---\n|\n\\.\\.\\.\n)",
        ];
        proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]
        #[test]
        fn parser_sees_the_same_events_as_over_its_own_input(text in text()) {
            prop_assert_eq!(events(TextInput::new(&text)), events(StrInput::new(&text)));
        }
    }

    #[test]
    fn scalars_of_every_length_end_where_they_end() {
        for length in 0..200 {
            for end in ["", "\n", ": b", " #c", ":", "ü: b", "\nnext: 1\n"] {
                let text = format!("key: {}{end}", "x".repeat(length));
                assert_eq!(events(TextInput::new(&text)), events(StrInput::new(&text)), "{text}");
            }
        }
    }
}
