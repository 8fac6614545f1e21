//! The claims of a token as Kubernetes exposes them to expressions: a map-like value whose keys may be escaped, and in
//! which an invalid claim affects only itself.

use super::hashed_name::{HashedName, fingerprint};
use super::{Reading, ValueRef};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// All claims of a token.
#[derive(Debug, Clone, Copy)]
pub enum Claims<'a> {
    /// A decoded payload.
    Object(&'a serde_json::Map<String, serde_json::Value>),
    /// A payload of which some claims could not be decoded.
    Set(&'a ClaimSet<'a>),
}

/// Claims decoded one by one: each has a value, or the reason why it has none. Names and texts may be borrowed from the
/// payload.
///
/// A token has a few dozen claims, which are found by comparing numbers; of more, a tree takes care.
#[derive(Debug, Clone, Default)]
pub struct ClaimSet<'p> {
    few: Vec<(HashedName<Cow<'p, str>>, Claim<'p>)>,
    many: BTreeMap<Cow<'p, str>, Claim<'p>>,
}

/// A claim's value, or why it has none.
#[derive(Debug, Clone)]
enum Claim<'p> {
    /// What owns nothing, as most do.
    Plain(ValueRef<'p>),
    Text(String),
    Value(serde_json::Value),
    Broken(String),
    /// It is there and has to be fetched; why it has not been.
    Elsewhere(String),
}

/// As many claims are searched one by one.
const FEW: usize = 64;

impl<'p> ClaimSet<'p> {
    /// No claims yet.
    pub fn new() -> Self {
        ClaimSet::default()
    }

    /// No claims yet, and room for so many.
    pub fn with_capacity(claims: usize) -> Self {
        ClaimSet { few: Vec::with_capacity(claims.min(FEW)), many: BTreeMap::new() }
    }

    /// Adds a claim, or why it cannot be read. A repeated name replaces the earlier claim.
    pub fn insert(&mut self, name: impl Into<Cow<'p, str>>, value: Result<serde_json::Value, String>) {
        self.put(name.into(), value.map_or_else(Claim::Broken, Claim::Value));
    }

    /// Adds a claim that is a text. A repeated name replaces the earlier claim.
    pub fn insert_text(&mut self, name: impl Into<Cow<'p, str>>, text: impl Into<Cow<'p, str>>) {
        let claim = match text.into() {
            Cow::Borrowed(text) => Claim::Plain(ValueRef::Str(text)),
            Cow::Owned(text) => Claim::Text(text),
        };
        self.put(name.into(), claim);
    }

    /// Adds a claim with a value that is borrowed or needs no memory. A repeated name replaces the earlier claim.
    pub fn insert_value(&mut self, name: impl Into<Cow<'p, str>>, value: ValueRef<'p>) {
        self.put(name.into(), Claim::Plain(value));
    }

    /// Adds a claim that is elsewhere: `has` finds it, and who wants its value finds the reason why there is none yet.
    pub fn insert_elsewhere(&mut self, name: impl Into<Cow<'p, str>>, reason: String) {
        self.put(name.into(), Claim::Elsewhere(reason));
    }

    #[inline(always)]
    fn put(&mut self, name: Cow<'p, str>, claim: Claim<'p>) {
        let name = HashedName::new(name);
        if let Some(known) = self.few.iter_mut().find(|one| one.0.is(&name, name.fingerprint())) {
            known.1 = claim;
        } else if self.few.len() < FEW {
            self.few.push((name, claim));
        } else {
            self.many.insert(name.into_inner(), claim);
        }
    }

    /// A claim by its name and the name's fingerprint.
    #[inline]
    fn get(&self, name: &str, fingerprint: u64) -> Option<&Claim<'p>> {
        match self.few.iter().find(|one| one.0.is(name, fingerprint)) {
            Some((_, claim)) => Some(claim),
            None if self.many.is_empty() => None,
            None => self.many.get(name),
        }
    }

    fn names(&self) -> Vec<&str> {
        let few = self.few.iter().map(|one| &**one.0);
        let mut names: Vec<&str> = few.chain(self.many.keys().map(|name| &**name)).collect();
        names.sort_unstable();
        names
    }
}

/// Claims are read as `encoding/json` reads them: every number is a double.
pub(crate) const CLAIM_READING: Reading = Reading { integers: false, unescape: true };

impl<'a> Claims<'a> {
    /// A claim by its name, escapes understood. `Err` holds why a present claim has no value.
    ///
    /// `escaped` is false if the name is known to hold no escape.
    pub(crate) fn select(&self, name: &str, escaped: bool) -> Option<Result<ValueRef<'a>, &'a str>> {
        let name = if escaped && name.contains("__") { unescape(name)? } else { Cow::Borrowed(name) };
        match *self {
            Claims::Object(members) => {
                members.get(&*name).map(|value| Ok(ValueRef::from_json(value, CLAIM_READING)))
            }
            Claims::Set(set) => set.get(&name, fingerprint(&name)).map(|claim| match claim {
                Claim::Plain(value) => Ok(*value),
                Claim::Text(text) => Ok(ValueRef::Str(text)),
                Claim::Value(value) => Ok(ValueRef::from_json(value, CLAIM_READING)),
                Claim::Broken(reason) | Claim::Elsewhere(reason) => Err(reason.as_str()),
            }),
        }
    }

    /// The value of a claim that has one.
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
                Claim::Broken(_) | Claim::Elsewhere(_) => None,
            },
        }
    }

    /// Whether a claim is there, and its value elsewhere.
    pub(crate) fn is_elsewhere(&self, name: &str, escaped: bool) -> bool {
        let Claims::Set(set) = self else { return false };
        let name = if escaped { unescape(name) } else { Some(Cow::Borrowed(name)) };
        name.is_some_and(|name| matches!(set.get(&name, fingerprint(&name)), Some(Claim::Elsewhere(_))))
    }

    /// How many claims there are.
    pub fn len(&self) -> usize {
        match self {
            Claims::Object(members) => members.len(),
            Claims::Set(set) => set.few.len() + set.many.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether both are the very same claims.
    pub(crate) fn is(&self, other: &Claims<'_>) -> bool {
        match (self, other) {
            (Claims::Object(left), Claims::Object(right)) => std::ptr::eq(*left, *right),
            (Claims::Set(left), Claims::Set(right)) => std::ptr::eq(*left, *right),
            _ => false,
        }
    }

    /// Names of all claims, in order.
    pub(crate) fn names(&self) -> Vec<&'a str> {
        match *self {
            Claims::Object(members) => members.keys().map(String::as_str).collect(),
            Claims::Set(set) => set.names(),
        }
    }
}

const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// A key as written in an expression, as the key it stands for: `foo__dot__bar` is `foo.bar`.
///
/// `None` if it contains a sequence `__word__` that stands for nothing.
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
            // Not a sequence of two underscores, a word and two underscores: a later pair may begin one.
            at = open + 1;
            continue;
        }
        let plain = match word {
            "underscores" => "__",
            "dot" => ".",
            "dash" => "-",
            "slash" => "/",
            word if RESERVED.contains(&word) && escaped.len() == len + 4 => word,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_claim_of_few_and_of_many_is_found_and_replaced() {
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
    fn escapes_are_undone_and_unknown_words_make_a_key_unreachable() {
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
    fn a_claim_that_is_elsewhere_is_there_and_has_no_value() {
        let mut set = ClaimSet::new();
        set.insert_elsewhere("a.b", "not here".to_owned());
        set.insert("c", Err("broken".to_owned()));
        let claims = Claims::Set(&set);
        assert!(matches!(claims.select("a__dot__b", true), Some(Err("not here"))));
        assert!(claims.is_elsewhere("a__dot__b", true) && claims.is_elsewhere("a.b", false));
        assert!(!claims.is_elsewhere("c", false) && !claims.is_elsewhere("d", false));
        let environment = crate::kubernetes::claims_environment();
        for (expression, value) in [
            ("has(claims.a__dot__b)", Ok(true)),
            ("has(claims.a__dot__b) && false", Ok(false)),
            ("claims.a__dot__b == 'x' || true", Ok(true)),
            ("claims.a__dot__b == 'x' || false", Err("not here")),
            ("claims.?a__dot__b.orValue('x') == 'x'", Err("not here")),
            ("has(claims.c)", Err("broken")),
        ] {
            let program = environment.compile(expression).unwrap();
            let arena = crate::Arena::new();
            let bindings = crate::Bindings::new().with("claims", ValueRef::Claims(claims));
            match (program.evaluate(&arena, &bindings), value) {
                (Ok(found), Ok(value)) => {
                    assert!(matches!(found.value, ValueRef::Bool(is) if is == value), "{expression}");
                }
                (Err(error), Err(reason)) => assert_eq!(error.to_string(), reason, "{expression}"),
                (found, _) => panic!("{expression}: {found:?}"),
            }
        }
    }
}
