//! Maps the user: username, groups, UID and extra attributes, from claims or expressions.

use std::borrow::Cow;
use std::collections::BTreeMap;

use navicert_cel::ValueRef;
use navicert_cel::kubernetes;
use navicert_go::json::{Kind, Raw};
use navicert_types::FieldPath;

use super::Evaluator;
use crate::config::{AttributeMapping, CompiledAuthenticator, CompiledExpression};
use crate::jwt::VerifiedClaims;
use crate::model::outcome::{Purpose, Refusal};
use crate::model::{AuthenticatedUser, AuthnStep, CREDENTIAL_ID};
use crate::profile::{AuthnProfile, Hardening};

/// Maps in kube-apiserver's order.
// S131
pub(super) fn map<'a>(
    configuration: &'a CompiledAuthenticator,
    claims: &VerifiedClaims<'_>,
    evaluator: &Evaluator<'a, '_>,
    profile: &AuthnProfile,
) -> Result<AuthenticatedUser, Refusal> {
    // A field path costs several allocations, and is needed only for errors.
    let location = |name| MappingLocation { authenticator: &configuration.path, name };
    let username = username(&configuration.username, claims, evaluator, &location("username"), profile)?;
    evaluator.request.passed(AuthnStep::Username);
    let groups = groups(configuration.groups.as_ref(), claims, evaluator, &location("groups"))?;
    evaluator.request.passed(AuthnStep::Groups);
    let uid = uid(configuration.uid.as_ref(), claims, evaluator, &location("uid"))?;
    evaluator.request.passed(AuthnStep::Uid);
    let extra = extra(configuration, claims, evaluator)?;
    evaluator.request.passed(AuthnStep::Extra);
    Ok(AuthenticatedUser::new(kubernetes::User { username, uid, groups, extra }))
}

/// Drops groups that consist of the prefix only. Runs after the rules: a rule that forbids such groups must still see them,
/// or this profile would accept what kube-apiserver rejects.
// H15
pub(super) fn without_empty_groups(
    user: AuthenticatedUser,
    mapping: Option<&AttributeMapping>,
) -> AuthenticatedUser {
    match mapping {
        Some(AttributeMapping::Claim { prefix, .. }) => user.retain_groups(|group| group != prefix),
        _ => user,
    }
}

/// The field path of a mapping, built on demand.
struct MappingLocation<'p> {
    authenticator: &'p FieldPath,
    name: &'static str,
}

impl MappingLocation<'_> {
    fn path(&self) -> FieldPath {
        self.authenticator.field("claimMappings").field(self.name)
    }
}

// S132, S137, S96
fn username<'a>(
    mapping: &'a AttributeMapping,
    claims: &VerifiedClaims<'_>,
    evaluator: &Evaluator<'a, '_>,
    location: &MappingLocation<'_>,
    profile: &AuthnProfile,
) -> Result<String, Refusal> {
    let name = match mapping {
        AttributeMapping::Claim { claim, prefix } => {
            let value = text_claim(claims, claim, location)?;
            if claim == "email" {
                email_is_verified(claims, location)?;
            }
            if value.is_empty() && profile.has(Hardening::NonEmptyUsername) {
                return Err(Refusal::EmptyUsername);
            }
            joined(prefix, &value)
        }
        AttributeMapping::Expression(expression) => {
            let name = text(expression, evaluator)?;
            if name.is_empty() {
                return Err(Refusal::EmptyUsername);
            }
            name
        }
    };
    Ok(name)
}

/// A missing `email_verified` is accepted, any value but `true` is not.
fn email_is_verified(claims: &VerifiedClaims<'_>, location: &MappingLocation<'_>) -> Result<(), Refusal> {
    match claims.claim("email_verified") {
        Some(raw) if matches!(raw.kind(), Kind::Bool | Kind::Null) && !raw.is_true() => {
            Err(Refusal::EmailNotVerified)
        }
        Some(raw) if raw.kind() != Kind::Bool => Err(wrong_type(location, "email_verified", "a boolean")),
        _ => Ok(()),
    }
}

// S134, S135
fn groups<'a>(
    mapping: Option<&'a AttributeMapping>,
    claims: &VerifiedClaims<'_>,
    evaluator: &Evaluator<'a, '_>,
    location: &MappingLocation<'_>,
) -> Result<Vec<String>, Refusal> {
    let (claim, prefix) = match mapping {
        None => return Ok(Vec::new()),
        Some(AttributeMapping::Expression(expression)) => return strings(expression, evaluator),
        Some(AttributeMapping::Claim { claim, prefix }) => (claim, prefix),
    };
    let wrong = || wrong_type(location, claim, "a string or a list of strings");
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

// S136, S96
fn uid<'a>(
    mapping: Option<&'a AttributeMapping>,
    claims: &VerifiedClaims<'_>,
    evaluator: &Evaluator<'a, '_>,
    location: &MappingLocation<'_>,
) -> Result<String, Refusal> {
    match mapping {
        None => Ok(String::new()),
        Some(AttributeMapping::Claim { claim, .. }) => {
            text_claim(claims, claim, location).map(Cow::into_owned)
        }
        Some(AttributeMapping::Expression(expression)) => text(expression, evaluator),
    }
}

/// Number of expression results kept on the stack.
const INLINE_EXTRA: usize = 4;

/// Evaluates every expression before any result is checked.
// S138
// S91
fn extra<'a>(
    configuration: &'a CompiledAuthenticator,
    claims: &VerifiedClaims<'_>,
    evaluator: &Evaluator<'a, '_>,
) -> Result<BTreeMap<String, Vec<String>>, Refusal> {
    let mut extra = BTreeMap::new();
    if let Some(jti) = claims.claim("jti").and_then(Raw::string).filter(|jti| !jti.is_empty()) {
        extra.insert(CREDENTIAL_ID.to_owned(), vec![joined("JTI=", &jti)]);
    }
    let (mut few, mut many) = ([ValueRef::Null; INLINE_EXTRA], Vec::new());
    let values = match few.get_mut(..configuration.extra.len()) {
        Some(few) => few,
        None => {
            many.resize(configuration.extra.len(), ValueRef::Null);
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

/// A required string claim; null counts as an empty string.
fn text_claim<'c>(
    claims: &VerifiedClaims<'c>,
    claim: &str,
    location: &MappingLocation<'_>,
) -> Result<Cow<'c, str>, Refusal> {
    let missing = || Refusal::MissingClaim { path: location.path(), claim: claim.to_owned() };
    let raw = claims.claim(claim).ok_or_else(missing)?;
    if raw.is_null() {
        return Ok(Cow::Borrowed(""));
    }
    raw.string().ok_or_else(|| wrong_type(location, claim, "a string"))
}

fn joined(left: &str, right: &str) -> String {
    [left, right].concat()
}

fn text<'a>(expression: &'a CompiledExpression, evaluator: &Evaluator<'a, '_>) -> Result<String, Refusal> {
    match evaluator.value(expression, Purpose::Mapping)? {
        ValueRef::Str(text) => Ok(text.to_owned()),
        _ => Err(Refusal::ResultType {
            path: expression.path.clone(),
            text: expression.text.clone(),
            expected: "a string",
        }),
    }
}

fn strings<'a>(
    expression: &'a CompiledExpression,
    evaluator: &Evaluator<'a, '_>,
) -> Result<Vec<String>, Refusal> {
    let value = evaluator.value(expression, Purpose::Mapping)?;
    string_list(value).ok_or_else(|| no_string_list(expression))
}

/// A string or a list of strings, whatever its source. Within a list, kube-apiserver accepts a type as its name, and an
/// optional as its content.
// S93, S94
fn string_list(value: ValueRef<'_>) -> Option<Vec<String>> {
    match value {
        ValueRef::Null => Some(Vec::new()),
        ValueRef::Str("") => Some(Vec::new()),
        ValueRef::Str(text) => Some(vec![text.to_owned()]),
        ValueRef::List(list) => {
            let mut strings = Vec::with_capacity(list.len());
            for mut item in list.iter() {
                while let ValueRef::Optional(Some(content)) = item {
                    item = *content;
                }
                let (ValueRef::Str(text) | ValueRef::Type(text)) = item else { return None };
                if !text.is_empty() {
                    strings.push(text.to_owned());
                }
            }
            Some(strings)
        }
        _ => None,
    }
}

fn no_string_list(expression: &CompiledExpression) -> Refusal {
    Refusal::ResultType {
        path: expression.path.clone(),
        text: expression.text.clone(),
        expected: "a string or a list of strings",
    }
}

fn wrong_type(location: &MappingLocation<'_>, claim: &str, expected: &'static str) -> Refusal {
    Refusal::MappingType { path: location.path(), claim: claim.to_owned(), expected }
}

#[cfg(test)]
mod tests {
    use navicert_cel::List;

    use super::*;

    // S94
    #[test]
    fn optionals_in_a_list_count_as_their_content() {
        let content = ValueRef::Str("a");
        let inner = ValueRef::Optional(Some(&content));
        let list = [ValueRef::Str("b"), inner, ValueRef::Optional(Some(&inner))];
        assert_eq!(
            string_list(ValueRef::List(List::Refs(&list))),
            Some(vec!["b".into(), "a".into(), "a".into()])
        );
        assert_eq!(string_list(ValueRef::List(List::Refs(&[ValueRef::Optional(None)]))), None);
        assert_eq!(string_list(inner), None);
    }
}
