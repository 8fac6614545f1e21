//! A program run to its end, and the most memory it held.
//!
//! The kernel tells the second to whoever waits for a program, but counts in what was there before it was started: the
//! memory of whoever started it. So a very small C program starts it, and says what the kernel said.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

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

/// The small program; nothing where there is no C compiler.
pub(super) fn launcher(folder: &Path) -> io::Result<Option<PathBuf>> {
    let (source, program) = (folder.join("launch.c"), folder.join("launch"));
    fs::write(&source, LAUNCHER)?;
    #[expect(clippy::disallowed_methods, reason = "compiling what weighs the contestants")]
    let mut compiler = std::process::Command::new("cc");
    match compiler.args(["-O2", "-static", "-o"]).arg(&program).arg(&source).status() {
        Ok(status) if status.success() => Ok(Some(program)),
        Ok(_) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

pub(super) fn say(line: &str) {
    let _ = writeln!(io::stderr(), "bench: {line}");
}
