//! `navicert-fake-plugin`, the program that tests run as a plugin: executes its arguments in order, then what its
//! environment says (`exec_credential.rs`).
//!
//! It is also the build script of the test kit, and then copies itself to where `navicert_testkit::cli::FAKE_PLUGIN`
//! points. Cargo does not build the binaries of a dependency, but it runs its build script: so the program exists and is up
//! to date for every test of every crate.
//!
//! `say=TEXT` `hex=BYTES` `err=TEXT` `errhex=BYTES` write; `args` `env` `cwd` `group` `descriptors` `cat` report;
//! `flood=MIB` and `flood-err=MIB` write that much; `park` sleeps forever; `hold=SOCKET` connects and blocks until the peer
//! closes, `touch=SOCKET` connects and continues; `leave=SOCKET` and `leave-session=SOCKET` start a grandchild that holds;
//! `signal=N` and `exit=N` end the process.

mod exec_credential;

use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{ExitCode, Stdio};
use std::thread;

use rustix::process::{Signal, getpgrp, getpid, kill_process, setsid};

fn main() -> ExitCode {
    match std::env::current_exe() {
        Ok(program) if is_build_script(&program) => match install(&program) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        _ => act_as_plugin(),
    }
}

fn is_build_script(program: &Path) -> bool {
    program.file_name().is_some_and(|name| name.as_bytes().starts_with(b"build-script-"))
}

/// Copies this program into Cargo's output directory.
#[expect(clippy::disallowed_methods, reason = "Cargo tells a build script through the environment")]
fn install(program: &Path) -> io::Result<()> {
    let directory = std::env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?;
    std::fs::copy(program, Path::new(&directory).join("navicert-fake-plugin"))?;
    print(b"cargo::rerun-if-changed=programs\n")
}

fn act_as_plugin() -> ExitCode {
    let steps: Vec<String> =
        std::env::args_os().skip(1).map(|step| step.to_string_lossy().into_owned()).collect();
    for step in &steps {
        let (verb, rest) = step.split_once('=').unwrap_or((step, ""));
        let done = match verb {
            "exit" => return ExitCode::from(rest.parse().unwrap_or(99)),
            "say" => print(rest.as_bytes()),
            "hex" => print(&bytes(rest)),
            "err" => io::stderr().write_all(rest.as_bytes()),
            "errhex" => io::stderr().write_all(&bytes(rest)),
            "args" => print(&joined(std::env::args_os().map(|argument| argument.as_bytes().to_vec()))),
            "env" => print(&environment()),
            "cwd" => std::env::current_dir().and_then(|directory| print(directory.as_os_str().as_bytes())),
            "group" => print(format!("{} {}", getpid(), getpgrp()).as_bytes()),
            "descriptors" => descriptors(),
            "cat" => io::copy(&mut io::stdin(), &mut io::stdout()).and_then(|_| io::stdout().flush()),
            "flood" => flood(&mut io::stdout(), rest),
            "flood-err" => flood(&mut io::stderr(), rest),
            "park" => park(),
            "hold" => hold(rest),
            "touch" => touch(rest),
            "new-session" => setsid().map(drop).map_err(Into::into),
            "leave" => leave(&[format!("hold={rest}")]),
            "leave-session" => leave(&["new-session".to_owned(), format!("hold={rest}")]),
            "signal" => die_by(rest),
            _ => Ok(()),
        };
        if done.is_err() {
            return ExitCode::from(98);
        }
    }
    exec_credential::run().map_or(ExitCode::from(98), ExitCode::from)
}

fn print(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout();
    stdout.write_all(bytes)?;
    stdout.flush()
}

fn bytes(hexadecimal: &str) -> Vec<u8> {
    let (pairs, _) = hexadecimal.as_bytes().as_chunks::<2>();
    let byte = |pair: &[u8; 2]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
    pairs.iter().filter_map(byte).collect()
}

fn joined(items: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    items.flat_map(|item| item.into_iter().chain([0])).collect()
}

#[expect(clippy::disallowed_methods, reason = "reporting its environment is what this program is for")]
fn environment() -> Vec<u8> {
    joined(std::env::vars_os().map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes()].concat()))
}

/// The open descriptors, without the one that looks.
fn descriptors() -> io::Result<()> {
    let mut open: Vec<String> = std::fs::read_dir("/proc/self/fd")?
        .map(|entry| entry.map(|entry| entry.path()))
        .filter(|path| path.as_ref().is_ok_and(|path| path.read_link().is_ok_and(|to| !to.ends_with("fd"))))
        .map(|path| path.map(|path| path.to_string_lossy().into_owned()))
        .collect::<io::Result<_>>()?;
    open.sort();
    print(open.join(" ").as_bytes())
}

fn flood(stream: &mut impl Write, mebibytes: &str) -> io::Result<()> {
    let chunk = [b'x'; 64 * 1024];
    let chunks = mebibytes.parse::<usize>().unwrap_or(0).saturating_mul(16);
    (0..chunks).try_for_each(|_| stream.write_all(&chunk))
}

/// Sleeps until the parent process exits, so that an aborted test run leaves no process behind.
fn park() -> ! {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    loop {
        thread::park();
    }
}

fn hold(socket: &str) -> io::Result<()> {
    connect(socket)?.read_to_end(&mut Vec::new()).map(drop)
}

/// Connects and says who it is.
fn connect(socket: &str) -> io::Result<UnixStream> {
    let mut stream = UnixStream::connect(socket)?;
    stream.write_all(&getpid().as_raw_nonzero().get().to_le_bytes())?;
    Ok(stream)
}

/// Connects and goes on: the connection ends with the process.
fn touch(socket: &str) -> io::Result<()> {
    connect(socket).map(std::mem::forget)
}

#[expect(clippy::disallowed_methods, reason = "a plugin may start programs: that is what is tested")]
fn leave(steps: &[String]) -> io::Result<()> {
    std::process::Command::new(std::env::current_exe()?).args(steps).stdin(Stdio::null()).spawn().map(drop)
}

fn die_by(number: &str) -> io::Result<()> {
    let signal = number.parse().ok().and_then(Signal::from_named_raw).ok_or(io::ErrorKind::InvalidInput)?;
    kill_process(getpid(), signal)?;
    park()
}
