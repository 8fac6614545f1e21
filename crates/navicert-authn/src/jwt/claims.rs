//! The payload: first unverified, for routing and cheap checks; then, once the signature is verified, the claims that users are
//! mapped from.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use navicert_go::json::{Kind, Raw};

use super::registered_claim::{RegisteredClaim, go_name_matches};
use super::seconds::seconds;
use crate::model::outcome::{NoOpinion, Refusal};
use crate::model::{AuthnRequest, AuthnStep};
use crate::profile::{AuthnProfile, Hardening};
use crate::revocation::TokenSubject;

/// Google's issuer, with and without the scheme.
// S104
const GOOGLE: (&str, &str) = ("https://accounts.google.com", "accounts.google.com");

/// Go counts seconds from the year 1 in 64 bits, and wraps around.
const YEAR_ONE: i64 = -62_135_596_800;

/// Initial capacity for claims: most tokens have fewer, and a larger one would no longer be a small allocation.
const TYPICAL_CLAIMS: usize = 21;

/// The claims of a payload, unverified.
pub(crate) struct UnverifiedClaims<'p> {
    raw: Raw<'p>,
    members: Vec<(Cow<'p, str>, Raw<'p>)>,
    issuer: Cow<'p, str>,
    /// Nesting depth.
    depth: usize,
}

/// Claims whose signature, issuer, audience and lifetime have been verified.
///
/// Only signature verification constructs this type, so holding a value is the proof.
pub struct VerifiedClaims<'p> {
    raw: Raw<'p>,
    members: Vec<(Cow<'p, str>, Raw<'p>)>,
    audience: Option<Raw<'p>>,
    expires: i64,
}

/// Registered claims, typed.
// S121
#[derive(Default)]
pub(crate) struct RegisteredClaims<'p> {
    issuer: Cow<'p, str>,
    /// A string or a list of strings.
    audience: Option<Raw<'p>>,
    expires: Option<i64>,
    not_before: Option<i64>,
    claim_names: HashMap<String, String>,
    claim_sources: HashSet<String>,
}

impl<'p> UnverifiedClaims<'p> {
    /// Parses a payload and its issuer.
    // S103
    pub(crate) fn read(payload: &'p [u8]) -> Result<Self, NoOpinion> {
        let mut members = Vec::with_capacity(TYPICAL_CLAIMS);
        let (raw, depth) = Raw::parse_object(payload, &mut members).map_err(|_| NoOpinion::PayloadJson)?;
        if raw.kind() != Kind::Object {
            return Err(NoOpinion::PayloadJson);
        }
        let mut issuer = Cow::Borrowed("");
        for (name, value) in &members {
            // Names that fold to `iss` start with an `i` or an `I`.
            let may_be_issuer = matches!(name.as_bytes(), [b'i' | b'I', ..]);
            if may_be_issuer
                && RegisteredClaim::find(name) == Some(RegisteredClaim::Issuer)
                && !value.is_null()
            {
                issuer = value.string().ok_or(NoOpinion::NoIssuer)?;
            }
        }
        if issuer.is_empty() {
            return Err(NoOpinion::NoIssuer);
        }
        Ok(UnverifiedClaims { raw, members, issuer, depth })
    }

    /// The issuer that the token states.
    pub(crate) fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Every check before signature verification, in kube-apiserver's order.
    // S121–S128
    pub(crate) fn check(
        &self,
        issuer: &str,
        audiences: &[String],
        request: &AuthnRequest<'_>,
        profile: &AuthnProfile,
    ) -> Result<CheckedClaims<'p>, Refusal> {
        let now = request.now;
        if profile.has(Hardening::ExactClaimNames) {
            self.reject_ambiguity()?;
        }
        if self.depth > profile.limits.depth {
            return Err(Refusal::TooLarge("the payload is nested too deeply"));
        }
        let registered = self.registered(profile)?;
        for source in registered.claim_names.values() {
            if source.is_empty() || !registered.claim_sources.contains(source) {
                return Err(Refusal::Distributed("a distributed claim names a missing source"));
            }
        }
        request.passed(AuthnStep::ClaimTypes);
        if !is_issuer(&registered.issuer, issuer) {
            return Err(Refusal::Issuer);
        }
        let theirs = || registered.audience.into_iter().flat_map(self::audiences).flatten();
        let for_us = theirs().any(|theirs| audiences.iter().any(|ours| theirs == ours.as_str()));
        // With several audiences kube-apiserver checks them after the signature.
        if audiences.len() == 1 && !for_us {
            return Err(Refusal::Audience);
        }
        if audiences.len() == 1 {
            request.passed(AuthnStep::Audience);
        }
        let expires = registered.expires.unwrap_or(YEAR_ONE);
        if go_time(expires) < go_time(now.as_second())
            || (go_time(expires) == go_time(now.as_second()) && now.subsec_nanosecond() > 0)
        {
            return Err(Refusal::Expired);
        }
        request.passed(AuthnStep::Expiry);
        // There is no leeway for `exp` (S124).
        let (leeway, by) = profile.not_before_leeway();
        if let Some(not_before) = registered.not_before
            && go_time(now.as_second() + leeway) < go_time(not_before)
        {
            return Err(Refusal::NotYetValid { leeway, by });
        }
        request.passed(AuthnStep::NotBefore);
        Ok(CheckedClaims { audience_matches: for_us, audience: registered.audience, expires })
    }

    /// Rejects payloads in which a verifier and a rule could see different claims of one name.
    // H7
    pub(super) fn reject_ambiguity(&self) -> Result<(), Refusal> {
        if has_duplicates(&self.members) {
            return Err(Refusal::Malformed("duplicate claim"));
        }
        if self.known().any(|(name, known, _)| name != known.name()) {
            return Err(Refusal::Malformed("a registered claim is not in lower case"));
        }
        Ok(())
    }

    /// The members that count as registered claims: name as written, claim, value.
    fn known(&self) -> impl Iterator<Item = (&str, RegisteredClaim, Raw<'p>)> {
        let known = |(name, value): &'_ (Cow<'p, str>, Raw<'p>)| (RegisteredClaim::find(name), *value);
        self.members.iter().filter_map(move |member| {
            let (found, value) = known(member);
            Some((member.0.as_ref(), found?, value))
        })
    }

    fn registered(&self, profile: &AuthnProfile) -> Result<RegisteredClaims<'p>, Refusal> {
        let mut found = RegisteredClaims::default();
        for (_, known, value) in self.known() {
            let wrong = || Refusal::ClaimType(known.name());
            let is_null = value.is_null();
            match known {
                RegisteredClaim::Issuer if !is_null => found.issuer = value.string().ok_or_else(wrong)?,
                RegisteredClaim::Subject | RegisteredClaim::Nonce | RegisteredClaim::AccessTokenHash
                    if !is_null && value.kind() != Kind::String =>
                {
                    return Err(wrong());
                }
                RegisteredClaim::Audience if is_audience(value) => found.audience = Some(value),
                RegisteredClaim::Audience => return Err(wrong()),
                RegisteredClaim::Expiry => found.expires = Some(seconds(value, profile).ok_or_else(wrong)?),
                RegisteredClaim::IssuedAt => {
                    seconds(value, profile).ok_or_else(wrong)?;
                }
                RegisteredClaim::NotBefore if is_null => found.not_before = None,
                RegisteredClaim::NotBefore => {
                    found.not_before = Some(seconds(value, profile).ok_or_else(wrong)?);
                }
                RegisteredClaim::ClaimNames if is_null => found.claim_names.clear(),
                RegisteredClaim::ClaimNames => found.claim_names.extend(names(value).ok_or_else(wrong)?),
                RegisteredClaim::ClaimSources if is_null => found.claim_sources.clear(),
                RegisteredClaim::ClaimSources => {
                    found.claim_sources.extend(sources(value).ok_or_else(wrong)?);
                }
                _ => {}
            }
        }
        Ok(found)
    }

    /// All claims in order, duplicates included.
    pub(crate) fn members(&self) -> &[(Cow<'p, str>, Raw<'p>)] {
        &self.members
    }

    /// A claim by its exact name; of duplicates the last one.
    pub(crate) fn claim(&self, wanted: &str) -> Option<Raw<'p>> {
        last_named(&self.members, wanted)
    }

    /// The registered claims as kube-apiserver reads them, if their types are valid.
    pub(crate) fn registered_as_go_reads_them(&self) -> Option<RegisteredClaims<'p>> {
        self.registered(&AuthnProfile::KUBE).ok()
    }

    /// Turns the claims into verified ones. Call only after the signature has been verified.
    pub(super) fn into_verified(self, checked: &CheckedClaims<'p>) -> VerifiedClaims<'p> {
        let CheckedClaims { audience, expires, .. } = *checked;
        VerifiedClaims { raw: self.raw, members: self.members, audience, expires }
    }
}

impl<'p> RegisteredClaims<'p> {
    /// The audiences.
    pub(crate) fn audiences(&self) -> Vec<Cow<'p, str>> {
        self.audience.into_iter().flat_map(audiences).flatten().collect()
    }

    /// The expiry in seconds since 1970; the year 1 if missing.
    pub(crate) fn expires(&self) -> i64 {
        self.expires.unwrap_or(YEAR_ONE)
    }

    /// The expiry in seconds since 1970, if the token has one.
    pub(crate) fn stated_expiry(&self) -> Option<i64> {
        self.expires
    }

    /// The `nbf` claim.
    pub(crate) fn not_before(&self) -> Option<i64> {
        self.not_before
    }

    /// kube-apiserver's message for a distributed claim with a missing source.
    // S122
    pub(crate) fn missing_source(&self) -> Option<&'static str> {
        self.claim_names.values().find_map(|source| match source.as_str() {
            "" => Some("oidc: failed to obtain source from claim name"),
            source if !self.claim_sources.contains(source) => Some("oidc: source does not exist"),
            _ => None,
        })
    }
}

/// The result of the checks before signature verification.
pub(crate) struct CheckedClaims<'p> {
    /// One of the audiences is configured.
    pub(crate) audience_matches: bool,
    audience: Option<Raw<'p>>,
    expires: i64,
}

impl<'p> VerifiedClaims<'p> {
    /// A claim by its exact name; of duplicates the last one.
    // S130
    pub(crate) fn claim(&self, wanted: &str) -> Option<Raw<'p>> {
        last_named(&self.members, wanted)
    }

    /// All claims, duplicates included.
    pub(crate) fn members(&self) -> &[(Cow<'p, str>, Raw<'p>)] {
        &self.members
    }

    /// Adds a resolved distributed claim. The value is valid JSON.
    pub(crate) fn insert(&mut self, name: &'p str, value: &'p [u8]) {
        if let Ok(value) = Raw::parse(value) {
            self.members.push((Cow::Borrowed(name), value));
        }
    }

    /// The claims that a revocation list can match.
    pub(crate) fn subject(&self) -> OwnedSubject<'p> {
        let text = |name: &str| self.claim(name).and_then(Raw::string);
        let issued = self.claim("iat").and_then(|value| seconds(value, &AuthnProfile::KUBE));
        OwnedSubject { jti: text("jti"), subject: text("sub"), issued }
    }

    /// Whether a string in the payload contained invalid UTF-8 or an unpaired surrogate.
    // S133
    pub(crate) fn has_replacements(&self) -> bool {
        self.raw.has_replacements()
    }

    /// The expiry in seconds since 1970.
    pub fn expires(&self) -> i64 {
        self.expires
    }

    /// The audiences that were compared with the configured ones.
    pub(crate) fn audiences(&self) -> impl Iterator<Item = Cow<'p, str>> {
        self.audience.into_iter().flat_map(audiences).flatten()
    }
}

/// See [`VerifiedClaims::subject`].
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct OwnedSubject<'p> {
    jti: Option<Cow<'p, str>>,
    subject: Option<Cow<'p, str>>,
    issued: Option<i64>,
}

impl OwnedSubject<'_> {
    pub(crate) fn borrowed(&self) -> TokenSubject<'_> {
        TokenSubject { jti: self.jti.as_deref(), subject: self.subject.as_deref(), issued: self.issued }
    }

    pub(crate) fn into_owned(self) -> OwnedSubject<'static> {
        let owned = |text: Option<Cow<'_, str>>| text.map(|text| Cow::Owned(text.into_owned()));
        OwnedSubject { jti: owned(self.jti), subject: owned(self.subject), issued: self.issued }
    }
}

/// The value of the last member of this name. Compares the last byte first, in which most names of one length differ.
fn last_named<'p>(members: &[(Cow<'p, str>, Raw<'p>)], wanted: &str) -> Option<Raw<'p>> {
    let last = wanted.as_bytes().last();
    let is_it = |name: &str| name.len() == wanted.len() && name.as_bytes().last() == last && name == wanted;
    members.iter().rev().find(|(name, _)| is_it(name)).map(|(_, value)| *value)
}

/// Whether a name occurs more than once. Compares a few names pairwise, and hashes many.
pub(super) fn has_duplicates(members: &[(Cow<'_, str>, Raw<'_>)]) -> bool {
    const FEW: usize = 32;
    if members.len() > FEW {
        let mut names = HashSet::with_capacity(members.len());
        return members.iter().any(|(name, _)| !names.insert(name.as_ref()));
    }
    // Most names differ in length, first or last byte, and need no comparison.
    let mut seen = [0_u64; 4];
    for (at, (name, _)) in members.iter().enumerate() {
        let bytes = name.as_bytes();
        let ends = [bytes.first(), bytes.last()].map(|byte| usize::from(byte.copied().unwrap_or_default()));
        let spot = (bytes.len() * 67 + ends[0] * 13 + ends[1] * 5) % 256;
        let Some(word) = seen.get_mut(spot / 64) else { continue };
        let bit = 1_u64 << (spot % 64);
        if *word & bit != 0 && members.iter().take(at).any(|(other, _)| other == name) {
            return true;
        }
        *word |= bit;
    }
    false
}

fn is_issuer(claimed: &str, configured: &str) -> bool {
    claimed == configured || (configured, claimed) == GOOGLE
}

/// The issuer URL that a token's `iss` refers to.
pub(crate) fn routing_issuer(issuer: &str) -> &str {
    if issuer == GOOGLE.1 { GOOGLE.0 } else { issuer }
}

/// The audiences; `None` for an element that is not a string. Null counts as empty.
// S128
fn audiences(value: Raw<'_>) -> impl Iterator<Item = Option<Cow<'_, str>>> {
    fn text(value: Raw<'_>) -> Option<Cow<'_, str>> {
        if value.is_null() { Some(Cow::Borrowed("")) } else { value.string() }
    }
    let is_list = value.kind() == Kind::Array;
    let alone = (!is_list).then(|| text(value));
    // Anything but a list has no elements.
    alone.into_iter().chain(value.elements().map(text))
}

/// Whether all [`audiences`] are strings.
fn is_audience(value: Raw<'_>) -> bool {
    let is_text = |value: Raw<'_>| matches!(value.kind(), Kind::Null | Kind::String);
    is_text(value) || (value.kind() == Kind::Array && value.elements().all(is_text))
}

fn go_time(seconds: i64) -> i64 {
    seconds.wrapping_sub(YEAR_ONE)
}

fn names(value: Raw<'_>) -> Option<Vec<(String, String)>> {
    if value.kind() != Kind::Object {
        return None;
    }
    let entry = |(name, value): (Cow<'_, str>, Raw<'_>)| {
        let source = if value.is_null() { Cow::Borrowed("") } else { value.string()? };
        Some((name.into_owned(), source.into_owned()))
    };
    value.members().map(entry).collect()
}

/// The names of claim sources; each must be an object with string members.
// S121
fn sources(value: Raw<'_>) -> Option<Vec<String>> {
    if value.kind() != Kind::Object {
        return None;
    }
    let entry = |(name, source): (Cow<'_, str>, Raw<'_>)| {
        let is_valid = match source.kind() {
            Kind::Null => true,
            Kind::Object => source.members().all(|(name, value)| {
                let is_text = ["endpoint", "access_token"].iter().any(|known| go_name_matches(&name, known));
                !is_text || matches!(value.kind(), Kind::Null | Kind::String)
            }),
            _ => false,
        };
        is_valid.then(|| name.into_owned())
    };
    value.members().map(entry).collect()
}
