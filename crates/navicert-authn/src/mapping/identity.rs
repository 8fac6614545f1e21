//! Whether a mapped user is one that the rest of a cluster can live with (H13, H14, H17, A49).

use super::User;
use crate::jwt::VerifiedClaims;
use crate::outcome::Refusal;
use crate::profile::{Profile, Rule};

/// Judges the finished user.
pub(super) fn check(
    user: &User,
    claims: &VerifiedClaims<'_>,
    allow_system_prefix: bool,
    profile: &Profile,
) -> Result<(), Refusal> {
    if profile.has(Rule::H13) && user.username().is_empty() {
        return Err(Refusal::EmptyUsername);
    }
    let lengths = |texts: &[String]| texts.iter().map(String::len).sum::<usize>();
    let extra: usize = user.extra().values().map(|values| lengths(values)).sum();
    let size = user.username().len() + user.uid().len() + lengths(user.groups()) + extra;
    if user.groups().len() > profile.limits.groups || size > profile.limits.identity {
        return Err(Refusal::TooLarge("the user is larger than it may be"));
    }
    if profile.has(Rule::H14) {
        for (what, text) in parts(user).filter(|(_, text)| !is_visible(text)) {
            if !is_printable(text) || (text.contains('\u{fffd}') && claims.has_replacements()) {
                return Err(Refusal::Unprintable(what));
            }
        }
    }
    if profile.has(Rule::H17) && !allow_system_prefix {
        if user.username().starts_with("system:") {
            return Err(Refusal::SystemPrefix("username"));
        }
        if user.groups().iter().any(|group| group.starts_with("system:")) {
            return Err(Refusal::SystemPrefix("group"));
        }
    }
    Ok(())
}

fn parts(user: &User) -> impl Iterator<Item = (&'static str, &str)> {
    let groups = user.groups().iter().map(|group| ("group", group.as_str()));
    let extra = user.extra().values().flatten().map(|value| ("extra value", value.as_str()));
    [("username", user.username()), ("uid", user.uid())].into_iter().chain(groups).chain(extra)
}

/// Whether it is ASCII that can be seen, as nearly every text is, and nothing else.
fn is_visible(text: &str) -> bool {
    // Without an early end, so that it takes many bytes at a time.
    text.bytes().fold(true, |so_far, byte| so_far & matches!(byte, b'!'..=b'~'))
}

fn is_printable(text: &str) -> bool {
    // Control characters are single bytes, and no byte of another character looks like one.
    let has_controls = text.bytes().any(|byte| matches!(byte, 0..0x20 | 0x7f));
    let is_outside = |byte: Option<&u8>| byte.is_some_and(|byte| *byte == b' ' || !byte.is_ascii());
    let bytes = text.as_bytes();
    let may_be_spaced = is_outside(bytes.first()) || is_outside(bytes.last());
    !has_controls && (!may_be_spaced || text.trim() == text)
}
