//! The text of an expression, and the conversion of byte offsets to lines and columns.

/// Expression text with the offsets of its lines.
#[derive(Debug, Clone)]
pub struct Source {
    text: Box<str>,
    /// Byte offset of the first character of every line; never empty.
    line_starts: Vec<u32>,
}

/// A position in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Line, from 1.
    pub line: u32,
    /// Column in code points, from 1.
    pub column: u32,
}

/// A half-open byte range of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Source {
    /// Copies the text.
    pub fn new(text: &str) -> Self {
        let mut line_starts = vec![0];
        for offset in memchr::memchr_iter(b'\n', text.as_bytes()) {
            line_starts.push(u32::try_from(offset + 1).unwrap_or(u32::MAX));
        }
        Source { text: text.into(), line_starts }
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The part of the text that a span covers; empty if the span does not fit.
    pub fn slice(&self, span: Span) -> &str {
        self.text.get(span.start as usize..span.end as usize).unwrap_or("")
    }

    /// Line and column of a byte offset.
    pub fn position(&self, offset: u32) -> Position {
        let line = self.line_starts.partition_point(|&start| start <= offset).max(1);
        let start = self.line_starts.get(line - 1).copied().unwrap_or(0);
        let before = self.text.get(start as usize..offset as usize).unwrap_or("");
        let column = u32::try_from(before.chars().count()).unwrap_or(u32::MAX).saturating_add(1);
        Position { line: u32::try_from(line).unwrap_or(u32::MAX), column }
    }

    /// The text of a line (counted from one), without its line break.
    pub fn line(&self, line: u32) -> &str {
        let index = line.saturating_sub(1) as usize;
        let start = self.line_starts.get(index).copied().unwrap_or(0) as usize;
        let end = self.line_starts.get(index + 1).map_or(self.text.len(), |&next| next as usize);
        self.text.get(start..end).unwrap_or("").trim_end_matches(['\n', '\r'])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_code_points_and_line_breaks() {
        let source = Source::new("a\nβγ + x");
        assert_eq!(source.position(0), Position { line: 1, column: 1 });
        assert_eq!(source.position(2), Position { line: 2, column: 1 });
        assert_eq!(source.position(7), Position { line: 2, column: 4 });
        assert_eq!(source.line(2), "βγ + x");
    }
}
