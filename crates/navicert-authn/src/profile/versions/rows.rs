//! The facts of a version in words, for the table of differences in the documentation.

use super::{
    AlgorithmError, CheckOrder, CurveRule, JsonErrors, KeyFormat, Refetch, UnreadableKeys, VersionFacts,
};

impl VersionFacts {
    /// What differs between versions, and what this version does: the same subjects in the same order for every version.
    pub fn rows(&self) -> Vec<(&'static str, String)> {
        let order = match self.check_order {
            CheckOrder::ClaimsFirst => "claims, algorithm, signature",
            CheckOrder::SignatureFirst => "algorithm, signature, claims",
        };
        let algorithm = match self.algorithm_error {
            AlgorithmError::ByVerifier => {
                "`oidc: id token signed with unsupported algorithm, expected […] got \"HS256\"`"
            }
            AlgorithmError::ByParser => {
                "`oidc: malformed jwt: unexpected signature algorithm \"HS256\"; expected […]`"
            }
        };
        let keys = match self.unreadable_keys {
            UnreadableKeys::RejectSet => "the whole key set is rejected",
            UnreadableKeys::SkipUnsupported => "the key is skipped",
        };
        let format = match self.key_format {
            KeyFormat::Jose2 => "`x5u` must be an object; an Ed25519 key may have any length",
            KeyFormat::Jose4 => "`x5u` must be a URL; an Ed25519 key must be valid",
        };
        let curve = match self.curve {
            CurveRule::Any => "any of P-256, P-384, P-521",
            CurveRule::OfAlgorithm => "only the curve that the algorithm names",
        };
        let refetch = match self.refetch {
            Refetch::WhenStale => {
                "no key verifies the token, and the caching headers of the last answer have expired"
            }
            Refetch::OnEveryFailure => "no key verifies the token",
        };
        let json = match self.json_errors {
            JsonErrors::Go126 => "as Go 1.26 prints them",
            JsonErrors::Go127 => "as Go 1.27 prints them",
        };
        vec![
            ("recorded from", self.release.to_owned()),
            ("libraries", self.libraries.to_owned()),
            ("order of checks: which fault of a token is logged", order.to_owned()),
            ("`nbf` may be ahead by", format!("{} s", self.not_before_leeway)),
            ("log line for an algorithm that is not allowed", algorithm.to_owned()),
            ("key with an unsupported `alg` or key type", keys.to_owned()),
            ("members of a key", format.to_owned()),
            ("curves of an ECDSA algorithm", curve.to_owned()),
            ("the key set is fetched again when", refetch.to_owned()),
            (
                "members of the discovery document that must be strings",
                self.discovery_texts.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
            ),
            ("errors in JSON documents", json.to_owned()),
            ("metrics of key set fetches", if self.key_set_metrics { "yes" } else { "no" }.to_owned()),
            (
                "errors for disabled feature gates of structured authentication",
                if self.feature_gate_errors { "yes" } else { "no: the gates are gone" }.to_owned(),
            ),
        ]
    }
}
