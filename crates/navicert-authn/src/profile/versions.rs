//! What differs between the supported versions of kube-apiserver, as one row of facts per version. The code that implements a
//! behaviour reads its fact; no other place compares versions.
// V1–V7

mod rows;

use std::fmt;
use std::str::FromStr;

/// A Kubernetes version whose kube-apiserver profile `kube` decides like.
///
/// ```
/// use navicert_authn::KubeVersion;
///
/// let version: KubeVersion = "1.38".parse()?;
/// assert_eq!(version.to_string(), "1.38");
/// assert_eq!(KubeVersion::default().to_string(), "1.37");
/// # Ok::<(), navicert_authn::UnknownKubeVersion>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the names say all that there is to say")]
pub enum KubeVersion {
    V1_34,
    V1_35,
    V1_36,
    /// The newest stable version.
    #[default]
    V1_37,
    /// As of v1.38.0-alpha.2.
    V1_38,
}

/// A text that names no supported Kubernetes version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown Kubernetes version `{0}`, expected one of 1.34, 1.35, 1.36, 1.37, 1.38")]
pub struct UnknownKubeVersion(String);

impl KubeVersion {
    /// Every supported version, oldest first.
    pub const ALL: [KubeVersion; 5] =
        [KubeVersion::V1_34, KubeVersion::V1_35, KubeVersion::V1_36, KubeVersion::V1_37, KubeVersion::V1_38];

    /// The version as text: `1.37`.
    pub const fn name(self) -> &'static str {
        match self {
            KubeVersion::V1_34 => "1.34",
            KubeVersion::V1_35 => "1.35",
            KubeVersion::V1_36 => "1.36",
            KubeVersion::V1_37 => "1.37",
            KubeVersion::V1_38 => "1.38",
        }
    }

    /// The version with the name of the project: `Kubernetes 1.37`.
    pub const fn title(self) -> &'static str {
        match self {
            KubeVersion::V1_34 => "Kubernetes 1.34",
            KubeVersion::V1_35 => "Kubernetes 1.35",
            KubeVersion::V1_36 => "Kubernetes 1.36",
            KubeVersion::V1_37 => "Kubernetes 1.37",
            KubeVersion::V1_38 => "Kubernetes 1.38",
        }
    }

    /// The minor version: 37.
    pub const fn minor(self) -> u16 {
        match self {
            KubeVersion::V1_34 => 34,
            KubeVersion::V1_35 => 35,
            KubeVersion::V1_36 => 36,
            KubeVersion::V1_37 => 37,
            KubeVersion::V1_38 => 38,
        }
    }

    /// What this version does where versions differ.
    pub const fn facts(self) -> &'static VersionFacts {
        match self {
            KubeVersion::V1_34 => &V1_34,
            KubeVersion::V1_35 => &V1_35,
            KubeVersion::V1_36 => &V1_36,
            KubeVersion::V1_37 => &V1_37,
            KubeVersion::V1_38 => &V1_38,
        }
    }
}

impl fmt::Display for KubeVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for KubeVersion {
    type Err = UnknownKubeVersion;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = KubeVersion::ALL.into_iter().find(|version| version.name() == text);
        found.ok_or_else(|| UnknownKubeVersion(text.to_owned()))
    }
}

/// What a version of kube-apiserver does where versions differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VersionFacts {
    /// The release that the facts were recorded from.
    pub release: &'static str,
    /// The libraries that verify tokens and evaluate expressions.
    pub libraries: &'static str,
    /// Which of a token's faults is reported if it has several.
    pub check_order: CheckOrder,
    /// How far `nbf` may lie in the future, in seconds. `exp` has no leeway.
    pub not_before_leeway: i64,
    /// Wording for a signature algorithm that is not allowed.
    pub algorithm_error: AlgorithmError,
    /// What a key that does not parse does to its key set.
    pub unreadable_keys: UnreadableKeys,
    /// How a key set's members are read.
    pub key_format: KeyFormat,
    /// Whether an ECDSA algorithm accepts keys of one curve only.
    pub curve: CurveRule,
    /// When a token makes kube-apiserver fetch the key set again.
    pub refetch: Refetch,
    /// Members of the discovery document that have to be strings, although kube-apiserver does not use them.
    pub discovery_texts: &'static [&'static str],
    /// Wording of errors in JSON documents.
    pub json_errors: JsonErrors,
    /// Whether the metrics of key set fetches exist.
    pub key_set_metrics: bool,
    /// Whether a disabled feature gate is reported as a validation error. All gates concerned are enabled by default.
    pub feature_gate_errors: bool,
}

/// Which of a token's faults is reported if it has several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CheckOrder {
    /// Claims, then algorithm, then signature.
    ClaimsFirst,
    /// Algorithm, then signature, then claims.
    SignatureFirst,
}

/// Wording for a signature algorithm that is not allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AlgorithmError {
    /// Reported by the verifier, after the header has been read.
    ByVerifier,
    /// Reported by the parser, as a malformed token.
    ByParser,
}

/// What a key that does not parse does to its key set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnreadableKeys {
    /// The whole set is rejected.
    RejectSet,
    /// A key with an unsupported `alg` or key type is skipped; any other fault rejects the whole set.
    SkipUnsupported,
}

/// How the members of a key are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyFormat {
    /// `x5u` is an object; Ed25519 keys have any length.
    Jose2,
    /// `x5u` is a URL; Ed25519 keys are validated.
    Jose4,
}

/// Whether an ECDSA algorithm accepts keys of one curve only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CurveRule {
    /// Any supported curve.
    Any,
    /// The curve that the algorithm names.
    OfAlgorithm,
}

/// When a token makes kube-apiserver fetch the key set again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refetch {
    /// No key verifies the token, and the caching headers of the last answer say that the keys are stale.
    WhenStale,
    /// No key verifies the token.
    OnEveryFailure,
}

/// Wording of errors in JSON documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JsonErrors {
    /// As Go 1.25 and 1.26 print them.
    Go126,
    /// As Go 1.27 prints them.
    Go127,
}

/// The leeway for `nbf` with hardened times: the smallest of all versions.
pub(crate) const STRICTEST_NOT_BEFORE_LEEWAY: i64 = 60;

const V1_34: VersionFacts = VersionFacts {
    release: "v1.34.13",
    libraries: "go-oidc 2.3.0, go-jose 2.6.3, cel-go 0.26.0",
    check_order: CheckOrder::ClaimsFirst,
    not_before_leeway: 60,
    algorithm_error: AlgorithmError::ByVerifier,
    unreadable_keys: UnreadableKeys::RejectSet,
    key_format: KeyFormat::Jose2,
    curve: CurveRule::Any,
    refetch: Refetch::WhenStale,
    discovery_texts: &["authorization_endpoint", "token_endpoint", "userinfo_endpoint"],
    json_errors: JsonErrors::Go126,
    key_set_metrics: false,
    feature_gate_errors: true,
};

const V1_35: VersionFacts = VersionFacts { release: "v1.35.10", key_set_metrics: true, ..V1_34 };

const V1_36: VersionFacts = VersionFacts {
    release: "v1.36.6",
    libraries: "go-oidc 2.5.0, go-jose 2.6.3, cel-go 0.26.0",
    check_order: CheckOrder::SignatureFirst,
    ..V1_35
};

const V1_37: VersionFacts = VersionFacts {
    release: "v1.37.1",
    libraries: "go-oidc 2.5.0, go-jose 2.6.3, cel-go 0.29.2",
    feature_gate_errors: false,
    ..V1_36
};

const V1_38: VersionFacts = VersionFacts {
    release: "v1.38.0-alpha.2",
    libraries: "go-oidc 3.21.0, go-jose 4.1.5, cel-go 0.29.2",
    not_before_leeway: 300,
    algorithm_error: AlgorithmError::ByParser,
    unreadable_keys: UnreadableKeys::SkipUnsupported,
    key_format: KeyFormat::Jose4,
    curve: CurveRule::OfAlgorithm,
    refetch: Refetch::OnEveryFailure,
    discovery_texts: &[
        "authorization_endpoint",
        "token_endpoint",
        "device_authorization_endpoint",
        "userinfo_endpoint",
    ],
    json_errors: JsonErrors::Go127,
    ..V1_37
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_is_parsed_from_its_name() {
        for version in KubeVersion::ALL {
            assert_eq!(version.to_string().parse(), Ok(version));
            assert_eq!(version.name(), format!("1.{}", version.minor()));
            assert_eq!(version.title(), format!("Kubernetes {version}"));
            assert!(version.facts().release.starts_with(&format!("v{version}.")), "{version}");
        }
        let error = "1.33".parse::<KubeVersion>().unwrap_err().to_string();
        let names: Vec<String> = KubeVersion::ALL.iter().map(ToString::to_string).collect();
        assert_eq!(error, format!("unknown Kubernetes version `1.33`, expected one of {}", names.join(", ")));
    }

    // V1
    #[test]
    fn hardened_leeway_is_the_strictest() {
        let smallest = KubeVersion::ALL.iter().map(|version| version.facts().not_before_leeway).min();
        assert_eq!(smallest, Some(STRICTEST_NOT_BEFORE_LEEWAY));
    }
}
