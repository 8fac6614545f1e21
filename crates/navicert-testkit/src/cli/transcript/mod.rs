//! CLI tests as transcripts: Markdown whose `console` blocks are run and compared, so that documentation and test
//! are the same text.
//!
//! ````markdown
//! Any prose.
//!
//! ```yaml file=~/.kube/config
//! apiVersion: v1
//! ```
//!
//! ```console
//! $ KUBECONFIG=other.yaml navicert kubeconfig view
//! what it prints to standard output
//! [stderr]
//! what it prints to standard error
//! [exit 3]
//! $ navicert exec-plugin decode <<END
//! > {"kind": "ExecCredential"}
//! > END
//! ...
//! the last line of something long
//! ```
//! ````
//!
//! * A fence with `file=<path>` makes a file, relative to the working directory or under `~/`; `mode=755` sets its
//!   permissions.
//! * In a `console` fence each `$ ` begins a command. There is no shell: words are split at blanks, `'…'`, `"…"` and
//!   `\` quote, `KEY=value` in front sets a variable, `< file` and `<<WORD` give standard input (the lines of a here
//!   document, and of a command continued after `\`, begin with `> `). Anything else a shell would do is refused.
//! * Standard output comes first, then `[stderr]` and standard error if there is any, then `[exit N]` if N is not 0
//!   (`[signal N]` if a signal ended it), `[no newline]` after a stream that does not end in one.
//! * In a `console merged` fence both streams share one pipe, as on a terminal.
//! * `console enter=TEXT` says what a reader types at a prompt, for `scripts/test-quickstarts`; a transcript has no terminal.
//! * A line `...` matches any number of lines.
//! * A `console skip="reason"` fence is not run.
//!
//! `NAVICERT_TRANSCRIPTS=overwrite` rewrites the files with what the commands print now.

mod command;
mod compare;
mod context;
mod document;
mod filter;

use std::path::{Path, PathBuf};

pub use context::TestContext;
use document::{Block, Document, Session};

use crate::environment;

/// Checks one transcript, e.g. `README.md`, in a context of its own.
///
/// ```
/// use navicert_testkit::cli::transcript::{TestContext, check_file};
///
/// let directory = tempfile::tempdir().unwrap();
/// let path = directory.path().join("example.md");
/// std::fs::write(&path, "```console\n$ echo hello\nhello\n```\n").unwrap();
/// check_file(&path, TestContext::new().program("echo", "/bin/echo"));
/// ```
///
/// # Panics
/// If a command prints something else, with a diff for each; if the file cannot be read or says something that
/// is no transcript; if it runs no command.
#[expect(
    clippy::needless_pass_by_value,
    reason = "a context is used up: the next transcript needs a fresh one"
)]
pub fn check_file(path: &Path, context: TestContext) {
    if let Err(report) = check(path, &context, overwriting()) {
        panic!("{report}");
    }
}

/// Checks every `.md` file in a directory, each in a fresh context, and reports all mismatches at once.
///
/// # Panics
/// As for [`check_file`], and if there are no such files.
pub fn check_directory(directory: &Path, context: impl Fn() -> TestContext) {
    let entries = std::fs::read_dir(directory)
        .unwrap_or_else(|error| panic!("cannot list {}: {error}", directory.display()));
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    files.sort();
    assert!(!files.is_empty(), "no transcripts in {}", directory.display());
    let reports: Vec<String> =
        files.iter().filter_map(|path| check(path, &context(), overwriting()).err()).collect();
    assert!(reports.is_empty(), "{}", reports.join("\n"));
}

/// Compares a generated file, such as a page of reference, with what is generated now; `NAVICERT_TRANSCRIPTS=overwrite`
/// writes it.
///
/// # Panics
/// If the file has another text or cannot be read, with a diff.
pub fn check_generated(path: &Path, text: &str) {
    let name = path.display();
    if overwriting() {
        return std::fs::write(path, text).unwrap_or_else(|error| panic!("cannot write {name}: {error}"));
    }
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let found = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("cannot read {name}: {error}"));
    assert!(
        found == text,
        "{name} is not what is generated now; run again with NAVICERT_TRANSCRIPTS=overwrite\n{}",
        compare::difference(&lines(&found), &lines(text))
    );
}

fn overwriting() -> bool {
    match environment::variable("NAVICERT_TRANSCRIPTS") {
        None => false,
        Some(value) if value == "overwrite" => true,
        Some(value) => panic!("NAVICERT_TRANSCRIPTS is `{}`; it can only be `overwrite`", value.display()),
    }
}

fn check(path: &Path, context: &TestContext, overwrite: bool) -> Result<(), String> {
    let name = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| format!("cannot read {name}: {error}"))?;
    let mut document = Document::parse(&text).map_err(|problem| format!("{name}:{problem}"))?;
    let mismatches = play(&mut document, context).map_err(|problem| format!("{name}:{problem}"))?;
    if mismatches.is_empty() {
        return Ok(());
    }
    if overwrite {
        return std::fs::write(path, document.to_string())
            .map_err(|error| format!("cannot write {name}: {error}"));
    }
    let shown: Vec<String> = mismatches.iter().map(|mismatch| format!("{name}:{mismatch}")).collect();
    Err(format!(
        "{}\nrun again with NAVICERT_TRANSCRIPTS=overwrite to accept what is printed now",
        shown.join("\n")
    ))
}

/// Runs the document from top to bottom, puts what was printed in the place of what was expected where the two do
/// not match, and gives the differences.
fn play(document: &mut Document, context: &TestContext) -> Result<Vec<String>, String> {
    let mut mismatches = Vec::new();
    let mut ran = 0;
    for block in &mut document.blocks {
        match block {
            Block::Text(_) => {}
            Block::File(file) => context
                .write(&file.path, &file.text(), file.mode)
                .map_err(|problem| format!("{}: {problem}", file.line))?,
            Block::Console(console) if console.skipped => {}
            Block::Console(console) => {
                for session in &mut console.sessions {
                    ran += 1;
                    let problem = run(session, context, console.merged)
                        .map_err(|problem| format!("{}: {problem}", session.line))?;
                    mismatches.extend(problem);
                }
            }
        }
    }
    if ran == 0 {
        return Err(" it runs no command: that proves nothing".to_owned());
    }
    Ok(mismatches)
}

fn run(session: &mut Session, context: &TestContext, merged: bool) -> Result<Option<String>, String> {
    let command = command::parse(&session.command, &session.continuation)?;
    let printed = context.print(&command, merged)?;
    if let Some(line) = printed.iter().find(|line| line.starts_with("$ ") || line.starts_with("```")) {
        return Err(format!("`{line}` in the output would be read as Markdown; filter it"));
    }
    if compare::matches(&session.expected, &printed) {
        return Ok(None);
    }
    let difference = compare::difference(&session.expected, &printed);
    session.expected = printed;
    Ok(Some(format!("{}: $ {}\n{difference}", session.line, session.command)))
}

#[cfg(test)]
mod tests;
