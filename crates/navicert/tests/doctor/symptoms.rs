//! docs/symptoms.md: every row names a transcript, which has its command, answer and fix; the text that people see is printed by
//! the program that prints it for them: kubectl in the same set-up, containerd, pkcs11-tool.

use std::path::{Path, PathBuf};

use navicert_testkit::cli::tools;
use navicert_testkit::{TestContext, report};

/// A row of a table: `| you see <!-- CASE PRODUCER --> | run | it says | fix |`.
pub(crate) struct Row {
    pub(crate) seen: String,
    /// The transcript, below tests/transcripts and without `.md`.
    case: String,
    /// What prints the text: `kubectl ARGUMENTS` here, `containerd CHALLENGE` in pulls.rs, `pkcs11-tool` in signer.rs, `navicert` in the
    /// transcript, `recorded SUITE` in a decision of Kubernetes' own code, `interop kubectl …` in interop_symptoms.rs; `quoted`
    /// if no test runs that program.
    pub(crate) producer: String,
    command: String,
    says: String,
    fix: String,
}

pub(crate) fn rows() -> Vec<Row> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/symptoms.md");
    let text = std::fs::read_to_string(page).unwrap();
    let rows = text.lines().filter(|line| line.starts_with("| ") && line.contains("<!-- "));
    rows.map(|line| {
        let cells: Vec<&str> = line.trim_matches(['|', ' ']).split(" | ").map(str::trim).collect();
        assert_eq!(cells.len(), 4, "cells of {line}");
        let [seen, command, says, fix]: [&str; 4] = cells.try_into().unwrap();
        let (seen, comment) = seen.split_once(" <!-- ").unwrap();
        let (case, producer) = comment.trim_end_matches(" -->").split_once(' ').unwrap();
        Row {
            seen: seen.split('`').nth(1).unwrap().to_owned(),
            case: case.to_owned(),
            producer: producer.to_owned(),
            command: command.trim_matches('`').to_owned(),
            says: says.to_owned(),
            fix: fix.to_owned(),
        }
    })
    .collect()
}

/// Whether a line has the parts of the pattern, which are separated by `…`, in this order.
pub(crate) fn contains(line: &str, pattern: &str) -> bool {
    let mut rest = line;
    pattern.split('…').all(|part| match rest.split_once(part) {
        Some((_, behind)) => {
            rest = behind;
            true
        }
        None => false,
    })
}

/// Where kubectl looks for a cluster without a kubeconfig.
const LOCAL_PORT: &str = "localhost:8080";

/// Whether nothing listens there; reported as skipped if something does.
fn is_free(address: &str) -> bool {
    let is_free = std::net::TcpStream::connect(address).is_err();
    if !is_free {
        report::skipped("kubectl without a kubeconfig", &format!("a server listens on {address}"));
    }
    is_free
}

/// Runs kubectl in the set-up of a transcript that a row names, and compares what it prints with the row.
pub(crate) fn check_text(name: &str, context: &TestContext) {
    let case = format!("doctor/{name}");
    for row in rows().iter().filter(|row| row.case == case) {
        let Some(arguments) = row.producer.strip_prefix("kubectl ") else { continue };
        if tools::kubectl().is_none() || (row.seen.contains(LOCAL_PORT) && !is_free(LOCAL_PORT)) {
            return;
        }
        let outcome = context.run(&format!("debian-kubectl {arguments} --request-timeout 5s"));
        let printed = [outcome.stdout, outcome.stderr].concat();
        let printed = String::from_utf8_lossy(&printed);
        let is_printed = printed.lines().any(|line| contains(line, &row.seen));
        assert!(is_printed, "{case}: kubectl {arguments} does not print `{}`:\n{printed}", row.seen);
    }
}

/// The commands of a transcript, each with its output.
fn sessions(case: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts").join(format!("{case}.md"));
    assert!(path.exists(), "no transcript {case}");
    let text = std::fs::read_to_string(&path).unwrap();
    text.split("\n$ ").skip(1).map(|session| session.split("\n```").next().unwrap().to_owned()).collect()
}

#[test]
fn every_row_is_what_a_transcript_shows() {
    let rows = rows();
    let produced = rows.iter().filter(|row| row.producer != "quoted").count();
    assert!(rows.len() >= 60 && produced >= 50, "{} rows, {produced} produced", rows.len());
    for row in &rows {
        let shows = |session: &String, pattern: &str| session.lines().any(|line| contains(line, pattern));
        let found = sessions(&row.case).into_iter().any(|session| {
            let has_text = row.producer != "navicert" || shows(&session, &row.seen);
            session.starts_with(&row.command)
                && has_text
                && shows(&session, &row.says)
                && has_fix(row, &session)
        });
        assert!(found, "{}: no command of the transcript shows the row of `{}`", row.case, row.seen);
    }
}

/// The rows that no test produces, each with its reason in the page.
#[test]
fn only_what_needs_a_node_or_a_docker_daemon_is_quoted() {
    let quoted: Vec<String> =
        rows().into_iter().filter(|row| row.producer == "quoted").map(|row| row.seen).collect();
    let known = ["ImagePullBackOff", "no basic auth credentials", "plugin binary executable … did not exist"];
    assert_eq!(quoted, known);
}

/// Texts of the kubelet's own code, as recorded from it.
#[test]
fn recorded_texts_are_those_of_kubernetes() {
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/vectors");
    let mut checked = 0;
    for row in rows() {
        let Some(suite) = row.producer.strip_prefix("recorded ") else { continue };
        let recorded = std::fs::read_to_string(vectors.join(format!("{suite}.jsonl"))).unwrap();
        let mut errors =
            recorded.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let has_text = |line: serde_json::Value| {
            line["expect"]["error"].as_str().is_some_and(|error| contains(error, &row.seen))
        };
        assert!(errors.any(has_text), "{suite} has no `{}`", row.seen);
        checked += 1;
    }
    assert!(checked > 0);
}

/// A fix is the last line of `doctor` and `authn explain`, or the help of a finding. Other verbs name the cause alone.
fn has_fix(row: &Row, session: &str) -> bool {
    let lines = || session.lines().map(str::trim_start);
    let advice = |line: &str| {
        ["to do: ", "no errors; recommended: ", "= help: "]
            .iter()
            .find_map(|head| line.strip_prefix(head).map(str::to_owned))
    };
    let is_advised = lines().filter_map(advice).any(|advice| contains(&advice, &row.fix));
    let names_fixes = ["navicert doctor", "navicert authn explain"].contains(&row.command.as_str());
    is_advised || !names_fixes
}

/// A transcript that no test runs would prove nothing.
#[test]
fn every_transcript_of_a_row_is_run_by_a_test() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let read = |path: PathBuf| std::fs::read_to_string(path).unwrap();
    let doctor: String =
        std::fs::read_dir(tests.join("doctor")).unwrap().map(|entry| read(entry.unwrap().path())).collect();
    for row in rows() {
        match row.case.split_once('/') {
            Some(("doctor", name)) => {
                assert!(doctor.contains(&format!("\"{name}\"")), "no test runs {}", row.case);
            }
            Some((folder, name)) => {
                let source = read(tests.join(format!("{folder}.rs")));
                assert!(source.contains(&format!("\"{name}.md\"")), "no test runs {}", row.case);
            }
            // transcripts.rs runs every page of the directory itself.
            None => assert!(tests.join(format!("transcripts/{}.md", row.case)).exists(), "{}", row.case),
        }
    }
}

#[test]
fn patterns_match_their_parts_in_order() {
    assert!(contains("x `a` and `b`", "`…` and `…`") && contains("x", ""));
    assert!(!contains("b a", "a…b") && !contains("a", "b"));
}
