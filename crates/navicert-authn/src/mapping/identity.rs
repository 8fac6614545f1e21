//! Validates the mapped user: username, printable text, reserved prefix and size.
// H13, H14, H17, A49

use crate::jwt::VerifiedClaims;
use crate::model::AuthenticatedUser;
use crate::model::outcome::Refusal;
use crate::profile::{AuthnProfile, Hardening};

/// Validates the mapped user.
pub(super) fn check(
    user: &AuthenticatedUser,
    claims: &VerifiedClaims<'_>,
    allow_system_prefix: bool,
    profile: &AuthnProfile,
) -> Result<(), Refusal> {
    if profile.has(Hardening::NonEmptyUsername) && user.username().is_empty() {
        return Err(Refusal::EmptyUsername);
    }
    let lengths = |texts: &[String]| texts.iter().map(String::len).sum::<usize>();
    let extra: usize = user.extra().values().map(|values| lengths(values)).sum();
    let size = user.username().len() + user.uid().len() + lengths(user.groups()) + extra;
    if user.groups().len() > profile.limits.groups || size > profile.limits.identity {
        return Err(Refusal::TooLarge("the user exceeds the size limit"));
    }
    if profile.has(Hardening::PrintableIdentity) {
        for (what, text) in parts(user).filter(|(_, text)| !is_visible(text)) {
            if !is_printable(text) || (text.contains('\u{fffd}') && claims.has_replacements()) {
                return Err(Refusal::Unprintable(what));
            }
        }
    }
    if profile.has(Hardening::ReservedSystemPrefix) && !allow_system_prefix {
        if user.username().starts_with("system:") {
            return Err(Refusal::SystemPrefix("username"));
        }
        if user.groups().iter().any(|group| group.starts_with("system:")) {
            return Err(Refusal::SystemPrefix("group"));
        }
    }
    Ok(())
}

fn parts(user: &AuthenticatedUser) -> impl Iterator<Item = (&'static str, &str)> {
    let groups = user.groups().iter().map(|group| ("group", group.as_str()));
    let extra = user.extra().values().flatten().map(|value| ("extra value", value.as_str()));
    [("username", user.username()), ("uid", user.uid())].into_iter().chain(groups).chain(extra)
}

/// Whether it consists of visible ASCII only, as most names do.
fn is_visible(text: &str) -> bool {
    // Without an early exit, so that it vectorises.
    text.bytes().fold(true, |so_far, byte| so_far & matches!(byte, b'!'..=b'~'))
}

fn is_printable(text: &str) -> bool {
    // Control characters are single bytes, and no byte of a multi-byte character equals one.
    let has_controls = text.bytes().any(|byte| matches!(byte, 0..0x20 | 0x7f));
    let is_outside = |byte: Option<&u8>| byte.is_some_and(|byte| *byte == b' ' || !byte.is_ascii());
    let bytes = text.as_bytes();
    let may_be_spaced = is_outside(bytes.first()) || is_outside(bytes.last());
    !has_controls && (!may_be_spaced || text.trim() == text)
}
