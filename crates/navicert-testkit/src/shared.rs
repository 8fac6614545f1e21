//! Behaviour vectors: where they are, how they are read, and how a suite of them is run.
//!
//! They live outside the project. `NAVICERT_SHARED` names their folder; without it, `../shared` beside the
//! workspace is used if it is there. A suite that ran says so in one line, `SUITE <name>: <n> vectors agree`, on
//! standard error (not captured by the test harness), so that CI can tell it from a suite that was skipped.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Once;

use serde_json::Value;

use crate::environment;
use crate::program::Program;

const VARIABLE: &str = "NAVICERT_SHARED";

/// One recorded behaviour.
#[derive(Clone, Debug, PartialEq)]
pub struct Vector {
    /// Unique over all files.
    pub id: String,
    /// What goes in.
    pub input: Value,
    /// What comes out upstream.
    pub expect: Value,
    /// What it tests.
    pub note: String,
}

impl Vector {
    /// What goes in, with the `id` that its answer will have.
    pub fn question(&self) -> Value {
        let mut question = self.input.clone();
        question["id"] = Value::from(self.id.clone());
        question
    }
}

/// Puts questions to a command that answers each line of JSON with one, and gives the answers by their `id`.
///
/// # Panics
/// If the command does not end well, or does not answer every question with its `id`.
pub fn answers(command: Program, questions: impl IntoIterator<Item = Value>) -> HashMap<String, Value> {
    let lines: Vec<String> = questions.into_iter().map(|question| format!("{question}\n")).collect();
    let outcome = command.stdin(lines.concat()).run().expect("the command starts");
    assert_eq!(outcome.code(), Some(0), "{}", String::from_utf8_lossy(&outcome.stderr));
    let answer = |line: &str| {
        let answer: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let id =
            answer["id"].as_str().unwrap_or_else(|| panic!("an answer without an id: {line}")).to_owned();
        (id, answer)
    };
    let answers: HashMap<String, Value> =
        String::from_utf8_lossy(&outcome.stdout).lines().map(answer).collect();
    assert_eq!(answers.len(), lines.len(), "every question has one answer");
    answers
}

/// The folder of shared material, or `None`, with one printed line, if there is none by default.
///
/// # Panics
/// If `NAVICERT_SHARED` is set and no such folder exists.
pub fn root() -> Option<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let default = workspace.canonicalize().expect("the workspace is where it was built").join("../shared");
    let found = locate(environment::variable(VARIABLE).map(PathBuf::from), &default);
    if found.is_none() {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            say(&format!("vectors absent: set {VARIABLE} to the folder that has them to run their suites"));
        });
    }
    found
}

/// Reads `vectors/<file>`; `None` if there are no vectors by default.
///
/// # Panics
/// If the file is missing although the folder is there, is empty, or has a line that is no vector.
pub fn vectors(file: &str) -> Option<Vec<Vector>> {
    let path = root()?.join("vectors").join(file);
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
    Some(parse(&text).unwrap_or_else(|problem| panic!("{}: {problem}", path.display())))
}

/// Runs every vector of `vectors/<file>` through `decide`, which says what disagrees.
///
/// All disagreements are shown at once. Without vectors this does nothing but say so.
///
/// ```no_run
/// # fn our_verdict(_: &serde_json::Value) -> bool { true }
/// navicert_testkit::shared::run_suite("kubeconfig.jsonl", |vector| {
///     let (ours, theirs) = (our_verdict(&vector.input), vector.expect["valid"] == true);
///     if ours == theirs { Ok(()) } else { Err(format!("we say {ours}")) }
/// });
/// ```
///
/// # Panics
/// If a vector disagrees.
pub fn run_suite(file: &str, decide: impl FnMut(&Vector) -> Result<(), String>) {
    if let Some(vectors) = vectors(file) {
        check(file.trim_end_matches(".jsonl"), &vectors, decide);
    }
}

/// Runs a table of vectors that the caller has chosen, e.g. a part of a file.
///
/// ```
/// use navicert_testkit::shared::{Vector, check};
/// use serde_json::json;
///
/// let vector = Vector { id: "a-1".into(), input: json!(2), expect: json!(4), note: "squares".into() };
/// check("documentation", &[vector], |vector| {
///     let ours = vector.input.as_i64().map(|number| number * number);
///     if ours == vector.expect.as_i64() { Ok(()) } else { Err(format!("we say {ours:?}")) }
/// });
/// ```
///
/// # Panics
/// If a vector disagrees or there are none.
pub fn check(suite: &str, vectors: &[Vector], decide: impl FnMut(&Vector) -> Result<(), String>) {
    match verdict(suite, vectors, decide) {
        Ok(line) => say(&line),
        Err(report) => panic!("{report}"),
    }
}

fn verdict(
    suite: &str,
    vectors: &[Vector],
    mut decide: impl FnMut(&Vector) -> Result<(), String>,
) -> Result<String, String> {
    if vectors.is_empty() {
        return Err(format!("suite {suite} has no vectors: that proves nothing"));
    }
    let disagreements: Vec<String> = vectors
        .iter()
        .filter_map(|vector| {
            decide(vector).err().map(|problem| format!("{} ({}): {problem}", vector.id, vector.note))
        })
        .collect();
    if disagreements.is_empty() {
        return Ok(format!("SUITE {suite}: {} vectors agree", vectors.len()));
    }
    let heading = format!("suite {suite}: {} of {} vectors disagree", disagreements.len(), vectors.len());
    Err(format!("{heading}\n  {}", disagreements.join("\n  ")))
}

/// Set but missing is a mistake; absent by default is not.
fn locate(named: Option<PathBuf>, default: &Path) -> Option<PathBuf> {
    match named {
        Some(folder) => {
            assert!(folder.is_dir(), "{VARIABLE} names `{}`, and there is no such folder", folder.display());
            Some(folder)
        }
        None => default.is_dir().then(|| default.to_owned()),
    }
}

fn parse(text: &str) -> Result<Vec<Vector>, String> {
    let vectors: Vec<Vector> = text
        .lines()
        .enumerate()
        .map(|(index, line)| vector(line).map_err(|problem| format!("line {}: {problem}", index + 1)))
        .collect::<Result<_, _>>()?;
    if vectors.is_empty() { Err("no vectors in it".to_owned()) } else { Ok(vectors) }
}

fn vector(line: &str) -> Result<Vector, String> {
    let mut value: Value = serde_json::from_str(line).map_err(|error| format!("not JSON: {error}"))?;
    let mut take =
        |member: &str| value.get_mut(member).map(Value::take).ok_or_else(|| format!("no `{member}`"));
    let text =
        |value: Value| value.as_str().map(str::to_owned).ok_or_else(|| "`id` and `note` are text".to_owned());
    Ok(Vector {
        id: text(take("id")?)?,
        input: take("input")?,
        expect: take("expect")?,
        note: text(take("note")?)?,
    })
}

/// Straight to the stream: the test harness captures what the print macros write.
fn say(line: &str) {
    let _ = std::io::stderr().lock().write_all(format!("{line}\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Program;

    #[test]
    fn a_line_has_its_four_members_or_is_refused_by_number() {
        let good = r#"{"id":"a-1","input":{"n":1},"expect":{"ok":true},"note":"one"}"#;
        let vectors = parse(good).unwrap();
        assert_eq!((vectors[0].id.as_str(), vectors[0].input["n"].as_i64()), ("a-1", Some(1)));
        for (bad, complaint) in [
            (r#"{"id":"a","input":{},"expect":{}}"#, "line 2: no `note`"),
            (r#"{"id":1,"input":{},"expect":{},"note":""}"#, "line 2: `id` and `note` are text"),
            ("", "line 2: not JSON"),
        ] {
            let problem = parse(&format!("{good}\n{bad}\n{good}")).unwrap_err();
            assert!(problem.starts_with(complaint), "{problem}");
        }
        assert_eq!(parse("").unwrap_err(), "no vectors in it");
    }

    #[test]
    fn all_disagreements_are_told_at_once_and_an_empty_suite_is_one() {
        let line = |id: u32| format!(r#"{{"id":"v{id}","input":{id},"expect":{{}},"note":"n{id}"}}"#);
        let vectors = parse(&[line(1), line(2), line(3)].join("\n")).unwrap();
        assert_eq!(verdict("x", &vectors, |_| Ok(())), Ok("SUITE x: 3 vectors agree".to_owned()));
        let odd = |vector: &Vector| if vector.input == 2 { Ok(()) } else { Err("odd".to_owned()) };
        let report = verdict("x", &vectors, odd).unwrap_err();
        assert_eq!(report, "suite x: 2 of 3 vectors disagree\n  v1 (n1): odd\n  v3 (n3): odd");
        assert!(verdict("x", &[], |_| Ok(())).is_err());
    }

    /// Run by the test below, in a process of its own.
    #[test]
    fn a_suite_that_agrees() {
        let vector = vector(r#"{"id":"self-1","input":1,"expect":1,"note":"itself"}"#).unwrap();
        check("testkit-self", &[vector], |vector| {
            (vector.input == vector.expect).then_some(()).ok_or_else(|| "differs".to_owned())
        });
    }

    #[test]
    fn a_suites_line_is_seen_although_the_harness_captures_output() {
        let harness = std::env::current_exe().unwrap();
        let one = ["--exact", "shared::tests::a_suite_that_agrees"];
        let outcome = Program::new(harness).arguments(one).run().unwrap();
        assert!(outcome.status.success());
        let errors = String::from_utf8_lossy(&outcome.stderr).into_owned();
        assert!(errors.lines().any(|line| line == "SUITE testkit-self: 1 vectors agree"), "{errors}");
    }

    #[test]
    fn absent_by_default_is_nothing_and_a_default_that_exists_is_used() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(locate(None, folder.path()), Some(folder.path().to_owned()));
        assert_eq!(locate(None, &folder.path().join("missing")), None);
        assert_eq!(locate(Some(folder.path().to_owned()), Path::new("/")), Some(folder.path().to_owned()));
    }

    #[test]
    #[should_panic(expected = "NAVICERT_SHARED names `/no/such/folder`, and there is no such folder")]
    fn set_but_missing_is_a_failure() {
        locate(Some("/no/such/folder".into()), Path::new("/"));
    }
}
