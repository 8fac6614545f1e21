//! Verifies a token with an issuer's keys: size, claims, header, algorithm and signature, in kube-apiserver's order.

use std::sync::Arc;

use crate::config::{CompiledAuthenticator, CompiledIssuer};
use crate::jwks::{KeySource, KeysUnavailable, RefreshReason, RefreshResult};
use crate::jwt::claims::UnverifiedClaims;
use crate::jwt::compact::{RawToken, TokenPart};
use crate::jwt::header::{self, Header};
use crate::jwt::{JwsAlgorithmSet, VerifiedClaims, signature};
use crate::model::outcome::Refusal;
use crate::model::{AuthnRequest, AuthnStep};
use crate::profile::AuthnProfile;

/// A token: its text, its payload and the claims in it.
pub(crate) type TokenParts<'t, 'p> = (&'t RawToken<'t>, &'p TokenPart, UnverifiedClaims<'p>);

/// What distributed claims need from an issuer's authenticator: they are tokens as well, often of another issuer.
pub(crate) trait VerifyToken: Send + Sync {
    /// The configuration of the issuer.
    fn configuration(&self) -> &CompiledAuthenticator;

    /// The keys of the issuer.
    fn key_source(&self) -> &Arc<dyn KeySource>;

    /// Verifies a token of an issuer with its keys, and with the algorithms that the configuration allows.
    fn verify_token<'p>(
        &self,
        issuer: (&CompiledIssuer, &dyn KeySource),
        token: TokenParts<'_, 'p>,
        request: &AuthnRequest<'_>,
        profile: &AuthnProfile,
    ) -> Result<VerifiedClaims<'p>, Refusal>;
}

/// Verifies tokens of one issuer.
#[derive(Clone, Copy)]
pub(crate) struct TokenVerifier<'v> {
    pub(crate) issuer: &'v CompiledIssuer,
    pub(crate) keys: &'v dyn KeySource,
    pub(crate) algorithms: JwsAlgorithmSet,
}

impl TokenVerifier<'_> {
    /// Checks claims, header and signature of a token.
    pub(crate) fn verify<'p>(
        &self,
        (token, payload, claims): TokenParts<'_, 'p>,
        request: &AuthnRequest<'_>,
        profile: &AuthnProfile,
    ) -> Result<VerifiedClaims<'p>, Refusal> {
        check_token_size(token, profile)?;
        let keys = self.keys.current();
        if keys.as_ref().is_err_and(|why| *why == KeysUnavailable::NotReady) {
            return Err(Refusal::NotReady);
        }
        request.passed(AuthnStep::Readiness);
        let checked = claims.check(&self.issuer.url, &self.issuer.audiences, request, profile)?;
        let mut header_part = TokenPart::CANONICAL;
        let remembered = keys.as_ref().ok().and_then(|keys| keys.remembered(token.header_text()));
        let header = match remembered.filter(|header| self.algorithms.contains(header.algorithm)) {
            Some(header) => header,
            None => {
                header_part = token.header().ok_or(Refusal::Malformed("the header is not base64url"))?;
                Header::read(&header_part.bytes, self.algorithms, profile)?
            }
        };
        request.passed(AuthnStep::Header);
        let keys = keys.as_ref().map_err(|why| Refusal::Keys(why.to_string()))?;
        let verified =
            signature::verify(token, (&header, &header_part), payload, (claims, &checked), keys, profile)?;
        request.passed(AuthnStep::Signature);
        if !checked.audience_matches {
            return Err(Refusal::Audience);
        }
        if self.issuer.audiences.len() > 1 {
            request.passed(AuthnStep::Audience);
        }
        Ok(verified)
    }
}

/// Requests newer keys if they could change the refusal.
pub(crate) async fn refresh(
    keys: &dyn KeySource,
    tried: u64,
    token: &str,
    refusal: &Refusal,
) -> RefreshResult {
    match refusal {
        Refusal::UnknownKey => match header::kid(token) {
            Some(kid) => keys.refresh(RefreshReason::Kid(&kid), tried).await,
            None => RefreshResult::Unchanged,
        },
        Refusal::Signature => keys.refresh(RefreshReason::Signature, tried).await,
        Refusal::NotReady | Refusal::Keys(_) => keys.refresh(RefreshReason::NoKeys, tried).await,
        _ => RefreshResult::Unchanged,
    }
}

fn check_token_size(token: &RawToken<'_>, profile: &AuthnProfile) -> Result<(), Refusal> {
    let (text, header) = token.lengths();
    if text > profile.limits.token || header > profile.limits.header {
        return Err(Refusal::TooLarge("the token is too long"));
    }
    Ok(())
}
