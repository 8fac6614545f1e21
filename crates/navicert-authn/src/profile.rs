//! Decision profiles: `kube` decides exactly as kube-apiserver does, `hardened` adds the rules of [`Hardening`], each of
//! which can be switched on its own. Both follow one Kubernetes version: [`KubeVersion`].

mod versions;

use std::fmt;

pub use versions::{
    AlgorithmError, CheckOrder, CurveRule, JsonErrors, KeyFormat, KubeVersion, Refetch, UnknownKubeVersion,
    UnreadableKeys, VersionFacts,
};

use versions::STRICTEST_NOT_BEFORE_LEEWAY;

/// A rule that profile `hardened` adds to what kube-apiserver checks. Configuration files and reports refer to it by its
/// code, `H1` to `H25`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
// Exhaustive: a test shows the effect of every rule, and does not compile without one for a new rule.
pub enum Hardening {
    /// The configuration file holds one YAML document.
    // H1
    SingleDocument,
    /// Issuer URLs have a host and no `..`, bare `?` or bare `#`.
    // H2
    StrictIssuerUrls,
    /// The e-mail rule also recognises `claims["email"]` and `dyn(claims).email`.
    // H3
    StrictEmailRule,
    /// Expressions may use additional CEL libraries. Never on by default.
    // H4
    ExtendedLibraries,
    /// Expressions may not iterate over, measure or search `claims` itself.
    // H5
    NoClaimsIteration,
    /// An expression that runs too long is stopped.
    // H6
    ExpressionDeadline,
    /// Claim names are exact and occur once.
    // H7
    ExactClaimNames,
    /// Token headers with `crit` or `b64` are rejected.
    // H8
    NoCriticalHeaders,
    /// Only the canonical base64url encoding of a token is accepted.
    // H9
    CanonicalEncoding,
    /// `use`, `key_ops` and `alg` of a key restrict what it may verify.
    // H10
    KeyUsage,
    /// RSA keys have at least 2048 bits, the PSS salt is as long as the hash, the curve is the one the algorithm names.
    // H11
    KeyStrength,
    /// Times are JSON numbers between 1970 and 9999, and `nbf` is at most 60 seconds ahead.
    // H12
    StrictTimestamps,
    /// The username is not empty.
    // H13
    NonEmptyUsername,
    /// Usernames, groups, UIDs and extra values are printable: no control characters, line separators or bidirectional
    /// controls.
    // H14
    PrintableIdentity,
    /// Empty groups are dropped.
    // H15
    DropEmptyGroups,
    /// Error messages contain no claim values.
    // H16
    RedactedErrors,
    /// Usernames and groups may not start with `system:`.
    // H17
    ReservedSystemPrefix,
    /// Responses of issuers are limited in size, redirects and time.
    // H18
    BoundedResponses,
    /// Signing keys are fetched over HTTPS only.
    // H19
    HttpsKeys,
    /// Discovery is repeated, and failures are retried with exponential back-off.
    // H20
    DiscoveryRetry,
    /// An unusable key is skipped instead of rejecting the whole key set.
    // H21
    SkipUnusableKeys,
    /// Signing keys are refreshed in the background and expire.
    // H22
    KeyLifetime,
    /// Distributed claims come only from hosts and issuers that the configuration trusts.
    // H23
    DistributedClaimSources,
    /// Issuers that did not change keep their keys across a reload.
    // H24
    IncrementalReload,
    /// Signature algorithms can be restricted per issuer, and tokens may not bring their own keys.
    // H25
    AlgorithmAllowlist,
}

impl Hardening {
    /// Every rule, in the order of the codes.
    pub const ALL: [Hardening; 25] = [
        Hardening::SingleDocument,
        Hardening::StrictIssuerUrls,
        Hardening::StrictEmailRule,
        Hardening::ExtendedLibraries,
        Hardening::NoClaimsIteration,
        Hardening::ExpressionDeadline,
        Hardening::ExactClaimNames,
        Hardening::NoCriticalHeaders,
        Hardening::CanonicalEncoding,
        Hardening::KeyUsage,
        Hardening::KeyStrength,
        Hardening::StrictTimestamps,
        Hardening::NonEmptyUsername,
        Hardening::PrintableIdentity,
        Hardening::DropEmptyGroups,
        Hardening::RedactedErrors,
        Hardening::ReservedSystemPrefix,
        Hardening::BoundedResponses,
        Hardening::HttpsKeys,
        Hardening::DiscoveryRetry,
        Hardening::SkipUnusableKeys,
        Hardening::KeyLifetime,
        Hardening::DistributedClaimSources,
        Hardening::IncrementalReload,
        Hardening::AlgorithmAllowlist,
    ];

    /// One clause that says what the rule requires.
    pub fn summary(self) -> &'static str {
        match self {
            Hardening::SingleDocument => "the configuration file holds one YAML document",
            Hardening::StrictIssuerUrls => "issuer URLs have a host and no `..`, bare `?` or bare `#`",
            Hardening::StrictEmailRule => {
                "the e-mail rule also recognises `claims[\"email\"]` and `dyn(claims).email`"
            }
            Hardening::ExtendedLibraries => {
                "expressions may use additional CEL libraries; never on by default"
            }
            Hardening::NoClaimsIteration => {
                "expressions may not iterate over, measure or search `claims` itself"
            }
            Hardening::ExpressionDeadline => "an expression that runs too long is stopped",
            Hardening::ExactClaimNames => "claim names are exact and occur once",
            Hardening::NoCriticalHeaders => "token headers with `crit` or `b64` are rejected",
            Hardening::CanonicalEncoding => "only the canonical base64url encoding of a token is accepted",
            Hardening::KeyUsage => "`use`, `key_ops` and `alg` of a key restrict what it may verify",
            Hardening::KeyStrength => {
                "RSA keys have at least 2048 bits, the PSS salt is as long as the hash, the curve is the one the algorithm names"
            }
            Hardening::StrictTimestamps => {
                "times are JSON numbers between 1970 and 9999, and `nbf` is at most 60 seconds ahead"
            }
            Hardening::NonEmptyUsername => "the username is not empty",
            Hardening::PrintableIdentity => {
                "usernames, groups, UIDs and extra values have no control characters, line separators or bidirectional controls"
            }
            Hardening::DropEmptyGroups => "empty groups are dropped",
            Hardening::RedactedErrors => "error messages contain no claim values",
            Hardening::ReservedSystemPrefix => "usernames and groups may not start with `system:`",
            Hardening::BoundedResponses => "responses of issuers are limited in size, redirects and time",
            Hardening::HttpsKeys => "signing keys are fetched over HTTPS only",
            Hardening::DiscoveryRetry => {
                "discovery is repeated, and failures are retried with exponential back-off"
            }
            Hardening::SkipUnusableKeys => {
                "an unusable key is skipped instead of rejecting the whole key set"
            }
            Hardening::KeyLifetime => "signing keys are refreshed in the background and expire",
            Hardening::DistributedClaimSources => {
                "distributed claims come only from hosts and issuers that the configuration trusts"
            }
            Hardening::IncrementalReload => "issuers that did not change keep their keys across a reload",
            Hardening::AlgorithmAllowlist => {
                "signature algorithms can be restricted per issuer, and tokens may not bring their own keys"
            }
        }
    }

    /// The code used in configuration files and reports: `H7`.
    pub fn code(self) -> &'static str {
        match self {
            Hardening::SingleDocument => "H1",
            Hardening::StrictIssuerUrls => "H2",
            Hardening::StrictEmailRule => "H3",
            Hardening::ExtendedLibraries => "H4",
            Hardening::NoClaimsIteration => "H5",
            Hardening::ExpressionDeadline => "H6",
            Hardening::ExactClaimNames => "H7",
            Hardening::NoCriticalHeaders => "H8",
            Hardening::CanonicalEncoding => "H9",
            Hardening::KeyUsage => "H10",
            Hardening::KeyStrength => "H11",
            Hardening::StrictTimestamps => "H12",
            Hardening::NonEmptyUsername => "H13",
            Hardening::PrintableIdentity => "H14",
            Hardening::DropEmptyGroups => "H15",
            Hardening::RedactedErrors => "H16",
            Hardening::ReservedSystemPrefix => "H17",
            Hardening::BoundedResponses => "H18",
            Hardening::HttpsKeys => "H19",
            Hardening::DiscoveryRetry => "H20",
            Hardening::SkipUnusableKeys => "H21",
            Hardening::KeyLifetime => "H22",
            Hardening::DistributedClaimSources => "H23",
            Hardening::IncrementalReload => "H24",
            Hardening::AlgorithmAllowlist => "H25",
        }
    }

    /// The rule with this code.
    pub(crate) fn from_code(code: &str) -> Option<Hardening> {
        Hardening::ALL.into_iter().find(|rule| rule.code() == code)
    }

    const fn bit(self) -> u32 {
        1 << (self as u32)
    }
}

impl fmt::Display for Hardening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// Which hardening rules are on, the size limits of tokens and users, and the Kubernetes version to follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthnProfile {
    rules: u32,
    /// The Kubernetes version whose kube-apiserver decides. Hardening rules reject more than this version does.
    pub version: KubeVersion,
    /// Size limits beyond which a token is rejected.
    pub limits: TokenLimits,
    /// Also accepts expressions that kube-apiserver rejects: `claims` has dynamic values, which can be iterated over
    /// and put in lists, and escaped names work wherever a field is named.
    // S311, S83
    pub wide_expressions: bool,
}

/// Size limits beyond which a token is rejected.
// A12, A38–A40, A49
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenLimits {
    /// Maximum length of the token in bytes.
    pub token: usize,
    /// Maximum length of its encoded header in bytes.
    pub header: usize,
    /// Maximum nesting of its header.
    pub header_depth: usize,
    /// Maximum nesting of its payload.
    pub depth: usize,
    /// Maximum number of groups of the user.
    pub groups: usize,
    /// Maximum total length of username, UID, groups and extra values in bytes.
    pub identity: usize,
    /// Maximum number of keys tried for a token without a `kid`.
    pub keys: usize,
    /// Maximum length in bytes of a regular expression taken from a claim.
    // A53
    pub pattern: usize,
}

impl AuthnProfile {
    /// Decides exactly as kube-apiserver of the newest stable Kubernetes version does.
    pub const KUBE: AuthnProfile = AuthnProfile {
        rules: 0,
        version: KubeVersion::V1_37,
        limits: TokenLimits {
            token: usize::MAX,
            header: usize::MAX,
            header_depth: usize::MAX,
            depth: usize::MAX,
            groups: usize::MAX,
            identity: usize::MAX,
            keys: usize::MAX,
            pattern: usize::MAX,
        },
        wide_expressions: false,
    };

    /// Every hardening rule except [`Hardening::ExtendedLibraries`], with size limits.
    pub const HARDENED: AuthnProfile = AuthnProfile {
        rules: ((1 << Hardening::ALL.len()) - 1) & !Hardening::ExtendedLibraries.bit(),
        version: KubeVersion::V1_37,
        limits: TokenLimits {
            token: 64 << 10,
            header: 16 << 10,
            header_depth: 8,
            depth: 128,
            // An API server accepts 1 MiB of headers: this many bytes, and as many lines as fit.
            groups: 10_000,
            identity: 704 << 10,
            keys: 32,
            pattern: 1 << 10,
        },
        wide_expressions: true,
    };

    /// Decides exactly as kube-apiserver of this version does.
    pub const fn kube(version: KubeVersion) -> Self {
        AuthnProfile::KUBE.with_version(version)
    }

    /// This profile for another Kubernetes version.
    #[must_use]
    pub const fn with_version(mut self, version: KubeVersion) -> Self {
        self.version = version;
        self
    }

    /// Whether this is profile `kube`, without any hardening rule.
    pub fn is_kube(&self) -> bool {
        *self == AuthnProfile::kube(self.version)
    }

    /// What the Kubernetes version does where versions differ.
    pub(crate) const fn facts(&self) -> &'static VersionFacts {
        self.version.facts()
    }

    /// How far `nbf` may lie in the future, in seconds, and what limits it.
    // S126, V1, H12
    pub(crate) const fn not_before_leeway(&self) -> (i64, &'static str) {
        if self.has(Hardening::StrictTimestamps) {
            return (STRICTEST_NOT_BEFORE_LEEWAY, "rule H12");
        }
        (self.facts().not_before_leeway, self.version.title())
    }

    /// Whether the rule is on.
    pub const fn has(&self, rule: Hardening) -> bool {
        self.rules & rule.bit() != 0
    }

    /// This profile with one rule switched on or off.
    #[must_use]
    pub const fn with(mut self, rule: Hardening, on: bool) -> Self {
        self.rules = if on { self.rules | rule.bit() } else { self.rules & !rule.bit() };
        self
    }
}

impl Default for AuthnProfile {
    fn default() -> Self {
        AuthnProfile::HARDENED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // S71: H4 is opt-in.
    #[test]
    fn hardened_has_every_rule_but_the_extended_libraries() {
        for rule in Hardening::ALL {
            assert!(!AuthnProfile::KUBE.has(rule), "{rule}");
            assert_eq!(AuthnProfile::HARDENED.has(rule), rule != Hardening::ExtendedLibraries, "{rule}");
            assert!(AuthnProfile::KUBE.with(rule, true).has(rule));
            assert!(!AuthnProfile::HARDENED.with(rule, false).has(rule));
            assert_eq!(Hardening::from_code(&rule.to_string()), Some(rule));
        }
    }
}
