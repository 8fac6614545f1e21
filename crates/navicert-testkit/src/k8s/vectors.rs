//! Recorded decisions of Kubernetes: where they are, how they are read, and how a suite of them is run.
//!
//! They are in `conformance/vectors` of this repository; a missing file is a failure. The published suite of the
//! expression language is not part of the repository: [`published_cel_suite`] says where to look for it.

mod versions;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

pub use versions::{Override, VersionCounts, counts, overrides, reason_not_followed, vectors_of};

use serde_json::Value;

use crate::cli::program::Program;
use crate::{environment, report};

/// Names a directory whose `vectors/cel-conformance` has the published CEL suite as JSON.
const SHARED: &str = "NAVICERT_SHARED";
/// The name under which the published CEL suite is counted and reported.
const CEL_SUITE: &str = "cel-conformance";

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
    /// The input with the `id` that the response must have.
    pub fn request(&self) -> Value {
        let mut request = self.input.clone();
        request["id"] = Value::from(self.id.clone());
        request
    }
}

/// Sends requests to a command that prints one JSON line per input line, and returns the responses by `id`.
///
/// # Panics
/// If the command fails, or does not print one response with its `id` for every request.
pub fn responses(command: Program, requests: impl IntoIterator<Item = Value>) -> HashMap<String, Value> {
    let lines: Vec<String> = requests.into_iter().map(|request| format!("{request}\n")).collect();
    let outcome = command.stdin(lines.concat()).run().expect("the command starts");
    assert_eq!(outcome.code(), Some(0), "{}", String::from_utf8_lossy(&outcome.stderr));
    let parse = |line: &str| {
        let response: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let id =
            response["id"].as_str().unwrap_or_else(|| panic!("a response without an id: {line}")).to_owned();
        (id, response)
    };
    let responses: HashMap<String, Value> =
        String::from_utf8_lossy(&outcome.stdout).lines().map(parse).collect();
    assert_eq!(responses.len(), lines.len(), "every request has one response");
    responses
}

/// The directory of the recorded decisions.
pub fn dir() -> PathBuf {
    workspace().join("conformance/vectors")
}

/// The text of a file of the recorded decisions.
///
/// # Panics
/// If it is missing or is not text.
pub fn text(file: &str) -> String {
    read(&dir(), file)
}

/// A JSON document of the recorded decisions, such as `authn-configs.json`.
///
/// # Panics
/// If it is missing or is not JSON.
pub fn json(file: &str) -> Value {
    serde_json::from_str(&text(file)).unwrap_or_else(|error| panic!("{file} is not JSON: {error}"))
}

/// The lines of a file, each a JSON object.
///
/// # Panics
/// If the file is missing or has a line that is not JSON.
pub fn lines(file: &str) -> Vec<Value> {
    let line = |(index, line)| {
        serde_json::from_str(line)
            .unwrap_or_else(|error| panic!("{file}: line {} is not JSON: {error}", index + 1_usize))
    };
    text(file).lines().enumerate().map(line).collect()
}

/// The vectors of a file.
///
/// # Panics
/// If the file is missing or empty, or has a line that is no vector.
pub fn vectors(file: &str) -> Vec<Vector> {
    parse(&text(file)).unwrap_or_else(|problem| panic!("{file}: {problem}"))
}

/// The directory with the published CEL conformance suite as JSON; `None`, reported as skipped, if there is none.
///
/// It is looked for in `vectors/cel-conformance` of the directory that `NAVICERT_SHARED` names (by default `../shared` beside
/// the workspace) and in `target/peers/cel-conformance`, where `make peers` writes it.
///
/// # Panics
/// If `NAVICERT_SHARED` is set and has no such directory, or if nothing may be skipped.
pub fn published_cel_suite() -> Option<PathBuf> {
    let workspace = workspace();
    let named = environment::variable(SHARED).map(PathBuf::from);
    let found = locate(
        named.as_deref(),
        &workspace.join("../shared"),
        &workspace.join("target/peers").join(CEL_SUITE),
    );
    if found.is_none() {
        report::skipped(CEL_SUITE, "the published CEL suite is missing: run `make peers`, which reads it");
    }
    found
}

/// Runs every vector of a file through `decide`, which says what disagrees, and reports how many were checked.
///
/// All disagreements are shown at once. `suite` is the file's name without its extension; a further run of the same
/// file adds what it is in parentheses.
///
/// ```no_run
/// # fn our_verdict(_: &serde_json::Value) -> bool { true }
/// navicert_testkit::k8s::vectors::run_suite("kubeconfig (library)", "kubeconfig.jsonl", |vector| {
///     let (ours, theirs) = (our_verdict(&vector.input), vector.expect["valid"] == true);
///     if ours == theirs { Ok(()) } else { Err(format!("we say {ours}")) }
/// });
/// ```
///
/// # Panics
/// If a vector disagrees, or the file is missing.
pub fn run_suite(suite: &str, file: &str, decide: impl FnMut(&Vector) -> Result<(), String>) {
    check(suite, &vectors(file), decide);
}

/// Runs a table of vectors that the caller has chosen, e.g. a part of a file.
///
/// ```
/// use navicert_testkit::k8s::vectors::{Vector, check};
/// use serde_json::json;
///
/// let vector = Vector { id: "a-1".into(), input: json!(2), expect: json!(4), note: "squares".into() };
/// check("squares (documentation)", &[vector], |vector| {
///     let ours = vector.input.as_i64().map(|number| number * number);
///     if ours == vector.expect.as_i64() { Ok(()) } else { Err(format!("we say {ours:?}")) }
/// });
/// ```
///
/// # Panics
/// If a vector disagrees or there are none.
pub fn check(suite: &str, vectors: &[Vector], decide: impl FnMut(&Vector) -> Result<(), String>) {
    match verdict(suite, vectors, decide) {
        Ok(count) => report::checked(suite, count),
        Err(report) => panic!("{report}"),
    }
}

fn verdict(
    suite: &str,
    vectors: &[Vector],
    mut decide: impl FnMut(&Vector) -> Result<(), String>,
) -> Result<usize, String> {
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
        return Ok(vectors.len());
    }
    let heading = format!("suite {suite}: {} of {} vectors disagree", disagreements.len(), vectors.len());
    Err(format!("{heading}\n  {}", disagreements.join("\n  ")))
}

fn workspace() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("this crate is two folders below the workspace").to_owned()
}

fn read(dir: &Path, file: &str) -> String {
    let path = dir.join(file);
    std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("failed to read recorded decisions {}: {error}", path.display()))
}

/// A directory that was asked for has to exist; otherwise the first that exists.
fn locate(named: Option<&Path>, shared: &Path, made: &Path) -> Option<PathBuf> {
    let inside = |dir: &Path| dir.join("vectors").join(CEL_SUITE);
    if let Some(named) = named {
        let dir = inside(named);
        assert!(dir.is_dir(), "{SHARED} is set, but `{}` is missing", dir.display());
        return Some(dir);
    }
    [inside(shared), made.to_owned()].into_iter().find(|dir| dir.is_dir())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_its_four_members_or_is_refused_by_number() {
        let good = r#"{"id":"a-1","input":{"n":1},"expect":{"ok":true},"note":"one"}"#;
        let vectors = parse(good).unwrap();
        assert_eq!((vectors[0].id.as_str(), vectors[0].input["n"].as_i64()), ("a-1", Some(1)));
        for (bad, message) in [
            (r#"{"id":"a","input":{},"expect":{}}"#, "line 2: no `note`"),
            (r#"{"id":1,"input":{},"expect":{},"note":""}"#, "line 2: `id` and `note` are text"),
            ("", "line 2: not JSON"),
        ] {
            let problem = parse(&format!("{good}\n{bad}\n{good}")).unwrap_err();
            assert!(problem.starts_with(message), "{problem}");
        }
        assert_eq!(parse("").unwrap_err(), "no vectors in it");
    }

    #[test]
    fn all_disagreements_are_told_at_once_and_an_empty_suite_is_one() {
        let line = |id: u32| format!(r#"{{"id":"v{id}","input":{id},"expect":{{}},"note":"n{id}"}}"#);
        let vectors = parse(&[line(1), line(2), line(3)].join("\n")).unwrap();
        assert_eq!(verdict("x", &vectors, |_| Ok(())), Ok(3));
        let odd = |vector: &Vector| if vector.input == 2 { Ok(()) } else { Err("odd".to_owned()) };
        let report = verdict("x", &vectors, odd).unwrap_err();
        assert_eq!(report, "suite x: 2 of 3 vectors disagree\n  v1 (n1): odd\n  v3 (n3): odd");
        assert!(verdict("x", &[], |_| Ok(())).is_err());
    }

    /// The files that `make test` counts; one that is deleted is missed here and by its suite.
    const FILES: [(&str, usize); 13] = [
        ("authn-config.jsonl", 373),
        ("authn-token.jsonl", 605),
        ("cel.jsonl", 1176),
        ("exec-flow.jsonl", 45),
        ("exec-info.jsonl", 78),
        ("exec-output.jsonl", 314),
        ("image-config.jsonl", 124),
        ("image-keyring.jsonl", 156),
        ("image-match.jsonl", 359),
        ("image-response.jsonl", 131),
        ("kubeconfig.jsonl", 278),
        ("tls-verify.jsonl", 102),
        ("k8s/generated-1.37.jsonl", 3625),
    ];

    #[test]
    fn every_file_of_recorded_decisions_has_at_least_its_lines() {
        let lines = |file: &str| text(file).lines().count();
        for (file, least) in FILES {
            assert!(lines(file) >= least, "{file} has {} lines, not {least}", lines(file));
        }
        assert!(FILES.iter().map(|(_, least)| least).sum::<usize>() >= 7363);
    }

    #[test]
    fn ids_are_unique_over_all_files() {
        let mut seen = std::collections::HashSet::new();
        for (file, _) in FILES.iter().filter(|(file, _)| !file.starts_with("k8s/")) {
            for vector in vectors(file) {
                assert!(seen.insert(vector.id.clone()), "{} of {file} exists twice", vector.id);
            }
        }
    }

    #[test]
    #[should_panic(expected = "failed to read recorded decisions")]
    fn deleted_file_is_a_failure() {
        let copy = tempfile::tempdir().unwrap();
        for (file, _) in FILES.iter().filter(|(file, _)| !file.starts_with("k8s/")) {
            std::fs::copy(dir().join(file), copy.path().join(file)).unwrap();
        }
        assert_eq!(read(copy.path(), "cel.jsonl"), text("cel.jsonl"));
        std::fs::remove_file(copy.path().join("cel.jsonl")).unwrap();
        read(copy.path(), "cel.jsonl");
    }

    #[test]
    fn published_suite_is_found_where_it_was_asked_for_or_written() {
        let temp = tempfile::tempdir().unwrap();
        let (shared, made) = (temp.path().join("shared"), temp.path().join("made"));
        let inside = shared.join("vectors/cel-conformance");
        assert_eq!(locate(None, &shared, &made), None);
        std::fs::create_dir(&made).unwrap();
        assert_eq!(locate(None, &shared, &made), Some(made.clone()));
        std::fs::create_dir_all(&inside).unwrap();
        assert_eq!(locate(None, &shared, &made), Some(inside.clone()));
        assert_eq!(locate(Some(&shared), Path::new("/"), &made), Some(inside));
    }

    #[test]
    #[should_panic(
        expected = "NAVICERT_SHARED is set, but `/no/such/folder/vectors/cel-conformance` is missing"
    )]
    fn published_suite_that_was_asked_for_has_to_exist() {
        locate(Some(Path::new("/no/such/folder")), Path::new("/"), Path::new("/"));
    }
}
