//! What the tests read from a page: its links, the anchors of its headings, its console blocks.

use std::collections::BTreeMap;

/// The targets of links and pictures, outside of code.
pub(crate) fn links(text: &str) -> Vec<String> {
    let mut targets = Vec::new();
    for line in prose(text) {
        let visible: String = line.split('`').step_by(2).collect();
        let found = visible.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        targets.extend(found.map(str::to_owned));
    }
    targets
}

/// The anchors of the headings, as GitHub and mdBook make them, and those that the page sets itself (`<a id="…">`).
pub(crate) fn anchors(text: &str) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let own = text.split("<a id=\"").skip(1).filter_map(|rest| rest.split('"').next().map(str::to_owned));
    let headings = prose(text).into_iter().filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let slug = slug(line.trim_start_matches('#').trim());
            let count = seen.entry(slug.clone()).or_default();
            *count += 1;
            if *count == 1 { slug } else { format!("{slug}-{}", *count - 1) }
        })
        .chain(own)
        .collect()
}

/// Title and anchor of every second-level heading.
pub(crate) fn sections(text: &str) -> Vec<(String, String)> {
    let headings = prose(text).into_iter().filter(|line| line.starts_with('#'));
    let sections = headings.zip(anchors(text)).filter_map(|(line, anchor)| {
        let title = line.strip_prefix("## ")?;
        Some((title.trim().to_owned(), anchor))
    });
    sections.collect()
}

fn slug(heading: &str) -> String {
    let kept = heading.chars().filter_map(|symbol| match symbol {
        ' ' => Some('-'),
        '-' | '_' => Some(symbol),
        letter if letter.is_alphanumeric() => Some(letter.to_ascii_lowercase()),
        _ => None,
    });
    kept.collect()
}

/// The text of the first heading.
pub(crate) fn title(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim_start_matches("# ").replace('`', "")
}

/// The first paragraph as plain text, without links and without a last sentence that introduces a list or a command.
pub(crate) fn summary(text: &str) -> String {
    let lines = prose(text).join("\n");
    let is_paragraph =
        |block: &&str| !block.trim().is_empty() && !block.starts_with(['#', '|', '-', '*', '!', ' ']);
    let paragraph = lines
        .split("\n\n")
        .map(|block| block.trim_start_matches('\n'))
        .find(is_paragraph)
        .unwrap_or_default();
    let mut plain = String::new();
    for (index, piece) in paragraph.split('[').enumerate() {
        match piece.split_once("](") {
            Some((label, rest)) if index > 0 => {
                plain.push_str(label);
                plain.push_str(rest.split_once(')').map_or("", |(_, behind)| behind));
            }
            _ if index > 0 => plain.push_str(&format!("[{piece}")),
            _ => plain.push_str(piece),
        }
    }
    let plain = plain.replace('\n', " ");
    match plain.strip_suffix(':') {
        Some(begun) => begun.rsplit_once(". ").map_or_else(String::new, |(whole, _)| format!("{whole}.")),
        None => plain,
    }
}

/// A code block.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Fence {
    /// The first line of its text, counted from 1.
    pub(crate) line: usize,
    /// What follows the backticks.
    pub(crate) info: String,
    pub(crate) text: Vec<String>,
}

impl Fence {
    pub(crate) fn language(&self) -> &str {
        self.info.split(' ').next().unwrap_or_default()
    }

    /// The value of `NAME=VALUE`; with quotes, up to the end of the line.
    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        let (_, value) = self.info.split_once(&format!(" {name}="))?;
        match value.strip_prefix('"') {
            Some(quoted) => quoted.strip_suffix('"'),
            None => value.split(' ').next(),
        }
    }
}

/// The code blocks of a page, also those in lists.
pub(crate) fn fences(text: &str) -> Vec<Fence> {
    let mut fences = Vec::new();
    let mut open: Option<Fence> = None;
    for (index, line) in text.lines().enumerate() {
        match (line.trim_start().strip_prefix("```"), open.take()) {
            (Some(info), None) => {
                open = Some(Fence { line: index + 2, info: info.to_owned(), text: Vec::new() });
            }
            (Some(_), Some(fence)) => fences.push(fence),
            (None, Some(mut fence)) => {
                fence.text.push(line.trim_start().to_owned());
                open = Some(fence);
            }
            (None, None) => {}
        }
    }
    fences
}

/// Lines of code by indentation, outside of fences and lists.
pub(crate) fn indented(text: &str) -> Vec<&str> {
    let is_list =
        |line: &str| line.starts_with(['-', '*', ' ']) || line.chars().next().is_some_and(char::is_numeric);
    let mut in_list = false;
    prose(text)
        .into_iter()
        .filter(|line| {
            if !line.is_empty() && !line.starts_with("    ") {
                in_list = is_list(line);
            }
            line.starts_with("    ") && !in_list
        })
        .collect()
}

/// The lines outside of fences.
fn prose(text: &str) -> Vec<&str> {
    let mut inside = false;
    let is_fence = |line: &str| line.trim_start().starts_with("```");
    text.lines()
        .filter(|line| {
            let fence = is_fence(line);
            inside ^= fence;
            !inside && !fence
        })
        .collect()
}

#[test]
fn links_and_anchors_are_read_outside_of_code() {
    let text = "# One `navicert x [Y]`, two!\n[a](b.md#c) `[no](link)` ![p](q.svg)\n```\n# [no](code)\n```\n## Twice\n## Twice\n";
    assert_eq!(links(text), ["b.md#c", "q.svg"]);
    assert_eq!(anchors(text), ["one-navicert-x-y-two", "twice", "twice-1"]);
    let found = fences("```console\n$ a\n```\n1. x\n\n   ```sh tested=a/b skip=\"x y\"\n   b\n   ```\n");
    assert_eq!(
        (found[0].language(), found[0].line, found[0].text.as_slice()),
        ("console", 2, &["$ a".to_owned()][..])
    );
    assert_eq!((found[1].attribute("tested"), found[1].attribute("skip")), (Some("a/b"), Some("x y")));
    assert_eq!(
        sections("# A\n## B c\n### D\n## E\n"),
        [("B c".into(), "b-c".into()), ("E".into(), "e".into())]
    );
    assert_eq!(indented("text\n\n    code\n\n- item\n\n    more\n"), ["    code"]);
}
