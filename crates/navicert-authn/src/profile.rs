//! Whose rules decide: `kube` decides as kube-apiserver does, `hardened` adds the rules H1–H25, each a switch.

use std::fmt;

/// A rule that `hardened` adds to what kube-apiserver does (S-numbers say more in the specification).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// The file holds one YAML document.
    H1,
    /// Issuer URLs have a host and no odd spelling.
    H2,
    /// The e-mail rule sees `claims["email"]` and `dyn(claims).email`.
    H3,
    /// More libraries for expressions. Never on by default.
    H4,
    /// `claims` itself is not iterated over, measured or searched.
    H5,
    /// An expression that takes too long is stopped.
    H6,
    /// Claim names are exact and occur once.
    H7,
    /// No `crit` and no `b64`.
    H8,
    /// The token's text is canonical.
    H9,
    /// `use`, `key_ops` and `alg` of a key are honoured.
    H10,
    /// RSA keys from 2048 bits, PSS salt as long as the hash, the curve that the algorithm names.
    H11,
    /// Times are numbers between 1970 and 9999.
    H12,
    /// A user has a name.
    H13,
    /// Names are printable.
    H14,
    /// Empty groups are dropped.
    H15,
    /// Errors hold no claim values.
    H16,
    /// `system:` is for the cluster itself.
    H17,
    /// Answers of issuers are bounded.
    H18,
    /// Keys come over https.
    H19,
    /// Discovery is repeated, and failures are waited out.
    H20,
    /// A key that cannot be used is skipped alone.
    H21,
    /// Keys have a lifetime.
    H22,
    /// Distributed claims come from where they may.
    H23,
    /// What did not change survives a reload.
    H24,
    /// Algorithms can be narrowed, and a token brings no keys.
    H25,
}

impl Rule {
    /// All of them, in order.
    pub const ALL: [Rule; 25] = {
        use Rule::{
            H1, H2, H3, H4, H5, H6, H7, H8, H9, H10, H11, H12, H13, H14, H15, H16, H17, H18, H19, H20, H21,
            H22, H23, H24, H25,
        };
        [
            H1, H2, H3, H4, H5, H6, H7, H8, H9, H10, H11, H12, H13, H14, H15, H16, H17, H18, H19, H20, H21,
            H22, H23, H24, H25,
        ]
    };

    /// What it asks for, in a few words.
    pub fn sentence(self) -> &'static str {
        match self {
            Rule::H1 => "the file holds one YAML document",
            Rule::H2 => "issuer URLs have a host and no odd spelling",
            Rule::H3 => "the e-mail rule sees `claims[\"email\"]` and `dyn(claims).email`",
            Rule::H4 => "more libraries for expressions. Never on by default",
            Rule::H5 => "`claims` itself is not iterated over, measured or searched",
            Rule::H6 => "an expression that takes too long is stopped",
            Rule::H7 => "claim names are exact and occur once",
            Rule::H8 => "no `crit` and no `b64`",
            Rule::H9 => "the token's text is canonical",
            Rule::H10 => "`use`, `key_ops` and `alg` of a key are honoured",
            Rule::H11 => {
                "RSA keys from 2048 bits, PSS salt as long as the hash, the curve that the algorithm names"
            }
            Rule::H12 => "times are numbers between 1970 and 9999",
            Rule::H13 => "a user has a name",
            Rule::H14 => "names are printable",
            Rule::H15 => "empty groups are dropped",
            Rule::H16 => "errors hold no claim values",
            Rule::H17 => "`system:` is for the cluster itself",
            Rule::H18 => "answers of issuers are bounded",
            Rule::H19 => "keys come over https",
            Rule::H20 => "discovery is repeated, and failures are waited out",
            Rule::H21 => "a key that cannot be used is skipped alone",
            Rule::H22 => "keys have a lifetime",
            Rule::H23 => "distributed claims come from where they may",
            Rule::H24 => "what did not change survives a reload",
            Rule::H25 => "algorithms can be narrowed, and a token brings no keys",
        }
    }

    /// The rule of this name (`H7`).
    pub fn named(name: &str) -> Option<Rule> {
        Rule::ALL.into_iter().find(|rule| rule.to_string() == name)
    }

    const fn bit(self) -> u32 {
        1 << (self as u32)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Which rules are on, and how large things may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    rules: u32,
    /// Sizes beyond which a token is refused.
    pub limits: TokenLimits,
    /// Expressions that kube-apiserver cannot use work too: `claims` has dynamic values, which can be iterated over
    /// and put in lists (S311), and escaped names are understood wherever a field is named (S83).
    pub wide_expressions: bool,
}

/// Sizes beyond which a token is refused (A12, A38–A40, A49).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenLimits {
    /// Bytes of the token's text.
    pub token: usize,
    /// Bytes of its header part.
    pub header: usize,
    /// Nesting of its header (A39).
    pub header_depth: usize,
    /// Nesting of its payload.
    pub depth: usize,
    /// Groups of the user.
    pub groups: usize,
    /// Bytes of all that the user consists of.
    pub identity: usize,
    /// Keys that are tried for a token that names none.
    pub keys: usize,
    /// Bytes of a pattern that an expression takes from a claim (A53).
    pub pattern: usize,
}

impl Profile {
    /// Exactly as kube-apiserver decides.
    pub const KUBE: Profile = Profile {
        rules: 0,
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

    /// Safer where kube-apiserver is not: every rule but H4.
    pub const HARDENED: Profile = Profile {
        rules: ((1 << Rule::ALL.len()) - 1) & !Rule::H4.bit(),
        limits: TokenLimits {
            token: 64 << 10,
            header: 16 << 10,
            header_depth: 8,
            depth: 128,
            groups: 1_000,
            identity: 64 << 10,
            keys: 32,
            pattern: 1 << 10,
        },
        wide_expressions: true,
    };

    /// Whether a rule is on.
    pub const fn has(&self, rule: Rule) -> bool {
        self.rules & rule.bit() != 0
    }

    /// The same with one rule switched.
    #[must_use]
    pub const fn with(mut self, rule: Rule, on: bool) -> Self {
        self.rules = if on { self.rules | rule.bit() } else { self.rules & !rule.bit() };
        self
    }
}

impl Default for Profile {
    fn default() -> Self {
        Profile::HARDENED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // S71: H4 is opt-in.
    #[test]
    fn hardened_has_every_rule_but_the_extended_libraries() {
        for rule in Rule::ALL {
            assert!(!Profile::KUBE.has(rule), "{rule}");
            assert_eq!(Profile::HARDENED.has(rule), rule != Rule::H4, "{rule}");
            assert!(Profile::KUBE.with(rule, true).has(rule));
            assert!(!Profile::HARDENED.with(rule, false).has(rule));
            assert_eq!(Rule::named(&rule.to_string()), Some(rule));
        }
    }
}
