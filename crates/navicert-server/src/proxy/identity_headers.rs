//! Encodes a user as identity headers, byte for byte.
//!
//! Nothing is trimmed, replaced or escaped: a user that cannot be encoded exactly is rejected.
// S260–S269

use std::borrow::Cow;
use std::collections::HashSet;

use http::header::{HeaderName, HeaderValue};
use navicert_authn::outcome::RefusalClass;
use navicert_go::percent;

use crate::audit::Reason;
use crate::user_ref::{ANONYMOUS, UNAUTHENTICATED, UserRef};

/// Maximum size of all identity headers, in bytes. Each counts as its name, its value and 32 bytes.
// S267
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IdentityLimit(usize);

/// What HTTP/2 adds to each header when it compares a header list with the peer's limit (RFC 9113, section 6.5.2).
const HEADER_OVERHEAD_BYTES: usize = 32;

impl IdentityLimit {
    /// kube-apiserver accepts 1 MiB of headers, over HTTP/1.1 as over HTTP/2. The rest is for the client's headers and
    /// the proxy's credential.
    pub const MAX: IdentityLimit = IdentityLimit(704 * 1024);

    /// A limit of this many bytes; `None` above what an API server accepts, and for 0.
    pub fn from_bytes(bytes: usize) -> Option<Self> {
        Some(IdentityLimit(bytes)).filter(|limit| bytes > 0 && *limit <= IdentityLimit::MAX)
    }

    /// The limit in bytes.
    pub fn bytes(self) -> usize {
        self.0
    }
}

/// A thousand groups with names of 200 characters.
impl Default for IdentityLimit {
    fn default() -> Self {
        IdentityLimit(256 * 1024)
    }
}

/// Names of the identity headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderNames {
    /// User name, one header.
    pub user: HeaderName,
    /// UID, at most one header.
    pub uid: HeaderName,
    /// Group, one header each.
    pub group: HeaderName,
    /// Prefix of extra attributes, in lower case.
    pub extra_prefix: String,
}

impl HeaderNames {
    /// `Impersonate-*`.
    // S233
    pub fn impersonation() -> Self {
        HeaderNames {
            user: HeaderName::from_static("impersonate-user"),
            uid: HeaderName::from_static("impersonate-uid"),
            group: HeaderName::from_static("impersonate-group"),
            extra_prefix: "impersonate-extra-".to_owned(),
        }
    }

    /// `X-Remote-*`, the usual configuration of API servers.
    // S229
    pub fn front_proxy() -> Self {
        HeaderNames {
            user: HeaderName::from_static("x-remote-user"),
            uid: HeaderName::from_static("x-remote-uid"),
            group: HeaderName::from_static("x-remote-group"),
            extra_prefix: "x-remote-extra-".to_owned(),
        }
    }

    /// The names in lower case with dashes, for comparison with inbound headers.
    // S241
    pub fn canonical(&self) -> Vec<String> {
        let names = [self.user.as_str(), self.uid.as_str(), self.group.as_str(), &self.extra_prefix];
        names.map(|name| name.to_ascii_lowercase().replace('_', "-")).to_vec()
    }
}

/// Reserved names, with special meaning to an API server, that tokens may map to.
// S269
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllowedNames {
    /// `system:serviceaccount:…`: authorized as another resource, with its own groups.
    pub service_accounts: bool,
    /// `system:node:…`
    pub nodes: bool,
    /// `system:anonymous`, and the group `system:unauthenticated`, which suppresses `system:authenticated`.
    // S268
    pub anonymous: bool,
    /// The group `system:masters`, whose members the API server authorizes before it asks RBAC.
    pub masters: bool,
}

impl AllowedNames {
    /// All, for users that the API server itself has named.
    pub const ALL: AllowedNames =
        AllowedNames { service_accounts: true, nodes: true, anonymous: true, masters: true };

    /// Whether a user may have this name.
    pub(super) fn permits_username(self, name: &str) -> bool {
        (self.service_accounts || !name.starts_with("system:serviceaccount:"))
            && (self.nodes || !name.starts_with("system:node:"))
            && (self.anonymous || name != ANONYMOUS)
    }

    /// Whether a user may be in this group.
    pub(super) fn permits_group(self, group: &str) -> bool {
        (self.anonymous || group != UNAUTHENTICATED) && (self.masters || group != "system:masters")
    }
}

/// The user cannot be encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// Empty user name: the request would run as the proxy.
    // S234, S260
    #[error("empty username")]
    Empty,
    /// The value would be changed in transit.
    // S261
    #[error("the {0} cannot be encoded in a header")]
    Unprintable(&'static str),
    /// The API server would decode another key.
    // S265
    #[error("a key of the extra attributes cannot be encoded in a header")]
    ExtraKey,
    /// The size limit is exceeded.
    #[error("the identity headers exceed {} bytes (`maxIdentityBytes`)", .0.bytes())]
    TooLarge(IdentityLimit),
    /// A reserved name that is not allowed.
    // S268, S269
    #[error("reserved {0} is not allowed")]
    NameClass(&'static str),
}

impl IdentityError {
    /// Reason for logs.
    pub fn reason(self) -> Reason {
        match self {
            IdentityError::Empty => Reason::EmptyIdentity,
            IdentityError::Unprintable(_) | IdentityError::ExtraKey => {
                Reason::Refused(RefusalClass::IdentityEncoding)
            }
            IdentityError::TooLarge(_) => Reason::Refused(RefusalClass::IdentityTooLarge),
            IdentityError::NameClass(_) => Reason::NameClass,
        }
    }
}

/// Encodes user name, UID, groups and extra attributes, in this order, within the default limit.
///
/// # Errors
/// [`IdentityError`]: the user cannot be encoded exactly.
pub fn encode(
    user: UserRef<'_>,
    names: &HeaderNames,
    allowed: AllowedNames,
) -> Result<Vec<(HeaderName, HeaderValue)>, IdentityError> {
    encode_within(IdentityLimit::default(), user, names, allowed)
}

/// Encodes a user within a limit.
///
/// # Errors
/// [`IdentityError`]: the user cannot be encoded exactly, or is too large.
pub(crate) fn encode_within(
    limit: IdentityLimit,
    user: UserRef<'_>,
    names: &HeaderNames,
    allowed: AllowedNames,
) -> Result<Vec<(HeaderName, HeaderValue)>, IdentityError> {
    check_name_class(user, allowed)?;
    let mut lines = HeaderLines { headers: Vec::new(), bytes: 0, limit };
    if user.username.is_empty() {
        return Err(IdentityError::Empty);
    }
    lines.push(&names.user, "username", user.username)?;
    if !user.uid.is_empty() {
        lines.push(&names.uid, "uid", user.uid)?;
    }
    // S263, S264: skip empty groups and duplicates, one header per group.
    let mut seen = SeenGroups::new(user.groups);
    for group in user.groups.iter().filter(|group| !group.is_empty()) {
        if seen.is_first(group) {
            lines.push(&names.group, "group", group)?;
        }
    }
    for (key, values) in user.extra {
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

/// Recognises repeated groups. Few groups are compared with each other, which costs less than hashing them.
enum SeenGroups<'u> {
    Few(&'u [String]),
    Many(HashSet<&'u str>),
}

const MAX_COMPARED_GROUPS: usize = 16;

impl<'u> SeenGroups<'u> {
    fn new(groups: &'u [String]) -> Self {
        match groups.len() {
            ..=MAX_COMPARED_GROUPS => SeenGroups::Few(groups),
            _ => SeenGroups::Many(HashSet::new()),
        }
    }

    /// Whether this group has not occurred before. Called once per group, in order.
    fn is_first(&mut self, group: &'u str) -> bool {
        match self {
            SeenGroups::Few(groups) => {
                let first = groups.iter().map(String::as_str).find(|other| *other == group);
                first.is_none_or(|first| std::ptr::eq(first, group))
            }
            SeenGroups::Many(seen) => seen.insert(group),
        }
    }
}

fn check_name_class(user: UserRef<'_>, allowed: AllowedNames) -> Result<(), IdentityError> {
    if !allowed.permits_username(user.username) {
        return Err(IdentityError::NameClass("username"));
    }
    match user.groups.iter().all(|group| allowed.permits_group(group)) {
        true => Ok(()),
        false => Err(IdentityError::NameClass("group")),
    }
}

struct HeaderLines {
    headers: Vec<(HeaderName, HeaderValue)>,
    bytes: usize,
    limit: IdentityLimit,
}

impl HeaderLines {
    fn push(&mut self, name: &HeaderName, what: &'static str, text: &str) -> Result<(), IdentityError> {
        let added = [name.as_str().len(), text.len(), HEADER_OVERHEAD_BYTES];
        self.bytes = added.into_iter().fold(self.bytes, usize::saturating_add);
        if self.bytes > self.limit.bytes() {
            return Err(IdentityError::TooLarge(self.limit));
        }
        if !is_preserved(text) {
            return Err(IdentityError::Unprintable(what));
        }
        // Any byte above 0x7f is allowed (S262).
        let value = HeaderValue::from_bytes(text.as_bytes()).map_err(|_| IdentityError::Unprintable(what))?;
        self.headers.push((name.clone(), value));
        Ok(())
    }
}

/// Whether a value is unchanged over both HTTP/1.1 (which trims) and HTTP/2 (which does not).
// S245, S261
pub(super) fn is_preserved(text: &str) -> bool {
    let is_plain = |byte: u8| matches!(byte, 0x20..=0x7e | 0x80..);
    text.bytes().all(is_plain) && !text.starts_with(' ') && !text.ends_with(' ')
}

/// Header name for a key, if the API server decodes the same key from it.
// S236, S265
pub(super) fn extra_name(prefix: &str, key: &str) -> Result<HeaderName, IdentityError> {
    let mut name = String::with_capacity(prefix.len() + key.len() + 8);
    name.push_str(prefix);
    percent::encode_into(&mut name, key.as_bytes(), percent::Plus::Literal, percent::is_header_key_byte);
    let name = HeaderName::try_from(name).map_err(|_| IdentityError::ExtraKey)?;
    let user = name.as_str().get(prefix.len()..).map(extra_key);
    (!key.is_empty() && user.as_deref() == Some(key.as_bytes()))
        .then_some(name)
        .ok_or(IdentityError::ExtraKey)
}

/// The key that an API server decodes from a header name: lower-cased, then percent-decoded; kept as it is if
/// decoding fails.
// S229, S236
pub(super) fn extra_key(rest: &str) -> Vec<u8> {
    let lower = rest.to_ascii_lowercase();
    match percent::decode(&lower, percent::Plus::Literal).map(Cow::into_owned) {
        Some(key) => key,
        None => lower.into_bytes(),
    }
}

#[cfg(test)]
mod tests;
