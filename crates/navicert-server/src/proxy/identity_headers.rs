//! From a person to the headers that name it, byte for byte, or not at all (structured-authentication.md S260–S269).
//!
//! Nothing is trimmed, replaced or escaped on the way: who cannot be said exactly is not let through.

use std::collections::HashSet;

use http::header::{HeaderName, HeaderValue};

use crate::who::{ANONYMOUS, Told};

/// The most that headers about one person may take together (S267).
const MOST_BYTES: usize = 64 * 1024;
/// And how many lines.
const MOST_LINES: usize = 1_000;

/// What headers are called in which identities are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderNames {
    /// One line: the name.
    pub user: HeaderName,
    /// One line, or none: the UID.
    pub uid: HeaderName,
    /// One line for each group.
    pub group: HeaderName,
    /// How the names of further attributes begin, in lower case.
    pub extra_prefix: String,
}

impl HeaderNames {
    /// `Impersonate-*` (S233).
    pub fn impersonation() -> Self {
        HeaderNames {
            user: HeaderName::from_static("impersonate-user"),
            uid: HeaderName::from_static("impersonate-uid"),
            group: HeaderName::from_static("impersonate-group"),
            extra_prefix: "impersonate-extra-".to_owned(),
        }
    }

    /// `X-Remote-*`, as most API servers are set up (S229).
    pub fn front_proxy() -> Self {
        HeaderNames {
            user: HeaderName::from_static("x-remote-user"),
            uid: HeaderName::from_static("x-remote-uid"),
            group: HeaderName::from_static("x-remote-group"),
            extra_prefix: "x-remote-extra-".to_owned(),
        }
    }

    /// The four in lower case with dashes, as inbound names are compared (S241).
    pub fn canonical(&self) -> Vec<String> {
        let names = [self.user.as_str(), self.uid.as_str(), self.group.as_str(), &self.extra_prefix];
        names.map(|name| name.to_ascii_lowercase().replace('_', "-")).to_vec()
    }
}

/// Names that mean something else to an API server than a name of its length would (S269).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// `system:serviceaccount:…`: authorised as another resource, with groups of its own.
    pub service_accounts: bool,
    /// `system:node:…`
    pub nodes: bool,
    /// `system:anonymous`, and the group `system:unauthenticated`, which keeps `system:authenticated` away (S268).
    pub anonymous: bool,
}

impl Allowed {
    /// Everything: for somebody whom the API server itself has named.
    pub const ALL: Allowed = Allowed { service_accounts: true, nodes: true, anonymous: true };
}

/// Why somebody cannot be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// No name: the request would run as the proxy (S234, S260).
    #[error("the username is empty")]
    Empty,
    /// It would arrive changed (S261).
    #[error("the {0} cannot be sent in a header unchanged")]
    Unprintable(&'static str),
    /// A key that arrives as another (S265).
    #[error("a key of the extra attributes cannot be sent in a header unchanged")]
    ExtraKey,
    /// More than S267 allows.
    #[error("the identity is larger than 64 KiB or 1000 lines")]
    TooLarge,
    /// A name that is not allowed here (S268, S269).
    #[error("the {0} is one of the cluster's own")]
    NameClass(&'static str),
}

impl Unfit {
    /// For metrics and logs: one of a closed set.
    pub fn class(self) -> &'static str {
        match self {
            Unfit::Empty => "identity_empty",
            Unfit::Unprintable(_) | Unfit::ExtraKey => "identity_encoding",
            Unfit::TooLarge => "identity_too_large",
            Unfit::NameClass(_) => "name_class",
        }
    }
}

/// The headers of somebody: name, UID, groups, extra, in this order.
///
/// # Errors
/// [`Unfit`]: they would not say exactly that.
pub fn encode(
    told: Told<'_>,
    names: &HeaderNames,
    allowed: Allowed,
) -> Result<Vec<(HeaderName, HeaderValue)>, Unfit> {
    check_name_class(told, allowed)?;
    let mut lines = Lines::default();
    if told.username.is_empty() {
        return Err(Unfit::Empty);
    }
    lines.push(&names.user, "username", told.username)?;
    if !told.uid.is_empty() {
        lines.push(&names.uid, "uid", told.uid)?;
    }
    // S263, S264: no empty ones, the first of equals, and a line for each.
    let mut seen = HashSet::new();
    for group in told.groups.iter().filter(|group| !group.is_empty()) {
        if seen.insert(group.as_str()) {
            lines.push(&names.group, "group", group)?;
        }
    }
    for (key, values) in told.extra {
        let mut values = values.iter().filter(|value| !value.is_empty()).peekable();
        if values.peek().is_none() {
            continue;
        }
        let name = extra_name(&names.extra_prefix, key)?;
        for value in values {
            lines.push(&name, "extra value", value)?;
        }
    }
    Ok(lines.headers)
}

fn check_name_class(told: Told<'_>, allowed: Allowed) -> Result<(), Unfit> {
    let is_class = |prefix: &str| told.username.starts_with(prefix);
    let is_unauthenticated = || told.groups.iter().any(|group| group == "system:unauthenticated");
    if (is_class("system:serviceaccount:") && !allowed.service_accounts)
        || (is_class("system:node:") && !allowed.nodes)
        || (told.username == ANONYMOUS && !allowed.anonymous)
    {
        return Err(Unfit::NameClass("username"));
    }
    if !allowed.anonymous && is_unauthenticated() {
        return Err(Unfit::NameClass("group"));
    }
    Ok(())
}

#[derive(Default)]
struct Lines {
    headers: Vec<(HeaderName, HeaderValue)>,
    bytes: usize,
}

impl Lines {
    fn push(&mut self, name: &HeaderName, what: &'static str, text: &str) -> Result<(), Unfit> {
        self.bytes = self.bytes.saturating_add(name.as_str().len()).saturating_add(text.len());
        if self.bytes > MOST_BYTES || self.headers.len() >= MOST_LINES {
            return Err(Unfit::TooLarge);
        }
        if !survives(text) {
            return Err(Unfit::Unprintable(what));
        }
        // Bytes, not visible ASCII alone (S262).
        let value = HeaderValue::from_bytes(text.as_bytes()).map_err(|_| Unfit::Unprintable(what))?;
        self.headers.push((name.clone(), value));
        Ok(())
    }
}

/// Whether a value arrives as it was sent, over HTTP/1.1 (which trims) and HTTP/2 (which does not) (S245, S261).
pub(super) fn survives(text: &str) -> bool {
    let is_plain = |byte: u8| matches!(byte, 0x20..=0x7e | 0x80..);
    text.bytes().all(is_plain) && !text.starts_with(' ') && !text.ends_with(' ')
}

/// The header of a key, if the API server gets the same key out of it (S236, S265).
pub(super) fn extra_name(prefix: &str, key: &str) -> Result<HeaderName, Unfit> {
    let mut name = String::with_capacity(prefix.len() + key.len() + 8);
    name.push_str(prefix);
    for byte in key.bytes() {
        let is_token = byte.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(&byte);
        match is_token {
            true => name.push(char::from(byte)),
            false => name.push_str(&format!("%{byte:02X}")),
        }
    }
    let name = HeaderName::try_from(name).map_err(|_| Unfit::ExtraKey)?;
    let told = name.as_str().get(prefix.len()..).map(extra_key);
    (!key.is_empty() && told.as_deref() == Some(key.as_bytes())).then_some(name).ok_or(Unfit::ExtraKey)
}

/// The key that an API server reads from the rest of a header's name: in lower case, then percent-decoded; what cannot be
/// decoded stays as it is (S229, S236).
pub(super) fn extra_key(rest: &str) -> Vec<u8> {
    let lower = rest.to_ascii_lowercase();
    let mut key = Vec::with_capacity(lower.len());
    let mut bytes = lower.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            key.push(byte);
            continue;
        }
        let digits = (bytes.next().and_then(digit), bytes.next().and_then(digit));
        let (Some(high), Some(low)) = digits else { return lower.into_bytes() };
        key.push(high * 16 + low);
    }
    key
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests;
