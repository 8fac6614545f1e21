//! Keeps `navicert-signer-pkcs11` running between requests, so that one PIN serves all connections of a client. No socket is
//! involved: other processes cannot use the signer.

use std::ffi::OsStr;
use std::sync::{Arc, Mutex, PoisonError};

use navicert_plugin::{Command, Completed, Permitted, RunError, Runner, Session};
use navicert_types::external_signer::{REQUEST_FD_VARIABLE, v1};

/// The environment variable that a client sets to `1` if it keeps the standard input open for further requests: the signer
/// then logs in with the first one, so that one PIN is enough for all of them.
pub(crate) const SESSION_VARIABLE: &str = "NAVICERT_SIGNER_SESSION";

/// The program that can stay. Other signers are run for every request.
const PROGRAM: &str = "navicert-signer-pkcs11";

/// Runs `navicert-signer-pkcs11` once for all requests of protocol v1, and every other program for each of its runs. Every
/// request needs a permission of its own, as for any [`Runner`].
///
/// The signer logs in with its first request, and ends when the value is dropped or this process ends.
// C842, C885
#[derive(Debug)]
pub struct SessionRunner {
    runner: Arc<dyn Runner>,
    session: Mutex<Option<Session>>,
}

impl SessionRunner {
    /// Runs all other programs with this runner.
    pub fn new(runner: Arc<dyn Runner>) -> Self {
        SessionRunner { runner, session: Mutex::new(None) }
    }
}

impl Runner for SessionRunner {
    fn run(&self, command: Permitted<Command>) -> Result<Completed, RunError> {
        if !may_stay(&command) {
            return self.runner.run(command);
        }
        let mut slot = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut session) = slot.take().filter(|session| session.program() == command.program()) {
            match session.request(&command, &is_last) {
                // It has exited, for example because its user killed it: start another one.
                Err(RunError::Io { .. }) => {}
                Ok(completed) => {
                    *slot = Some(session).filter(|_| is_success(&completed));
                    return Ok(completed);
                }
                failed => return failed,
            }
        }
        let variable = (OsStr::new(SESSION_VARIABLE), OsStr::new("1"));
        let (session, completed) = Session::start(command, variable, &is_last)?;
        *slot = Some(session).filter(|_| is_success(&completed));
        Ok(completed)
    }
}

fn may_stay(command: &Permitted<Command>) -> bool {
    let is_v1 = command.command().variable(REQUEST_FD_VARIABLE).is_some_and(|number| number == "0");
    is_v1 && command.program().file_name() == Some(OsStr::new(PROGRAM))
}

/// Whether the response is not an error. After one the next request starts afresh: a signer does not ask again for a PIN
/// that its device has rejected.
fn is_success(completed: &Completed) -> bool {
    let mut lines = completed.stdout.expose().split(|octet| *octet == b'\n');
    !lines.any(|line| matches!(v1::Message::from_json(line), Ok(v1::Message::Error { .. })))
}

/// Whether a line ends a response. An invalid one does too, so that the client reports it.
fn is_last(line: &[u8]) -> bool {
    !matches!(v1::Message::from_json(line), Ok(v1::Message::Prompt { .. } | v1::Message::Ready { .. }))
}
