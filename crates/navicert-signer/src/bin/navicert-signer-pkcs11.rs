//! `navicert-signer-pkcs11`: an external TLS signer for keys in PKCS#11 tokens. Clients run it once per request, or keep it
//! running; users run `navicert signer`.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Write};
use std::process::ExitCode;
use std::sync::Arc;

#[cfg(target_os = "linux")]
use navicert_io::process_memory::hide_memory;
use navicert_plugin::{ProcessRunner, foreground};
use navicert_signer::program::{SignerEnvironment, SignerProgram};
use navicert_types::SystemClock;
use navicert_types::external_signer::{CONFIG_VARIABLE, REQUEST_FD_VARIABLE, v1};
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
    let _ = hide_memory();
    let environment = SignerEnvironment {
        environment: environment(),
        runner: Arc::new(ProcessRunner::new(Arc::new(SystemClock))),
    };
    let requests = match Requests::open() {
        Ok(Some(requests)) if arguments.is_empty() => requests,
        Ok(_) => {
            let _ = io::stderr().write_all(HELP.as_bytes());
            return ExitCode::from(2);
        }
        Err(error) => return unreadable(&error),
    };
    serve(requests, &SignerProgram::new(environment))
}

/// Responds to every request until the client closes its end; most clients make one.
fn serve(mut requests: Requests, program: &SignerProgram) -> ExitCode {
    if program.is_session() {
        // The command that uses the terminal may handle Ctrl-C and continue; so does its signer. Continue if that fails.
        let _ = foreground::survive_keyboard_signals();
    }
    let mut code = ExitCode::SUCCESS;
    loop {
        match requests.next() {
            Ok(Some(request)) => {
                let printed = program.respond(&request);
                let _ = io::stderr().write_all(printed.stderr.as_bytes());
                code = print(&printed.stdout, if printed.success { 0 } else { 1 });
            }
            Ok(None) => return code,
            Err(error) => return unreadable(&error),
        }
    }
}

fn unreadable(error: &io::Error) -> ExitCode {
    let _ = writeln!(io::stderr(), "navicert-signer-pkcs11: failed to read the request: {error}");
    ExitCode::from(3)
}

fn print(text: &str, code: u8) -> ExitCode {
    // A write error cannot be reported anywhere.
    let _ = io::stdout().write_all(text.as_bytes());
    ExitCode::from(code)
}

/// The requests of the client: from the file descriptor, or else the one in the environment variable.
struct Requests(Box<dyn BufRead>);

impl Requests {
    fn open() -> io::Result<Option<Self>> {
        let reader: Box<dyn BufRead> = match variable(REQUEST_FD_VARIABLE) {
            Some(number) if number == "0" => Box::new(io::stdin().lock()),
            Some(number) => {
                let number = number.to_str().and_then(|text| text.parse::<u32>().ok());
                let number = number.ok_or(io::ErrorKind::InvalidInput)?;
                Box::new(BufReader::new(File::open(format!("/dev/fd/{number}"))?))
            }
            None => match variable(CONFIG_VARIABLE) {
                Some(text) => Box::new(Cursor::new(Zeroizing::new(text.into_encoded_bytes()))),
                None => return Ok(None),
            },
        };
        Ok(Some(Requests(reader)))
    }

    /// The next request: one line, or several up to the end of input.
    fn next(&mut self) -> io::Result<Option<Zeroizing<Vec<u8>>>> {
        let mut request = Zeroizing::new(Vec::with_capacity(16 << 10));
        loop {
            let room = MAX_REQUEST_BYTES.saturating_sub(u64::try_from(request.len()).unwrap_or(u64::MAX));
            let count = self.0.by_ref().take(room).read_until(b'\n', &mut request)?;
            if count > 0 && v1::Request::from_json(&request).is_err() {
                continue;
            }
            let is_empty = request.trim_ascii().is_empty();
            return Ok((!is_empty).then_some(request));
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "reads the program's environment")]
fn variable(name: &str) -> Option<OsString> {
    env::var_os(name)
}

#[expect(clippy::disallowed_methods, reason = "pinentry inherits this program's environment")]
fn environment() -> navicert_plugin::Environment {
    env::vars_os().collect()
}
