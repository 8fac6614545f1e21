//! The claims of a token as Kubernetes exposes them to expressions: a map-like value with escaped keys. An invalid
//! claim fails only when it is read.

use super::hashed_name::{HashedName, fingerprint};
use super::{Reading, ValueRef};
use crate::error::ClaimError;
use crate::syntax::RESERVED;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A claim without a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClaimFault {
    pub(crate) claim: String,
    pub(crate) error: ClaimError,
}

/// The claims of a token.
#[derive(Debug, Clone, Copy)]
pub enum Claims<'a> {
    /// A decoded payload.
    Object(&'a serde_json::Map<String, serde_json::Value>),
    /// A payload with claims that are invalid or not fetched.
    Set(&'a ClaimSet<'a>),
}

/// Claims decoded one by one: each has a value or an error. Names and strings may borrow from the payload.
///
/// Up to `MAX_LINEAR_CLAIMS` claims are searched linearly by fingerprint, further ones in a tree.
#[derive(Debug, Clone, Default)]
pub struct ClaimSet<'p> {
    linear: Vec<(HashedName<Cow<'p, str>>, Claim<'p>)>,
    overflow: BTreeMap<Cow<'p, str>, Claim<'p>>,
}

/// The value of a claim, or an error.
#[derive(Debug, Clone)]
enum Claim<'p> {
    /// A value that owns no memory, as most do.
    Plain(ValueRef<'p>),
    Text(String),
    Value(serde_json::Value),
    /// A claim without a value.
    Failed(Box<ClaimFault>),
}

/// Maximum number of claims in the linear part of a set.
const MAX_LINEAR_CLAIMS: usize = 64;

impl<'p> ClaimSet<'p> {
    /// An empty set.
    pub fn new() -> Self {
        ClaimSet::default()
    }

    /// An empty set with capacity for this many claims.
    pub fn with_capacity(claims: usize) -> Self {
        ClaimSet { linear: Vec::with_capacity(claims.min(MAX_LINEAR_CLAIMS)), overflow: BTreeMap::new() }
    }

    /// Adds a claim or the reason why it has no value. A repeated name replaces the earlier claim.
    pub fn insert(&mut self, name: impl Into<Cow<'p, str>>, value: Result<serde_json::Value, ClaimError>) {
        let name = name.into();
        let claim = match value {
            Ok(value) => Claim::Value(value),
            Err(error) => Claim::Failed(Box::new(ClaimFault { claim: name.clone().into_owned(), error })),
        };
        self.put(name, claim);
    }

    /// Adds a claim with a string value. A repeated name replaces the earlier claim.
    pub fn insert_text(&mut self, name: impl Into<Cow<'p, str>>, text: impl Into<Cow<'p, str>>) {
        let claim = match text.into() {
            Cow::Borrowed(text) => Claim::Plain(ValueRef::Str(text)),
            Cow::Owned(text) => Claim::Text(text),
        };
        self.put(name.into(), claim);
    }

    /// Adds a claim whose value is borrowed or owns no memory. A repeated name replaces the earlier claim.
    pub fn insert_value(&mut self, name: impl Into<Cow<'p, str>>, value: ValueRef<'p>) {
        self.put(name.into(), Claim::Plain(value));
    }

    #[inline(always)]
    fn put(&mut self, name: Cow<'p, str>, claim: Claim<'p>) {
        let name = HashedName::new(name);
        if let Some(existing) = self.linear.iter_mut().find(|entry| entry.0.is(&name, name.fingerprint())) {
            existing.1 = claim;
        } else if self.linear.len() < MAX_LINEAR_CLAIMS {
            self.linear.push((name, claim));
        } else {
            self.overflow.insert(name.into_inner(), claim);
        }
    }

    /// Looks up a claim by its name and the fingerprint of the name.
    #[inline]
    fn get(&self, name: &str, fingerprint: u64) -> Option<&Claim<'p>> {
        match self.linear.iter().find(|entry| entry.0.is(name, fingerprint)) {
            Some((_, claim)) => Some(claim),
            None if self.overflow.is_empty() => None,
            None => self.overflow.get(name),
        }
    }

    fn names(&self) -> Vec<&str> {
        let linear = self.linear.iter().map(|entry| &**entry.0);
        let mut names: Vec<&str> = linear.chain(self.overflow.keys().map(|name| &**name)).collect();
        names.sort_unstable();
        names
    }
}

/// Claims are decoded as by `encoding/json`: every number is a double.
pub(crate) const CLAIM_READING: Reading = Reading { integers: false, unescape: true };

impl<'a> Claims<'a> {
    /// Looks up a claim by its possibly escaped name. `Err` holds the error of a present claim without a value.
    ///
    /// `escaped` is false if the name cannot contain an escape.
    pub(crate) fn select(&self, name: &str, escaped: bool) -> Option<Result<ValueRef<'a>, &'a ClaimFault>> {
        let name = if escaped && name.contains("__") { unescape(name)? } else { Cow::Borrowed(name) };
        match *self {
            Claims::Object(members) => {
                members.get(&*name).map(|value| Ok(ValueRef::from_json(value, CLAIM_READING)))
            }
            Claims::Set(set) => set.get(&name, fingerprint(&name)).map(|claim| match claim {
                Claim::Plain(value) => Ok(*value),
                Claim::Text(text) => Ok(ValueRef::Str(text)),
                Claim::Value(value) => Ok(ValueRef::from_json(value, CLAIM_READING)),
                Claim::Failed(fault) => Err(&**fault),
            }),
        }
    }

    /// The value of a claim, if it has one.
    #[inline]
    pub(crate) fn value(&self, name: &str, fingerprint: u64) -> Option<ValueRef<'a>> {
        match *self {
            Claims::Object(members) => {
                members.get(name).map(|value| ValueRef::from_json(value, CLAIM_READING))
            }
            Claims::Set(set) => match set.get(name, fingerprint)? {
                Claim::Plain(value) => Some(*value),
                Claim::Text(text) => Some(ValueRef::Str(text)),
                Claim::Value(value) => Some(ValueRef::from_json(value, CLAIM_READING)),
                Claim::Failed(_) => None,
            },
        }
    }

    /// Number of claims.
    pub fn len(&self) -> usize {
        match self {
            Claims::Object(members) => members.len(),
            Claims::Set(set) => set.linear.len() + set.overflow.len(),
        }
    }

    /// Whether there are no claims.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether both refer to the same claims in memory.
    pub(crate) fn is(&self, other: &Claims<'_>) -> bool {
        match (self, other) {
            (Claims::Object(left), Claims::Object(right)) => std::ptr::eq(*left, *right),
            (Claims::Set(left), Claims::Set(right)) => std::ptr::eq(*left, *right),
            _ => false,
        }
    }

    /// The names of all claims, sorted.
    pub(crate) fn names(&self) -> Vec<&'a str> {
        match *self {
            Claims::Object(members) => members.keys().map(String::as_str).collect(),
            Claims::Set(set) => set.names(),
        }
    }
}

/// Decodes a key as written in an expression: `foo__dot__bar` is `foo.bar`.
///
/// `None` if it contains an unknown sequence `__word__`.
pub fn unescape(escaped: &str) -> Option<Cow<'_, str>> {
    let mut out: Option<String> = None;
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = escaped.get(at..).and_then(|rest| rest.find("__")) {
        let open = at + found;
        let inner_start = open + 2;
        let inner = escaped.get(inner_start..)?;
        let len = inner.find('_').unwrap_or(inner.len());
        let word = inner.get(..len)?;
        if word.is_empty() || !inner.get(len..)?.starts_with("__") {
            // No sequence of two underscores, a word and two underscores starts here; the next underscore may start
            // one.
            at = open + 1;
            continue;
        }
        let plain = match word {
            "underscores" => "__",
            "dot" => ".",
            "dash" => "-",
            "slash" => "/",
            word if is_escaped_word(word) && escaped.len() == len + 4 => word,
            _ => return None,
        };
        let out = out.get_or_insert_default();
        out.push_str(escaped.get(copied..open)?);
        out.push_str(plain);
        at = inner_start + len + 2;
        copied = at;
    }
    match out {
        None => Some(Cow::Borrowed(escaped)),
        Some(mut out) => {
            out.push_str(escaped.get(copied..)?);
            Some(Cow::Owned(out))
        }
    }
}

/// Words that cannot be identifiers, and are therefore written `__word__`.
fn is_escaped_word(word: &str) -> bool {
    matches!(word, "true" | "false" | "null" | "in") || RESERVED.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_and_replaces_claims_in_small_and_large_sets() {
        let name = |number: usize| format!("claim{number}{}", "-of-a-longer-name".repeat(number % 2));
        let mut set = ClaimSet::new();
        for number in (0..200).chain(50..150) {
            set.insert(name(number), Ok(number.into()));
            set.insert(name(number), Ok((number + 1).into()));
        }
        let claims = Claims::Set(&set);
        assert_eq!((claims.len(), claims.names().len()), (200, 200));
        assert!(claims.names().is_sorted());
        for number in 0..200 {
            let found = claims.select(&name(number), false);
            assert!(
                matches!(found, Some(Ok(ValueRef::Double(value))) if value == number as f64 + 1.0),
                "{number}"
            );
        }
        for absent in ["", "claim", "claim200", "claim1-of-a-longer-namE"] {
            assert!(claims.select(absent, false).is_none(), "{absent}");
        }
    }

    // S82
    #[test]
    fn unescape_decodes_known_sequences_and_rejects_unknown_ones() {
        let cases = [
            ("plain", Some("plain")),
            ("foo__dot__bar", Some("foo.bar")),
            ("a__dash__b__slash__c", Some("a-b/c")),
            ("x__underscores__y", Some("x__y")),
            ("__true__", Some("true")),
            ("a__true__", None),
            ("__proto__", None),
            ("a__b", Some("a__b")),
            ("a__b__c", None),
            ("a___dot__b", Some("a_.b")),
            ("__", Some("__")),
        ];
        for (escaped, plain) in cases {
            assert_eq!(unescape(escaped).as_deref(), plain, "{escaped}");
        }
    }

    // S181
    #[test]
    fn distributed_claim_is_present_without_a_value() {
        let mut set = ClaimSet::new();
        set.insert("a.b", Err(ClaimError::Pending));
        set.insert("c", Err(ClaimError::TooDeep));
        let claims = Claims::Set(&set);
        let environment = crate::kubernetes::claims_environment();
        for (expression, value) in [
            ("has(claims.a__dot__b)", Ok(true)),
            ("has(claims.a__dot__b) && false", Ok(false)),
            ("claims.a__dot__b == 'x' || true", Ok(true)),
            ("claims.a__dot__b == 'x' || false", Err(ClaimError::Pending)),
            ("claims.?a__dot__b.orValue('x') == 'x'", Err(ClaimError::Pending)),
            ("has(claims.c)", Err(ClaimError::TooDeep)),
        ] {
            let program = environment.compile(expression).unwrap();
            let arena = crate::Arena::new();
            let bindings = crate::Bindings::new().with("claims", ValueRef::Claims(claims));
            match (program.evaluate(&arena, &bindings), value) {
                (Ok(found), Ok(value)) => {
                    assert!(matches!(found.value, ValueRef::Bool(is) if is == value), "{expression}");
                }
                (Err(error), Err(reason)) => {
                    let crate::EvalErrorKind::Claim { error, .. } = error.error.kind else {
                        panic!("{expression}: {error}")
                    };
                    assert_eq!(error, reason, "{expression}");
                }
                (found, _) => panic!("{expression}: {found:?}"),
            }
        }
    }
}
