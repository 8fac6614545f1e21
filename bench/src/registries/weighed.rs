//! A program run to its end, and the most memory it held.
//!
//! `wait4` reports the second, but the peak includes the memory of the process that forked. So a very small C program starts
//! it and prints what `wait4` reported.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::needs;
use crate::race::Fault;

const LAUNCHER: &str = "#include <stdio.h>\n#include <sys/resource.h>\n#include <sys/wait.h>\n#include <unistd.h>\n\
    int main(int n, char **a) {\n  pid_t p = fork();\n  if (p == 0) { execv(a[1], a + 1); _exit(127); }\n  \
    int s; struct rusage u;\n  if (n < 2 || p < 0 || wait4(p, &s, 0, &u) != p) return 126;\n  \
    fprintf(stderr, \"\\npeak %ld\\n\", u.ru_maxrss);\n  return 0;\n}\n";

/// What a finished program left.
pub(super) struct Done {
    pub(super) stdout: Vec<u8>,
    stderr: String,
}

impl Done {
    /// The most memory it held, in bytes; the kernel counts in kibibytes.
    pub(super) fn peak(&self) -> Option<u64> {
        let line = self.stderr.lines().rev().find_map(|line| line.strip_prefix("peak "))?;
        line.parse::<u64>().ok()?.checked_mul(1024)
    }
}

/// Runs a program with exactly this environment and input.
pub(super) fn run(
    program: &Path,
    arguments: &[&str],
    environment: &[(&str, &str)],
    stdin: &str,
) -> io::Result<Done> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the race is about starting a program, with nothing of ours around it"
    )]
    let mut command = std::process::Command::new(program);
    command.args(arguments).env_clear().envs(environment.iter().copied());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(stdin.as_bytes())?;
    }
    let (mut stdout, mut stderr) = (Vec::with_capacity(1024), Vec::new());
    if let Some(mut output) = child.stdout.take() {
        output.read_to_end(&mut stdout)?;
    }
    // A few lines at most: they wait in the pipe.
    if let Some(mut complaints) = child.stderr.take() {
        complaints.read_to_end(&mut stderr)?;
    }
    child.wait()?;
    Ok(Done { stdout, stderr: String::from_utf8_lossy(&stderr).into_owned() })
}

/// Compiles the small program.
pub(super) fn launcher(dir: &Path) -> Result<PathBuf, Fault> {
    let (source, program) = (dir.join("launch.c"), dir.join("launch"));
    fs::write(&source, LAUNCHER)?;
    needs::compile_c(&["-O2", "-static"], &source, &program)?;
    Ok(program)
}
