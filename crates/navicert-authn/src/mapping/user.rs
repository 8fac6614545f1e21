//! The user: name, groups, UID and further attributes, from claims or from expressions.

use std::borrow::Cow;
use std::collections::BTreeMap;

use navicert_cel::Val;
use navicert_cel::kubernetes;
use navicert_types::FieldPath;

use super::Evaluator;
use crate::config::{CompiledAuthenticator, Expression, Mapping};
use crate::explain::Step;
use crate::json::{Kind, Raw};
use crate::jwt::VerifiedClaims;
use crate::outcome::{Purpose, Refusal};
use crate::profile::{Profile, Rule};

/// Where the token's own identifier goes (S138).
pub const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// Who a token stands for. Nothing can be changed about it, and only the mappings make one.
#[derive(Clone, Debug)]
pub struct User(kubernetes::User);

impl User {
    /// The name.
    pub fn username(&self) -> &str {
        &self.0.username
    }

    /// The UID; empty if there is none.
    pub fn uid(&self) -> &str {
        &self.0.uid
    }

    /// The groups, in the order of their source. `system:authenticated` is not among them (S145).
    pub fn groups(&self) -> &[String] {
        &self.0.groups
    }

    /// Further attributes.
    pub fn extra(&self) -> &BTreeMap<String, Vec<String>> {
        &self.0.extra
    }

    /// The same without groups that nobody named (H15). Rules come first: one that forbids such groups must still
    /// see them, or this profile would accept what kube-apiserver rejects.
    pub(super) fn without_empty_groups(mut self, mapping: Option<&Mapping>) -> Self {
        if let Some(Mapping::Claim { prefix, .. }) = mapping {
            self.0.groups.retain(|group| group != prefix);
        }
        self
    }

    /// As rules see it.
    pub(super) fn as_rules_see_it(&self) -> &kubernetes::User {
        &self.0
    }
}

/// Maps in kube-apiserver's order (S131).
pub(super) fn map<'a>(
    configuration: &'a CompiledAuthenticator,
    claims: &VerifiedClaims<'_>,
    evaluator: &Evaluator<'a, '_>,
    profile: &Profile,
) -> Result<User, Refusal> {
    // A path costs several allocations, and is needed only to say where something is wrong.
    let place = |name| Place { authenticator: &configuration.path, name };
    let username = username(&configuration.username, claims, evaluator, &place("username"), profile)?;
    evaluator.question.passed(Step::Username);
    let groups = groups(configuration.groups.as_ref(), claims, evaluator, &place("groups"))?;
    evaluator.question.passed(Step::Groups);
    let uid = uid(configuration.uid.as_ref(), claims, evaluator, &place("uid"))?;
    evaluator.question.passed(Step::Uid);
    let extra = extra(configuration, claims, evaluator)?;
    evaluator.question.passed(Step::Extra);
    Ok(User(kubernetes::User { username, uid, groups, extra }))
}

/// Where a mapping is.
struct Place<'p> {
    authenticator: &'p FieldPath,
    name: &'static str,
}

impl Place<'_> {
    fn path(&self) -> FieldPath {
        self.authenticator.field("claimMappings").field(self.name)
    }
}

/// S132, S137, S96
fn username<'a>(
    mapping: &'a Mapping,
    claims: &VerifiedClaims<'_>,
    evaluator: &Evaluator<'a, '_>,
    place: &Place<'_>,
    profile: &Profile,
) -> Result<String, Refusal> {
    let name = match mapping {
        Mapping::Claim { claim, prefix } => {
            let value = text_claim(claims, claim, place)?;
            if claim == "email" {
                email_is_verified(claims, place)?;
            }
            if value.is_empty() && profile.has(Rule::H13) {
                return Err(Refusal::EmptyUsername);
            }
            joined(prefix, &value)
        }
        Mapping::Expression(expression) => {
            let name = text(expression, evaluator)?;
            if name.is_empty() {
                return Err(Refusal::EmptyUsername);
            }
            name
        }
    };
    Ok(name)
}

/// An absent word about it is good enough, anything but `true` is not.
fn email_is_verified(claims: &VerifiedClaims<'_>, place: &Place<'_>) -> Result<(), Refusal> {
    match claims.claim("email_verified") {
        Some(raw) if matches!(raw.kind(), Kind::Bool | Kind::Null) && !raw.is_true() => {
            Err(Refusal::EmailNotVerified)
        }
        Some(raw) if raw.kind() != Kind::Bool => Err(wrong_type(place, "email_verified", "a boolean")),
        _ => Ok(()),
    }
}

/// S134, S135
fn groups<'a>(
    mapping: Option<&'a Mapping>,
    claims: &VerifiedClaims<'_>,
    evaluator: &Evaluator<'a, '_>,
    place: &Place<'_>,
) -> Result<Vec<String>, Refusal> {
    let (claim, prefix) = match mapping {
        None => return Ok(Vec::new()),
        Some(Mapping::Expression(expression)) => return strings(expression, evaluator),
        Some(Mapping::Claim { claim, prefix }) => (claim, prefix),
    };
    let wrong = || wrong_type(place, claim, "a string or a list of strings");
    let Some(raw) = claims.claim(claim).filter(|raw| !raw.is_null()) else { return Ok(Vec::new()) };
    let group = |raw: Raw<'_>| {
        let name = if raw.is_null() { Cow::Borrowed("") } else { raw.string()? };
        Some(joined(prefix, &name))
    };
    match raw.kind() {
        Kind::String => Ok(vec![group(raw).ok_or_else(wrong)?]),
        Kind::Array => raw.elements().map(group).collect::<Option<_>>().ok_or_else(wrong),
        _ => Err(wrong()),
    }
}

/// S136, S96
fn uid<'a>(
    mapping: Option<&'a Mapping>,
    claims: &VerifiedClaims<'_>,
    evaluator: &Evaluator<'a, '_>,
    place: &Place<'_>,
) -> Result<String, Refusal> {
    match mapping {
        None => Ok(String::new()),
        Some(Mapping::Claim { claim, .. }) => text_claim(claims, claim, place).map(Cow::into_owned),
        Some(Mapping::Expression(expression)) => text(expression, evaluator),
    }
}

/// So many results of expressions are kept in place.
const FEW_EXTRA: usize = 4;

/// S138; every expression is evaluated before any result is looked at (S91).
fn extra<'a>(
    configuration: &'a CompiledAuthenticator,
    claims: &VerifiedClaims<'_>,
    evaluator: &Evaluator<'a, '_>,
) -> Result<BTreeMap<String, Vec<String>>, Refusal> {
    let mut extra = BTreeMap::new();
    if let Some(jti) = claims.claim("jti").and_then(Raw::string).filter(|jti| !jti.is_empty()) {
        extra.insert(CREDENTIAL_ID.to_owned(), vec![joined("JTI=", &jti)]);
    }
    let (mut few, mut many) = ([Val::Null; FEW_EXTRA], Vec::new());
    let values = match few.get_mut(..configuration.extra.len()) {
        Some(few) => few,
        None => {
            many.resize(configuration.extra.len(), Val::Null);
            &mut *many
        }
    };
    for (one, value) in configuration.extra.iter().zip(&mut *values) {
        *value = evaluator.value(&one.value, Purpose::Mapping)?;
    }
    for (one, value) in configuration.extra.iter().zip(values) {
        let strings = string_list(*value).ok_or_else(|| no_string_list(&one.value))?;
        if !strings.is_empty() {
            extra.insert(one.key.clone(), strings);
        }
    }
    Ok(extra)
}

/// A claim that has to be there and be a string; null is an empty one.
fn text_claim<'c>(
    claims: &VerifiedClaims<'c>,
    claim: &str,
    place: &Place<'_>,
) -> Result<Cow<'c, str>, Refusal> {
    let missing = || Refusal::MissingClaim { path: place.path(), claim: claim.to_owned() };
    let raw = claims.claim(claim).ok_or_else(missing)?;
    if raw.is_null() {
        return Ok(Cow::Borrowed(""));
    }
    raw.string().ok_or_else(|| wrong_type(place, claim, "a string"))
}

fn joined(left: &str, right: &str) -> String {
    [left, right].concat()
}

fn text<'a>(expression: &'a Expression, evaluator: &Evaluator<'a, '_>) -> Result<String, Refusal> {
    match evaluator.value(expression, Purpose::Mapping)? {
        Val::Str(text) => Ok(text.to_owned()),
        _ => Err(Refusal::ResultType {
            path: expression.path.clone(),
            text: expression.text.clone(),
            expected: "a string",
        }),
    }
}

fn strings<'a>(expression: &'a Expression, evaluator: &Evaluator<'a, '_>) -> Result<Vec<String>, Refusal> {
    let value = evaluator.value(expression, Purpose::Mapping)?;
    string_list(value).ok_or_else(|| no_string_list(expression))
}

/// S93, and S94: a list of strings is one wherever it comes from. Within a list, kube-apiserver takes a type for its name.
fn string_list(value: Val<'_>) -> Option<Vec<String>> {
    match value {
        Val::Null => Some(Vec::new()),
        Val::Str("") => Some(Vec::new()),
        Val::Str(text) => Some(vec![text.to_owned()]),
        Val::List(list) => {
            let mut strings = Vec::with_capacity(list.len());
            for item in list.iter() {
                let (Val::Str(text) | Val::Type(text)) = item else { return None };
                if !text.is_empty() {
                    strings.push(text.to_owned());
                }
            }
            Some(strings)
        }
        _ => None,
    }
}

fn no_string_list(expression: &Expression) -> Refusal {
    Refusal::ResultType {
        path: expression.path.clone(),
        text: expression.text.clone(),
        expected: "a string or a list of strings",
    }
}

fn wrong_type(place: &Place<'_>, claim: &str, expected: &'static str) -> Refusal {
    Refusal::MappingType { path: place.path(), claim: claim.to_owned(), expected }
}
