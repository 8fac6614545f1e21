//! The nine signature algorithms, and sets of them. There is no other: no HMAC, no `none` (S59).

use std::fmt;

use aws_lc_rs::digest;

/// A signature algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say all that there is to say")]
pub enum Algorithm {
    ES256,
    ES384,
    ES512,
    PS256,
    PS384,
    PS512,
    RS256,
    RS384,
    RS512,
}

/// How a signature is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    Ecdsa,
    Pss,
    Pkcs1,
}

impl Algorithm {
    /// All of them, sorted by name.
    pub const ALL: [Algorithm; 9] = {
        use Algorithm::{ES256, ES384, ES512, PS256, PS384, PS512, RS256, RS384, RS512};
        [ES256, ES384, ES512, PS256, PS384, PS512, RS256, RS384, RS512]
    };

    /// The algorithm of this exact name.
    pub fn named(name: &str) -> Option<Algorithm> {
        Algorithm::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }

    /// Its name in a token's header.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::ES256 => "ES256",
            Algorithm::ES384 => "ES384",
            Algorithm::ES512 => "ES512",
            Algorithm::PS256 => "PS256",
            Algorithm::PS384 => "PS384",
            Algorithm::PS512 => "PS512",
            Algorithm::RS256 => "RS256",
            Algorithm::RS384 => "RS384",
            Algorithm::RS512 => "RS512",
        }
    }

    pub(crate) fn scheme(self) -> Scheme {
        match self {
            Algorithm::ES256 | Algorithm::ES384 | Algorithm::ES512 => Scheme::Ecdsa,
            Algorithm::PS256 | Algorithm::PS384 | Algorithm::PS512 => Scheme::Pss,
            Algorithm::RS256 | Algorithm::RS384 | Algorithm::RS512 => Scheme::Pkcs1,
        }
    }

    pub(crate) fn digest(self) -> &'static digest::Algorithm {
        match self {
            Algorithm::ES256 | Algorithm::PS256 | Algorithm::RS256 => &digest::SHA256,
            Algorithm::ES384 | Algorithm::PS384 | Algorithm::RS384 => &digest::SHA384,
            Algorithm::ES512 | Algorithm::PS512 | Algorithm::RS512 => &digest::SHA512,
        }
    }

    /// Position in [`Algorithm::ALL`].
    pub(crate) fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The algorithms that an issuer's tokens may use.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Algorithms(u16);

impl Algorithms {
    /// All nine, as a configuration file allows them.
    pub const ALL: Algorithms = Algorithms((1 << Algorithm::ALL.len()) - 1);

    /// Whether one of them is allowed.
    pub fn contains(self, algorithm: Algorithm) -> bool {
        self.0 & (1 << algorithm.index()) != 0
    }
}

impl FromIterator<Algorithm> for Algorithms {
    fn from_iter<I: IntoIterator<Item = Algorithm>>(algorithms: I) -> Self {
        Algorithms(algorithms.into_iter().fold(0, |bits, algorithm| bits | (1 << algorithm.index())))
    }
}

/// As kube-apiserver lists them: `["ES256" "RS256"]`.
impl fmt::Display for Algorithms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = Algorithm::ALL
            .into_iter()
            .filter(|algorithm| self.contains(*algorithm))
            .map(|algorithm| format!("{:?}", algorithm.name()))
            .collect();
        write!(f, "[{}]", names.join(" "))
    }
}

impl fmt::Debug for Algorithms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // S59, A1–A3
    #[test]
    fn names_are_exact() {
        for algorithm in Algorithm::ALL {
            assert_eq!(Algorithm::named(algorithm.name()), Some(algorithm));
            assert!(Algorithms::ALL.contains(algorithm));
            assert!(Algorithms::from_iter([algorithm]).contains(algorithm));
        }
        for other in ["none", "None", "", "rs256", "HS256", "EdDSA", "ES256K", "RS256 "] {
            assert_eq!(Algorithm::named(other), None, "{other}");
        }
        assert_eq!(
            Algorithms::from_iter([Algorithm::RS256, Algorithm::ES256]).to_string(),
            r#"["ES256" "RS256"]"#
        );
    }
}
