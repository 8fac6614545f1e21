//! Decides on the cases of a suite, or on given tokens, on both sides.

use navicert_types::Timestamp;
use navicert_types::authentication_test::TestInput;
use serde_json::Value;

use super::finding::summary;
use super::side_authenticator::{ComparableDecision, SideAuthenticator};
use super::{DiffError, DiffSide};
use crate::config::NavicertConfiguration;
use crate::report::{Replay, SideDecision};
use crate::suite::{Suite, SuiteSigner};

/// Decides on every case of a suite. The suite's own configuration only completes the claims of its cases.
///
/// # Errors
/// A configuration is invalid, or the suite cannot be run.
pub fn replay_suite(from: &DiffSide<'_>, to: &DiffSide<'_>, suite: &Suite) -> Result<Vec<Replay>, DiffError> {
    let signer = SuiteSigner::new().ok_or(DiffError::Key)?;
    let tokens = suite.tokens(&signer).map_err(|error| DiffError::Replay(error.to_string()))?;
    let of_claims = Both::new(from, to, &signer.key_document(), true)?;
    let of_tokens = Both::new(from, to, &suite.jwks, false)?;
    let replay = |(case, token): (&navicert_types::authentication_test::TestCase, &String)| {
        let both = if matches!(case.input, TestInput::Claims(_)) { &of_claims } else { &of_tokens };
        both.replay(&case.name, token, suite.now(case))
    };
    Ok(suite.test.cases.iter().zip(&tokens).map(replay).collect())
}

/// Decides on given tokens, each with a name, with given keys: see [`batch::eval_line`](crate::batch::eval_line).
///
/// # Errors
/// A configuration is invalid.
pub fn replay_tokens(
    from: &DiffSide<'_>,
    to: &DiffSide<'_>,
    tokens: &[(String, String)],
    jwks: &Value,
    now: Timestamp,
) -> Result<Vec<Replay>, DiffError> {
    let both = Both::new(from, to, jwks, false)?;
    Ok(tokens.iter().map(|(name, token)| both.replay(name, token.trim(), now)).collect())
}

/// Both sides with given keys.
struct Both(SideAuthenticator, SideAuthenticator);

impl Both {
    /// `any_algorithm`: tokens are signed here, whatever algorithms the issuers may use.
    fn new(
        from: &DiffSide<'_>,
        to: &DiffSide<'_>,
        jwks: &Value,
        any_algorithm: bool,
    ) -> Result<Self, DiffError> {
        let authenticator = |side: &DiffSide<'_>| {
            let mut settings: NavicertConfiguration = side.navicert_config.clone();
            if any_algorithm {
                settings.issuers.iter_mut().for_each(|issuer| issuer.allowed_algorithms = None);
            }
            let side = DiffSide { navicert_config: &settings, ..*side };
            SideAuthenticator::with_given_keys(&side, jwks)
                .map_err(|error| DiffError::Replay(format!("invalid configuration `{}`: {error}", side.file)))
        };
        Ok(Both(authenticator(from)?, authenticator(to)?))
    }

    fn replay(&self, name: &str, token: &str, now: Timestamp) -> Replay {
        let (from, to) = (self.0.decide(token, now), self.1.decide(token, now));
        let decision = |one: ComparableDecision| SideDecision { outcome: one.outcome, log: one.log };
        let summary = summary(&from, &to);
        Replay { name: name.to_owned(), summary, from: decision(from), to: decision(to) }
    }
}
