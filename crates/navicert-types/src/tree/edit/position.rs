//! Where values end and lines begin, which the spans of a tree do not say.

use std::ops::Range;

use crate::tree::{MappingEntry, Node, Value};

/// A text with the positions that changes need.
pub(super) struct Layout<'t> {
    text: &'t str,
    has_carriage_returns: bool,
}

/// A part of a text; empty if the range is none of it.
pub(super) fn slice(text: &str, range: Range<usize>) -> &str {
    text.get(range).unwrap_or_default()
}

impl<'t> Layout<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let has_carriage_returns = text.split_once('\n').is_some_and(|(line, _)| line.ends_with('\r'));
        Layout { text, has_carriage_returns }
    }

    pub(super) fn slice(&self, range: Range<usize>) -> &'t str {
        slice(self.text, range)
    }

    /// Whether a list or mapping is written in brackets.
    pub(super) fn is_flow(&self, node: &Node) -> bool {
        self.slice(node.span.start..self.text.len()).starts_with(['{', '['])
    }

    /// Whether an entry is part of the text of its mapping: those of merge keys and aliases are elsewhere.
    pub(super) fn is_written_in(&self, container: &Node, entry: &MappingEntry) -> bool {
        entry.key_span.start >= container.span.start
    }

    /// The line ends of the file.
    pub(super) fn with_line_ends(&self, text: &str) -> String {
        if self.has_carriage_returns { text.replace('\n', "\r\n") } else { text.to_owned() }
    }

    /// The offset after the `:` of a key.
    pub(super) fn after_colon(&self, entry: &MappingEntry) -> Option<usize> {
        let rest = self.slice(entry.key_span.end..self.text.len());
        let blank = rest.len() - rest.trim_start().len();
        rest.trim_start().starts_with(':').then_some(entry.key_span.end + blank + 1)
    }

    /// The offset after the last character of an entry's value. `None` if the value is an alias.
    pub(super) fn end_of_entry(&self, entry: &MappingEntry) -> Option<usize> {
        let colon = self.after_colon(entry)?;
        if entry.value.is_null() && self.slice(entry.value.span.start..entry.value.span.end).trim().is_empty()
        {
            return Some(colon);
        }
        let end = self.end_of(&entry.value, colon)?;
        (end >= colon).then_some(end)
    }

    /// The offset after the last character of a value that begins at `from` or later.
    pub(super) fn end_of(&self, node: &Node, from: usize) -> Option<usize> {
        if node.span.start < from {
            return None;
        }
        if self.is_flow(node) && matches!(node.value, Value::Sequence(_) | Value::Mapping(_)) {
            return Some(node.span.end);
        }
        match &node.value {
            Value::Mapping(mapping) => {
                let own = mapping.entries().iter().rev().find(|entry| self.is_written_in(node, entry))?;
                self.end_of_entry(own)
            }
            Value::Sequence(items) => self.end_of(items.last()?, node.span.start),
            _ => {
                // A block scalar ends before the next token, an empty value has no text.
                let text = self.slice(node.span.start..node.span.end);
                Some(node.span.start + text.trim_end().len())
            }
        }
    }

    /// The column, from 0, of the `-` before an item. The span of a list that is not indented below its key does not say it.
    pub(super) fn dash_column(&self, item: &Node) -> Option<usize> {
        self.dash_before(item).map(|dash| self.column(dash))
    }

    /// Where a value begins, and its column from 0; a list in block style begins with the `-` of its first item.
    pub(super) fn start_of(&self, node: &Node) -> (usize, usize) {
        let first = node.as_sequence().and_then(<[Node]>::first).filter(|_| !self.is_flow(node));
        let start = first.and_then(|item| self.dash_before(item)).unwrap_or(node.span.start);
        (start, self.column(start))
    }

    /// The offset of the `-` before an item.
    fn dash_before(&self, item: &Node) -> Option<usize> {
        self.slice(0..item.span.start).trim_end().strip_suffix('-').map(str::len)
    }

    /// The column of an offset, from 0.
    fn column(&self, at: usize) -> usize {
        self.slice(self.line_start(at)..at).chars().count()
    }

    /// The offset of the first character of the line.
    pub(super) fn line_start(&self, at: usize) -> usize {
        self.slice(0..at).rfind('\n').map_or(0, |line_end| line_end + 1)
    }

    /// The offset of the line break at the end of the line, or of the end of the text.
    pub(super) fn line_end(&self, at: usize) -> usize {
        let rest = self.slice(at..self.text.len());
        let length = rest.find('\n').unwrap_or(rest.len());
        let line = slice(rest, 0..length);
        at + line.strip_suffix('\r').unwrap_or(line).len()
    }

    /// The offset after the line break, or the end of the text.
    pub(super) fn next_line(&self, at: usize) -> usize {
        let rest = self.slice(at..self.text.len());
        rest.find('\n').map_or(self.text.len(), |line_end| at + line_end + 1)
    }

    /// What follows on the line, if it is nothing but white space and a comment.
    pub(super) fn comment_after(&self, at: usize) -> Option<&'t str> {
        let rest = self.slice(at..self.line_end(at));
        let comment = rest.trim_start();
        let is_separate = comment.len() < rest.len();
        (comment.is_empty() || (comment.starts_with('#') && is_separate)).then_some(rest)
    }

    /// The white space before this offset, if there is nothing else before it on its line.
    pub(super) fn indentation(&self, at: usize) -> Option<&'t str> {
        let before = self.slice(self.line_start(at)..at);
        before.trim_matches([' ', '\t']).is_empty().then_some(before)
    }

    /// The offset of the line after the one where content ends, and after the comments that belong to that content: those that are
    /// indented deeper than the collection.
    pub(super) fn after_content(&self, end: usize, indent: usize) -> usize {
        let mut at = self.next_line(end);
        let mut next = at;
        while next < self.text.len() {
            let line = self.slice(next..self.line_end(next));
            let text = line.trim_start_matches(' ');
            if text.starts_with('#') && line.len() - text.len() > indent {
                at = self.next_line(next);
            } else if !text.trim().is_empty() {
                break;
            }
            next = self.next_line(next);
        }
        at
    }

    /// Inserts whole lines at the beginning of a line, or after the last line of a text that does not end with a line break.
    pub(super) fn insert_lines(&self, at: usize, lines: &str) -> super::Splice {
        let is_line_start = at == 0 || self.slice(0..at).ends_with('\n');
        let text = match is_line_start {
            true => lines.to_owned(),
            false => format!("\n{}", lines.strip_suffix('\n').unwrap_or(lines)),
        };
        super::Splice { range: at..at, text: self.with_line_ends(&text) }
    }
}

/// Lines with this many spaces before each that is not empty.
pub(super) fn indented(lines: &str, indent: usize) -> String {
    let spaces = " ".repeat(indent);
    let indented = |line: &str| match line.trim_end().is_empty() {
        true => line.to_owned(),
        false => format!("{spaces}{line}"),
    };
    lines.split_inclusive('\n').map(indented).collect()
}
