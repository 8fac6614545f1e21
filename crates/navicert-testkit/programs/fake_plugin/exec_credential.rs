//! The fake plugin as an exec credential plugin: environment variables, which a kubeconfig can set, say what it does.
//!
//! - `FAKE_RUNS`: file that gets a line per run
//! - `FAKE_DUMP`: file for the plugin's input: the kind of its standard input, its process group, and the request
//! - `FAKE_STDERR`: text to print to stderr
//! - `FAKE_HOLD`: socket to connect to and wait at
//! - `FAKE_TURNS`: file that gets a line when the plugin begins and one when it ends
//! - `FAKE_PROMPT`: if set, prompts for a line and returns it as the token
//! - `FAKE_STDOUT`: text to print, with the number of this run for every `{n}`
//! - `FAKE_EXIT`: exit code

use std::fs::OpenOptions;
use std::io::{self, BufRead, IsTerminal, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;

use rustix::process::{getpgrp, getpid};

#[expect(clippy::disallowed_methods, reason = "a plugin gets its input through the environment")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Does what the variables say and returns the exit code.
pub(crate) fn run() -> io::Result<u8> {
    let run = variable("FAKE_RUNS").map(|path| count(&path)).transpose()?.unwrap_or(1);
    let turns = variable("FAKE_TURNS");
    if let Some(path) = &turns {
        append(path, "begin\n")?;
    }
    if let Some(path) = variable("FAKE_DUMP") {
        let request = variable("KUBERNETES_EXEC_INFO").unwrap_or_default();
        std::fs::write(path, format!("{}\n{}\n{request}", stdin_kind()?, group()))?;
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

/// Appends a line to the file and returns the number of lines.
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
