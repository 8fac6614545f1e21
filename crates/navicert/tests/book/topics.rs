//! Generates the summaries that `navicert help TOPIC` prints from the guides, and checks what it prints.

use std::fmt::Write as _;

use navicert_testkit::cli::transcript::{TestContext, check_generated};

use super::{markdown, read, workspace};

/// Guides about one verb of the same name: `navicert help VERB` is its help.
const VERBS: [&str; 5] = ["doctor", "kubeconfig", "login", "run", "serve"];
const COLUMNS: usize = 80;

#[test]
fn summaries_of_the_guides_are_current() {
    let mut code = String::from(
        "//! The summaries of the guides. Generated from docs/ by a test of this crate, `book`; do not edit.\n\n\
         use super::Topic;\n\n#[rustfmt::skip]\npub(crate) const TOPICS: &[Topic] = &[\n",
    );
    for (name, page) in guides() {
        let (title, summary) = (markdown::title(&page), wrap(&markdown::summary(&page)));
        assert!(!summary.is_empty(), "docs/{name}.md does not begin with a paragraph");
        let _ = writeln!(code, "    Topic {{ name: {name:?}, title: {title:?}, summary: {summary:?} }},");
    }
    code.push_str("];\n");
    check_generated(&workspace().join("crates/navicert/src/command/help/topics.rs"), &code);
}

#[test]
fn help_prints_every_topic_and_lists_them() {
    let context = TestContext::new().program("navicert", env!("CARGO_BIN_EXE_navicert"));
    let print = |line: &str| {
        let outcome = context.run(line);
        assert_eq!(outcome.code(), Some(0), "{line}");
        String::from_utf8(outcome.stdout).unwrap()
    };
    let list = print("navicert help topics");
    assert!(list.lines().all(|line| line.chars().count() <= 100), "{list}");
    for (name, page) in guides() {
        assert!(list.lines().any(|line| line.starts_with(&format!("  {name} "))), "{name}: {list}");
        let text = print(&format!("navicert help {name}"));
        assert!(text.starts_with(&markdown::title(&page)), "{name}: {text}");
        assert!(text.ends_with(&format!("\nThe whole guide: docs/{name}.md\n")), "{text}");
    }
    for verb in VERBS {
        assert!(print(&format!("navicert help {verb}")).contains("Usage: navicert "), "{verb}");
    }
    assert!(print("navicert help -o json webhook").contains("\"title\": \"TokenReview webhook\""));
    assert!(print("navicert help -o json topics").contains("\"name\": \"webhook\""));
}

/// The guides directly below docs/, by name.
fn guides() -> Vec<(String, String)> {
    let pages = super::pages().into_iter().filter_map(|path| {
        let name = path.strip_prefix("docs/")?.strip_suffix(".md")?.to_owned();
        let is_guide = !name.contains('/') && name != "README" && !VERBS.contains(&name.as_str());
        is_guide.then(|| (name, read(&path)))
    });
    pages.collect()
}

fn wrap(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= COLUMNS => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}
