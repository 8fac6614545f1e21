//! Strict decoding of the kuberc: documents, versions, and the two policy fields.
// C702–C705, C720, C740

use std::ops::Range;

use navicert_plugin::{AllowlistEntry, Policy, PolicyError, Sha256Digest};
use navicert_types::decode::{Decode, DecodeMode, Decoder};
use navicert_types::diagnostic::{Diagnostic, DiagnosticKind};
use navicert_types::tree::{Node, Syntax, parse};
use navicert_types::versioned::{Kind, Versions};
use navicert_types::{Diagnostics, FieldPath};

const KIND: &str = "Preference";

static PREFERENCE: Versions<Preference> = Versions {
    syntax: Syntax::JsonOrYaml,
    mode: DecodeMode::Strict,
    default_api_version: None,
    default_kind: None,
    kinds: &[
        Kind { api_version: "kubectl.config.k8s.io/v1beta1", kind: KIND, decode: v1beta1 },
        Kind { api_version: "kubectl.config.k8s.io/v1alpha1", kind: KIND, decode: v1alpha1 },
    ],
};

/// The policy of a file: the first document that is a supported preference. An invalid one is an error, not skipped.
// C703
pub(crate) fn policy(text: &[u8]) -> Result<Policy, Diagnostics> {
    let mut unknown: Option<Diagnostics> = None;
    for document in documents(text) {
        let node = parse(&document, Syntax::JsonOrYaml)?;
        if node.is_null() {
            continue;
        }
        match PREFERENCE.find_kind(&node) {
            Ok(_) => return PREFERENCE.decode_tree(&node)?.into_policy(),
            Err(diagnostic) => unknown = unknown.or(Some(diagnostic.into())),
        }
    }
    // An empty file has no policy.
    unknown.map_or(Ok(Policy::AllowAll), Err)
}

/// Where the document is that [`policy`] uses; `None` if the file has no document.
pub(crate) fn preference_range(text: &str) -> Option<Range<usize>> {
    document_ranges(text.as_bytes()).into_iter().find(|range| {
        let document = text.get(range.clone()).unwrap_or_default();
        let node = parse(document.as_bytes(), Syntax::JsonOrYaml).ok();
        node.is_some_and(|node| PREFERENCE.find_kind(&node).is_ok())
    })
}

/// The documents of a text, each padded with empty lines so that its line numbers are those of the file.
fn documents(text: &[u8]) -> Vec<Vec<u8>> {
    let padded = |range: Range<usize>| {
        let before = text.get(..range.start).unwrap_or_default();
        let lines = before.iter().filter(|byte| **byte == b'\n').count();
        [vec![b'\n'; lines].as_slice(), text.get(range).unwrap_or_default()].concat()
    };
    document_ranges(text).into_iter().map(padded).collect()
}

/// What is between the lines `---`.
fn document_ranges(text: &[u8]) -> Vec<Range<usize>> {
    let (mut ranges, mut start, mut at) = (Vec::new(), 0, 0);
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let is_separator =
            line.starts_with(b"---") && line.get(3..).is_none_or(|rest| rest.trim_ascii().is_empty());
        if is_separator {
            ranges.push(start..at);
            start = at + line.len();
        }
        at += line.len();
    }
    ranges.push(start..text.len());
    ranges
}

/// The policy fields of a preference with their positions.
#[derive(Default)]
struct Preference {
    policy: String,
    policy_node: Option<Node>,
    allowlist: Option<Vec<AllowlistItem>>,
    allowlist_node: Option<Node>,
}

/// `defaults` and `aliases` belong to kubectl and are not validated.
// C740
fn v1beta1(node: &Node, decoder: &mut Decoder) -> Option<Preference> {
    decoder.object(node, |fields| {
        let _: Option<Ignored> = fields.optional("defaults");
        let _: Option<Ignored> = fields.optional("aliases");
        Preference {
            policy: fields.default("credentialPluginPolicy"),
            policy_node: fields.node("credentialPluginPolicy").cloned(),
            allowlist: fields.optional("credentialPluginAllowlist"),
            allowlist_node: fields.node("credentialPluginAllowlist").cloned(),
        }
    })
}

/// v1alpha1 has no plugin policy: policy fields in it are reported as unknown.
// C740
fn v1alpha1(node: &Node, decoder: &mut Decoder) -> Option<Preference> {
    decoder.object(node, |fields| {
        let _: Option<Ignored> = fields.optional("overrides");
        let _: Option<Ignored> = fields.optional("aliases");
        Preference::default()
    })
}

/// A field that is not decoded.
#[derive(Default)]
struct Ignored;

impl Decode for Ignored {
    fn decode(_: &Node, _: &mut Decoder) -> Option<Self> {
        Some(Ignored)
    }
}

/// One allowlist entry: `command`, or its deprecated name `name`; the other fields are navicert's.
// C741
#[derive(Clone, Default)]
struct AllowlistItem {
    command: String,
    args: Vec<String>,
    env_names: Vec<String>,
    sha256: Option<Sha256Digest>,
    libraries: Vec<String>,
    signer: Option<String>,
    settings: Option<Vec<String>>,
    node: Node,
}

impl Decode for AllowlistItem {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.object(node, |fields| {
            let (command, name): (String, String) = (fields.default("command"), fields.default("name"));
            let digest: Option<String> = fields.optional("sha256");
            let digest_node = fields.node("sha256").cloned();
            let entry = AllowlistItem {
                command: if command.is_empty() { name.clone() } else { command.clone() },
                args: fields.default("args"),
                env_names: fields.default("envNames"),
                sha256: digest.as_deref().and_then(|digest| digest.parse().ok()),
                libraries: fields.default("pathLib"),
                signer: fields.optional("signer"),
                settings: fields.optional("settings"),
                node: node.clone(),
            };
            let decoder = fields.decoder();
            if let Some(problem) = entry.signer.as_deref().and_then(|name| entry.signer_name_error(name)) {
                decoder.report_invalid_value(node, problem);
            }
            if !command.is_empty() && !name.is_empty() && command != name {
                decoder.report_invalid_value(
                    node,
                    "`command` and its deprecated alias `name` differ; keep `command`",
                );
            }
            if let (Some(digest), None) = (digest, entry.sha256) {
                let message = PolicyError::Digest(digest).to_string();
                decoder.report_invalid_value(&digest_node.unwrap_or_default(), message);
            }
            entry
        })
    }
}

impl Preference {
    /// Validates with kubectl's rules and messages, adding positions.
    // C720
    fn into_policy(self) -> Result<Policy, Diagnostics> {
        let entries =
            self.allowlist.as_ref().map(|entries| entries.iter().map(AllowlistItem::to_allowlist).collect());
        Policy::from_parts(&self.policy, entries).map_err(|error| self.diagnose(&error).into())
    }

    fn diagnose(&self, error: &PolicyError) -> Diagnostic {
        let (policy, allowlist) = ("credentialPluginPolicy", "credentialPluginAllowlist");
        let entries = self.allowlist.as_deref().unwrap_or_default();
        let entry = |index: usize| {
            (FieldPath::root().field(allowlist).index(index), entries.get(index).map(|entry| &entry.node))
        };
        let ((path, node), expected) = match error {
            PolicyError::UnknownPolicy(_) => (
                (FieldPath::root().field(policy), self.policy_node.as_ref()),
                "expected `AllowAll`, `DenyAll` or `Allowlist`",
            ),
            PolicyError::UnusedAllowlist(_) => (
                (FieldPath::root().field(allowlist), self.allowlist_node.as_ref()),
                "set `credentialPluginPolicy: Allowlist`, or remove the list",
            ),
            PolicyError::EmptyAllowlist => (
                (FieldPath::root().field(allowlist), self.allowlist_node.as_ref()),
                "expected a list of `command: <program>`",
            ),
            PolicyError::EmptyEntry(number) => {
                (entry(number.saturating_sub(1)), "expected `command: <program>`")
            }
            PolicyError::VariableName { entry: number, .. } => {
                (entry(number.saturating_sub(1)), "list names of variables, each without `=`")
            }
            PolicyError::NotNormalized { written, .. } => {
                let index = entries.iter().position(|entry| entry.command == *written).unwrap_or_default();
                (entry(index), "write the path in its shortest form")
            }
            _ => (
                (FieldPath::root().field(policy), self.policy_node.as_ref()),
                "add `credentialPluginAllowlist` with a list of `command: <program>`",
            ),
        };
        let span = node.cloned().unwrap_or_default().span;
        let kind = DiagnosticKind::InvalidValue;
        Diagnostic { path, span, kind, message: error.to_string(), hint: None, is_secret: false }
            .with_hint(expected)
    }
}

impl AllowlistItem {
    /// Validates the `signer` name, which must identify exactly one program.
    // C880
    fn signer_name_error(&self, name: &str) -> Option<&'static str> {
        if name.is_empty() || name.contains(['/', '\\']) {
            return Some("`signer` must be a name without `/` that kubeconfigs use for this program");
        }
        let is_absolute = std::path::Path::new(&self.command).is_absolute();
        (!is_absolute).then_some("an entry with `signer` requires an absolute path in `command`")
    }

    fn to_allowlist(&self) -> AllowlistEntry {
        let entry = AllowlistEntry::new(&self.command).args(&self.args).env_names(&self.env_names);
        // The libraries a signer may load (X3).
        let entry = self.libraries.iter().fold(entry, |entry, library| entry.setting("pathLib", library));
        let entry = self.signer.iter().fold(entry, AllowlistEntry::signer);
        let entry = self.settings.iter().fold(entry, AllowlistEntry::setting_names);
        match self.sha256 {
            Some(digest) => entry.sha256(digest),
            None => entry,
        }
    }
}
