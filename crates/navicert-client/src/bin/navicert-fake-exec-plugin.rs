//! The credential plugin of this crate's tests: it does what its environment says.
//!
//! `FAKE_RUNS` is a file that gets a line per run; `FAKE_DUMP` a file for what the plugin was given (the kind of its
//! standard input, whose process group it is in, then the question); `FAKE_STDERR` is complained; `FAKE_HOLD` is a socket to connect to and wait at;
//! `FAKE_TURNS` a file that gets a line when the plugin begins and one when it ends;
//! `FAKE_PROMPT` asks for a line and answers with it as token; `FAKE_STDOUT` is printed, with the number of this run for
//! every `{n}`; `FAKE_EXIT` is how it ends.

use std::fs::OpenOptions;
use std::io::{self, BufRead, IsTerminal, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use rustix::process::{getpgrp, getpid};

fn main() -> ExitCode {
    match play() {
        Ok(code) => ExitCode::from(code),
        Err(_) => ExitCode::from(98),
    }
}

#[expect(clippy::disallowed_methods, reason = "a plugin is told everything through its environment")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn play() -> io::Result<u8> {
    let run = variable("FAKE_RUNS").map(|path| count(&path)).transpose()?.unwrap_or(1);
    let turns = variable("FAKE_TURNS");
    if let Some(path) = &turns {
        append(path, "begin\n")?;
    }
    if let Some(path) = variable("FAKE_DUMP") {
        let question = variable("KUBERNETES_EXEC_INFO").unwrap_or_default();
        std::fs::write(path, format!("{}\n{}\n{question}", stdin_kind()?, group()))?;
    }
    if let Some(text) = variable("FAKE_STDERR") {
        io::stderr().write_all(text.as_bytes())?;
    }
    if let Some(socket) = variable("FAKE_HOLD") {
        let mut stream = UnixStream::connect(socket)?;
        stream.write_all(&[1])?;
        stream.read_to_end(&mut Vec::new())?;
    }
    let mut stdout = io::stdout();
    if variable("FAKE_PROMPT").is_some() {
        io::stderr().write_all(b"token: ")?;
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line)?;
        let line = line.trim_end();
        write!(
            stdout,
            "{{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"status\":{{\"token\":\"{line}\"}}}}"
        )?;
    }
    if let Some(text) = variable("FAKE_STDOUT") {
        stdout.write_all(text.replace("{n}", &run.to_string()).as_bytes())?;
    }
    stdout.flush()?;
    if let Some(path) = &turns {
        append(path, "end\n")?;
    }
    Ok(variable("FAKE_EXIT").and_then(|code| code.parse().ok()).unwrap_or(0))
}

/// Adds a line to the file; how many there are now.
fn count(path: &str) -> io::Result<usize> {
    append(path, "run\n")?;
    Ok(std::fs::read_to_string(path)?.lines().count())
}

fn append(path: &str, line: &str) -> io::Result<()> {
    OpenOptions::new().create(true).append(true).open(path)?.write_all(line.as_bytes())
}

fn group() -> &'static str {
    if getpgrp() == getpid() { "its own group" } else { "the caller's group" }
}

fn stdin_kind() -> io::Result<&'static str> {
    if io::stdin().is_terminal() {
        return Ok("terminal");
    }
    let file = std::fs::metadata("/proc/self/fd/0")?.file_type();
    Ok(if file.is_char_device() { "null" } else { "other" })
}
