//! Hints and a remedy for every way a token can fail. Hints name claims and their types; claim values are marked and shown
//! only on request.

use navicert_cel::{ClaimError, EvalError, EvalErrorKind, InvalidArgument, Operand};
use navicert_go::json::Raw;
use navicert_go::quote::{quoted, quoted_list};
use navicert_go::time::format_utc;
use navicert_types::decode::closest;

use super::masked::Masked;
use super::token_text;
use crate::AuthenticatedUser;
use crate::authenticator::{Authenticators, IssuerAuthenticator};
use crate::config::{AttributeMapping, CompiledAuthenticator};
use crate::jwt::claims::UnverifiedClaims;
use crate::jwt::compact::RawToken;
use crate::model::AuthnRequest;
use crate::model::outcome::{AuthnOutcome, NoOpinion, Refusal};

/// Hints about a failure, and the remedy.
#[derive(Clone, Debug, Default)]
pub(super) struct Guidance {
    pub(super) hints: Vec<Masked>,
    pub(super) remedy: Option<String>,
}

impl Guidance {
    fn hint(&mut self, hint: Masked) {
        self.hints.push(hint);
    }

    fn say(&mut self, text: impl Into<String>) {
        self.hints.push(Masked::text_only(text));
    }

    fn remedy(mut self, text: impl Into<String>) -> Self {
        self.remedy = Some(text.into());
        self
    }
}

/// Hints and remedy for an outcome.
pub(super) fn guidance(
    outcome: &AuthnOutcome,
    authenticators: &Authenticators,
    request: &AuthnRequest<'_>,
) -> Guidance {
    let token = RawToken::new(request.token).ok();
    let payload = token.as_ref().and_then(|token| token.payload().ok());
    let claims = payload.as_ref().and_then(|payload| UnverifiedClaims::read(&payload.bytes).ok());
    if !matches!(outcome, AuthnOutcome::Authenticated(_))
        && let Some(found) = token_text::recognize(request.token)
    {
        let mut guidance = Guidance::default();
        guidance.say(found.hint);
        return guidance.remedy(found.remedy);
    }
    match (outcome, token, claims) {
        (AuthnOutcome::Authenticated(user), _, Some(claims)) => overage(user, &claims, authenticators),
        (AuthnOutcome::Authenticated(_), ..) => Guidance::default(),
        (AuthnOutcome::NoOpinion(NoOpinion::UnknownIssuer), _, Some(claims)) => {
            issuer(&claims, authenticators)
        }
        (AuthnOutcome::NoOpinion(why), ..) => not_a_token(*why, request.token),
        (AuthnOutcome::Rejected(rejection), Some(token), Some(claims)) => {
            let Some(authenticator) = authenticators.find(claims.issuer()) else {
                return Guidance::default();
            };
            let about = RefusalContext { token, claims, authenticator, request };
            about.refusal(&rejection.refusal)
        }
        (AuthnOutcome::Rejected(_), ..) => Guidance::default(),
    }
}

/// A user without groups whose token says that there are some.
fn overage(
    user: &AuthenticatedUser,
    claims: &UnverifiedClaims<'_>,
    authenticators: &Authenticators,
) -> Guidance {
    let mut guidance = Guidance::default();
    let names = claims.claim("_claim_names").into_iter().flat_map(Raw::members);
    let sign = match claims.claim("hasgroups") {
        Some(value) if value.is_true() => "hasgroups",
        _ if names.into_iter().any(|(name, _)| name == "groups") => "_claim_names",
        _ => return guidance,
    };
    let authenticator = authenticators.find(claims.issuer());
    let is_mapped = authenticator.is_some_and(|one| one.configuration.groups.is_some());
    if is_mapped && user.groups().is_empty() {
        guidance.say(format!(
            "the user has no groups here, but has some at the provider: `{sign}` stands for groups that are too many for the token"
        ));
        return guidance.remedy(
            "configure the provider to send fewer groups (only those assigned to the application), and reject such tokens with the \
             rule `!has(claims.hasgroups) && !has(claims._claim_names)`",
        );
    }
    guidance
}

fn not_a_token(why: NoOpinion, text: &str) -> Guidance {
    let mut guidance = Guidance::default();
    let text = text.trim();
    match why {
        NoOpinion::NotCompact if text.is_empty() => guidance.say("the token is empty"),
        NoOpinion::NotCompact if text.starts_with('{') => {
            guidance.say("it starts with `{`: tokens in JSON form are never accepted; in a provider's token response, the token is the member `id_token`");
        }
        NoOpinion::NotCompact => {
            let parts = text.split('.').count();
            guidance.say(match parts {
                5 => "it has five parts: an encrypted token, which only its recipient can decrypt".to_owned(),
                1 => {
                    "it has one part: an opaque token, perhaps an access token or a refresh token".to_owned()
                }
                parts => format!("it has {parts} parts separated by dots, a JWT has 3"),
            });
        }
        _ => guidance.say(
            "the middle part of a JWT is a JSON object with a string `iss`, encoded as unpadded base64url",
        ),
    }
    guidance.remedy("send the provider's ID token, complete and unchanged")
}

/// Hints for an unknown issuer that is nearly a configured one.
// S305
fn issuer(claims: &UnverifiedClaims<'_>, authenticators: &Authenticators) -> Guidance {
    let mut guidance = Guidance::default();
    let claimed = claims.issuer();
    let mut configured: Vec<&CompiledAuthenticator> =
        authenticators.iter().map(|one| &one.configuration).collect();
    configured.sort_by_key(|one| one.path.to_string());
    for one in &configured {
        let path = one.path.field("issuer").field("url");
        let url = &one.issuer.url;
        let Some(difference) = difference(claimed, url) else { continue };
        guidance.say(format!("the token's `iss` differs from {path} (`{url}`) only {difference}"));
        return guidance.remedy(format!("set {path} to the exact value of the token's `iss`"));
    }
    guidance.hint(Masked::text_only("the token's `iss` is ").value(format!("`{claimed}`")));
    if configured.is_empty() {
        guidance.say("the configuration has no authenticator");
    }
    for one in configured {
        guidance.say(format!("{} is `{}`", one.path.field("issuer").field("url"), one.issuer.url));
    }
    guidance.remedy("add an authenticator for the token's issuer, or log in with a configured issuer")
}

/// How two strings differ that were probably meant to be equal; `None` if they are unrelated.
fn difference(ours: &str, theirs: &str) -> Option<&'static str> {
    let bare = |text: &str| text.trim_end_matches('/').to_owned();
    let schemeless =
        |text: &str| text.split_once("://").map_or_else(|| text.to_owned(), |(_, rest)| rest.to_owned());
    let portless = |text: &str| text.replacen(":443", "", 1);
    match () {
        () if ours == theirs || ours.is_empty() || theirs.is_empty() => None,
        () if bare(ours) == bare(theirs) => Some("by a trailing slash"),
        () if ours.trim() == theirs.trim() => Some("by white space around it"),
        () if ours.eq_ignore_ascii_case(theirs) => Some("in upper and lower case"),
        () if schemeless(ours) == schemeless(theirs) => Some("in the part before `://`"),
        () if portless(ours) == portless(theirs) => Some("by the port `:443`"),
        () if bare(&ours.trim().to_ascii_lowercase()) == bare(&theirs.trim().to_ascii_lowercase()) => {
            Some("in upper and lower case and a trailing slash")
        }
        () if bare(&schemeless(ours)) == bare(&schemeless(theirs)) => {
            Some("in the part before `://` and a trailing slash")
        }
        () => None,
    }
}

struct RefusalContext<'a> {
    token: RawToken<'a>,
    claims: UnverifiedClaims<'a>,
    authenticator: &'a IssuerAuthenticator,
    request: &'a AuthnRequest<'a>,
}

impl RefusalContext<'_> {
    fn refusal(&self, refusal: &Refusal) -> Guidance {
        let mut guidance = Guidance::default();
        let configuration = &self.authenticator.configuration;
        match refusal {
            Refusal::NotReady | Refusal::Keys(_) => {
                let url = &configuration.issuer.url;
                guidance.say(format!("no signing keys available for issuer `{url}`; its tokens cannot be verified"));
                guidance.remedy("check that the issuer's discovery document and key set are reachable: `navicert authn check --online`")
            }
            Refusal::Audience => self.audience(),
            Refusal::Expired => self.expired(),
            Refusal::NotYetValid { .. } => self.not_yet(),
            Refusal::ClaimType(claim) => {
                let kind = self.claims.claim(claim).map_or("absent", |raw| raw.kind().name());
                guidance.say(format!("the token's `{claim}` is of type {kind}"));
                guidance.remedy(format!("configure the provider to issue `{claim}` as the standard requires; no setting here can compensate"))
            }
            Refusal::Algorithm { .. } => self.algorithm(),
            Refusal::UnknownKey | Refusal::Signature => self.signature(matches!(refusal, Refusal::UnknownKey)),
            Refusal::EmailNotVerified => {
                guidance.say("the claim `email_verified` is present and not `true`; an unverified address may belong to another user");
                guidance.remedy("verify the address at the provider, or map another claim, such as `sub`, to the username")
            }
            Refusal::MissingClaim { path, claim } => {
                self.missing(&mut guidance, claim);
                guidance.remedy(format!("configure the provider to include `{claim}` in the token, or use another claim at {path}"))
            }
            Refusal::MappingType { path, claim, expected } => {
                let kind = self.claims.claim(claim).map_or("absent", |raw| raw.kind().name());
                guidance.say(format!("the claim `{claim}` is of type {kind}, but {path} expects {expected}"));
                guidance.remedy(format!("use an expression that converts it, or another claim, at {path}"))
            }
            Refusal::Evaluation { path, text, error, .. } => self.evaluation(&path.to_string(), text, &error.error),
            Refusal::ResultType { path, expected, .. } => {
                guidance.say(format!("the expression returned a value, but not {expected}"));
                guidance.remedy(format!("make the expression at {path} return {expected}"))
            }
            Refusal::RequiredClaim { path, claim } => self.required(&path.to_string(), claim),
            Refusal::ClaimRule { path, .. } => {
                guidance.say("the rule was evaluated without an error and is false");
                guidance.remedy(format!("if this login should succeed, change the rule at {path} or the claims that the provider issues"))
            }
            Refusal::UserRule { path, text, .. } => {
                self.prefixes(&mut guidance, text);
                guidance.say("the rule was evaluated without an error and is false");
                guidance.remedy(format!("if this login should succeed, change the rule at {path} or the claim mappings"))
            }
            Refusal::SystemPrefix(what) => {
                guidance.say(format!("names that start with `system:` are reserved for the cluster, and profile `hardened` rejects such a {what}"));
                let path = configuration.path.field("claimMappings");
                guidance.remedy(format!("add a prefix at {path}, or set `allowSystemPrefix` for this issuer in the NavicertConfiguration"))
            }
            Refusal::SystemMasters => {
                guidance.say("members of `system:masters` may do everything in the cluster, whatever RBAC says, and profile `hardened` rejects the group");
                let path = configuration.path.field("claimMappings");
                guidance.remedy(format!("bind the users' own group to `cluster-admin` instead; if the group is intended, set `allowSystemMasters` for this issuer in the NavicertConfiguration, or drop it at {path}"))
            }
            Refusal::EmptyUsername => guidance.remedy(format!(
                "configure the provider to set the claim that {}.username maps",
                configuration.path.field("claimMappings")
            )),
            Refusal::Unprintable(what) => guidance.remedy(format!("configure the provider to issue a clean value for the claim mapped to the {what}")),
            Refusal::Revoked => guidance.remedy("log in again; if this token was revoked by mistake, remove it from the revocation list"),
            Refusal::Distributed(_) => {
                guidance.say("the groups are a distributed claim (`_claim_names`, `_claim_sources`), usually because there are too many for the token");
                guidance.remedy("configure the provider to include fewer groups (only those assigned to the application) in the token itself")
            }
            Refusal::TooLarge(_) | Refusal::IdentityTooLarge => guidance.remedy("configure the provider to issue smaller tokens: usually the list of groups is too long"),
            Refusal::Malformed(_) | Refusal::Issuer => {
                guidance.remedy("configure the provider to issue tokens as the standard requires; no setting in the configuration can compensate")
            }
        }
    }

    fn audience(&self) -> Guidance {
        let mut guidance = Guidance::default();
        let configuration = &self.authenticator.configuration;
        let path = configuration.path.field("issuer").field("audiences");
        let Some(registered) = self.claims.registered_as_go_reads_them() else { return guidance };
        let theirs = registered.audiences();
        let ours = &configuration.issuer.audiences;
        if theirs.iter().all(|audience| audience.is_empty()) {
            guidance.say("the token has no `aud`, or an empty one");
        } else {
            let count = theirs.len();
            let list = quoted_list(theirs.iter().map(AsRef::as_ref));
            guidance.hint(
                Masked::text_only(format!("the token has {count} audience{}: ", plural(count))).value(list),
            );
        }
        for audience in theirs {
            for (index, configured) in ours.iter().enumerate() {
                let at = path.index(index);
                if let Some(difference) = difference(&audience, configured) {
                    guidance.say(format!("one of them differs from {at} (`{configured}`) only {difference}"));
                    return guidance.remedy(format!("set {at} to the exact value of the token's `aud`"));
                }
                if audience.strip_prefix("api://") == Some(configured)
                    || configured.strip_prefix("api://") == Some(audience.as_ref())
                {
                    guidance.say(format!(
                        "one of them differs from {at} (`{configured}`) only by a leading `api://`"
                    ));
                    return guidance.remedy(format!("set {at} to the exact value of the token's `aud`"));
                }
            }
        }
        for claim in ["azp", "client_id", "appid"] {
            let value = self.claims.claim(claim).and_then(Raw::string);
            if value.is_some_and(|value| ours.iter().any(|ours| *ours == value)) {
                guidance.say(format!("its `{claim}` is a configured audience: the client obtained this token for another recipient, probably as an access token"));
                return guidance.remedy("send the ID token instead of the access token");
            }
        }
        let wanted: Vec<String> = ours.iter().map(|audience| format!("`{audience}`")).collect();
        guidance.remedy(format!(
            "log in with the configured client ({}), or add the token's audience at {path}",
            wanted.join(", ")
        ))
    }

    fn expired(&self) -> Guidance {
        let mut guidance = Guidance::default();
        if self.claims.claim("exp").is_none() {
            guidance.say("the token has no `exp`");
            return guidance.remedy("configure the provider to issue tokens that expire");
        }
        let registered = self.claims.registered_as_go_reads_them();
        let expires = registered.map_or(0, |registered| registered.expires());
        let late = self.request.now.as_second().saturating_sub(expires);
        guidance.say(format!("it expired {} ago, at {}", span(late), format_utc(expires, 0)));
        if (0..=300).contains(&late) {
            guidance.say("this may be clock skew: kube-apiserver allows no leeway on `exp`");
            return guidance.remedy(
                "log in again; if a fresh token fails too, compare the clocks of this machine and the issuer",
            );
        }
        guidance.remedy("log in again for a fresh token")
    }

    fn not_yet(&self) -> Guidance {
        let mut guidance = Guidance::default();
        let registered = self.claims.registered_as_go_reads_them();
        let not_before = registered.and_then(|registered| registered.not_before()).unwrap_or_default();
        let early = not_before.saturating_sub(self.request.now.as_second());
        guidance
            .say(format!("it becomes valid in {}; 60 seconds of leeway are already included", span(early)));
        guidance.remedy("compare the clocks of this machine and the issuer")
    }

    fn algorithm(&self) -> Guidance {
        let mut guidance = Guidance::default();
        let header = self.token.header();
        let raw = header.as_ref().and_then(|part| Raw::parse(&part.bytes).ok());
        let named = raw.and_then(|raw| raw.members().find(|(name, _)| name == "alg"));
        let named = named.and_then(|(_, value)| value.string()).unwrap_or_default();
        if named.starts_with("HS") {
            guidance.say(format!("`{named}` uses a shared secret, which a cluster does not have"));
        } else if named.is_empty() || named.eq_ignore_ascii_case("none") {
            guidance.say("the token is not signed");
        } else {
            guidance.say(format!("the token's `alg` is {}", quoted(&named)));
        }
        guidance.remedy("configure the client's signature algorithm at the provider to RS256 or ES256")
    }

    fn signature(&self, is_unknown: bool) -> Guidance {
        let mut guidance = Guidance::default();
        let current = self.authenticator.keys().current();
        let keys = current.as_ref().map_or(&[][..], |keys| keys.keys());
        let kids = |usable: bool| -> Vec<String> {
            let found = keys.iter().filter(|key| key.is_usable() == usable);
            found.map(|key| format!("`{}`", key.kid())).collect()
        };
        let (known, others) = (kids(true), kids(false));
        let shown = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        guidance.say(format!("available keys of the issuer: {shown}"));
        if !others.is_empty() {
            guidance
                .say(format!("keys that are not for signatures (`use`, `key_ops`): {}", others.join(", ")));
        }
        if known.is_empty() && !others.is_empty() {
            return guidance.remedy("configure the issuer to publish its signing keys, with `use: sig`");
        }
        let has = |claim: &str| self.claims.claim(claim).is_some();
        if is_unknown && has("cid") && has("scp") {
            guidance.say("it is an access token of Okta (`cid`, `scp`); keys for those of the org authorization server are not published");
            return guidance
                .remedy("send the ID token, or use a custom authorization server (`…/oauth2/default`)");
        }
        if is_unknown {
            return guidance.remedy(
                "fetch the issuer's current keys: it has probably rotated them since these were fetched",
            );
        }
        guidance.say("either the token was modified, or these keys belong to another issuer (a second installation with the same URL?)");
        guidance.remedy("compare this key set with the one that the issuer serves now")
    }

    /// Lists the existing claims, and the one that was probably meant.
    fn missing(&self, guidance: &mut Guidance, claim: &str) {
        let mut names: Vec<&str> = self.claims.members().iter().map(|(name, _)| name.as_ref()).collect();
        names.sort_unstable();
        names.dedup();
        if let Some(meant) = closest(claim, &names) {
            guidance.say(format!("missing claim `{claim}`; the token has a claim `{meant}`"));
        }
        let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
        guidance.say(format!("the token's claims are {}", names.join(", ")));
    }

    fn evaluation(&self, path: &str, text: &str, error: &EvalError) -> Guidance {
        let mut guidance = Guidance::default();
        if let EvalErrorKind::NoSuchKey(Operand::Literal(key)) = &error.kind
            && is_claim(text, error.span, key)
            && self.claims.claim(key).is_none()
        {
            self.missing(&mut guidance, key);
            error.hint().into_iter().for_each(|hint| guidance.say(hint));
            return guidance.remedy(format!("if the claim may be missing, write `claims.?{key}.orValue(…)` at {path}; otherwise configure the provider to include it"));
        }
        error.hint().into_iter().for_each(|hint| guidance.say(hint));
        match &error.kind {
            EvalErrorKind::InvalidArgument { argument, .. } => {
                guidance.say("the argument comes from the token; `--show-values` shows it");
                if let Some(test) = validity_test(*argument) {
                    return guidance.remedy(format!("test the value with `{test}` first in the expression at {path}, or configure the provider to issue a valid one"));
                }
            }
            EvalErrorKind::Claim { claim, error: ClaimError::Pending | ClaimError::Unavailable(_) } => {
                guidance.say(format!(
                    "`{claim}` is a distributed claim (`_claim_names`, `_claim_sources`) without a value"
                ));
                return guidance
                    .remedy(format!("configure the provider to include `{claim}` in the token itself"));
            }
            EvalErrorKind::Claim { claim, .. } => {
                return guidance.remedy(format!(
                    "configure the provider to issue `{claim}` as a value that kube-apiserver can read"
                ));
            }
            EvalErrorKind::Internal(_) => {
                return guidance
                    .remedy(format!("report this as a bug of navicert, with the expression at {path}"));
            }
            _ => {}
        }
        guidance.remedy(format!("fix the expression at {path} for tokens like this one"))
    }

    fn required(&self, path: &str, claim: &str) -> Guidance {
        let mut guidance = Guidance::default();
        let rules = &self.authenticator.configuration.required_claims;
        let wanted = rules.iter().find(|rule| rule.claim == claim).map_or("", |rule| rule.value.as_str());
        match self.claims.claim(claim) {
            None => self.missing(&mut guidance, claim),
            Some(raw) => match raw.string() {
                Some(value) => {
                    guidance.hint(
                        Masked::text_only(format!("the claim `{claim}` is "))
                            .value(quoted(&value))
                            .then(format!(", expected {}", quoted(wanted))),
                    );
                    if let Some(difference) = difference(&value, wanted) {
                        guidance.say(format!("the two differ only {difference}"));
                    }
                }
                None => guidance
                    .say(format!("the claim `{claim}` is of type {}, expected a string", raw.kind().name())),
            },
        }
        guidance.remedy(format!("if this login should succeed, change the required value at {path} or the value of `{claim}` at the provider"))
    }

    /// User validation rules see names with their prefixes.
    fn prefixes(&self, guidance: &mut Guidance, rule: &str) {
        let configuration = &self.authenticator.configuration;
        for (word, mapping) in
            [("username", Some(&configuration.username)), ("groups", configuration.groups.as_ref())]
        {
            if let Some(AttributeMapping::Claim { prefix, .. }) = mapping
                && !prefix.is_empty()
                && rule.contains(&format!("user.{word}"))
            {
                guidance.say(format!("the rule sees `user.{word}` with the prefix `{prefix}`"));
            }
        }
    }
}

/// Whether the failed part of an expression selects this claim, and not a member of another value.
fn is_claim(expression: &str, span: navicert_cel::Span, key: &str) -> bool {
    let part = expression.get(span.start as usize..span.end as usize).unwrap_or_default();
    [format!("claims.{key}"), format!("claims['{key}']"), format!("claims[\"{key}\"]")]
        .iter()
        .any(|one| one == part)
}

/// The function that tells whether a value is a valid argument.
fn validity_test(argument: InvalidArgument) -> Option<&'static str> {
    match argument {
        InvalidArgument::IpAddress => Some("isIP(…)"),
        InvalidArgument::Cidr => Some("isCIDR(…)"),
        InvalidArgument::Url => Some("isURL(…)"),
        InvalidArgument::Version => Some("isSemver(…)"),
        InvalidArgument::Quantity => Some("isQuantity(…)"),
        InvalidArgument::Pattern
        | InvalidArgument::TimeZone
        | InvalidArgument::Base64
        | InvalidArgument::Format
        | InvalidArgument::Position
        | InvalidArgument::Slice
        | InvalidArgument::RangeSize
        | InvalidArgument::FlattenLevel
        | InvalidArgument::ShiftOffset => None,
    }
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// A duration in readable units.
fn span(seconds: i64) -> String {
    let (value, unit) = match seconds {
        ..120 => return format!("{seconds} s"),
        120..7_200 => (seconds / 60, "minutes"),
        7_200..172_800 => (seconds / 3_600, "hours"),
        _ => (seconds / 86_400, "days"),
    };
    format!("{value} {unit}")
}
