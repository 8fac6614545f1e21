//! Reads PEM as Go's `encoding/pem` does: whatever is not a well-formed block is skipped. The lines that begin and end a block
//! stand at the left margin; the lines between them may be indented.

use base64::Engine as _;
use zeroize::Zeroizing;

use crate::base64::STANDARD;

const BEGIN: &[u8] = b"-----BEGIN ";
const END: &[u8] = b"-----END ";
const DASHES: &[u8] = b"-----";

/// One block.
pub struct Block {
    /// The text between `BEGIN` and the dashes.
    pub label: String,
    /// Whether it has headers.
    pub has_headers: bool,
    /// Whether a header marks it as encrypted.
    pub is_encrypted: bool,
    /// The content, which may be a key.
    pub der: Zeroizing<Vec<u8>>,
}

/// Every well-formed block, in order.
pub fn blocks(text: &[u8]) -> Vec<Block> {
    let lines: Vec<&[u8]> = text.split(|octet| *octet == b'\n').collect();
    let mut found = Vec::new();
    let mut begin = None;
    for (number, line) in lines.iter().enumerate() {
        if line.starts_with(END) {
            // Only the last line that begins a block counts, and the block has to be of the same kind.
            found.extend(begin.take().and_then(|begin| block(lines.get(begin..=number)?)));
        } else if line.windows(BEGIN.len()).any(|part| part == BEGIN) {
            begin = line.starts_with(BEGIN).then_some(number);
        }
    }
    found
}

/// A block from its lines, of which the first begins and the last ends it.
fn block(lines: &[&[u8]]) -> Option<Block> {
    let [first, content @ .., last] = lines else { return None };
    let label = label_of(first, BEGIN)?;
    if label_of(last, END)? != label {
        return None;
    }
    let headers = content.iter().take_while(|line| line.contains(&b':')).count();
    let (headers, content) = content.split_at_checked(headers)?;
    let mut packed = Zeroizing::new(Vec::new());
    for line in content {
        packed.extend(line.iter().filter(|octet| !matches!(octet, b' ' | b'\t' | b'\r')));
    }
    Some(Block {
        label: label.to_owned(),
        has_headers: !headers.is_empty(),
        is_encrypted: headers.iter().any(|line| line.trim_ascii_end().ends_with(b"ENCRYPTED")),
        der: Zeroizing::new(STANDARD.decode(&*packed).ok()?),
    })
}

fn label_of<'a>(line: &'a [u8], start: &[u8]) -> Option<&'a str> {
    let mut line = line.strip_suffix(b"\r").unwrap_or(line);
    while let [rest @ .., b' ' | b'\t'] = line {
        line = rest;
    }
    str::from_utf8(line.strip_prefix(start)?.strip_suffix(DASHES)?).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn labels(text: &str) -> Vec<String> {
        blocks(text.as_bytes()).into_iter().map(|block| block.label).collect()
    }

    // C180: what Go 1.26 makes of the same texts.
    #[test]
    fn reads_what_go_reads() {
        let plain = "-----BEGIN A-----\nAAAA\n-----END A-----\n";
        for (text, expected) in [
            (plain.to_owned(), 1),
            (plain.replace('\n', "\r\n"), 1),
            (plain.replace("AAAA", "  AA\tAA  "), 1),
            (plain.replace("A-----\n", "A----- \t\n"), 1),
            (plain.trim_end().to_owned(), 1),
            (format!("text\n{plain}\ntext\n{plain}"), 2),
            (plain.replace("AAAA", "AA==\n"), 1),
            (plain.replace("AAAA\n", ""), 1),
            (plain.replace("-----BEGIN", " -----BEGIN"), 0),
            (plain.replace("-----END", " -----END"), 0),
            (format!("text {plain}"), 0),
            (plain.replace('\n', "\r"), 0),
            (plain.replace('\n', " "), 0),
            (plain.replace("END A", "END B"), 0),
            (plain.replace("AAAA", "AA-_"), 0),
            (plain.replace("AAAA", "AAA"), 0),
            (plain.replace("END A-----", "END A----- x"), 0),
            (format!("-----BEGIN A-----\nAAAA\n{plain}"), 1),
            (format!("{}{plain}", plain.replace("AAAA", "!!!!")), 1),
            (format!("\u{feff}{plain}"), 0),
        ] {
            assert_eq!(labels(&text).len(), expected, "{text:?}");
        }
    }

    #[test]
    fn headers_are_told_from_content() {
        let text = "-----BEGIN K-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: x\n\nAAAA\n-----END K-----\n";
        let found = blocks(text.as_bytes());
        let [block] = found.as_slice() else { panic!("one block") };
        assert!(block.has_headers && block.is_encrypted);
        assert_eq!(&**block.der, [0, 0, 0]);
    }

    proptest! {
        #[test]
        fn reader_never_panics(text in "(-----BEGIN |-----END |A|-----|\n|\r| |:|=){0,40}") {
            let _ = blocks(text.as_bytes());
        }
    }
}
