//! The decision on a token, with what the verifier read from it. Users of a decision never parse the token again: a second
//! parser could read another `aud` or `exp` than the one that was verified.

use std::sync::Arc;

use navicert_go::json::Raw;

use crate::authenticator::IssuerAuthenticator;
use crate::jwt::VerifiedClaims;
use crate::jwt::claims::OwnedSubject;
use crate::model::outcome::AuthnOutcome;
use crate::revocation::TokenSubject;

/// The decision on a token: the outcome, the authenticator that made it, and the claims that servers need.
#[derive(Clone, Debug)]
pub struct AuthnDecision {
    /// Whether the token was accepted.
    pub outcome: AuthnOutcome,
    /// `None` if the token belongs to no configured issuer.
    details: Option<Arc<DecisionDetails>>,
}

#[derive(Debug)]
struct DecisionDetails {
    authenticator: Arc<IssuerAuthenticator>,
    token: TokenDetails,
}

/// What the verifier read from a token. Of a rejected token only `jti` is kept, for hashed log fields.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TokenDetails {
    /// Seconds since 1970.
    pub(crate) expires: Option<i64>,
    pub(crate) audiences: Vec<String>,
    pub(crate) jti: Option<String>,
    /// What a revocation list can match; empty for a rejected token.
    pub(crate) subject: OwnedSubject<'static>,
}

impl AuthnDecision {
    /// A decision on a token of no configured issuer.
    pub(crate) fn without_issuer(outcome: AuthnOutcome) -> Self {
        AuthnDecision { outcome, details: None }
    }

    /// A decision of an issuer's authenticator.
    pub(crate) fn new(
        outcome: AuthnOutcome,
        authenticator: &Arc<IssuerAuthenticator>,
        token: TokenDetails,
    ) -> Self {
        let details = DecisionDetails { authenticator: Arc::clone(authenticator), token };
        AuthnDecision { outcome, details: Some(Arc::new(details)) }
    }

    /// The URL of the token's issuer, if one is configured for it.
    pub fn issuer(&self) -> Option<&str> {
        self.authenticator().map(|one| one.configuration.issuer.url.as_str())
    }

    /// When an accepted token expires, in seconds since 1970.
    pub fn expires(&self) -> Option<i64> {
        self.details.as_ref()?.token.expires
    }

    /// The audiences of an accepted token; empty for any other.
    pub fn audiences(&self) -> &[String] {
        self.details.as_ref().map_or(&[], |details| &details.token.audiences)
    }

    /// The token's `jti`, if it has one and its issuer is configured. Verified only if the token was accepted.
    pub fn jti(&self) -> Option<&str> {
        self.details.as_ref()?.token.jti.as_deref()
    }

    /// What a revocation list can match: the issuer and the subject of an accepted token.
    pub(crate) fn revocable(&self) -> Option<(&str, TokenSubject<'_>)> {
        let AuthnOutcome::Authenticated(_) = self.outcome else { return None };
        let details = self.details.as_ref()?;
        Some((details.authenticator.configuration.issuer.url.as_str(), details.token.subject.borrowed()))
    }

    pub(crate) fn authenticator(&self) -> Option<&IssuerAuthenticator> {
        self.details.as_ref().map(|details| &*details.authenticator)
    }
}

impl TokenDetails {
    pub(crate) fn from_verified(claims: &VerifiedClaims<'_>) -> Self {
        TokenDetails {
            expires: Some(claims.expires()),
            audiences: claims.audiences().map(String::from).collect(),
            jti: jti(claims.claim("jti")),
            subject: claims.subject().into_owned(),
        }
    }

    pub(crate) fn from_rejected(identifier: Option<String>) -> Self {
        TokenDetails { jti: identifier, ..TokenDetails::default() }
    }
}

/// A token identifier: a string that is not empty.
// S138
pub(crate) fn jti(claim: Option<Raw<'_>>) -> Option<String> {
    claim.and_then(Raw::string).filter(|jti| !jti.is_empty()).map(String::from)
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use navicert_testkit::pki::jws::{Algorithm, SigningKey};
    use navicert_types::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::config::load;
    use crate::jwks::{KeySet, StaticKeys};
    use crate::profile::AuthnProfile;
    use crate::{Authenticators, AuthnRequest};

    const NOW: i64 = 1_700_000_000;

    /// The decision of profile `kube` on a token with these claims. `sign` makes the token.
    fn decide(claims: &str, sign: impl Fn(&SigningKey, &str) -> String) -> AuthnDecision {
        let key = SigningKey::generate(Algorithm::Es256, "k");
        let config = json!({
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",
            "jwt": [{
                "issuer": {"url": "https://i", "audiences": ["a", "b"], "audienceMatchPolicy": "MatchAny"},
                "claimMappings": {"username": {"claim": "sub", "prefix": ""}},
            }],
        });
        let profile = AuthnProfile::KUBE;
        let compiled = load(config.to_string().as_bytes(), &profile).unwrap().compiled;
        let keys = json!({"keys": [key.jwk()]}).to_string();
        let keys = StaticKeys::new(KeySet::parse(keys.as_bytes(), &profile).unwrap());
        let authenticators = Authenticators::new(compiled, |_| Arc::new(keys.clone()));
        let token = sign(&key, claims);
        let request = AuthnRequest::new(&token, Timestamp::from_second(NOW).unwrap());
        let decided = pin!(authenticators.decide(&request));
        match decided.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(fresh) => fresh.decision,
            Poll::Pending => panic!("keys are at hand"),
        }
    }

    fn plain(key: &SigningKey, claims: &str) -> String {
        key.token_of_bytes(key.header().to_string().as_bytes(), claims.as_bytes())
    }

    // S121, S128, S130: the last of the names that Go matches is verified, and no other.
    #[test]
    fn audiences_and_expiry_are_the_verified_ones() {
        for (claims, audiences, expires) in [
            (r#""aud":"a","exp":1700000300"#, vec!["a"], 300),
            (r#""aud":["a","c"],"exp":1700000300"#, vec!["a", "c"], 300),
            (r#""aud":"c","AUD":"b","exp":1700000300"#, vec!["b"], 300),
            (r#""AUD":"c","aud":"b","exp":1700000300"#, vec!["b"], 300),
            (r#""aud":"a","exp":"1700000300""#, vec!["a"], 300),
            (r#""aud":"a","exp":1700000300.9"#, vec!["a"], 300),
            (r#""aud":"a","exp":1700000900,"EXP":1700000300"#, vec!["a"], 300),
        ] {
            let claims = format!(r#"{{"iss":"https://i","sub":"ann",{claims}}}"#);
            let decision = decide(&claims, plain);
            assert!(matches!(decision.outcome, AuthnOutcome::Authenticated(_)), "{claims}: {decision:?}");
            assert_eq!(decision.audiences(), audiences, "{claims}");
            assert_eq!(decision.expires(), Some(NOW + expires), "{claims}");
        }
    }

    // S102: Go's base64 skips line breaks.
    #[test]
    fn line_break_in_the_payload_hides_no_claim() {
        let claims = r#"{"iss":"https://i","sub":"ann","aud":"a","jti":"j","exp":1700000300}"#;
        let broken = |key: &SigningKey, claims: &str| {
            let token = plain(key, claims);
            let (header, rest) = token.split_once('.').unwrap();
            let (start, end) = rest.split_at(8);
            format!("{header}.{start}\n{end}")
        };
        let decision = decide(claims, broken);
        assert!(matches!(decision.outcome, AuthnOutcome::Authenticated(_)), "{decision:?}");
        assert_eq!(decision.audiences(), ["a"]);
        assert_eq!((decision.expires(), decision.jti()), (Some(NOW + 300), Some("j")));
    }

    // S224
    #[test]
    fn rejected_token_has_its_jti_but_neither_audiences_nor_expiry() {
        for (jti, expected) in
            [(r#""a\u0062""#, Some("ab")), (r#""""#, None), ("5", None), (r#""x","jti":"y""#, Some("y"))]
        {
            let claims =
                format!(r#"{{"iss":"https://i","sub":"ann","aud":"a","exp":1600000000,"jti":{jti}}}"#);
            let decision = decide(&claims, plain);
            assert!(matches!(decision.outcome, AuthnOutcome::Rejected(_)), "{decision:?}");
            assert_eq!((decision.jti(), decision.issuer()), (expected, Some("https://i")), "{claims}");
            assert_eq!((decision.audiences().len(), decision.expires()), (0, None));
        }
        let foreign = decide(r#"{"iss":"https://other","jti":"j"}"#, plain);
        assert_eq!((foreign.jti(), foreign.issuer()), (None, None), "claims of other tokens are not read");
    }
}
