//! The exact message that kube-apiserver would log for a token. The order of the checks is that of its libraries, which depends on
//! the Kubernetes version; so the message can differ from the first failing step here.

use navicert_go::base64::raw_url_error;
use navicert_go::json::{Kind, Raw, syntax_error};
use navicert_go::quote::{quoted, quoted_list};
use navicert_go::time::format_utc;

use super::claim_type_errors::type_error;
use super::key_errors::EmbeddedKeyError;
use super::masked::Masked;
use super::{UpstreamDecision, key_errors};
use crate::authenticator::{Authenticators, IssuerAuthenticator};
use crate::config::{AttributeMapping, CompiledIssuer};
use crate::jwks::KeysUnavailable;
use crate::jwks::key::KeyRules;
use crate::jwt::claims::UnverifiedClaims;
use crate::jwt::compact::{RawToken, TokenPart};
use crate::jwt::header::Header;
use crate::jwt::{JwsAlgorithm, signature};
use crate::model::AuthnRequest;
use crate::model::outcome::{AuthnOutcome, Purpose, Refusal};
use crate::profile::{AlgorithmError, AuthnProfile, CheckOrder};

/// Whether kube-apiserver accepts the token, and the message that it would log.
///
/// `authenticators` are those of profile `kube` of a Kubernetes version; `key_set` returns the issuer's response, for key sets that do not parse.
pub fn upstream_decision(
    authenticators: &Authenticators,
    request: &AuthnRequest<'_>,
    key_set: impl Fn(&CompiledIssuer) -> Option<String>,
) -> UpstreamDecision {
    match authenticators.authenticate(&AuthnRequest { observer: None, ..*request }) {
        AuthnOutcome::Authenticated(_) => UpstreamDecision::Accepts,
        AuthnOutcome::NoOpinion(_) => {
            UpstreamDecision::Rejects(Some(Masked::text_only("invalid bearer token")))
        }
        AuthnOutcome::Rejected(rejection) => {
            UpstreamDecision::Rejects(log_line(authenticators, request, &rejection.refusal, key_set))
        }
    }
}

/// The message for a refusal, if its exact words are known.
fn log_line(
    authenticators: &Authenticators,
    request: &AuthnRequest<'_>,
    refusal: &Refusal,
    key_set: impl Fn(&CompiledIssuer) -> Option<String>,
) -> Option<Masked> {
    let token = RawToken::new(request.token).ok()?;
    let payload = token.payload().ok()?;
    let claims = UnverifiedClaims::read(&payload.bytes).ok()?;
    let authenticator = authenticators.find(claims.issuer())?;
    if matches!(refusal, Refusal::NotReady) {
        return Some(Masked::text_only("oidc: authenticator not initialized"));
    }
    let profile = authenticators.profile();
    let parsed = ParsedToken { token: &token, payload: &payload, authenticator, profile };
    let unverified = || parsed.unverified(&key_set);
    let checked = || checked(&claims, refusal, authenticator, request, profile).map(Some);
    let line = parsed.malformed().map(Some).or_else(|| match profile.facts().check_order {
        CheckOrder::ClaimsFirst => checked().or_else(unverified),
        CheckOrder::SignatureFirst => unverified().or_else(checked),
    });
    match line {
        Some(line) => line.map(|line| line.after("oidc: verify token: ")),
        None => mapped(&claims, refusal, authenticator),
    }
}

/// A token whose payload names an authenticator, and the rules of the Kubernetes version.
struct ParsedToken<'p> {
    token: &'p RawToken<'p>,
    payload: &'p TokenPart,
    authenticator: &'p IssuerAuthenticator,
    profile: &'p AuthnProfile,
}

impl ParsedToken<'_> {
    /// The message if the token does not parse. Some versions check the algorithm while they parse.
    fn malformed(&self) -> Option<Masked> {
        let malformed = |message: Masked| Some(message.after("oidc: malformed jwt: "));
        let (header_text, signature_text) = self.token.spaceless();
        if let Some(message) = raw_url_error(&header_text).or_else(|| raw_url_error(&signature_text)) {
            return malformed(Masked::text_only(message));
        }
        let header = self.token.header()?.bytes;
        let rules = KeyRules::upstream(self.profile);
        if let Some(message) = header_error(&header, rules) {
            return malformed(message);
        }
        let allowed = self.authenticator.algorithms();
        let named = algorithm_name(&header);
        let is_allowed = JwsAlgorithm::from_name(&named).is_some_and(|one| allowed.contains(one));
        if self.profile.facts().algorithm_error == AlgorithmError::ByParser && !is_allowed {
            let named = quoted(&named);
            return malformed(Masked::text_only(format!(
                "unexpected signature algorithm {named}; expected {allowed}"
            )));
        }
        let embedded = Raw::parse(&header).ok()?.members().find(|(name, _)| name == "jwk")?.1;
        if embedded.is_null() || key_errors::embedded(embedded, rules) != Some(EmbeddedKeyError::NotPublic) {
            return None;
        }
        malformed(Masked::text_only("go-jose/go-jose: invalid embedded jwk, must be public key"))
    }

    /// Algorithm and signature: `None` if they are valid, else the message, if its exact words are known.
    fn unverified(&self, key_set: impl Fn(&CompiledIssuer) -> Option<String>) -> Option<Option<Masked>> {
        let header_part = self.token.header()?;
        let allowed = self.authenticator.algorithms();
        let Ok(header) = Header::read(&header_part.bytes, allowed, self.profile) else {
            let named = quoted(&algorithm_name(&header_part.bytes));
            return Some(Some(Masked::text_only(format!(
                "oidc: id token signed with unsupported algorithm, expected {allowed} got {named}"
            ))));
        };
        let failed = "failed to verify signature: ";
        match self.authenticator.keys().current() {
            Err(KeysUnavailable::NotReady) => None,
            Err(KeysUnavailable::Failed(_)) => {
                // Of a failed request only kube-apiserver's HTTP client knows the words.
                let body = key_set(&self.authenticator.configuration.issuer);
                let message = body.as_deref().and_then(|body| key_errors::fetching(body, self.profile));
                Some(message.map(|message| Masked::text_only(format!("{failed}fetching keys {message}"))))
            }
            Ok(keys) => {
                signature::check(self.token, (&header, &header_part), self.payload, &keys, self.profile)
                    .err()
                    .map(|_| Some(Masked::text_only(format!("{failed}failed to verify id token signature"))))
            }
        }
    }
}

/// The error of a header before its algorithm is checked.
fn header_error(bytes: &[u8], rules: KeyRules) -> Option<Masked> {
    if bytes.is_empty() {
        return None;
    }
    if let Some(message) = syntax_error(bytes) {
        return Some(Masked::text_only(message));
    }
    let raw = Raw::parse(bytes).ok()?;
    if !matches!(raw.kind(), Kind::Object | Kind::Null) {
        return Some(Masked::text_only(raw.kind().type_mismatch("jose.rawHeader")));
    }
    if let Some(name) = key_errors::repeated(raw) {
        return Some(Masked::text_only(format!("json: duplicate key '{name}' in object")));
    }
    for (name, value) in raw.members().filter(|(_, value)| !value.is_null()) {
        let wrong = match name.as_ref() {
            "alg" | "kid" | "nonce" => {
                (value.kind() != Kind::String).then(|| value.kind().type_mismatch("string"))
            }
            "jwk" => match key_errors::embedded(value, rules) {
                Some(EmbeddedKeyError::Invalid(message)) => Some(message),
                Some(EmbeddedKeyError::NotPublic) | None => None,
            },
            "x5c" => key_errors::certificates(value),
            _ => key_errors::repeated_deep(value)
                .map(|name| format!("json: duplicate key '{name}' in object"))
                .or_else(|| key_errors::large_number(value)),
        };
        let what = match name.as_ref() {
            "alg" => "algorithm",
            "kid" => "key ID",
            "nonce" => "nonce",
            "jwk" => "JWK",
            "x5c" => "x5c header",
            _ => "value",
        };
        if let Some(message) = wrong {
            let message = Masked::text_only(format!("failed to unmarshal {what}: {message}: "));
            return Some(message.value(quoted(&value.text())));
        }
    }
    None
}

/// The algorithm that a header names; empty if it names none.
fn algorithm_name(header: &[u8]) -> String {
    let raw = Raw::parse(header).ok();
    let named = raw.and_then(|raw| raw.members().find(|(name, _)| name == "alg"));
    named.and_then(|(_, value)| value.string()).unwrap_or_default().into_owned()
}

/// Types, audience and times.
fn checked(
    claims: &UnverifiedClaims<'_>,
    refusal: &Refusal,
    authenticator: &IssuerAuthenticator,
    request: &AuthnRequest<'_>,
    profile: &AuthnProfile,
) -> Option<Masked> {
    let issuer = &authenticator.configuration.issuer;
    if let Some(message) = type_error(claims, profile.facts().json_errors) {
        return Some(message.after("oidc: failed to unmarshal claims: "));
    }
    let registered = claims.registered_as_go_reads_them()?;
    if let Some(message) = registered.missing_source() {
        return Some(Masked::text_only(message));
    }
    let (now, nanoseconds) = (request.now.as_second(), request.now.subsec_nanosecond());
    match refusal {
        Refusal::Audience => {
            let expected = match issuer.audiences.as_slice() {
                [one] => quoted(one),
                several => {
                    let mut several: Vec<&str> = several.iter().map(String::as_str).collect();
                    several.sort_unstable();
                    format!("in {}", quoted_list(several.into_iter()))
                }
            };
            let got = quoted_list(registered.audiences().iter().map(AsRef::as_ref));
            Some(Masked::text_only(format!("oidc: expected audience {expected} got ")).value(got))
        }
        Refusal::Expired => {
            let expiry = format_utc(registered.expires(), 0);
            Some(Masked::text_only(format!("oidc: token is expired (Token Expiry: {expiry})")))
        }
        Refusal::NotYetValid { .. } => {
            let now = format_utc(now, nanoseconds);
            let not_before = format_utc(registered.not_before().unwrap_or_default(), 0);
            Some(Masked::text_only(format!(
                "oidc: current time {now} before the nbf (not before) time: {not_before}"
            )))
        }
        _ => None,
    }
}

/// Distributed claims, mappings and rules.
fn mapped(
    claims: &UnverifiedClaims<'_>,
    refusal: &Refusal,
    authenticator: &IssuerAuthenticator,
) -> Option<Masked> {
    let configuration = &authenticator.configuration;
    Some(match refusal {
        Refusal::Distributed(_) => distributed_error(claims, configuration.groups.as_ref())?
            .after("oidc: could not expand distributed claims: "),
        Refusal::MissingClaim { path, claim } => {
            Masked::text_only(format!("oidc: parse {} {}: claim not present", mapping(path), quoted(claim)))
        }
        Refusal::MappingType { path, claim, .. } => {
            let found = claims.claim(claim).map_or(Kind::Null, Raw::kind);
            if claim == "email_verified" {
                return Some(Masked::text_only(format!(
                    "oidc: parse 'email_verified' claim: {}",
                    found.type_mismatch("bool")
                )));
            }
            let message = found.type_mismatch("string");
            Masked::text_only(format!("oidc: parse {} {}: {message}", mapping(path), quoted(claim)))
        }
        Refusal::EmailNotVerified => Masked::text_only("oidc: email not verified"),
        Refusal::EmptyUsername => Masked::text_only("oidc: empty username via CEL expression is not allowed"),
        Refusal::Evaluation { error, .. } if !error.error.kind.is_upstream() => return None,
        Refusal::Evaluation { path, text, purpose, error } => {
            let prefix = match (purpose, part(path)) {
                (Purpose::Mapping, "extra") => String::new(),
                (Purpose::Mapping, part) => format!("oidc: error evaluating {part} claim expression: "),
                (Purpose::ClaimRule, _) => CLAIM_RULE.to_owned(),
                (Purpose::UserRule, _) => USER_RULE.to_owned(),
            };
            let message = Masked::text_only(format!("{prefix}expression '{text}' resulted in error: "));
            let kind = &error.error.kind;
            if kind.has_values() { message.value(kind.exposed()) } else { message.then(kind.exposed()) }
        }
        Refusal::ResultType { path, text, .. } => {
            let strings = "expression must return a string or a list of strings";
            let message = match part(path) {
                "extra" => format!("extra claim expression: {text}: {strings}"),
                "group" => format!("group claim expression: {strings}"),
                part => format!("{part} claim expression: {part} claim expression must return a string"),
            };
            Masked::text_only(format!("oidc: error evaluating {message}"))
        }
        Refusal::RequiredClaim { claim, .. } => required(claims, claim, authenticator),
        Refusal::ClaimRule { text, message, .. } => {
            Masked::text_only(format!("{CLAIM_RULE}validation expression '{text}' failed: {message}"))
        }
        Refusal::UserRule { text, message, .. } => {
            Masked::text_only(format!("{USER_RULE}validation expression '{text}' failed: {message}"))
        }
        _ => return None,
    })
}

const CLAIM_RULE: &str = "oidc: error evaluating claim validation expression: ";
const USER_RULE: &str = "oidc: error evaluating user info validation rule: ";

fn required(claims: &UnverifiedClaims<'_>, claim: &str, authenticator: &IssuerAuthenticator) -> Masked {
    let Some(value) = claims.claim(claim) else {
        return Masked::text_only(format!("oidc: required claim {claim} not present in ID token"));
    };
    if !matches!(value.kind(), Kind::String | Kind::Null) {
        return Masked::text_only(format!(
            "oidc: parse claim {claim}: {}",
            value.kind().type_mismatch("string")
        ));
    }
    let rules = &authenticator.configuration.required_claims;
    let want = rules.iter().find(|rule| rule.claim == claim).map_or("", |rule| rule.value.as_str());
    Masked::text_only(format!("oidc: required claim {claim} value does not match. Got = "))
        .value(value.string().unwrap_or_default())
        .then(format!(", want = {want}"))
}

fn distributed_error(claims: &UnverifiedClaims<'_>, groups: Option<&AttributeMapping>) -> Option<Masked> {
    let Some(AttributeMapping::Claim { claim, .. }) = groups else { return None };
    let names = claims.claim("_claim_names")?;
    let Some(sources) = claims.claim("_claim_sources") else {
        return Some(Masked::text_only("oidc: no claim sources"));
    };
    let source = names.members().filter(|(name, _)| name == claim).last()?.1.string()?;
    let known = sources.members().any(|(name, _)| name == source);
    (!known).then(|| {
        let message = Masked::text_only("id token _claim_names contained a source ");
        message.value(source).then(" missing in _claims_sources")
    })
}

/// kube-apiserver's name of the mapping at this path when a claim is invalid.
fn mapping(path: &navicert_types::FieldPath) -> &'static str {
    match part(path) {
        "username" => "username claims",
        "group" => "groups claim",
        _ => "uid claim",
    }
}

/// The mapping that a path below `claimMappings` belongs to.
fn part(path: &navicert_types::FieldPath) -> &'static str {
    let path = path.to_string();
    let mapping = path.split("claimMappings.").nth(1).unwrap_or_default();
    ["username", "groups", "uid", "extra"].into_iter().find(|name| mapping.starts_with(name)).map_or(
        "",
        |name| {
            if name == "groups" { "group" } else { name }
        },
    )
}
