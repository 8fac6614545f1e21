//! `navicert-signer-pkcs11`: an external TLS signer for keys in PKCS#11 tokens. A client runs it with one question and
//! reads one answer; people use `navicert signer`.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::process::ExitCode;
use std::sync::Arc;

use navicert_plugin::ProcessRunner;
use navicert_signer::program::{Surroundings, respond};
use navicert_types::SystemClock;
use navicert_types::external_signer::{CONFIG_VARIABLE, REQUEST_FD_VARIABLE};
use zeroize::Zeroizing;

/// No question is longer.
const LONGEST_QUESTION: u64 = 1 << 20;

const HELP: &str = "\
navicert-signer-pkcs11: an external TLS signer for keys in PKCS#11 tokens

A client runs this program; it takes no arguments. The question is on the descriptor
that EXTERNAL_SIGNER_REQUEST_FD names (v1), or in EXTERNAL_SIGNER_PLUGIN_CONFIG (v1alpha1).
`navicert signer list` shows keys and the kubeconfig lines that use them.

  NAVICERT_PKCS11_MODULE   the module, where a kubeconfig names none
  NAVICERT_PINENTRY        a program that asks for the PIN
  NAVICERT_SIGNER_SOCKET   where `navicert signer serve` listens
";

fn main() -> ExitCode {
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--version") {
        return print(concat!("navicert-signer-pkcs11 ", env!("CARGO_PKG_VERSION"), "\n"), 0);
    }
    if arguments.iter().any(|argument| argument == "--help") {
        return print(HELP, 0);
    }
    // A PIN passes through here: not for debuggers and other programs of the same user, and not into a core. Where the
    // system cannot do that, it works all the same.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
    let question = match question() {
        Ok(Some(question)) if arguments.is_empty() => question,
        Ok(_) => {
            let _ = io::stderr().write_all(HELP.as_bytes());
            return ExitCode::from(2);
        }
        Err(error) => {
            let _ = writeln!(io::stderr(), "navicert-signer-pkcs11: the question cannot be read: {error}");
            return ExitCode::from(3);
        }
    };
    let surroundings = Surroundings {
        environment: environment(),
        runner: Arc::new(ProcessRunner::new(Arc::new(SystemClock))),
    };
    let printed = respond(&question, io::stdin().is_terminal(), &surroundings);
    let _ = io::stderr().write_all(printed.stderr.as_bytes());
    print(&printed.stdout, if printed.success { 0 } else { 1 })
}

fn print(text: &str, code: u8) -> ExitCode {
    // If nobody reads it there is nobody to tell.
    let _ = io::stdout().write_all(text.as_bytes());
    ExitCode::from(code)
}

/// From the descriptor that is named, else from the variable.
fn question() -> io::Result<Option<Zeroizing<Vec<u8>>>> {
    let mut question = Zeroizing::new(Vec::with_capacity(16 << 10));
    match variable(REQUEST_FD_VARIABLE) {
        Some(number) if number == "0" => {
            io::stdin().take(LONGEST_QUESTION).read_to_end(&mut question)?;
        }
        Some(number) => {
            let number = number.to_str().and_then(|text| text.parse::<u32>().ok());
            let number = number.ok_or(io::ErrorKind::InvalidInput)?;
            File::open(format!("/dev/fd/{number}"))?.take(LONGEST_QUESTION).read_to_end(&mut question)?;
        }
        None => match variable(CONFIG_VARIABLE) {
            Some(text) => question.extend_from_slice(text.as_encoded_bytes()),
            None => return Ok(None),
        },
    }
    Ok(Some(question))
}

#[expect(clippy::disallowed_methods, reason = "this program's one look at a variable of its environment")]
fn variable(name: &str) -> Option<OsString> {
    env::var_os(name)
}

#[expect(clippy::disallowed_methods, reason = "pinentry inherits this program's environment")]
fn environment() -> navicert_plugin::Environment {
    env::vars_os().collect()
}
