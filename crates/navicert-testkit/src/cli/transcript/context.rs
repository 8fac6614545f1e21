//! The environment of a transcript: an empty home, an empty working directory and few variables.

use std::path::{Component, Path, PathBuf};

use tempfile::TempDir;

use super::command::{Command, Stdin};
use super::filter::{Filters, literal};
use crate::cli::output_schema;
use crate::cli::program::{Outcome, Program};
use crate::platform;

/// A sandbox for one transcript, or for a test that runs a program itself.
///
/// The program sees `HOME`, `PATH` (what [`program`](Self::program) named, then `/usr/bin:/bin`), `TMPDIR`, and what
/// [`variable`](Self::variable) sets; nothing of the test run's own environment.
///
/// ```
/// use navicert_testkit::TestContext;
///
/// let context = TestContext::new().program("env", "/usr/bin/env").file("~/.kube/config", "apiVersion: v1\n");
/// let outcome = context.run("GREETING='hello there' env");
/// assert!(String::from_utf8_lossy(&outcome.stdout).contains("GREETING=hello there\n"));
/// assert!(context.home().join(".kube/config").exists());
/// ```
#[derive(Debug)]
#[must_use = "a context does nothing before a transcript runs in it"]
pub struct TestContext {
    sandbox: TempDir,
    variables: Vec<(String, String)>,
    literals: Vec<(String, String)>,
    filters: Filters,
}

impl TestContext {
    /// An empty sandbox with filters for its paths, for ports on loopback and for moments in time.
    #[expect(clippy::new_without_default, reason = "making directories is more than a default value")]
    pub fn new() -> Self {
        let sandbox = tempfile::tempdir().expect("a temporary directory");
        for directory in ["home", "work", "bin", "tmp"] {
            std::fs::create_dir(sandbox.path().join(directory)).expect("a directory in our own sandbox");
        }
        TestContext { sandbox, variables: Vec::new(), literals: Vec::new(), filters: Filters::usual() }
    }

    /// Makes a program known to transcripts by this name: `.program("navicert", env!("CARGO_BIN_EXE_navicert"))`.
    ///
    /// # Panics
    /// If there is no such file.
    pub fn program(self, name: &str, path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        assert!(path.is_file(), "{} is no program", path.display());
        let path = std::path::absolute(path).expect("a path");
        platform::symlink(&path, &self.bin().join(name))
            .unwrap_or_else(|error| panic!("cannot link {name}: {error}"));
        self
    }

    /// Sets a variable for every command.
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Puts a file into the working directory, or under `~/`.
    ///
    /// # Panics
    /// If the path leads out of the sandbox or cannot be written.
    pub fn file(self, path: &str, text: &str) -> Self {
        self.write(path, text, None).unwrap_or_else(|problem| panic!("{problem}"));
        self
    }

    /// Copies a file, or everything in a directory, into the working directory.
    ///
    /// # Panics
    /// If it cannot be read.
    pub fn copy(self, from: impl AsRef<Path>) -> Self {
        let from = from.as_ref();
        let to = if from.is_dir() {
            self.directory()
        } else {
            self.directory().join(from.file_name().unwrap_or_default())
        };
        copy(from, &to).unwrap_or_else(|error| panic!("cannot copy {}: {error}", from.display()));
        self
    }

    /// Replaces what the pattern matches in everything printed; `$1` stands for its first group.
    ///
    /// # Panics
    /// If the pattern is no regular expression.
    pub fn filter(mut self, pattern: &str, placeholder: &str) -> Self {
        self.filters.add(pattern, placeholder);
        self
    }

    /// Replaces this very text in everything printed, before the other filters: a version, a commit, a URL.
    pub fn replace(mut self, text: &str, placeholder: &str) -> Self {
        self.literals.push((text.to_owned(), placeholder.to_owned()));
        self
    }

    /// Leaves ports and times as they are printed.
    pub fn without_usual_filters(mut self) -> Self {
        self.filters = Filters::default();
        self
    }

    /// Its home directory; `[HOME]` in transcripts.
    pub fn home(&self) -> PathBuf {
        self.sandbox.path().join("home")
    }

    /// Its working directory; `[DIRECTORY]` in transcripts.
    pub fn directory(&self) -> PathBuf {
        self.sandbox.path().join("work")
    }

    /// Runs one command line, written as after `$ ` in a transcript, and returns its unfiltered outcome.
    ///
    /// # Panics
    /// If the line is no command or the program cannot be started.
    pub fn run(&self, line: &str) -> Outcome {
        let outcome = super::command::parse(line, &[]).and_then(|command| self.execute(&command, false));
        outcome.unwrap_or_else(|problem| panic!("{line}: {problem}"))
    }

    /// Runs a command and returns its output as a transcript shows it.
    pub(super) fn print(&self, command: &Command, merged: bool) -> Result<Vec<String>, String> {
        let outcome = self.execute(command, merged)?;
        let mut lines = Vec::new();
        self.show(&outcome.stdout, &mut lines);
        if !outcome.stderr.is_empty() {
            lines.push("[stderr]".to_owned());
            self.show(&outcome.stderr, &mut lines);
        }
        match (outcome.code(), outcome.signal()) {
            (Some(0), _) => {}
            (Some(code), _) => lines.push(format!("[exit {code}]")),
            (None, signal) => lines.push(format!("[signal {}]", signal.unwrap_or_default())),
        }
        Ok(lines)
    }

    /// Writes a file of a transcript or test.
    pub(super) fn write(&self, path: &str, text: &str, mode: Option<u32>) -> Result<(), String> {
        let path = self.inside(path)?;
        let written = path
            .parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| std::fs::write(&path, text))
            .and_then(|()| mode.map_or(Ok(()), |mode| platform::set_mode(&path, mode)));
        written.map_err(|error| format!("cannot write {}: {error}", path.display()))
    }

    fn execute(&self, command: &Command, merged: bool) -> Result<Outcome, String> {
        let path = self.bin().join(&command.program);
        if command.program.contains('/') || !path.exists() {
            return Err(format!("`{}` is no program this context knows", command.program));
        }
        let stdin = match &command.stdin {
            Stdin::Empty => Vec::new(),
            Stdin::Text(text) => text.clone().into_bytes(),
            Stdin::File(file) => {
                std::fs::read(self.inside(file)?).map_err(|error| format!("cannot read {file}: {error}"))?
            }
        };
        let program =
            Program::new(path).arguments(&command.arguments).own_environment().directory(&self.directory());
        let program = self
            .environment()
            .into_iter()
            .fold(program, |program, (name, value)| program.variable(name, value));
        let variables = self.variables.iter().chain(&command.variables);
        let program =
            variables.fold(program.stdin(stdin), |program, (name, value)| program.variable(name, value));
        let program = if merged { program.merged() } else { program };
        let outcome = program.run().map_err(|error| format!("cannot run {}: {error}", command.program))?;
        if command.program == "navicert" && !merged {
            output_schema::check(&command.arguments, &outcome.stdout)?;
        }
        Ok(outcome)
    }

    fn environment(&self) -> Vec<(&'static str, String)> {
        vec![
            ("HOME", self.home().display().to_string()),
            ("PATH", format!("{}:/usr/bin:/bin", self.bin().display())),
            ("TMPDIR", self.sandbox.path().join("tmp").display().to_string()),
        ]
    }

    fn show(&self, output: &[u8], lines: &mut Vec<String>) {
        let text = self.filtered(&String::from_utf8_lossy(output));
        lines.extend(text.lines().map(str::to_owned));
        if !text.is_empty() && !text.ends_with('\n') {
            lines.push("[no newline]".to_owned());
        }
    }

    /// The sandbox's own paths first: they may contain what another filter matches.
    fn filtered(&self, text: &str) -> String {
        let paths = [(self.home(), "[HOME]"), (self.directory(), "[DIRECTORY]"), (self.bin(), "[BIN]")];
        let root = (self.sandbox.path().to_owned(), "[SANDBOX]");
        let text = paths.into_iter().chain([root]).fold(text.to_owned(), |text, (path, placeholder)| {
            literal(&text, &path.display().to_string(), placeholder)
        });
        let text =
            self.literals.iter().fold(text, |text, (what, placeholder)| literal(&text, what, placeholder));
        self.filters.apply(&text)
    }

    fn bin(&self) -> PathBuf {
        self.sandbox.path().join("bin")
    }

    /// A path of a transcript, which may not lead out of the sandbox.
    fn inside(&self, path: &str) -> Result<PathBuf, String> {
        let (base, relative) = match path.strip_prefix("~/") {
            Some(relative) => (self.home(), relative),
            None => (self.directory(), path),
        };
        let tame = Path::new(relative)
            .components()
            .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if tame { Ok(base.join(relative)) } else { Err(format!("`{path}` leads out of the sandbox")) }
    }
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    if !from.is_dir() {
        return std::fs::copy(from, to).map(drop);
    }
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}
