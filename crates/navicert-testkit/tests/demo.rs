//! `make demo` ends well in every state of the machine, and docs/demo.md shows what it really prints.

#![expect(clippy::unwrap_used, reason = "a test's helpers fail by panicking")]

use std::path::Path;
use std::sync::Once;
use std::time::Duration;

use navicert_testkit::Program;
use navicert_testkit::cli::sibling::{DOCKER_HELPER, FAKE_SIGNER, NAVICERT, PKCS11_SIGNER};

const STAND_INS: [&str; 3] = ["without kubectl: ", "without SoftHSM: ", "without skopeo: "];

/// The demo, after all programs that it runs are built.
fn demo_path() -> &'static str {
    static BUILT: Once = Once::new();
    BUILT.call_once(|| {
        for program in [NAVICERT, DOCKER_HELPER, PKCS11_SIGNER, FAKE_SIGNER] {
            program.find_or_build();
        }
    });
    env!("CARGO_BIN_EXE_demo")
}

fn demo() -> Program {
    Program::new(demo_path()).merged().limit(Duration::from_mins(2))
}

/// Runs the demo to its end; what it printed has every scene and no secret.
fn shown_by(demo: &Program) -> String {
    let outcome = demo.run().unwrap();
    let shown = String::from_utf8_lossy(&outcome.stdout).into_owned();
    assert_eq!(outcome.code(), Some(0), "{shown}");
    for secret in ["ey.this-is-a-secret", "this-is-a-password", "demo-pin-271828"] {
        assert!(!shown.contains(secret), "{secret}: {shown}");
    }
    for line in ["pod/web", "manifest.json", "username  ann"] {
        assert!(shown.lines().any(|shown| shown.trim_end() == line), "missing `{line}`: {shown}");
    }
    assert!(shown.contains("Error from server (Forbidden)"), "kubectl was refused: {shown}");
    shown
}

#[test]
fn demo_ends_well_and_its_page_shows_its_real_output() {
    let shown = shown_by(&demo());
    let kept = shown.contains("always sensitive, never extractable, local");
    assert!(kept || shown.contains("without SoftHSM: "), "a key was made in a token: {shown}");

    let page =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/demo.md")).unwrap();
    let (_, block) = page.split_once("$ make demo\n").expect("docs/demo.md shows `make demo`");
    let (block, _) = block.split_once("```").expect("the block ends");
    let mut lines = shown.lines();
    for line in block.lines().filter(|line| *line != "...") {
        assert!(
            lines.any(|shown| shown == line),
            "docs/demo.md shows a line the demo does not print there: {line}"
        );
    }
}

#[test]
fn without_any_tool_stand_ins_are_named_in_one_line_each() {
    let shown = shown_by(&demo().arguments(["--embedded"]));
    for stand_in in STAND_INS {
        assert_eq!(shown.lines().filter(|line| line.starts_with(stand_in)).count(), 1, "{stand_in}{shown}");
    }
}

// Files can be made in /proc by no user, not even by root: a home directory that is read-only for certain.
#[test]
fn demo_needs_no_writable_home_and_no_path() {
    shown_by(&demo().own_environment().variable("HOME", "/proc").variable("PATH", "/no/such/folder"));
}

#[test]
fn demo_needs_no_variable_at_all() {
    shown_by(&demo().own_environment());
}

#[tokio::test]
async fn first_line_comes_within_two_seconds() {
    let demo = demo();
    let first = async {
        let running = demo.start_running().unwrap();
        running.wait_for_output("navicert: every Kubernetes credential").await;
    };
    let limit = Duration::from_secs(2);
    assert!(tokio::time::timeout(limit, first).await.is_ok(), "no output within {limit:?}");
}

#[test]
fn demo_ends_quietly_when_its_reader_closes_the_pipe() {
    let pipeline = Program::new("bash")
        .arguments(["-o", "pipefail", "-c", r#""$0" --embedded | head -n 1"#, demo_path()])
        .limit(Duration::from_mins(2));
    let outcome = pipeline.run().unwrap();
    let printed = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(printed(&outcome.stderr), "");
    assert_eq!(printed(&outcome.stdout), "navicert: every Kubernetes credential, on every side\n");
    assert_eq!(outcome.code(), Some(0));
}
