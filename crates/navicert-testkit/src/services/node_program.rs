//! A program run by node that takes numbered commands from standard input and answers each with a line of JSON.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::cli::program::{Program, Running};
use crate::cli::tools;

/// How long a command may take: some are whole logins on a machine that is busy with other tests.
const COMMAND_LIMIT: Duration = Duration::from_mins(3);

/// The program, running until dropped. It ends with its standard input, so also when the test does.
#[derive(Debug)]
pub(super) struct NodeProgram {
    running: Running,
    /// Number of the last command.
    commands: AtomicUsize,
}

impl NodeProgram {
    /// Starts a script below `src/services`. Its first argument is the folder in which `scripts/install-tools` has installed the npm
    /// package. `None`, reported as skipped, if package or node is missing.
    ///
    /// # Panics
    /// If it does not start.
    pub(super) fn start<A: AsRef<OsStr>>(
        script: &str,
        package: &str,
        arguments: impl IntoIterator<Item = A>,
        variables: &[(&str, &Path)],
    ) -> Option<Self> {
        let module = tools::unpacked(package, &format!("{package}/node_modules/{package}"))?;
        let node = tools::installed("nodejs", "node")?;
        let folder = module.ancestors().nth(2).expect("a folder of modules");
        let mut program =
            Program::new(node).arguments([script_path(script)]).arguments([folder]).arguments(arguments);
        for (name, value) in variables {
            program = program.variable(name, value);
        }
        // An empty line is no command; it keeps standard input open.
        let running = program.stdin("\n").start_running().expect("node starts");
        Some(NodeProgram { running, commands: AtomicUsize::new(0) })
    }

    /// The answer to a command.
    ///
    /// # Panics
    /// If it does not answer, or answers with a failure.
    pub(super) async fn ask(&self, command: &str) -> Value {
        let number = self.commands.fetch_add(1, Ordering::SeqCst) + 1;
        self.running.type_in(&format!("{number} {command}\n"));
        // The program also logs to the same stream.
        let end = format!("\"number\":{number}}}\n");
        let output = self.running.wait_for_output_within(&end, COMMAND_LIMIT).await;
        let line = output.lines().find(|line| line.starts_with('{') && line.ends_with(end.trim_end()));
        let answer: Value =
            serde_json::from_str(line.expect("a line that starts with `{`")).expect("an answer in JSON");
        assert!(answer.get("failure").is_none(), "`{command}` failed: {answer}");
        answer
    }
}

/// A text of an answer.
///
/// # Panics
/// If it is missing.
pub(super) fn text(answer: &Value, name: &str) -> String {
    let value = answer.get(name).and_then(Value::as_str);
    value.unwrap_or_else(|| panic!("missing `{name}` in the program's answer")).to_owned()
}

fn script_path(script: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/services").join(script)
}
