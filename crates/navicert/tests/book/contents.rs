//! The table of contents at the head of every long page, generated from its headings.

use navicert_testkit::cli::transcript::check_generated;

use super::markdown::sections;
use super::{pages, read, workspace};

/// A page that does not fit two screens.
const MAX_LINES: usize = 100;
/// Fewer sections are seen at a glance.
const MIN_SECTIONS: usize = 3;
const HEAD: &str = "On this page: ";
/// Has a list with a line about each verb.
const OWN_CONTENTS: &str = "docs/reference/verbs.md";

#[test]
fn long_pages_begin_with_their_contents() {
    let mut long = 0;
    for page in pages().into_iter().filter(|page| page != OWN_CONTENTS) {
        let expected = with_contents(&read(&page));
        long += usize::from(expected.contains(&format!("\n{HEAD}")));
        check_generated(&workspace().join(&page), &expected);
    }
    assert!(long >= 15, "only {long} pages are long");
}

/// The page with current contents in front of its first section, or without if it is short.
pub(crate) fn with_contents(page: &str) -> String {
    let bare = without_contents(page);
    let sections = sections(&bare);
    if bare.lines().count() <= MAX_LINES || sections.len() < MIN_SECTIONS {
        return bare;
    }
    let links: Vec<String> = sections.iter().map(|(title, anchor)| format!("[{title}](#{anchor})")).collect();
    let (before, behind) = bare.split_once("\n## ").unwrap();
    format!("{before}\n{HEAD}{}\n\n## {behind}", links.join(" · "))
}

fn without_contents(text: &str) -> String {
    match text.split_once(&format!("\n{HEAD}")) {
        Some((before, rest)) => {
            let (_, behind) = rest.split_once("\n\n").unwrap();
            format!("{before}\n{behind}")
        }
        None => text.to_owned(),
    }
}
