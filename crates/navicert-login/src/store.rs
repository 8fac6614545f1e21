//! Keeps a session. A credential that cannot be kept is handed over all the same: failing would lose both.

use std::time::Duration;

use navicert_types::{Timestamp, redact};

use crate::cache::entry::Recipient;
use crate::cache::{CacheFolder, Entry};
use crate::context::{Invocation, LoginContext};

/// Processes that an entry remembers.
const MAX_RECIPIENTS: usize = 3;
/// A client that asks again sooner did not use the token in between.
const MIN_REPEAT: Duration = Duration::from_secs(1);
/// A client's repeated request renews the token at most this often.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(60);

/// Writes the entry before it is used, so that a rotated refresh token is never lost.
pub(crate) fn store(folder: &CacheFolder, context: &LoginContext, entry: &mut Entry) {
    let now = context.clock.now();
    if let (Invocation::Exec { .. }, Some((pid, start_time))) = (context.invocation, parent()) {
        let is_known = entry.handed_to.iter().any(|known| (known.pid, known.start_time) == (pid, start_time));
        entry.handed_to.retain(|recipient| recipient.pid != pid);
        entry.handed_to.push(Recipient { pid, start_time, at: now, renewed_at: is_known.then_some(now) });
        let surplus = entry.handed_to.len().saturating_sub(MAX_RECIPIENTS);
        entry.handed_to.drain(..surplus);
    }
    folder.remove_old_temporary_files(now);
    if let Err(error) = folder.write(entry) {
        let path = folder.path().display().to_string();
        context.messages.show(&format!("warning: cannot keep the session: {}: {error}", redact::line(&path)));
    }
}

/// Whether the process that asks was handed this very token before: its API server has rejected the token, since clients
/// keep a token that works. Renewing helps if the token was revoked.
pub(crate) fn is_rejected(entry: &Entry, context: &LoginContext, now: Timestamp) -> bool {
    // Without a refresh token, only a person could get another one.
    if entry.handed_to.is_empty()
        || entry.refresh_token.is_none()
        || !matches!(context.invocation, Invocation::Exec { .. })
    {
        return false;
    }
    let parent_id = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get().unsigned_abs());
    let known = entry.handed_to.iter().find(|recipient| recipient.pid == parent_id);
    let is_older = |time: Timestamp, age: Duration| now.duration_since(time).unsigned_abs() >= age;
    known.is_some_and(|recipient| {
        // Renewed a moment ago for the same reason: a newer token will not help.
        let is_due = is_older(recipient.at, MIN_REPEAT)
            && recipient.renewed_at.is_none_or(|renewed| is_older(renewed, RENEWAL_INTERVAL));
        is_due && parent().is_some_and(|(_, start_time)| start_time == recipient.start_time)
    })
}

/// The process that started this one, and when it started.
fn parent() -> Option<(u32, u64)> {
    let pid = rustix::process::getppid()?.as_raw_nonzero().get().unsigned_abs();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may contain anything; the start time is the 20th field after it.
    let (_, fields) = stat.rsplit_once(") ")?;
    Some((pid, fields.split(' ').nth(19)?.parse().ok()?))
}
