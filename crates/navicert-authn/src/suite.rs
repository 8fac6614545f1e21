//! Unit tests for an authentication configuration: given claims or a token, checks the expected user or rejection. Cases run
//! through the normal authentication path; claims are signed with a key generated for the run.
//!
//! ```text
//! AuthenticationTest ──Suite::run──▶ SuiteReport: every case, and coverage
//! ```

mod coverage;
mod difference;
mod signer;

use std::collections::HashMap;
use std::sync::Arc;

use navicert_types::Timestamp;
use navicert_types::authentication_config::AuthenticationConfiguration;
use navicert_types::authentication_test::{AuthenticationTest, TestCase, TestClaims, TestInput};
use serde_json::Value;

use crate::authenticator::Authenticators;
use crate::config::{CompiledIssuer, NavicertConfiguration, validate};
use crate::given_keys::static_keys;
use crate::jwks::{KeySource, StaticKeys};
use crate::model::AuthnRequest;
use crate::model::outcome::AuthnOutcome;
use crate::profile::AuthnProfile;

pub use coverage::{Coverage, Gap};
pub use difference::Difference;
pub(crate) use signer::SuiteSigner;

/// The default time of a suite: the first second of 2027.
const DEFAULT_NOW: i64 = 1_798_761_600;

/// Lifetime of tokens made from claims.
const TOKEN_LIFETIME_SECONDS: i64 = 300;

/// A suite and everything it refers to.
#[derive(Debug)]
pub struct Suite {
    /// The cases.
    pub test: AuthenticationTest,
    /// The configuration under test, which is valid.
    pub configuration: AuthenticationConfiguration,
    /// Keys for cases with tokens: see `batch::eval`.
    pub jwks: Value,
    /// Contents of token files, by file name.
    pub tokens: HashMap<String, String>,
    /// The `NavicertConfiguration`; default if there is none.
    pub navicert_config: NavicertConfiguration,
    /// The profile.
    pub profile: AuthnProfile,
}

/// The result of a suite.
#[derive(Debug)]
pub struct SuiteReport {
    /// Every case, in order.
    pub cases: Vec<CaseReport>,
    /// Coverage, measured if all cases pass.
    pub coverage: Option<Coverage>,
}

/// The result of a case.
#[derive(Debug)]
pub struct CaseReport {
    /// Its name.
    pub name: String,
    /// Differences between expectation and outcome; empty: it passes.
    pub differences: Vec<Difference>,
}

/// Why a suite cannot be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SuiteError {
    /// The configuration is invalid.
    #[error("invalid configuration: {0}")]
    Configuration(String),
    /// A case with claims does not state its issuer.
    #[error(
        "cases[{index}].claims: missing `iss`, required because the configuration has {count} authenticators"
    )]
    Issuer {
        /// Index of the case.
        index: usize,
        /// Number of authenticators.
        count: usize,
    },
    /// Key generation failed.
    #[error("failed to generate a signing key")]
    Key,
}

impl SuiteReport {
    /// Whether every case passed.
    pub fn passes(&self) -> bool {
        self.cases.iter().all(|case| case.differences.is_empty())
    }
}

impl Suite {
    /// Runs every case; if all pass, also measures coverage.
    ///
    /// # Errors
    /// The suite cannot be run.
    pub fn run(&self) -> Result<SuiteReport, SuiteError> {
        let signer = SuiteSigner::new().ok_or(SuiteError::Key)?;
        let tokens = self.tokens(&signer)?;
        let results = self.run_cases(&self.configuration, &signer, &tokens);
        let cases: Vec<CaseReport> = results.map_err(SuiteError::Configuration)?;
        let passes = cases.iter().all(|case| case.differences.is_empty());
        let notices = |mutant: &AuthenticationConfiguration| match self.run_cases(mutant, &signer, &tokens) {
            Ok(cases) => cases.iter().any(|case| !case.differences.is_empty()),
            // An invalid configuration would be noticed at once.
            Err(_) => true,
        };
        let coverage = passes.then(|| Coverage::measure(&self.configuration, notices));
        Ok(SuiteReport { cases, coverage })
    }

    /// Runs every case under a configuration.
    fn run_cases(
        &self,
        configuration: &AuthenticationConfiguration,
        signer: &SuiteSigner,
        tokens: &[String],
    ) -> Result<Vec<CaseReport>, String> {
        let authenticators =
            |navicert_config: &NavicertConfiguration,
             keys: &dyn Fn(&CompiledIssuer) -> Arc<dyn KeySource>| {
                let mut compiled =
                    validate(configuration, &self.profile).map_err(|wrong| wrong.to_string())?;
                navicert_config
                    .apply(&mut compiled)
                    .map_err(|wrong| wrong.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))?;
                Ok::<_, String>(Authenticators::new(compiled, keys))
            };
        let own: Arc<dyn KeySource> = Arc::new(StaticKeys::new(signer.key_set(&self.profile)));
        // The algorithm that signs claims here is unrelated to the issuer's.
        let mut any_algorithm = self.navicert_config.clone();
        any_algorithm.issuers.iter_mut().for_each(|issuer| issuer.allowed_algorithms = None);
        let of_claims = authenticators(&any_algorithm, &|_| Arc::clone(&own))?;
        let of_tokens = authenticators(&self.navicert_config, &|issuer| {
            Arc::new(static_keys(&self.jwks, &issuer.url, &self.profile))
        })?;
        let run_case = |(case, token): (&TestCase, &String)| {
            let authenticators =
                if matches!(case.input, TestInput::Claims(_)) { &of_claims } else { &of_tokens };
            let outcome: AuthnOutcome =
                authenticators.authenticate(&AuthnRequest::new(token, self.now(case)));
            CaseReport { name: case.name.clone(), differences: difference::between(&case.expect, &outcome) }
        };
        Ok(self.test.cases.iter().zip(tokens).map(run_case).collect())
    }

    /// The token of every case.
    pub(crate) fn tokens(&self, signer: &SuiteSigner) -> Result<Vec<String>, SuiteError> {
        let token = |(index, case): (usize, &TestCase)| match &case.input {
            TestInput::Token(token) => Ok(token.expose().trim().to_owned()),
            TestInput::TokenFile(file) => {
                Ok(self.tokens.get(file).map_or_else(String::new, |token| token.trim().to_owned()))
            }
            TestInput::Claims(claims) => {
                let payload = self.payload(claims, index, self.now(case))?;
                signer.token(&payload).ok_or(SuiteError::Key)
            }
        };
        self.test.cases.iter().enumerate().map(token).collect()
    }

    /// Claims as JSON, with defaults for `iss`, `aud` and `exp`.
    fn payload(&self, claims: &TestClaims, index: usize, now: Timestamp) -> Result<String, SuiteError> {
        let has = |wanted: &str| claims.names.iter().any(|name| name == wanted);
        let authenticators = &self.configuration.jwt;
        let given: Value = serde_json::from_str(&claims.json).unwrap_or_default();
        let issuer = match (given.get("iss").and_then(Value::as_str), authenticators.as_slice()) {
            (Some(issuer), _) => issuer.to_owned(),
            (None, [only]) => only.issuer.url.clone(),
            (None, several) if !has("iss") => {
                return Err(SuiteError::Issuer { index, count: several.len() });
            }
            _ => String::new(),
        };
        let authenticator = authenticators.iter().find(|one| one.issuer.url == issuer);
        let audience = authenticator.and_then(|one| one.issuer.audiences.first());
        let expires = now.as_second() + TOKEN_LIFETIME_SECONDS;
        let mut members = Vec::new();
        if !has("iss") {
            members.push(format!("\"iss\":{}", Value::from(issuer)));
        }
        if !has("aud")
            && let Some(audience) = audience
        {
            members.push(format!("\"aud\":{}", Value::from(audience.as_str())));
        }
        if !has("exp") {
            members.push(format!("\"exp\":{expires}"));
        }
        let inside = claims.json.trim().strip_prefix('{').and_then(|text| text.strip_suffix('}'));
        members.extend(inside.map(str::trim).filter(|text| !text.is_empty()).map(ToOwned::to_owned));
        Ok(format!("{{{}}}", members.join(",")))
    }

    pub(crate) fn now(&self, case: &TestCase) -> Timestamp {
        let named = case.now.or(self.test.now).map(navicert_types::time::Time::timestamp);
        named.or_else(|| Timestamp::from_second(DEFAULT_NOW).ok()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
