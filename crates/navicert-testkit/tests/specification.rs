//! The specification's numbers hold together: a number that is cited exists in `docs/spec`, and a number that exists is
//! cited by a test or has an entry with a reason in `docs/spec/untested.toml`.
//!
//! A number is an anchor of a specification page (`<a id="s123"></a>` defines S123). A citation is a number as a whole word
//! in a comment or a string of a Rust or Go file, or anywhere in a page, a script, a YAML or a TOML file. Of a range
//! (`S10–S12`) both ends are cited and nothing between them.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a test's helpers fail by panicking"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;

/// Folders in which numbers are cited, beside the pages at the top of the repository.
const FOLDERS: [&str; 8] = ["bench", "conformance", "crates", "docs", "examples", "fuzz", "peers", "scripts"];

/// Folders of builds and downloads.
const NOT_OURS: [&str; 5] = ["target", "bin", "node_modules", "corpus", "artifacts"];

/// Words that look like a number of the specification and are something else.
const OTHER_WORDS: [(&str, &str); 9] = [
    ("A0", "a hexadecimal byte"),
    ("A456", "digits of an identifier in a test"),
    ("C350", "a field of a line of /proc/net/tcp, in a test"),
    ("C352", "a field of a line of /proc/net/tcp, in a test"),
    ("H0", "a rule that does not exist, in a test of the error for it"),
    ("H77", "a rule that does not exist, in a test of the error for it"),
    ("I0101", "the beginning of a klog line"),
    ("T00", "the time of day in a date pattern"),
    ("X11", "the window system"),
];

static NUMBER: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\b([A-Z]{1,2})([0-9]{1,4})\b").unwrap());
static ANCHOR: LazyLock<Regex> = LazyLock::new(|| Regex::new(r#"<a id="([a-z]{1,2}[0-9]+)"></a>"#).unwrap());
static ENTRY: LazyLock<Regex> = LazyLock::new(|| Regex::new(r#"^([A-Z]+)([0-9]+) = "(.+)"$"#).unwrap());

/// A number of the specification, ordered by prefix and then as a number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Number {
    prefix: String,
    value: u32,
    text: String,
}

impl Number {
    fn new(prefix: &str, digits: &str) -> Number {
        Number {
            prefix: prefix.to_owned(),
            value: digits.parse().unwrap(),
            text: format!("{prefix}{digits}"),
        }
    }

    fn from_anchor(id: &str) -> Number {
        let digits = id.find(|letter: char| letter.is_ascii_digit()).unwrap();
        let (prefix, digits) = id.split_at(digits);
        Number::new(&prefix.to_uppercase(), digits)
    }
}

/// A number somewhere in the repository.
struct Citation {
    number: Number,
    file: PathBuf,
    line: usize,
    by_test: bool,
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    let bytes =
        std::fs::read(workspace().join(path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The pages that define numbers.
fn specifications() -> Vec<PathBuf> {
    let mut pages: Vec<PathBuf> = std::fs::read_dir(workspace().join("docs/spec"))
        .unwrap()
        .map(|entry| Path::new("docs/spec").join(entry.unwrap().file_name()))
        .filter(|page| {
            page.extension().is_some_and(|extension| extension == "md") && !page.ends_with("README.md")
        })
        .collect();
    pages.sort();
    pages
}

/// Every number that a page defines, with its page.
fn defined() -> BTreeMap<Number, PathBuf> {
    let mut numbers = BTreeMap::new();
    for page in specifications() {
        for anchor in ANCHOR.captures_iter(&read(&page)) {
            if let Some(other) = numbers.insert(Number::from_anchor(&anchor[1]), page.clone()) {
                panic!("{} and {} both define {}", other.display(), page.display(), &anchor[1]);
            }
        }
    }
    assert!(!numbers.is_empty(), "docs/spec defines no number");
    numbers
}

fn files_below(dir: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(workspace().join(dir)) else { return };
    for entry in entries {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let path = dir.join(&name);
        let kind = entry.file_type().unwrap();
        if kind.is_dir() && !name.starts_with('.') && !NOT_OURS.contains(&name.as_str()) {
            files_below(&path, files);
        } else if kind.is_file() {
            let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
            if ["rs", "go", "md", "yaml", "toml", "sh"].contains(&extension) {
                files.push(path);
            }
        }
    }
}

/// Everything that may cite a number: the specifications themselves too, for their references to each other.
fn citing_files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    for dir in FOLDERS {
        files_below(Path::new(dir), &mut files);
    }
    for page in ["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "README.md", "SECURITY.md"] {
        if workspace().join(page).exists() {
            files.push(page.into());
        }
    }
    files.retain(|file| !file.ends_with("untested.toml") && !file.ends_with("tests/specification.rs"));
    files.sort();
    assert!(files.len() > 300, "only {} files were found", files.len());
    files
}

/// Whether the whole file is a test: it lies below `tests`, is called `tests.rs`, or belongs to the conformance suites.
fn is_test(file: &Path) -> bool {
    file.starts_with("conformance")
        || file.starts_with("crates")
            && file.components().any(|part| part.as_os_str() == "tests" || part.as_os_str() == "tests.rs")
}

/// The line (from 1) at which a Rust file's own test module begins.
fn test_module(text: &str) -> Option<usize> {
    let lines: Vec<&str> = text.lines().collect();
    lines.windows(2).position(|pair| {
        pair[0].trim_start().starts_with("#[cfg(") && pair[0].contains("test") && {
            let next = pair[1].trim_start();
            next.starts_with("mod ") && next.ends_with('{')
        }
    })
}

/// The numbers of a file with a prefix that the specifications use.
fn citations(file: &Path, prefixes: &BTreeSet<&str>) -> Vec<Citation> {
    let text = read(file);
    let whole = is_test(file);
    let is_source = file.extension().is_some_and(|extension| extension == "rs" || extension == "go");
    let tests = if is_source { test_module(&text) } else { None };
    let prose = if is_source { comments_and_strings(&text) } else { text };
    let mut found = Vec::new();
    for (index, line) in prose.lines().enumerate() {
        for word in NUMBER.captures_iter(line) {
            let before = line[..word.get(0).unwrap().start()].chars().next_back();
            // `x5t#S256`, `%C3%A9`.
            let is_other = matches!(before, Some('#' | '%' | '\\'))
                || OTHER_WORDS.iter().any(|(other, _)| *other == &word[0]);
            if !is_other && prefixes.contains(&word[1]) {
                found.push(Citation {
                    number: Number::new(&word[1], &word[2]),
                    file: file.to_owned(),
                    line: index + 1,
                    by_test: whole || tests.is_some_and(|tests| index >= tests),
                });
            }
        }
    }
    found
}

/// The text with everything but comments, strings and line ends replaced by blanks.
fn comments_and_strings(text: &str) -> String {
    #[derive(Clone, Copy, PartialEq)]
    enum In {
        Code,
        LineComment,
        BlockComment,
        String,
        RawString(usize),
        Backticks,
    }
    let letters: Vec<char> = text.chars().collect();
    let starts = |at: usize, what: &str| {
        what.chars().enumerate().all(|(offset, letter)| letters.get(at + offset) == Some(&letter))
    };
    let mut kept = String::with_capacity(text.len());
    let mut state = In::Code;
    let mut at = 0;
    while let Some(&letter) = letters.get(at) {
        let mut taken = 1;
        let mut next = state;
        match state {
            In::Code => {
                let after_word = at > 0 && (letters[at - 1].is_alphanumeric() || letters[at - 1] == '_');
                let hashes = letters[at + 1..].iter().take_while(|letter| **letter == '#').count();
                if starts(at, "//") {
                    next = In::LineComment;
                } else if starts(at, "/*") {
                    next = In::BlockComment;
                } else if letter == 'r'
                    && (!after_word || starts(at - 1, "br"))
                    && letters.get(at + 1 + hashes) == Some(&'"')
                {
                    next = In::RawString(hashes);
                    taken = hashes + 2;
                } else if letter == '"' {
                    next = In::String;
                } else if letter == '`' {
                    next = In::Backticks;
                } else if letter == '\''
                    && (letters.get(at + 1) == Some(&'\\') || letters.get(at + 2) == Some(&'\''))
                {
                    // A character, not a lifetime.
                    let body = if letters.get(at + 1) == Some(&'\\') { 3 } else { 2 };
                    taken = body
                        + letters[(at + body).min(letters.len())..]
                            .iter()
                            .take_while(|letter| **letter != '\'')
                            .count()
                        + 1;
                }
            }
            In::LineComment if letter == '\n' => next = In::Code,
            In::BlockComment if starts(at, "*/") => next = In::Code,
            In::String if letter == '\\' => taken = 2,
            In::String if letter == '"' => next = In::Code,
            In::RawString(hashes)
                if letter == '"'
                    && letters[at + 1..].iter().take(hashes).filter(|letter| **letter == '#').count()
                        == hashes =>
            {
                next = In::Code;
                taken = 1 + hashes;
            }
            In::Backticks if letter == '`' => next = In::Code,
            _ => {}
        }
        for &letter in letters[at..].iter().take(taken) {
            kept.push(if letter == '\n' || state != In::Code { letter } else { ' ' });
        }
        state = next;
        at += taken;
    }
    kept
}

/// The entries of `untested.toml`: number, reason.
fn untested() -> BTreeMap<Number, String> {
    let mut entries = BTreeMap::new();
    let mut table = String::new();
    for (index, line) in read(Path::new("docs/spec/untested.toml")).lines().enumerate() {
        let at = index + 1;
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            name.clone_into(&mut table);
            continue;
        }
        let Some(entry) = ENTRY.captures(line) else {
            panic!("docs/spec/untested.toml:{at}: expected `S123 = \"reason\"`, found `{line}`")
        };
        assert_eq!(
            &entry[1], table,
            "docs/spec/untested.toml:{at}: {line} is in the table of another prefix"
        );
        let again = entries.insert(Number::new(&entry[1], &entry[2]), entry[3].to_owned());
        assert_eq!(again, None, "docs/spec/untested.toml:{at}: second entry for {line}");
    }
    entries
}

fn all_citations(defined: &BTreeMap<Number, PathBuf>) -> Vec<Citation> {
    let prefixes: BTreeSet<&str> = defined.keys().map(|number| number.prefix.as_str()).collect();
    citing_files().iter().flat_map(|file| citations(file, &prefixes)).collect()
}

#[test]
fn cited_numbers_exist() {
    let defined = defined();
    let citations = all_citations(&defined);
    let missing: Vec<String> = citations
        .iter()
        .filter(|citation| !defined.contains_key(&citation.number))
        .map(|citation| format!("{}:{}: {}", citation.file.display(), citation.line, citation.number.text))
        .collect();
    assert!(missing.is_empty(), "cited and not in docs/spec:\n{}", missing.join("\n"));
    assert!(citations.len() > 1_000, "only {} citations were found", citations.len());
}

#[expect(clippy::print_stdout, reason = "the figures are for the reader of a test run")]
#[test]
fn every_number_has_a_test_or_a_reason() {
    let defined = defined();
    let tested: BTreeSet<Number> = all_citations(&defined)
        .into_iter()
        .filter(|citation| citation.by_test)
        .map(|citation| citation.number)
        .collect();
    let untested = untested();

    let mut figures: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for number in defined.keys() {
        let (with_test, all) = figures.entry(&number.prefix).or_default();
        *with_test += usize::from(tested.contains(number));
        *all += 1;
    }
    for (prefix, (with_test, all)) in &figures {
        println!("{prefix}: {with_test} of {all} numbers are cited by a test ({} %)", with_test * 100 / all);
    }

    let mut wrong = Vec::new();
    for (number, page) in &defined {
        if !tested.contains(number) && !untested.contains_key(number) {
            wrong.push(format!("{} ({}) has neither a test nor an entry", number.text, page.display()));
        }
    }
    for number in untested.keys() {
        if tested.contains(number) {
            wrong.push(format!("{} has a test: remove its entry", number.text));
        } else if !defined.contains_key(number) {
            wrong.push(format!("{} has an entry and is not in docs/spec", number.text));
        }
    }
    assert!(wrong.is_empty(), "docs/spec/untested.toml:\n{}", wrong.join("\n"));
}

#[test]
fn anchors_stand_at_their_number() {
    for page in specifications() {
        for (index, line) in read(&page).lines().enumerate() {
            for anchor in ANCHOR.captures_iter(line) {
                let number = Number::from_anchor(&anchor[1]);
                let rest = line[anchor.get(0).unwrap().end()..].trim_start_matches(['*', '`', ' ']);
                let stands = rest
                    .strip_prefix(&number.text)
                    .is_some_and(|rest| !rest.starts_with(|letter: char| letter.is_ascii_alphanumeric()));
                assert!(
                    stands,
                    "{}:{}: the anchor of {} stands before something else",
                    page.display(),
                    index + 1,
                    number.text
                );
            }
        }
    }
}

#[test]
fn the_overview_lists_every_page_and_prefix() {
    let overview = read(Path::new("docs/spec/README.md"));
    for (number, page) in defined() {
        let name = page.file_name().unwrap().to_str().unwrap();
        let row = overview.lines().find(|line| line.starts_with(&format!("| [{name}]({name})")));
        let row = row.unwrap_or_else(|| panic!("docs/spec/README.md does not list {name}"));
        let prefix = &number.prefix;
        assert!(
            row.contains(&format!("`{prefix}`")),
            "docs/spec/README.md does not list prefix {prefix} of {name}"
        );
    }
}

#[test]
fn only_comments_and_strings_cite() {
    let source = "let x = Rule::H7; // S1\nlet c = '\"'; let l: &'a str = \"S2 \\\" S3\";\n/* S4\nS5 */ S6 r#\"S7 \" S8\"# S9 '\\'' S10 // it's S11\n";
    let kept = comments_and_strings(source);
    let found: Vec<&str> = NUMBER.find_iter(&kept).map(|found| found.as_str()).collect();
    assert_eq!(found, ["S1", "S2", "S3", "S4", "S5", "S7", "S8", "S11"], "{kept}");
    assert_eq!(kept.lines().count(), source.lines().count(), "lines keep their numbers");
}
