//! Distributed claims (S172, S173): whether the groups are to be had elsewhere. Fetching them is not done here.

use crate::config::{CompiledAuthenticator, Mapping};
use crate::json::{Kind, Raw};
use crate::jwt::VerifiedClaims;
use crate::jwt::claims::is_named;
use crate::outcome::Refusal;

/// Refuses a token whose groups are elsewhere, or whose word about that cannot be read.
pub(super) fn check(
    configuration: &CompiledAuthenticator,
    claims: &VerifiedClaims<'_>,
) -> Result<(), Refusal> {
    let Some(Mapping::Claim { claim, .. }) = &configuration.groups else { return Ok(()) };
    if claims.claim(claim).is_some() {
        return Ok(());
    }
    let Some(names) = claims.claim("_claim_names") else { return Ok(()) };
    if !matches!(names.kind(), Kind::Object | Kind::Null) {
        return Err(Refusal::Distributed("`_claim_names` is not an object"));
    }
    let sources = claims.claim("_claim_sources").ok_or(Refusal::Distributed("there are no claim sources"))?;
    let last = |raw: Raw<'_>, wanted: &str| {
        raw.members()
            .filter(|(name, _)| name == wanted)
            .last()
            .map(|(_, value)| value.string().map(String::from))
    };
    let Some(source) = last(names, claim).map(Option::unwrap_or_default) else { return Ok(()) };
    let found = sources.members().filter(|(name, _)| *name == source.as_str()).last();
    let (_, source) =
        found.ok_or(Refusal::Distributed("a distributed claim names a source that is not there"))?;
    let endpoint = source.members().filter(|(name, _)| is_named(name, "endpoint")).last();
    let is_elsewhere =
        endpoint.is_some_and(|(_, value)| value.string().is_some_and(|endpoint| !endpoint.is_empty()));
    // An aggregated claim is passed over, as upstream does (S180).
    if is_elsewhere {
        return Err(Refusal::Distributed("the groups are distributed, and nothing is set up to fetch them"));
    }
    Ok(())
}
