//! The payload: first unverified, for routing and for checks that cost nothing; then, once the signature holds, the
//! claims that users are made of.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use super::registry::{Registry, is_named};
use super::seconds::seconds;
use crate::authenticator::Question;
use crate::explain::Step;
use crate::json::{Kind, Raw};
use crate::outcome::{NoOpinion, Refusal};
use crate::profile::{Profile, Rule};
use crate::revocation::Subject;

/// Google's older name for itself (S104).
const GOOGLE: (&str, &str) = ("https://accounts.google.com", "accounts.google.com");

/// The leeway for `nbf`, in seconds; there is none for `exp` (S124, S126).
const NOT_BEFORE_LEEWAY: i64 = 60;

/// Go counts seconds from the year 1 in 64 bits, and wraps.
const YEAR_ONE: i64 = -62_135_596_800;

/// Most tokens have fewer claims. With more than this, room for them would no longer be a small allocation.
const USUAL_CLAIMS: usize = 21;

/// What a payload says. Nobody has vouched for any of it.
pub(crate) struct UnverifiedClaims<'p> {
    raw: Raw<'p>,
    members: Vec<(Cow<'p, str>, Raw<'p>)>,
    issuer: Cow<'p, str>,
    /// How deep it is nested.
    depth: usize,
}

/// Claims whose signature, issuer, audience and lifetime have been checked.
///
/// Only the check of the signature makes one, so holding a value is the proof.
pub struct VerifiedClaims<'p> {
    raw: Raw<'p>,
    members: Vec<(Cow<'p, str>, Raw<'p>)>,
    expires: i64,
}

/// The claims that a verifier looks at, by their types (S121).
#[derive(Default)]
pub(crate) struct Registered<'p> {
    issuer: Cow<'p, str>,
    /// Known to be what it has to be.
    audience: Option<Raw<'p>>,
    expires: Option<i64>,
    not_before: Option<i64>,
    claim_names: HashMap<String, String>,
    claim_sources: HashSet<String>,
}

impl<'p> UnverifiedClaims<'p> {
    /// Reads a payload and who it says it is from (S103).
    pub(crate) fn read(payload: &'p [u8]) -> Result<Self, NoOpinion> {
        let mut members = Vec::with_capacity(USUAL_CLAIMS);
        let (raw, depth) = Raw::parse_object(payload, &mut members).map_err(|_| NoOpinion::PayloadJson)?;
        if raw.kind() != Kind::Object {
            return Err(NoOpinion::PayloadJson);
        }
        let mut issuer = Cow::Borrowed("");
        for (name, value) in &members {
            // What folds to `iss` begins with an `i` or an `I`.
            let may_be_issuer = matches!(name.as_bytes(), [b'i' | b'I', ..]);
            if may_be_issuer && Registry::find(name) == Some(Registry::Issuer) && !value.is_null() {
                issuer = value.string().ok_or(NoOpinion::NoIssuer)?;
            }
        }
        if issuer.is_empty() {
            return Err(NoOpinion::NoIssuer);
        }
        Ok(UnverifiedClaims { raw, members, issuer, depth })
    }

    /// Who the token says it is from.
    pub(crate) fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Everything that can be said before looking at the signature, in kube-apiserver's order (S121–S128).
    pub(crate) fn check(
        &self,
        issuer: &str,
        audiences: &[String],
        question: &Question<'_>,
        profile: &Profile,
    ) -> Result<Checked, Refusal> {
        let now = question.now;
        if profile.has(Rule::H7) {
            self.refuse_ambiguity()?;
        }
        if self.depth > profile.limits.depth {
            return Err(Refusal::TooLarge("the payload is nested too deeply"));
        }
        let registered = self.registered(profile)?;
        for source in registered.claim_names.values() {
            if source.is_empty() || !registered.claim_sources.contains(source) {
                return Err(Refusal::Distributed("a distributed claim names a source that is not there"));
            }
        }
        question.passed(Step::ClaimTypes);
        if !is_issuer(&registered.issuer, issuer) {
            return Err(Refusal::Issuer);
        }
        let theirs = || registered.audience.into_iter().flat_map(self::audiences).flatten();
        let for_us = theirs().any(|theirs| audiences.iter().any(|ours| theirs == ours.as_str()));
        // With several audiences kube-apiserver looks at them after the signature.
        if audiences.len() == 1 && !for_us {
            return Err(Refusal::Audience);
        }
        if audiences.len() == 1 {
            question.passed(Step::Audience);
        }
        let expires = registered.expires.unwrap_or(YEAR_ONE);
        if go_time(expires) < go_time(now.as_second())
            || (go_time(expires) == go_time(now.as_second()) && now.subsec_nanosecond() > 0)
        {
            return Err(Refusal::Expired);
        }
        question.passed(Step::Expiry);
        if let Some(not_before) = registered.not_before
            && go_time(now.as_second() + NOT_BEFORE_LEEWAY) < go_time(not_before)
        {
            return Err(Refusal::NotYetValid);
        }
        question.passed(Step::NotBefore);
        Ok(Checked { for_us, expires })
    }

    /// H7: a verifier and a rule must not see two different claims of one name.
    fn refuse_ambiguity(&self) -> Result<(), Refusal> {
        if has_repetitions(&self.members) {
            return Err(Refusal::Malformed("a claim occurs twice"));
        }
        if self.known().any(|(name, known, _)| name != known.name()) {
            return Err(Refusal::Malformed("a registered claim is spelled in another case"));
        }
        Ok(())
    }

    /// The members that count as registered claims: as they are spelled, as they are meant, and their values.
    fn known(&self) -> impl Iterator<Item = (&str, Registry, Raw<'p>)> {
        let known = |(name, value): &'_ (Cow<'p, str>, Raw<'p>)| (Registry::find(name), *value);
        self.members.iter().filter_map(move |member| {
            let (found, value) = known(member);
            Some((member.0.as_ref(), found?, value))
        })
    }

    fn registered(&self, profile: &Profile) -> Result<Registered<'p>, Refusal> {
        let mut found = Registered::default();
        for (_, known, value) in self.known() {
            let wrong = || Refusal::ClaimType(known.name());
            let is_null = value.is_null();
            match known {
                Registry::Issuer if !is_null => found.issuer = value.string().ok_or_else(wrong)?,
                Registry::Subject | Registry::Nonce | Registry::AccessTokenHash
                    if !is_null && value.kind() != Kind::String =>
                {
                    return Err(wrong());
                }
                Registry::Audience if is_audience(value) => found.audience = Some(value),
                Registry::Audience => return Err(wrong()),
                Registry::Expiry => found.expires = Some(seconds(value, profile).ok_or_else(wrong)?),
                Registry::IssuedAt => {
                    seconds(value, profile).ok_or_else(wrong)?;
                }
                Registry::NotBefore if is_null => found.not_before = None,
                Registry::NotBefore => found.not_before = Some(seconds(value, profile).ok_or_else(wrong)?),
                Registry::ClaimNames if is_null => found.claim_names.clear(),
                Registry::ClaimNames => found.claim_names.extend(names(value).ok_or_else(wrong)?),
                Registry::ClaimSources if is_null => found.claim_sources.clear(),
                Registry::ClaimSources => found.claim_sources.extend(sources(value).ok_or_else(wrong)?),
                _ => {}
            }
        }
        Ok(found)
    }

    /// What a payload says, claim by claim, repetitions included.
    pub(crate) fn members(&self) -> &[(Cow<'p, str>, Raw<'p>)] {
        &self.members
    }

    /// A claim by its exact name; of repeated ones the last.
    pub(crate) fn claim(&self, wanted: &str) -> Option<Raw<'p>> {
        last_named(&self.members, wanted)
    }

    /// What kube-apiserver makes of the registered claims, if their types are right.
    pub(crate) fn registered_as_go_reads_them(&self) -> Option<Registered<'p>> {
        self.registered(&Profile::KUBE).ok()
    }

    /// The claims as something to rely on. To be called when the signature has been checked, and only then.
    pub(super) fn vouched_for(self, checked: &Checked) -> VerifiedClaims<'p> {
        VerifiedClaims { raw: self.raw, members: self.members, expires: checked.expires }
    }
}

impl<'p> Registered<'p> {
    /// Whom the token is for.
    pub(crate) fn audiences(&self) -> Vec<Cow<'p, str>> {
        self.audience.into_iter().flat_map(audiences).flatten().collect()
    }

    /// When it expires, in seconds since 1970; without a word about it, in the year 1.
    pub(crate) fn expires(&self) -> i64 {
        self.expires.unwrap_or(YEAR_ONE)
    }

    /// Before when it is not valid.
    pub(crate) fn not_before(&self) -> Option<i64> {
        self.not_before
    }

    /// What kube-apiserver says of a distributed claim whose source is not there (S122).
    pub(crate) fn missing_source(&self) -> Option<&'static str> {
        self.claim_names.values().find_map(|source| match source.as_str() {
            "" => Some("oidc: failed to obtain source from claim name"),
            source if !self.claim_sources.contains(source) => Some("oidc: source does not exist"),
            _ => None,
        })
    }
}

/// The outcome of the cheap checks.
pub(crate) struct Checked {
    /// One of the audiences is ours.
    pub(crate) for_us: bool,
    expires: i64,
}

impl<'p> VerifiedClaims<'p> {
    /// A claim by its exact name; of repeated ones the last (S130).
    pub(crate) fn claim(&self, wanted: &str) -> Option<Raw<'p>> {
        last_named(&self.members, wanted)
    }

    /// All claims, repetitions included.
    pub(crate) fn members(&self) -> &[(Cow<'p, str>, Raw<'p>)] {
        &self.members
    }

    /// Adds a claim that was elsewhere. The value is JSON that has been read before.
    pub(crate) fn insert(&mut self, name: &'p str, value: &'p [u8]) {
        if let Ok(value) = Raw::parse(value) {
            self.members.push((Cow::Borrowed(name), value));
        }
    }

    /// What a revocation list could name it by.
    pub(crate) fn subject(&self) -> OwnedSubject<'p> {
        let text = |name: &str| self.claim(name).and_then(Raw::string);
        let issued = self.claim("iat").and_then(|value| seconds(value, &Profile::KUBE));
        OwnedSubject { jti: text("jti"), subject: text("sub"), issued }
    }

    /// Whether some text in the payload is not what was sent (S133).
    pub(crate) fn has_replacements(&self) -> bool {
        self.raw.has_replacements()
    }

    /// When the token expires, in seconds since 1970.
    pub fn expires(&self) -> i64 {
        self.expires
    }
}

/// See [`VerifiedClaims::subject`].
pub(crate) struct OwnedSubject<'p> {
    jti: Option<Cow<'p, str>>,
    subject: Option<Cow<'p, str>>,
    issued: Option<i64>,
}

impl OwnedSubject<'_> {
    pub(crate) fn borrowed(&self) -> Subject<'_> {
        Subject { jti: self.jti.as_deref(), subject: self.subject.as_deref(), issued: self.issued }
    }
}

/// The value of the last member of this name. Most names of one length differ in their last letter already.
fn last_named<'p>(members: &[(Cow<'p, str>, Raw<'p>)], wanted: &str) -> Option<Raw<'p>> {
    let last = wanted.as_bytes().last();
    let is_it = |name: &str| name.len() == wanted.len() && name.as_bytes().last() == last && name == wanted;
    members.iter().rev().find(|(name, _)| is_it(name)).map(|(_, value)| *value)
}

/// Whether some name is there twice. Few names are compared with each other, many go into a table.
pub(super) fn has_repetitions(members: &[(Cow<'_, str>, Raw<'_>)]) -> bool {
    const FEW: usize = 32;
    if members.len() > FEW {
        let mut names = HashSet::with_capacity(members.len());
        return members.iter().any(|(name, _)| !names.insert(name.as_ref()));
    }
    // Most names differ in length, first or last letter, and need no comparison at all.
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

/// The issuer that a token's `iss` stands for when issuers are looked up by URL.
pub(crate) fn routed(issuer: &str) -> &str {
    if issuer == GOOGLE.1 { GOOGLE.0 } else { issuer }
}

/// Whom a token is for; `None` for what is no text. Null is empty, wherever it is (S128).
fn audiences(value: Raw<'_>) -> impl Iterator<Item = Option<Cow<'_, str>>> {
    fn text(value: Raw<'_>) -> Option<Cow<'_, str>> {
        if value.is_null() { Some(Cow::Borrowed("")) } else { value.string() }
    }
    let is_list = value.kind() == Kind::Array;
    let alone = (!is_list).then(|| text(value));
    // Of anything but a list there are no elements.
    alone.into_iter().chain(value.elements().map(text))
}

/// Whether [`audiences`] are all texts.
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

/// The names of sources; each must be an object with texts (S121).
fn sources(value: Raw<'_>) -> Option<Vec<String>> {
    if value.kind() != Kind::Object {
        return None;
    }
    let entry = |(name, source): (Cow<'_, str>, Raw<'_>)| {
        let sound = match source.kind() {
            Kind::Null => true,
            Kind::Object => source.members().all(|(name, value)| {
                let is_text = ["endpoint", "access_token"].iter().any(|known| is_named(&name, known));
                !is_text || matches!(value.kind(), Kind::Null | Kind::String)
            }),
            _ => false,
        };
        sound.then(|| name.into_owned())
    };
    value.members().map(entry).collect()
}
