//! `navicert-signer-pkcs11`: an external TLS signer for keys in PKCS#11 tokens. Clients run it once per request; users run
//! `navicert signer`.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::process::ExitCode;
use std::sync::Arc;

use navicert_plugin::ProcessRunner;
use navicert_signer::program::{SignerEnvironment, respond};
use navicert_types::SystemClock;
use navicert_types::external_signer::{CONFIG_VARIABLE, REQUEST_FD_VARIABLE};
use zeroize::Zeroizing;

/// The longest request.
const MAX_REQUEST_BYTES: u64 = 1 << 20;

const HELP: &str = "\
External TLS signer for keys in PKCS#11 tokens

Usage: navicert-signer-pkcs11

Clients run this program; it takes no arguments. It reads the request from the file
descriptor in EXTERNAL_SIGNER_REQUEST_FD (v1) or from EXTERNAL_SIGNER_PLUGIN_CONFIG
(v1alpha1). Run `navicert signer list` to show keys and the kubeconfig lines for them.

Environment variables:
  NAVICERT_PKCS11_MODULE   Default PKCS#11 module for kubeconfigs that name none
  NAVICERT_PINENTRY        Pinentry program that asks for the PIN
  NAVICERT_SIGNER_SOCKET   Socket path of `navicert signer serve`
";

fn main() -> ExitCode {
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--version") {
        return print(concat!("navicert-signer-pkcs11 ", env!("CARGO_PKG_VERSION"), "\n"), 0);
    }
    if arguments.iter().any(|argument| argument == "--help") {
        return print(HELP, 0);
    }
    // This process handles a PIN, so keep it out of core dumps and away from debuggers. Continue if that fails.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
    let request = match read_request() {
        Ok(Some(request)) if arguments.is_empty() => request,
        Ok(_) => {
            let _ = io::stderr().write_all(HELP.as_bytes());
            return ExitCode::from(2);
        }
        Err(error) => {
            let _ = writeln!(io::stderr(), "navicert-signer-pkcs11: failed to read the request: {error}");
            return ExitCode::from(3);
        }
    };
    let signer_environment = SignerEnvironment {
        environment: environment(),
        runner: Arc::new(ProcessRunner::new(Arc::new(SystemClock))),
    };
    let printed = respond(&request, io::stdin().is_terminal(), &signer_environment);
    let _ = io::stderr().write_all(printed.stderr.as_bytes());
    print(&printed.stdout, if printed.success { 0 } else { 1 })
}

fn print(text: &str, code: u8) -> ExitCode {
    // A write error cannot be reported anywhere.
    let _ = io::stdout().write_all(text.as_bytes());
    ExitCode::from(code)
}

/// Reads the request from the file descriptor, or else from the environment variable.
fn read_request() -> io::Result<Option<Zeroizing<Vec<u8>>>> {
    let mut request = Zeroizing::new(Vec::with_capacity(16 << 10));
    match variable(REQUEST_FD_VARIABLE) {
        Some(number) if number == "0" => {
            io::stdin().take(MAX_REQUEST_BYTES).read_to_end(&mut request)?;
        }
        Some(number) => {
            let number = number.to_str().and_then(|text| text.parse::<u32>().ok());
            let number = number.ok_or(io::ErrorKind::InvalidInput)?;
            File::open(format!("/dev/fd/{number}"))?.take(MAX_REQUEST_BYTES).read_to_end(&mut request)?;
        }
        None => match variable(CONFIG_VARIABLE) {
            Some(text) => request.extend_from_slice(text.as_encoded_bytes()),
            None => return Ok(None),
        },
    }
    Ok(Some(request))
}

#[expect(clippy::disallowed_methods, reason = "reads the program's environment")]
fn variable(name: &str) -> Option<OsString> {
    env::var_os(name)
}

#[expect(clippy::disallowed_methods, reason = "pinentry inherits this program's environment")]
fn environment() -> navicert_plugin::Environment {
    env::vars_os().collect()
}
