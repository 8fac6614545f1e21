//! Reasons of rejections in the audit log: a closed set, listed in docs/serve.md.

use std::fmt;

use navicert_authn::outcome::RefusalClass;
use serde::{Serialize, Serializer};

macro_rules! reasons {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)+) => {
        /// Why a request was rejected, or why a stream ended early.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Reason {
            /// The token is of a configured issuer and was rejected.
            Refused(RefusalClass),
            $($(#[$doc])* $variant,)+
        }

        impl Reason {
            /// The reasons of the servers themselves.
            const OWN: &[Reason] = &[$(Reason::$variant),+];

            /// The name in logs.
            pub fn name(self) -> &'static str {
                match self {
                    Reason::Refused(class) => class.name(),
                    $(Reason::$variant => $name,)+
                }
            }
        }
    };
}

reasons! {
    /// The webhook's client is not allowed to use it.
    Caller = "caller",
    /// The user name is empty.
    EmptyIdentity = "identity_empty",
    /// Impersonation (`kubectl --as`) is not allowed, or its headers are invalid.
    Impersonation = "impersonation",
    /// The stream reached the configured maximum age.
    MaxStreamAge = "max_stream_age",
    /// The path does not support the method.
    Method = "method",
    /// The user name is reserved.
    NameClass = "name_class",
    /// The request has no credentials.
    NoCredentials = "no_credentials",
    /// The request to the webhook has no token.
    NoToken = "no_token",
    /// The API server did not review the token.
    NotReviewed = "not_reviewed",
    /// Unknown path.
    Path = "path",
    /// The request is ambiguous, incomplete or invalid.
    Request = "request",
    /// A time limit was exceeded.
    Timeout = "timeout",
    /// The server has too many requests.
    TooManyRequests = "too_many_requests",
    /// No configured issuer, and not the API server either, knows the token.
    UnknownIssuer = "unknown_issuer",
    /// The webhook knows no issuer of the token.
    UnknownToken = "unknown_token",
    /// The API server did not answer, or its answer must not be forwarded.
    Upstream = "upstream",
    /// The proxy's account may not impersonate the user.
    UpstreamPermissions = "upstream_permissions",
}

impl Reason {
    /// Every reason.
    pub fn all() -> impl Iterator<Item = Reason> {
        RefusalClass::ALL.into_iter().map(Reason::Refused).chain(Reason::OWN.iter().copied())
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn documentation_lists_every_reason() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/serve.md");
        let page = fs::read_to_string(page).unwrap();
        let (_, table) = page.split_once("| `reason` |").unwrap();
        let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
        let names = |row: &str| {
            let first = row.split('|').nth(1).unwrap_or_default();
            first.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>()
        };
        let documented: Vec<String> = rows.flat_map(names).collect();
        let listed: BTreeSet<String> = documented.iter().cloned().collect();
        assert_eq!(listed.len(), documented.len(), "a reason is listed twice");
        let known: BTreeSet<String> = Reason::all().map(|reason| reason.name().to_owned()).collect();
        assert_eq!(known.len(), Reason::all().count(), "two reasons have the same name");
        assert_eq!(listed, known);
    }
}
