//! Tokens that are refused although everything about them is right: `kind: RevocationList` (S300). The text of a token
//! is never the key, since one token can be spelled in many ways (S115).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arc_swap::ArcSwap;
use navicert_types::decode::{Decode, Decoder, Mode};
use navicert_types::time::Time;
use navicert_types::tree::{Node, Syntax};
use navicert_types::versioned::{Kind, Versions};
use navicert_types::{Diagnostics, Timestamp};

use crate::config::API_VERSION;

static LIST: Versions<RevocationList> = Versions {
    syntax: Syntax::JsonOrYaml,
    mode: Mode::Strict,
    default_api_version: None,
    default_kind: None,
    kinds: &[Kind { api_version: API_VERSION, kind: "RevocationList", decode: RevocationList::decode }],
};

/// What is revoked.
///
/// ```
/// use navicert_authn::revocation::{RevocationList, Subject};
///
/// let list = RevocationList::parse(b"
/// apiVersion: navicert/v1alpha1
/// kind: RevocationList
/// tokens:
/// - {issuer: 'https://issuer.example', jti: 4f2a}
/// subjects:
/// - {issuer: 'https://issuer.example', subject: ann, issuedBefore: '2026-01-01T00:00:00Z'}
/// ").unwrap();
/// let token = Subject { jti: Some("4f2a"), subject: Some("bob"), issued: Some(1_800_000_000) };
/// assert!(list.revokes("https://issuer.example", &token));
/// assert!(!list.revokes("https://other.example", &token));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RevocationList {
    /// Issuer → the `jti` of single tokens.
    tokens: HashMap<String, HashSet<String>>,
    /// Issuer → `sub` → everything issued before this.
    subjects: HashMap<String, HashMap<String, Timestamp>>,
}

/// What a token says about itself, as far as a list can name it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Subject<'t> {
    /// Its own name.
    pub jti: Option<&'t str>,
    /// Whom it is about.
    pub subject: Option<&'t str>,
    /// When it was issued, in seconds since 1970.
    pub issued: Option<i64>,
}

impl RevocationList {
    /// Reads a list: JSON or YAML, strictly.
    ///
    /// # Errors
    /// Everything that is wrong, in the order of the text.
    pub fn parse(text: &[u8]) -> Result<Self, Diagnostics> {
        LIST.decode(text)
    }

    /// Whether a token of this issuer is revoked. One that does not say when it was issued counts as issued long ago.
    pub fn revokes(&self, issuer: &str, token: &Subject<'_>) -> bool {
        let by_name =
            || token.jti.is_some_and(|jti| self.tokens.get(issuer).is_some_and(|names| names.contains(jti)));
        let by_subject = || {
            let before = self.subjects.get(issuer)?.get(token.subject?)?;
            Some(token.issued.is_none_or(|issued| issued < before.as_second()))
        };
        by_name() || by_subject().unwrap_or(false)
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty() && self.subjects.is_empty()
    }

    /// How many entries it has.
    pub fn len(&self) -> usize {
        self.tokens.values().map(HashSet::len).sum::<usize>()
            + self.subjects.values().map(HashMap::len).sum::<usize>()
    }
}

impl Decode for RevocationList {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let (tokens, subjects) = decoder.object(node, |fields| {
            (fields.default::<Vec<TokenEntry>>("tokens"), fields.default::<Vec<SubjectEntry>>("subjects"))
        })?;
        let mut list = RevocationList::default();
        for entry in tokens {
            list.tokens.entry(entry.issuer).or_default().insert(entry.jti);
        }
        for entry in subjects {
            let subjects = list.subjects.entry(entry.issuer).or_default();
            let before = subjects.entry(entry.subject).or_insert(Timestamp::MIN);
            *before = entry.issued_before.timestamp().max(*before);
        }
        Some(list)
    }
}

#[derive(Default)]
struct TokenEntry {
    issuer: String,
    jti: String,
}

impl Decode for TokenEntry {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.object(node, |fields| TokenEntry {
            issuer: fields.required("issuer"),
            jti: fields.required("jti"),
        })
    }
}

#[derive(Default)]
struct SubjectEntry {
    issuer: String,
    subject: String,
    issued_before: Time,
}

impl Decode for SubjectEntry {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.object(node, |fields| SubjectEntry {
            issuer: fields.required("issuer"),
            subject: fields.required("subject"),
            issued_before: fields.required("issuedBefore"),
        })
    }
}

/// The list that counts now; it can be replaced while tokens are judged.
#[derive(Debug, Default)]
pub struct Revocations(ArcSwap<Numbered>);

#[derive(Debug, Default)]
struct Numbered {
    version: u64,
    list: Arc<RevocationList>,
}

impl Revocations {
    /// Begins with this list.
    pub fn new(list: RevocationList) -> Self {
        Revocations(ArcSwap::from_pointee(Numbered { version: 0, list: Arc::new(list) }))
    }

    /// From now on this list counts. The same list again is no change.
    pub fn replace(&self, list: RevocationList) {
        let list = Arc::new(list);
        self.0.rcu(|old| {
            let version = if old.list == list { old.version } else { old.version + 1 };
            Numbered { version, list: Arc::clone(&list) }
        });
    }

    /// The list that counts now.
    pub fn current(&self) -> Arc<RevocationList> {
        Arc::clone(&self.0.load().list)
    }

    /// Changes whenever the list does.
    pub fn version(&self) -> u64 {
        self.0.load().version
    }

    pub(crate) fn revokes(&self, issuer: &str, token: &Subject<'_>) -> bool {
        self.0.load().list.revokes(issuer, token)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.load().list.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "apiVersion: navicert/v1alpha1\nkind: RevocationList\n";

    fn list(text: &str) -> RevocationList {
        RevocationList::parse(format!("{HEAD}{text}").as_bytes()).unwrap()
    }

    // S300
    #[test]
    fn a_token_is_revoked_by_its_name_or_by_whom_it_is_about_and_when() {
        let list = list(
            "tokens: [{issuer: i, jti: a}, {issuer: j, jti: b}]\n\
             subjects: [{issuer: i, subject: ann, issuedBefore: '1970-01-01T00:16:40Z'},\
             {issuer: i, subject: ann, issuedBefore: '1970-01-01T00:00:01Z'}]\n",
        );
        assert_eq!((list.len(), list.is_empty()), (3, false));
        for (issuer, jti, subject, issued, revoked) in [
            ("i", Some("a"), None, None, true),
            ("j", Some("a"), None, None, false),
            ("j", Some("b"), Some("ann"), Some(5), true),
            ("i", Some(""), Some("bob"), Some(5), false),
            ("i", None, Some("ann"), Some(999), true),
            ("i", None, Some("ann"), Some(1000), false),
            ("i", None, Some("ann"), None, true),
            ("j", None, Some("ann"), Some(999), false),
            ("i", None, None, Some(999), false),
        ] {
            let token = Subject { jti, subject, issued };
            assert_eq!(list.revokes(issuer, &token), revoked, "{issuer} {token:?}");
        }
    }

    #[test]
    fn a_list_is_read_strictly() {
        let wrong = RevocationList::parse(
            format!("{HEAD}tokens: [{{issuer: i}}, {{issuer: i, jti: a, JTI: b}}]\nsubjects: [{{issuer: i, subject: s, issuedBefore: soon}}]\n")
                .as_bytes(),
        )
        .unwrap_err();
        let paths: Vec<String> = wrong.iter().map(|one| one.path.to_string()).collect();
        assert_eq!(paths, ["tokens[0].jti", "tokens[1].JTI", "subjects[0].issuedBefore"]);
        assert!(RevocationList::parse(b"apiVersion: v1\nkind: RevocationList\n").is_err());
    }

    #[test]
    fn a_new_list_has_a_new_version_and_the_same_one_has_not() {
        let revocations = Revocations::new(list("tokens: [{issuer: i, jti: a}]\n"));
        let version = revocations.version();
        revocations.replace(list("tokens: [{issuer: i, jti: a}]\n"));
        assert_eq!(revocations.version(), version);
        revocations.replace(list(""));
        assert_ne!(revocations.version(), version);
        assert!(revocations.current().is_empty());
    }
}
