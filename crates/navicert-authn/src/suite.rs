//! Unit tests for an authentication configuration: given claims or a token, is it the user or the refusal that its
//! author has in mind? Cases go through the same pipeline as any token; claims are signed with a key that lives as long
//! as the run.
//!
//! ```text
//! AuthenticationTest ──Suite::run──▶ Report: every case, and what no case would miss (coverage)
//! ```

mod coverage;
mod difference;
mod signer;

use std::collections::HashMap;
use std::sync::Arc;

use navicert_types::Timestamp;
use navicert_types::authentication_config::AuthenticationConfiguration;
use navicert_types::authentication_test::{AuthenticationTest, Claims, Given, TestCase};
use serde_json::Value;

use crate::authenticator::{Authenticators, Question};
use crate::batch;
use crate::config::{CompiledIssuer, NavicertConfiguration, validate};
use crate::jwks::{FixedKeys, Keys};
use crate::outcome::Outcome;
use crate::profile::Profile;

pub use coverage::{Coverage, Gap};
pub use difference::Difference;
use signer::Signer;

/// The first second of 2027: what time it is in a suite that does not say.
const DEFAULT_NOW: i64 = 1_798_761_600;

/// How long made-up tokens live, in seconds.
const LIFETIME: i64 = 300;

/// A suite with everything it refers to.
#[derive(Debug)]
pub struct Suite {
    /// The cases.
    pub test: AuthenticationTest,
    /// The configuration that they are about, which is known to be valid.
    pub configuration: AuthenticationConfiguration,
    /// Keys for the cases with tokens: see [`batch::eval`].
    pub jwks: Value,
    /// The tokens of files, by the names of the files.
    pub tokens: HashMap<String, String>,
    /// What issuers may do beyond the configuration; empty if there is nothing to say.
    pub side_car: NavicertConfiguration,
    /// Whose rules decide.
    pub profile: Profile,
}

/// How a suite went.
#[derive(Debug)]
pub struct Report {
    /// Every case in order.
    pub cases: Vec<CaseReport>,
    /// What no case would miss; measured if all cases pass.
    pub coverage: Option<Coverage>,
}

/// How a case went.
#[derive(Debug)]
pub struct CaseReport {
    /// Its name.
    pub name: String,
    /// Where expectation and outcome differ; empty: it passes.
    pub differences: Vec<Difference>,
}

/// Why a suite cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// The configuration does not hold.
    #[error("the configuration is not valid: {0}")]
    Configuration(String),
    /// Nobody knows whose claims these are.
    #[error("cases[{index}].claims: `iss` is needed, because the configuration has {count} authenticators")]
    Issuer {
        /// Which case.
        index: usize,
        /// How many authenticators there are.
        count: usize,
    },
    /// No key could be made.
    #[error("cannot make a signing key")]
    Key,
}

impl Report {
    /// Whether every case passes.
    pub fn passes(&self) -> bool {
        self.cases.iter().all(|case| case.differences.is_empty())
    }
}

impl Suite {
    /// Runs every case; if all pass, also finds what no case would miss.
    ///
    /// # Errors
    /// The suite cannot be run.
    pub fn run(&self) -> Result<Report, SuiteError> {
        let signer = Signer::new().ok_or(SuiteError::Key)?;
        let tokens = self.tokens(&signer)?;
        let judged = self.judge(&self.configuration, &signer, &tokens);
        let cases: Vec<CaseReport> = judged.map_err(SuiteError::Configuration)?;
        let passes = cases.iter().all(|case| case.differences.is_empty());
        let notices = |mutant: &AuthenticationConfiguration| match self.judge(mutant, &signer, &tokens) {
            Ok(cases) => cases.iter().any(|case| !case.differences.is_empty()),
            // What does not even hold would be noticed at once.
            Err(_) => true,
        };
        let coverage = passes.then(|| Coverage::measure(&self.configuration, notices));
        Ok(Report { cases, coverage })
    }

    /// What every case comes to under a configuration.
    fn judge(
        &self,
        configuration: &AuthenticationConfiguration,
        signer: &Signer,
        tokens: &[String],
    ) -> Result<Vec<CaseReport>, String> {
        let authenticators = |side_car: &NavicertConfiguration,
                              keys: &dyn Fn(&CompiledIssuer) -> Arc<dyn Keys>| {
            let mut compiled = validate(configuration, &self.profile).map_err(|wrong| wrong.to_string())?;
            side_car
                .apply(&mut compiled)
                .map_err(|wrong| wrong.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))?;
            Ok::<_, String>(Authenticators::new(compiled, keys))
        };
        let own: Arc<dyn Keys> = Arc::new(FixedKeys::new(signer.key_set(&self.profile)));
        // With which algorithm claims are signed here says nothing about the issuer.
        let mut any_algorithm = self.side_car.clone();
        any_algorithm.issuers.iter_mut().for_each(|issuer| issuer.allowed_algorithms = None);
        let of_claims = authenticators(&any_algorithm, &|_| Arc::clone(&own))?;
        let of_tokens = authenticators(&self.side_car, &|issuer| {
            Arc::new(batch::fixed(&self.jwks, &issuer.url, &self.profile))
        })?;
        let judge = |(case, token): (&TestCase, &String)| {
            let authenticators = if matches!(case.given, Given::Claims(_)) { &of_claims } else { &of_tokens };
            let outcome: Outcome = authenticators.authenticate(&Question::new(token, self.now(case)));
            CaseReport { name: case.name.clone(), differences: difference::between(&case.expect, &outcome) }
        };
        Ok(self.test.cases.iter().zip(tokens).map(judge).collect())
    }

    /// The token of every case.
    fn tokens(&self, signer: &Signer) -> Result<Vec<String>, SuiteError> {
        let token = |(index, case): (usize, &TestCase)| match &case.given {
            Given::Token(token) => Ok(token.expose().trim().to_owned()),
            Given::TokenFile(file) => {
                Ok(self.tokens.get(file).map_or_else(String::new, |token| token.trim().to_owned()))
            }
            Given::Claims(claims) => {
                let payload = self.payload(claims, index, self.now(case))?;
                signer.token(&payload).ok_or(SuiteError::Key)
            }
        };
        self.test.cases.iter().enumerate().map(token).collect()
    }

    /// Claims as JSON, with those that nobody wants to write: `iss`, `aud` and `exp`.
    fn payload(&self, claims: &Claims, index: usize, now: Timestamp) -> Result<String, SuiteError> {
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
        let expires = now.as_second() + LIFETIME;
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

    fn now(&self, case: &TestCase) -> Timestamp {
        let named = case.now.or(self.test.now).map(navicert_types::time::Time::timestamp);
        named.or_else(|| Timestamp::from_second(DEFAULT_NOW).ok()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
