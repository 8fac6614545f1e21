//! Revocation list (`kind: RevocationList`): rejects otherwise valid tokens by `jti`, or by subject and time of issue. The
//! token itself is never the key, since one token has several valid encodings.
// S300, S115

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arc_swap::ArcSwap;
use navicert_types::decode::{Decode, DecodeMode, Decoder};
use navicert_types::time::Time;
use navicert_types::tree::{Node, Syntax};
use navicert_types::versioned::{Kind, NAVICERT_API_VERSION, Versions};
use navicert_types::{Diagnostics, Timestamp};
use tokio::sync::watch;

static LIST: Versions<RevocationList> = Versions {
    syntax: Syntax::JsonOrYaml,
    mode: DecodeMode::Strict,
    default_api_version: None,
    default_kind: None,
    kinds: &[Kind {
        api_version: NAVICERT_API_VERSION,
        kind: "RevocationList",
        decode: RevocationList::decode,
    }],
};

/// A list of revoked tokens and subjects.
///
/// ```
/// use navicert_authn::revocation::{RevocationList, TokenSubject};
///
/// let list = RevocationList::parse(b"
/// apiVersion: navicert/v1alpha1
/// kind: RevocationList
/// tokens:
/// - {issuer: 'https://issuer.example', jti: 4f2a}
/// subjects:
/// - {issuer: 'https://issuer.example', subject: ann, issuedBefore: '2026-01-01T00:00:00Z'}
/// ").unwrap();
/// let token = TokenSubject { jti: Some("4f2a"), subject: Some("bob"), issued: Some(1_800_000_000) };
/// assert!(list.revokes("https://issuer.example", &token));
/// assert!(!list.revokes("https://other.example", &token));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RevocationList {
    /// Issuer → `jti` of revoked tokens.
    tokens: HashMap<String, HashSet<String>>,
    /// Issuer → `sub` → revoked if issued before this time.
    subjects: HashMap<String, HashMap<String, Timestamp>>,
}

/// The claims of a token that a revocation list can match.
#[derive(Clone, Copy, Debug, Default)]
pub struct TokenSubject<'t> {
    /// `jti`.
    pub jti: Option<&'t str>,
    /// `sub`.
    pub subject: Option<&'t str>,
    /// `iat`, in seconds since 1970.
    pub issued: Option<i64>,
}

impl RevocationList {
    /// Parses a list from JSON or YAML, strictly.
    ///
    /// # Errors
    /// Every problem, in the order of the text.
    pub fn parse(text: &[u8]) -> Result<Self, Diagnostics> {
        LIST.decode(text)
    }

    /// Whether a token of this issuer is revoked. A token without `iat` counts as issued before any cut-off.
    pub fn revokes(&self, issuer: &str, token: &TokenSubject<'_>) -> bool {
        let by_name =
            || token.jti.is_some_and(|jti| self.tokens.get(issuer).is_some_and(|names| names.contains(jti)));
        let by_subject = || {
            let before = self.subjects.get(issuer)?.get(token.subject?)?;
            Some(token.issued.is_none_or(|issued| issued < before.as_second()))
        };
        by_name() || by_subject().unwrap_or(false)
    }

    /// Whether the list has no entries.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty() && self.subjects.is_empty()
    }

    /// Number of entries.
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

/// The revocation list in use; it can be replaced at any time.
#[derive(Debug, Default)]
pub struct Revocations {
    current: ArcSwap<VersionedList>,
    /// The version, for tasks that wait for a change.
    changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct VersionedList {
    version: u64,
    list: Arc<RevocationList>,
}

impl Revocations {
    /// Starts with this list.
    pub fn new(list: RevocationList) -> Self {
        let current = ArcSwap::from_pointee(VersionedList { version: 0, list: Arc::new(list) });
        Revocations { current, changes: watch::Sender::default() }
    }

    /// Replaces the list. An equal list changes nothing.
    pub fn replace(&self, list: RevocationList) {
        let list = Arc::new(list);
        self.current.rcu(|old| {
            let version = if old.list == list { old.version } else { old.version + 1 };
            VersionedList { version, list: Arc::clone(&list) }
        });
        // The list is in force before a waiting task wakes.
        let version = self.version();
        self.changes.send_if_modified(|known| {
            let is_newer = *known < version;
            *known = version.max(*known);
            is_newer
        });
    }

    /// Follows the version of the list: completes [`watch::Receiver::changed`] after each replacement by a different list.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The current list.
    pub fn current(&self) -> Arc<RevocationList> {
        Arc::clone(&self.current.load().list)
    }

    /// Changes whenever the list does.
    pub fn version(&self) -> u64 {
        self.current.load().version
    }

    pub(crate) fn revokes(&self, issuer: &str, token: &TokenSubject<'_>) -> bool {
        self.current.load().list.revokes(issuer, token)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.current.load().list.is_empty()
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
    fn tokens_are_revoked_by_jti_or_by_subject_and_time_of_issue() {
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
            let token = TokenSubject { jti, subject, issued };
            assert_eq!(list.revokes(issuer, &token), revoked, "{issuer} {token:?}");
        }
    }

    #[test]
    fn list_is_parsed_strictly() {
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
    fn version_changes_only_with_the_list() {
        let revocations = Revocations::new(list("tokens: [{issuer: i, jti: a}]\n"));
        let version = revocations.version();
        revocations.replace(list("tokens: [{issuer: i, jti: a}]\n"));
        assert_eq!(revocations.version(), version);
        let mut changes = revocations.subscribe();
        assert!(!changes.has_changed().unwrap());
        revocations.replace(list(""));
        assert_ne!(revocations.version(), version);
        assert!(changes.has_changed().unwrap());
        assert_eq!(*changes.borrow_and_update(), revocations.version());
        revocations.replace(list(""));
        assert!(!changes.has_changed().unwrap(), "an equal list wakes no task");
        assert!(revocations.current().is_empty());
    }
}
