//! The nine supported signature algorithms, and sets of them. Neither HMAC nor `none` is supported.
// S59

use std::fmt;

use aws_lc_rs::digest;

/// A signature algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say all that there is to say")]
pub enum JwsAlgorithm {
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

/// Signature schemes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignatureScheme {
    Ecdsa,
    Pss,
    Pkcs1,
}

impl JwsAlgorithm {
    /// Every algorithm, sorted by name.
    pub const ALL: [JwsAlgorithm; 9] = {
        use JwsAlgorithm::{ES256, ES384, ES512, PS256, PS384, PS512, RS256, RS384, RS512};
        [ES256, ES384, ES512, PS256, PS384, PS512, RS256, RS384, RS512]
    };

    /// The algorithm with this exact name.
    pub fn from_name(name: &str) -> Option<JwsAlgorithm> {
        JwsAlgorithm::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }

    /// Its name in a token's header.
    pub fn name(self) -> &'static str {
        match self {
            JwsAlgorithm::ES256 => "ES256",
            JwsAlgorithm::ES384 => "ES384",
            JwsAlgorithm::ES512 => "ES512",
            JwsAlgorithm::PS256 => "PS256",
            JwsAlgorithm::PS384 => "PS384",
            JwsAlgorithm::PS512 => "PS512",
            JwsAlgorithm::RS256 => "RS256",
            JwsAlgorithm::RS384 => "RS384",
            JwsAlgorithm::RS512 => "RS512",
        }
    }

    pub(crate) fn scheme(self) -> SignatureScheme {
        match self {
            JwsAlgorithm::ES256 | JwsAlgorithm::ES384 | JwsAlgorithm::ES512 => SignatureScheme::Ecdsa,
            JwsAlgorithm::PS256 | JwsAlgorithm::PS384 | JwsAlgorithm::PS512 => SignatureScheme::Pss,
            JwsAlgorithm::RS256 | JwsAlgorithm::RS384 | JwsAlgorithm::RS512 => SignatureScheme::Pkcs1,
        }
    }

    pub(crate) fn digest(self) -> &'static digest::Algorithm {
        match self {
            JwsAlgorithm::ES256 | JwsAlgorithm::PS256 | JwsAlgorithm::RS256 => &digest::SHA256,
            JwsAlgorithm::ES384 | JwsAlgorithm::PS384 | JwsAlgorithm::RS384 => &digest::SHA384,
            JwsAlgorithm::ES512 | JwsAlgorithm::PS512 | JwsAlgorithm::RS512 => &digest::SHA512,
        }
    }

    /// Position in [`JwsAlgorithm::ALL`].
    pub(crate) fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for JwsAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of signature algorithms.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct JwsAlgorithmSet(u16);

impl JwsAlgorithmSet {
    /// All nine, which a configuration file allows.
    pub const ALL: JwsAlgorithmSet = JwsAlgorithmSet((1 << JwsAlgorithm::ALL.len()) - 1);

    /// Whether the set contains the algorithm.
    pub fn contains(self, algorithm: JwsAlgorithm) -> bool {
        self.0 & (1 << algorithm.index()) != 0
    }
}

impl FromIterator<JwsAlgorithm> for JwsAlgorithmSet {
    fn from_iter<I: IntoIterator<Item = JwsAlgorithm>>(algorithms: I) -> Self {
        JwsAlgorithmSet(algorithms.into_iter().fold(0, |bits, algorithm| bits | (1 << algorithm.index())))
    }
}

/// As kube-apiserver lists them: `["ES256" "RS256"]`.
impl fmt::Display for JwsAlgorithmSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = JwsAlgorithm::ALL
            .into_iter()
            .filter(|algorithm| self.contains(*algorithm))
            .map(|algorithm| format!("{:?}", algorithm.name()))
            .collect();
        write!(f, "[{}]", names.join(" "))
    }
}

impl fmt::Debug for JwsAlgorithmSet {
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
        for algorithm in JwsAlgorithm::ALL {
            assert_eq!(JwsAlgorithm::from_name(algorithm.name()), Some(algorithm));
            assert!(JwsAlgorithmSet::ALL.contains(algorithm));
            assert!(JwsAlgorithmSet::from_iter([algorithm]).contains(algorithm));
        }
        for other in ["none", "None", "", "rs256", "HS256", "EdDSA", "ES256K", "RS256 "] {
            assert_eq!(JwsAlgorithm::from_name(other), None, "{other}");
        }
        assert_eq!(
            JwsAlgorithmSet::from_iter([JwsAlgorithm::RS256, JwsAlgorithm::ES256]).to_string(),
            r#"["ES256" "RS256"]"#
        );
    }
}
