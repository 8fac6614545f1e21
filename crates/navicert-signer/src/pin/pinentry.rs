//! Asks for a PIN with a pinentry program, as GnuPG does.
//!
//! All Assuan commands are written to the program's standard input at once, and the responses are read from its standard
//! output: the protocol responds in order, so no waiting in between is needed.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use navicert_plugin::{Command, Environment, Policy, ProcessGroup, Runner, Stderr, Stdin};
use navicert_types::{Secret, redact};
use zeroize::Zeroizing;

use super::terminal::CONTROLLING_TERMINAL;
use super::{PinError, PinPrompt, PinProvider, TerminalPin};

/// How long the user may take to enter the PIN.
const PINENTRY_TIMEOUT: Duration = Duration::from_secs(120);

/// A pinentry program chosen by the user.
#[derive(Clone)]
pub struct Pinentry {
    program: PathBuf,
    environment: Environment,
    runner: Arc<dyn Runner>,
}

impl Pinentry {
    /// Uses this program: an absolute path, or a name in `PATH`. It comes from the user's own environment, so the plugin
    /// policy for kubeconfigs does not apply.
    pub fn new(program: impl Into<PathBuf>, environment: Environment, runner: Arc<dyn Runner>) -> Self {
        Pinentry { program: program.into(), environment, runner }
    }

    /// Names the terminal first: standard input and output carry the protocol, so pinentry programs that draw on a terminal
    /// cannot use those.
    fn assuan_commands(&self, prompt: &PinPrompt) -> String {
        let variable = |name: &str| {
            let value = self.environment.variable(name)?.to_str()?;
            Some(escape(value)).filter(|value| !value.is_empty())
        };
        let own = || TerminalPin::find().map(|_| CONTROLLING_TERMINAL.to_owned());
        let name = variable("GPG_TTY").or_else(own).map(|name| format!("OPTION ttyname={name}\n"));
        let kind = variable("TERM").map(|kind| format!("OPTION ttytype={kind}\n"));
        let options = name.map(|name| name + &kind.unwrap_or_default()).unwrap_or_default();
        let token = escape(&redact::terminal(&prompt.token));
        let warning = if prompt.last_try { "%0AOne more wrong PIN locks it." } else { "" };
        format!(
            "{options}SETTITLE navicert\nSETDESC PIN for the token %22{token}%22{warning}\nSETPROMPT PIN:\nGETPIN\nBYE\n"
        )
    }
}

impl PinProvider for Pinentry {
    fn request_pin(&self, prompt: &PinPrompt) -> Result<Secret<String>, PinError> {
        let bad = |problem: &str| PinError::Pinentry {
            program: self.program.display().to_string(),
            problem: problem.to_owned(),
        };
        let command = Command::new(&self.program, self.environment.clone())
            .stdin(Stdin::Bytes(Secret::new(self.assuan_commands(prompt).into_bytes())))
            .stderr(Stderr::Tail(0))
            .process_group(ProcessGroup::Inherit)
            .limit(Some(PINENTRY_TIMEOUT));
        let permitted =
            Policy::AllowAll.permit(command).map_err(|error| bad(&format!("cannot run: {error}")))?;
        let completed = self.runner.run(permitted).map_err(|error| bad(&format!("failed: {error}")))?;
        parse_responses(completed.stdout.expose())
            .map_err(|cancelled| if cancelled { PinError::Cancelled } else { bad("returned no PIN") })
    }

    fn is_stored(&self) -> bool {
        false
    }
}

fn escape(text: &str) -> String {
    let spell = |c: char| match c {
        '%' | '\n' | '\r' => format!("%{:02X}", u32::from(c)),
        c => c.to_string(),
    };
    text.chars().map(spell).collect()
}

/// The PIN in the `D` line of the responses; `Err(true)` if the user cancelled. Other errors are about options, which a
/// program need not know.
fn parse_responses(output: &[u8]) -> Result<Secret<String>, bool> {
    /// `GPG_ERR_CANCELED` and `GPG_ERR_FULLY_CANCELED`, without the source in the upper bits.
    const CANCELLED: [u32; 2] = [99, 198];
    let (mut pin, mut is_cancelled) = (None, false);
    for line in output.split(|octet| *octet == b'\n') {
        if let Some(data) = line.strip_prefix(b"D ") {
            pin = unescape(data);
        } else if let Some(error) = line.strip_prefix(b"ERR ") {
            let number = error.split(|octet| *octet == b' ').next().unwrap_or_default();
            let number: u32 =
                std::str::from_utf8(number).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
            is_cancelled |= CANCELLED.contains(&(number & 0xffff));
        }
    }
    pin.ok_or(is_cancelled)
}

fn unescape(data: &[u8]) -> Option<Secret<String>> {
    let mut octets = Zeroizing::new(Vec::with_capacity(data.len()));
    let mut rest = data.iter();
    while let Some(octet) = rest.next() {
        if *octet != b'%' {
            octets.push(*octet);
            continue;
        }
        let digit =
            |octet: Option<&u8>| char::from(*octet?).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let (high, low) = (digit(rest.next())?, digit(rest.next())?);
        octets.push(high << 4 | low);
    }
    let text = std::str::from_utf8(&octets).ok()?;
    (!text.is_empty()).then(|| Secret::new(text.to_owned()))
}

impl fmt::Debug for Pinentry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pinentry").field("program", &self.program).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use navicert_plugin::ProcessRunner;
    use navicert_types::SystemClock;
    use std::os::unix::fs::PermissionsExt;

    /// A program that responds as pinentry does and records its input.
    fn fake(dir: &std::path::Path, answers: &str) -> Pinentry {
        let path = dir.join("pinentry");
        let script = format!("#!/bin/sh\ncat >\"{}/asked\"\nprintf '{answers}'\n", dir.display());
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let runner = Arc::new(ProcessRunner::new(Arc::new(SystemClock)));
        Pinentry::new(path, [("PATH", "/usr/bin:/bin")].into_iter().collect(), runner)
    }

    #[test]
    fn reads_pin_from_d_line_and_names_the_token() {
        let dir = tempfile::tempdir().unwrap();
        let pinentry = fake(dir.path(), "OK hello\\nOK\\nOK\\nD 12%%2534\\nOK\\n");
        let prompt = PinPrompt { token: "my\ntoken%".to_owned(), last_try: true };
        let pin = pinentry.request_pin(&prompt).unwrap();
        assert_eq!(pin.expose(), "12%34");
        let asked = std::fs::read_to_string(dir.path().join("asked")).unwrap();
        assert!(asked.contains("my%0Atoken%25") && asked.contains("locks it"), "{asked}");
        assert!(asked.ends_with("GETPIN\nBYE\n"));
    }

    #[test]
    fn names_the_terminal_and_ignores_errors_of_options() {
        let dir = tempfile::tempdir().unwrap();
        let answers = "OK hello\\nERR 83886254 Unknown option\\nOK\\nOK\\nOK\\nOK\\nD 1234\\nOK\\n";
        let mut pinentry = fake(dir.path(), answers);
        let variables = [("PATH", "/usr/bin:/bin"), ("GPG_TTY", "/dev/pts/7"), ("TERM", "xterm")];
        pinentry.environment = variables.into_iter().collect();
        let prompt = PinPrompt { token: "t".to_owned(), last_try: false };
        assert_eq!(pinentry.request_pin(&prompt).unwrap().expose(), "1234");
        let asked = std::fs::read_to_string(dir.path().join("asked")).unwrap();
        assert!(asked.starts_with("OPTION ttyname=/dev/pts/7\nOPTION ttytype=xterm\nSETTITLE"), "{asked}");
    }

    #[test]
    fn distinguishes_cancel_from_invalid_output() {
        let dir = tempfile::tempdir().unwrap();
        let prompt = PinPrompt { token: "t".to_owned(), last_try: false };
        let cancelled = fake(dir.path(), "OK\\nERR 83886179 Operation cancelled\\n").request_pin(&prompt);
        assert_eq!(cancelled.unwrap_err(), PinError::Cancelled);
        for output in ["", "OK\\n", "D \\n", "D %%zz\\n"] {
            let error = fake(dir.path(), output).request_pin(&prompt).unwrap_err();
            assert!(matches!(error, PinError::Pinentry { .. }), "{output}: {error:?}");
        }
    }
}
