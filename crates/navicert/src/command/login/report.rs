//! What people see of sessions: never a token.

use std::io::{self, Write as _};

use navicert_login::args::ParsedFlags;
use navicert_login::cache::CacheFolder;
use navicert_login::keyring::Unlock;
use navicert_login::kubeconfig_user::KubeconfigUser;
use navicert_login::{LoginError, LoginRequest, LoginSession, SessionOrigin, SessionStatus};
use navicert_types::{Clock as _, SystemClock, Timestamp, redact};
use serde::Serialize;

use super::json_reports::{CleanReport, SessionReport, StatusReport};
use super::kubeconfig_context::{self, SelectedUser};
use super::{LoginOutput, folder};
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::Format;

/// Prints who is logged in, and until when.
pub(super) fn session(request: &LoginRequest, session: &LoginSession) {
    let how = match session.origin {
        SessionOrigin::Cached => "already logged in",
        SessionOrigin::Refreshed => "session renewed",
        SessionOrigin::KeptAfterFault => "provider unreachable, token still valid",
        _ => "logged in",
    };
    let renewal = if session.can_be_renewed() { "renewed without you" } else { "then you are asked again" };
    print(&format!(
        "{how}\nuser      {}\nprovider  {}\nvalid     for {}, {renewal}\nkept in   {}\n",
        redact::line(session.display()),
        redact::line(&request.issuer),
        remaining(session.expiry(), SystemClock.now()),
        redact::line(&session.folder.display().to_string()),
    ));
}

pub(super) fn version() -> Result<Exit, LoginError> {
    print(&format!("navicert {}\n", crate::args::VERSION));
    Ok(Exit::Done)
}

/// Removes every entry.
pub(super) fn clean(
    flags: &ParsedFlags,
    environment: &Environment,
    output: &LoginOutput,
) -> Result<Exit, LoginError> {
    only(flags, &["token-cache-dir", "output", "v"])?;
    let (folder, context) = folder(flags, environment)?;
    let count = navicert_login::clean(&folder, &context)?;
    match output.format {
        Format::Json => print_json(&CleanReport { removed: count }),
        Format::Text => {
            print(&format!("removed {count} {}\n", if count == 1 { "session" } else { "sessions" }));
        }
    }
    Ok(Exit::Done)
}

/// Lists the sessions.
pub(super) fn status(
    flags: &ParsedFlags,
    environment: &Environment,
    output: &LoginOutput,
) -> Result<Exit, LoginError> {
    only(flags, &["context", "kubeconfig", "token-cache-dir", "output", "v"])?;
    let sessions = match kubeconfig_context::read(flags, environment)? {
        Some(SelectedUser { user: KubeconfigUser::Login(user), context, .. }) => {
            let folder = CacheFolder::locate(&user.request, &context)?;
            navicert_login::session_of(&folder, &user.request, &context)?.into_iter().collect()
        }
        Some(selected) => {
            let _ = writeln!(io::stderr(), "error: {}", redact::line(&selected.not_a_login()));
            Vec::new()
        }
        None => {
            let (mut folder, context) = folder(flags, environment)?;
            if let Err(error) = folder.unseal(Unlock::MayAsk, &context) {
                let _ = writeln!(io::stderr(), "warning: sealed sessions are not listed: {error}");
            }
            navicert_login::status(&folder, &context)?
        }
    };
    let now = SystemClock.now();
    match output.format {
        Format::Json => {
            print_json(&StatusReport { sessions: sessions.iter().map(SessionReport::from).collect() });
        }
        Format::Text if sessions.is_empty() => print("no sessions\n"),
        Format::Text => {
            let blocks: Vec<String> = sessions.iter().map(|session| status_text(session, now)).collect();
            print(&blocks.join("\n"));
        }
    }
    Ok(if sessions.iter().any(|session| session.is_fresh) { Exit::Done } else { Exit::No })
}

fn status_text(session: &SessionStatus, now: Timestamp) -> String {
    let mut text = String::new();
    let mut add = |name: &str, value: &str| {
        text.push_str(&format!("{name:<9} {}\n", redact::line(value)));
    };
    add("provider", &session.issuer);
    add("client", &session.client_id);
    if !session.account.is_empty() {
        add("account", &session.account);
    }
    add("user", &session.display);
    let token = match (session.is_fresh, session.has_refresh_token) {
        (true, _) => format!("valid for {}", remaining(session.expires, now)),
        (false, true) => "to be renewed at the next use".to_owned(),
        (false, false) => "expired; the next use asks you to log in".to_owned(),
    };
    add("token", &token);
    add("session", &format!("since {}", session.logged_in_at));
    match (session.has_refresh_token, session.refresh_expires_at) {
        (true, Some(at)) => add("renewal", &format!("refresh token, until {at}")),
        (true, None) => add("renewal", "refresh token"),
        (false, _) => add("renewal", "no refresh token"),
    }
    add("storage", if session.is_sealed { "sealed by the keyring" } else { "file" });
    if let Some(skew) = session.skew_seconds {
        let direction = if skew > 0 { "behind" } else { "ahead of" };
        add("clock", &format!("{} s {direction} the provider", skew.abs()));
    }
    if let Some((at, code)) = &session.last_failure {
        add("failure", &format!("{code} at {at}"));
    }
    if let Some(pid) = session.login_in_progress {
        add("login", &format!("process {pid} is waiting for you"));
    }
    text
}

/// Rejects flags that the verb does not use.
pub(super) fn only(flags: &ParsedFlags, names: &[&str]) -> Result<(), LoginError> {
    match flags.other_than(names) {
        Some(name) => Err(LoginError::Usage(format!("unknown flag: --{name}"))),
        None => Ok(()),
    }
}

/// The time until then, in the largest units that say something.
fn remaining(until: Timestamp, now: Timestamp) -> String {
    let seconds = until.as_second().saturating_sub(now.as_second()).max(0);
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7199 => format!("{} min", seconds / 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// A closed standard output leaves no reader to tell.
pub(super) fn print(text: &str) {
    let _ = io::stdout().write_all(text.as_bytes());
}

/// Fields are in alphabetical order, as in every result of navicert.
pub(super) fn print_json(report: &impl Serialize) {
    let value = serde_json::to_value(report).unwrap_or_default();
    print(&redact::json(&format!("{value:#}\n")));
}
