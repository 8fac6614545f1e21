//! Near misses and ways out: what a person would look at first, for every way a token can fail. Hints name claims and
//! their types; the values of claims are marked as such and shown only on demand.

use navicert_types::decode::closest;

use super::go;
use super::masked::Masked;
use crate::authenticator::{Authenticator, Authenticators, Question};
use crate::config::{CompiledAuthenticator, Mapping};
use crate::json::Raw;
use crate::jwt::claims::UnverifiedClaims;
use crate::jwt::compact::RawToken;
use crate::outcome::{NoOpinion, Outcome, Refusal};

/// What to look at, and the one thing to do.
#[derive(Clone, Debug, Default)]
pub(super) struct Advice {
    pub(super) hints: Vec<Masked>,
    pub(super) remedy: Option<String>,
}

impl Advice {
    fn hint(&mut self, hint: Masked) {
        self.hints.push(hint);
    }

    fn say(&mut self, text: impl Into<String>) {
        self.hints.push(Masked::words(text));
    }

    fn remedy(mut self, text: impl Into<String>) -> Self {
        self.remedy = Some(text.into());
        self
    }
}

/// What there is to say about an outcome.
pub(super) fn advice(outcome: &Outcome, authenticators: &Authenticators, question: &Question<'_>) -> Advice {
    let token = RawToken::new(question.token).ok();
    let payload = token.as_ref().and_then(|token| token.payload().ok());
    let claims = payload.as_ref().and_then(|payload| UnverifiedClaims::read(&payload.bytes).ok());
    match (outcome, token, claims) {
        (Outcome::Authenticated(_), ..) => Advice::default(),
        (Outcome::NoOpinion(NoOpinion::UnknownIssuer), _, Some(claims)) => issuer(&claims, authenticators),
        (Outcome::NoOpinion(why), ..) => no_token(*why, question.token),
        (Outcome::Rejected(rejection), Some(token), Some(claims)) => {
            let Some(authenticator) = authenticators.find(claims.issuer()) else { return Advice::default() };
            let about = About { token, claims, authenticator, question };
            about.refusal(&rejection.refusal)
        }
        (Outcome::Rejected(_), ..) => Advice::default(),
    }
}

fn no_token(why: NoOpinion, text: &str) -> Advice {
    let mut advice = Advice::default();
    let text = text.trim();
    match why {
        NoOpinion::NotCompact if text.is_empty() => advice.say("the token is empty"),
        NoOpinion::NotCompact if text.to_ascii_lowercase().starts_with("bearer ") => {
            advice.say("it begins with the word `Bearer`, which belongs to the header, not to the token");
        }
        NoOpinion::NotCompact if text.starts_with('{') => {
            advice.say("it begins with `{`: tokens in JSON form are never taken; if it is a provider's whole answer, the token is its member `id_token`");
        }
        NoOpinion::NotCompact => {
            let parts = text.split('.').count();
            advice.say(match parts {
                5 => "it has five parts: an encrypted token, which only its recipient can read".to_owned(),
                1 => "it has one part: an opaque token, perhaps an access token or a refresh token".to_owned(),
                parts => format!("it has {parts} parts separated by dots, a JSON web token has 3"),
            });
        }
        _ => advice.say("the middle part of a JSON web token is an unpadded base64url text of a JSON object with a string `iss`"),
    }
    advice.remedy("send the ID token of the provider as it is, whole and alone")
}

/// S305: issuers that differ in a way that eyes pass over.
fn issuer(claims: &UnverifiedClaims<'_>, authenticators: &Authenticators) -> Advice {
    let mut advice = Advice::default();
    let claimed = claims.issuer();
    let mut configured: Vec<&CompiledAuthenticator> =
        authenticators.iter().map(|one| &one.configuration).collect();
    configured.sort_by_key(|one| one.path.to_string());
    for one in &configured {
        let path = one.path.field("issuer").field("url");
        let url = &one.issuer.url;
        let Some(difference) = difference(claimed, url) else { continue };
        advice.say(format!("the token's `iss` differs from {path} (`{url}`) only {difference}"));
        return advice.remedy(format!("set {path} to exactly what the token's `iss` says"));
    }
    advice.hint(Masked::words("the token's `iss` is ").value(format!("`{claimed}`")));
    if configured.is_empty() {
        advice.say("the configuration has no authenticator at all");
    }
    for one in configured {
        advice.say(format!("{} is `{}`", one.path.field("issuer").field("url"), one.issuer.url));
    }
    advice.remedy("add an authenticator for the token's issuer, or log in at one that is configured")
}

/// How two texts differ that were meant to be the same; nothing if they are plainly others.
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
        () if schemeless(ours) == schemeless(theirs) => Some("in what stands before `://`"),
        () if portless(ours) == portless(theirs) => Some("by the port `:443`"),
        () if bare(&ours.trim().to_ascii_lowercase()) == bare(&theirs.trim().to_ascii_lowercase()) => {
            Some("in upper and lower case and a trailing slash")
        }
        () if bare(&schemeless(ours)) == bare(&schemeless(theirs)) => {
            Some("in what stands before `://` and a trailing slash")
        }
        () => None,
    }
}

struct About<'a> {
    token: RawToken<'a>,
    claims: UnverifiedClaims<'a>,
    authenticator: &'a Authenticator,
    question: &'a Question<'a>,
}

impl About<'_> {
    fn refusal(&self, refusal: &Refusal) -> Advice {
        let mut advice = Advice::default();
        let configuration = &self.authenticator.configuration;
        match refusal {
            Refusal::NotReady | Refusal::Keys(_) => {
                let url = &configuration.issuer.url;
                advice.say(format!("the keys of `{url}` are not to be had, so no token of it can be judged"));
                advice.remedy("see that discovery and the key set of the issuer can be reached from here: `navicert authn check --online`")
            }
            Refusal::Audience => self.audience(),
            Refusal::Expired => self.expired(),
            Refusal::NotYetValid => self.not_yet(),
            Refusal::ClaimType(claim) => {
                let kind = self.claims.claim(claim).map_or("absent", |raw| go::kind(raw.kind()));
                advice.say(format!("the token's `{claim}` is of type {kind}"));
                advice.remedy(format!("have the provider issue `{claim}` as the standard says; nothing here can make up for it"))
            }
            Refusal::Algorithm { .. } => self.algorithm(),
            Refusal::UnknownKey | Refusal::Signature => self.signature(matches!(refusal, Refusal::UnknownKey)),
            Refusal::EmailNotVerified => {
                advice.say("the claim `email_verified` is there and is not `true`; a name taken from an address that nobody has checked could be anybody's");
                advice.remedy("verify the address at the provider, or map another claim, such as `sub`, to the username")
            }
            Refusal::MissingClaim { path, claim } => {
                self.missing(&mut advice, claim);
                advice.remedy(format!("have the provider put `{claim}` into the token, or name another claim at {path}"))
            }
            Refusal::MappingType { path, claim, expected } => {
                let kind = self.claims.claim(claim).map_or("absent", |raw| go::kind(raw.kind()));
                advice.say(format!("the claim `{claim}` is of type {kind}, and {path} wants {expected}"));
                advice.remedy(format!("use an expression that converts it, or another claim, at {path}"))
            }
            Refusal::Evaluation { path, source, .. } => self.evaluation(&path.to_string(), &source.error),
            Refusal::ResultType { path, expected, .. } => {
                advice.say(format!("the expression gives a value, but not {expected}"));
                advice.remedy(format!("make the expression at {path} return {expected}"))
            }
            Refusal::RequiredClaim { path, claim } => self.required(&path.to_string(), claim),
            Refusal::ClaimRule { path, .. } => {
                advice.say("the rule ran without an error and came out false");
                advice.remedy(format!("if this login should pass, change the rule at {path} or what the provider puts into the token"))
            }
            Refusal::UserRule { path, text, .. } => {
                self.prefixes(&mut advice, text);
                advice.say("the rule ran without an error and came out false");
                advice.remedy(format!("if this login should pass, change the rule at {path} or the mappings above it"))
            }
            Refusal::SystemPrefix(what) => {
                advice.say(format!("names that begin with `system:` belong to the cluster itself, and profile `hardened` lets no token have such a {what}"));
                let path = configuration.path.field("claimMappings");
                advice.remedy(format!("put a prefix before it at {path}, or set `allowSystemPrefix` for this issuer in the NavicertConfiguration"))
            }
            Refusal::EmptyUsername => advice.remedy(format!(
                "have the provider fill the claim behind {}.username",
                configuration.path.field("claimMappings")
            )),
            Refusal::Unprintable(what) => advice.remedy(format!("have the provider clean the claim behind the {what}")),
            Refusal::Revoked => advice.remedy("log in again; if this token was revoked by mistake, take it off the revocation list"),
            Refusal::Distributed(_) => {
                advice.say("the provider says that the groups are to be fetched elsewhere (`_claim_names`, `_claim_sources`), which usually means that there are too many for the token");
                advice.remedy("have the provider send fewer groups (only those assigned to the application) in the token itself")
            }
            Refusal::TooLarge(_) => advice.remedy("have the provider send less: usually it is the list of groups"),
            Refusal::Malformed(_) | Refusal::Issuer => {
                advice.remedy("have the provider issue the token as the standard says; nothing in the configuration can make up for it")
            }
        }
    }

    fn audience(&self) -> Advice {
        let mut advice = Advice::default();
        let configuration = &self.authenticator.configuration;
        let path = configuration.path.field("issuer").field("audiences");
        let Some(registered) = self.claims.registered_as_go_reads_them() else { return advice };
        let theirs = registered.audiences();
        let ours = &configuration.issuer.audiences;
        if theirs.iter().all(|audience| audience.is_empty()) {
            advice.say("the token has no `aud`, or an empty one");
        } else {
            let count = theirs.len();
            let list = go::quoted_list(theirs.iter().map(AsRef::as_ref));
            advice.hint(
                Masked::words(format!("the token has {count} audience{}: ", plural(count))).value(list),
            );
        }
        for audience in theirs {
            for (index, configured) in ours.iter().enumerate() {
                let at = path.index(index);
                if let Some(difference) = difference(&audience, configured) {
                    advice.say(format!("one of them differs from {at} (`{configured}`) only {difference}"));
                    return advice.remedy(format!("set {at} to exactly what the token's `aud` says"));
                }
                if audience.strip_prefix("api://") == Some(configured)
                    || configured.strip_prefix("api://") == Some(audience.as_ref())
                {
                    advice.say(format!(
                        "one of them differs from {at} (`{configured}`) only by `api://` in front"
                    ));
                    return advice.remedy(format!("set {at} to exactly what the token's `aud` says"));
                }
            }
        }
        for claim in ["azp", "client_id", "appid"] {
            let value = self.claims.claim(claim).and_then(Raw::string);
            if value.is_some_and(|value| ours.iter().any(|ours| *ours == value)) {
                advice.say(format!("its `{claim}` is one of ours: this is a token that our client got for somebody else, probably an access token"));
                return advice.remedy("send the ID token instead of the access token");
            }
        }
        let wanted: Vec<String> = ours.iter().map(|audience| format!("`{audience}`")).collect();
        advice.remedy(format!(
            "log in with the client that is configured ({}), or add the token's audience at {path}",
            wanted.join(", ")
        ))
    }

    fn expired(&self) -> Advice {
        let mut advice = Advice::default();
        if self.claims.claim("exp").is_none() {
            advice.say("the token has no `exp` at all");
            return advice.remedy("have the provider issue tokens that expire");
        }
        let registered = self.claims.registered_as_go_reads_them();
        let expires = registered.map_or(0, |registered| registered.expires());
        let late = self.question.now.as_second().saturating_sub(expires);
        advice.say(format!("it expired {} ago, at {}", span(late), go::time(expires, 0)));
        if (0..=300).contains(&late) {
            advice
                .say("that is so little that a clock may be wrong: kube-apiserver gives no leeway on `exp`");
            return advice.remedy("log in again; if a fresh token fails too, compare the clocks of this machine and of the issuer");
        }
        advice.remedy("log in again for a fresh token")
    }

    fn not_yet(&self) -> Advice {
        let mut advice = Advice::default();
        let registered = self.claims.registered_as_go_reads_them();
        let not_before = registered.and_then(|registered| registered.not_before()).unwrap_or_default();
        let early = not_before.saturating_sub(self.question.now.as_second());
        advice.say(format!("it becomes valid in {}; 60 seconds of leeway are given already", span(early)));
        advice.remedy("compare the clocks of this machine and of the issuer")
    }

    fn algorithm(&self) -> Advice {
        let mut advice = Advice::default();
        let header = self.token.header();
        let raw = header.as_ref().and_then(|part| Raw::parse(&part.bytes).ok());
        let named = raw.and_then(|raw| raw.members().find(|(name, _)| name == "alg"));
        let named = named.and_then(|(_, value)| value.string()).unwrap_or_default();
        if named.starts_with("HS") {
            advice.say(format!(
                "`{named}` is made with a secret that both sides share; a cluster has no such secret"
            ));
        } else if named.is_empty() || named.eq_ignore_ascii_case("none") {
            advice.say("the token is not signed at all");
        } else {
            advice.say(format!("the token's `alg` is {}", go::quoted(&named)));
        }
        advice.remedy("set the client's signature algorithm at the provider to RS256 or ES256")
    }

    fn signature(&self, is_unknown: bool) -> Advice {
        let mut advice = Advice::default();
        let kids: Vec<String> = match self.authenticator.keys().current() {
            Ok(keys) => keys.keys().iter().map(|key| format!("`{}`", key.kid())).collect(),
            Err(_) => Vec::new(),
        };
        let known = if kids.is_empty() { "none".to_owned() } else { kids.join(", ") };
        advice.say(format!("the issuer's keys here are: {known}"));
        if is_unknown {
            return advice.remedy(
                "get the issuer's newest keys: it has probably changed them since these were fetched",
            );
        }
        advice.say("either the token was changed on its way, or these keys are another issuer's (a second installation with the same URL?)");
        advice.remedy("compare the key set here with what the issuer serves now")
    }

    /// A claim that is not there: which are, and which one was probably meant.
    fn missing(&self, advice: &mut Advice, claim: &str) {
        let mut names: Vec<&str> = self.claims.members().iter().map(|(name, _)| name.as_ref()).collect();
        names.sort_unstable();
        names.dedup();
        if let Some(meant) = closest(claim, &names) {
            advice.say(format!("there is no claim `{claim}`, but there is `{meant}`"));
        }
        let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
        advice.say(format!("the token's claims are {}", names.join(", ")));
    }

    fn evaluation(&self, path: &str, error: &navicert_cel::EvalError) -> Advice {
        let mut advice = Advice::default();
        if let Some(key) = error.message.strip_prefix("no such key: ")
            && self.claims.claim(key).is_none()
        {
            self.missing(&mut advice, key);
            if let Some(hint) = error.hint {
                advice.say(hint);
            }
            return advice.remedy(format!("if the claim may be absent, write `claims.?{key}.orValue(…)` at {path}; else have the provider send it"));
        }
        if let Some(hint) = error.hint {
            advice.say(hint);
        }
        advice.remedy(format!("mend the expression at {path} for tokens like this one"))
    }

    fn required(&self, path: &str, claim: &str) -> Advice {
        let mut advice = Advice::default();
        let rules = &self.authenticator.configuration.required_claims;
        let wanted = rules.iter().find(|rule| rule.claim == claim).map_or("", |rule| rule.value.as_str());
        match self.claims.claim(claim) {
            None => self.missing(&mut advice, claim),
            Some(raw) => match raw.string() {
                Some(value) => {
                    advice.hint(
                        Masked::words(format!("the claim `{claim}` is "))
                            .value(go::quoted(&value))
                            .then(format!(", and has to be {}", go::quoted(wanted))),
                    );
                    if let Some(difference) = difference(&value, wanted) {
                        advice.say(format!("the two differ only {difference}"));
                    }
                }
                None => advice.say(format!(
                    "the claim `{claim}` is of type {}, and has to be a string",
                    go::kind(raw.kind())
                )),
            },
        }
        advice.remedy(format!("if this login should pass, change the required value at {path} or what the provider puts into `{claim}`"))
    }

    /// Rules over the user see names as they are in the cluster.
    fn prefixes(&self, advice: &mut Advice, rule: &str) {
        let configuration = &self.authenticator.configuration;
        for (word, mapping) in
            [("username", Some(&configuration.username)), ("groups", configuration.groups.as_ref())]
        {
            if let Some(Mapping::Claim { prefix, .. }) = mapping
                && !prefix.is_empty()
                && rule.contains(&format!("user.{word}"))
            {
                advice.say(format!("`user.{word}` has the prefix `{prefix}` when the rule sees it"));
            }
        }
    }
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// A length of time in the words of a person.
fn span(seconds: i64) -> String {
    let (value, unit) = match seconds {
        ..120 => return format!("{seconds} s"),
        120..7_200 => (seconds / 60, "minutes"),
        7_200..172_800 => (seconds / 3_600, "hours"),
        _ => (seconds / 86_400, "days"),
    };
    format!("{value} {unit}")
}
