//! What a test run has checked and what it has skipped, so that the run can end with one line that says both.
//!
//! `NAVICERT_TEST_REPORT` names a file that collects the facts of all test programs, one line each:
//! `checked<TAB>SUITE<TAB>COUNT` and `skipped<TAB>WHAT<TAB>REASON`. With `NAVICERT_REQUIRE_ALL=1` nothing may be
//! skipped but what needs the network.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use crate::environment;

const FILE: &str = "NAVICERT_TEST_REPORT";
const REQUIRE_ALL: &str = "NAVICERT_REQUIRE_ALL";

/// What may be skipped even if everything is required: advisories are fetched from the network.
const MAY_BE_SKIPPED: &str = "advisories";

/// Records that so many recorded decisions of a suite were compared and agreed.
///
/// A suite is named after its file, without the extension. A further run of the same decisions, such as one through the
/// library, adds what it is in parentheses (`kubeconfig (library)`) and is not counted again.
///
/// # Panics
/// If the report cannot be written.
pub fn checked(suite: &str, count: usize) {
    record(environment::variable(FILE), &["checked", suite, &count.to_string()]);
    say(&format!("SUITE {suite}: {count} decisions agree"));
}

/// Records that something was not tested, and why.
///
/// `what` is the package that `scripts/install-tools` would install, or the name of a suite.
///
/// # Panics
/// If nothing may be skipped (`NAVICERT_REQUIRE_ALL=1`), or the report cannot be written.
pub fn skipped(what: &str, reason: &str) {
    let everything = environment::variable(REQUIRE_ALL).is_some_and(|value| value == "1");
    skip(what, reason, everything, environment::variable(FILE));
}

fn skip(what: &str, reason: &str, everything: bool, file: Option<OsString>) {
    assert!(!everything || what == MAY_BE_SKIPPED, "{what} must not be skipped ({REQUIRE_ALL}=1): {reason}");
    record(file, &["skipped", what, reason]);
    say(&format!("skipped {what}: {reason}"));
}

/// One line and one write, so that lines of tests that run at the same time do not mix.
fn record(file: Option<OsString>, fields: &[&str]) {
    let Some(file) = file else { return };
    let path = Path::new(&file);
    let fields: Vec<String> = fields.iter().map(|field| field.replace(['\t', '\n'], " ")).collect();
    let line = format!("{}\n", fields.join("\t"));
    let written = OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .and_then(|mut report| report.write_all(line.as_bytes()));
    written.unwrap_or_else(|error| panic!("failed to write the test report {}: {error}", path.display()));
}

/// Straight to the stream: the test harness captures what the print macros write.
fn say(line: &str) {
    let _ = std::io::stderr().lock().write_all(format!("{line}\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::program::Program;

    #[test]
    fn facts_are_appended_one_per_line() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("report");
        record(Some(file.clone().into()), &["checked", "kubeconfig", "278"]);
        skip("softhsm2", "softhsm2-util\tis not\ninstalled", false, Some(file.clone().into()));
        skip("advisories", "no network", true, Some(file.clone().into()));
        let expected = "checked\tkubeconfig\t278\nskipped\tsofthsm2\tsofthsm2-util is not installed\n\
                        skipped\tadvisories\tno network\n";
        assert_eq!(std::fs::read_to_string(file).unwrap(), expected);
    }

    #[test]
    #[should_panic(expected = "nginx must not be skipped (NAVICERT_REQUIRE_ALL=1): nginx is not installed")]
    fn skipping_is_a_failure_where_everything_is_required() {
        skip("nginx", "nginx is not installed", true, None);
    }

    #[test]
    #[should_panic(expected = "failed to write the test report /no/such/folder/report")]
    fn report_that_cannot_be_written_is_a_failure() {
        record(Some("/no/such/folder/report".into()), &["checked", "kubeconfig", "278"]);
    }

    /// Run by the test below, in a process of its own.
    #[test]
    fn a_suite_that_agrees() {
        checked("testkit (itself)", 1);
    }

    #[test]
    fn a_suites_line_is_seen_although_the_harness_captures_output_and_reaches_the_report() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("report");
        let outcome = Program::new(std::env::current_exe().unwrap())
            .arguments(["--exact", "report::tests::a_suite_that_agrees"])
            .variable(FILE, &file)
            .run()
            .unwrap();
        assert!(outcome.status.success());
        let errors = String::from_utf8_lossy(&outcome.stderr).into_owned();
        assert!(errors.lines().any(|line| line == "SUITE testkit (itself): 1 decisions agree"), "{errors}");
        assert_eq!(std::fs::read_to_string(file).unwrap(), "checked\ttestkit (itself)\t1\n");
    }
}
