//! Validates the mapped user: username, printable text, reserved prefix and size.
// H13, H14, H17, A49

use crate::config::IssuerSettings;
use crate::jwt::VerifiedClaims;
use crate::model::AuthenticatedUser;
use crate::model::outcome::Refusal;
use crate::profile::{AuthnProfile, Hardening};

/// The group whose members an API server authorizes before it asks RBAC.
const MASTERS: &str = "system:masters";

/// Validates the mapped user.
pub(super) fn check(
    user: &AuthenticatedUser,
    claims: &VerifiedClaims<'_>,
    settings: &IssuerSettings,
    profile: &AuthnProfile,
) -> Result<(), Refusal> {
    if profile.has(Hardening::NonEmptyUsername) && user.username().is_empty() {
        return Err(Refusal::EmptyUsername);
    }
    let lengths = |texts: &[String]| texts.iter().map(String::len).sum::<usize>();
    let extra: usize = user.extra().values().map(|values| lengths(values)).sum();
    let size = user.username().len() + user.uid().len() + lengths(user.groups()) + extra;
    if user.groups().len() > profile.limits.groups || size > profile.limits.identity {
        return Err(Refusal::IdentityTooLarge);
    }
    if profile.has(Hardening::PrintableIdentity) {
        for (what, text) in parts(user).filter(|(_, text)| !is_visible(text)) {
            if !is_printable(text) || (text.contains('\u{fffd}') && claims.has_replacements()) {
                return Err(Refusal::Unprintable(what));
            }
        }
    }
    if profile.has(Hardening::ReservedSystemPrefix) {
        check_reserved(user, settings)?;
    }
    Ok(())
}

/// Names of the cluster's own need a setting of the issuer. The group that may do everything, whatever RBAC says, needs one of
/// its own.
// H17
fn check_reserved(user: &AuthenticatedUser, settings: &IssuerSettings) -> Result<(), Refusal> {
    if !settings.allow_system_prefix && user.username().starts_with("system:") {
        return Err(Refusal::SystemPrefix("username"));
    }
    for group in user.groups() {
        if group == MASTERS {
            if !settings.allow_system_masters {
                return Err(Refusal::SystemMasters);
            }
        } else if !settings.allow_system_prefix && group.starts_with("system:") {
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

/// No control characters, line separators, bidirectional controls or surrounding white space.
fn is_printable(text: &str) -> bool {
    !text.chars().any(is_control) && text.trim() == text
}

/// Control characters, the line and paragraph separators, and what reorders or breaks the lines that show a name.
fn is_control(symbol: char) -> bool {
    symbol.is_control()
        || matches!(
            symbol,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    // H14, A42
    #[test]
    fn names_have_no_controls_and_no_bidirectional_controls() {
        for name in ["ann", "Ann Lee", "übung 日本", "a\u{200d}b", "e\u{301}", "a\u{a0}b", ""] {
            assert!(is_printable(name), "{name:?}");
        }
        let outside = [" a", "a ", "\u{a0}a"].map(str::to_owned);
        let symbols = ('\0'..='\u{1f}')
            .chain('\u{7f}'..='\u{9f}')
            .chain('\u{2028}'..='\u{202e}')
            .chain('\u{2066}'..='\u{2069}')
            .chain(['\u{61c}', '\u{200e}', '\u{200f}']);
        for name in symbols.map(|symbol| format!("a{symbol}b")).chain(outside) {
            assert!(!is_printable(&name), "{name:?}");
        }
    }
}
