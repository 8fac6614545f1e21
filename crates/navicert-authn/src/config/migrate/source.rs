//! Finds the flags: on a command line, in a static pod, or in the configuration of kubeadm, k3s or RKE2.
// S206

use std::fmt;

use navicert_types::tree::{self, Mapping, Node, Syntax, Value};

use super::{MigrateError, OidcFlags};

/// The format that the flags were found in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlagSource {
    /// Words, as on a command line or in a unit file.
    CommandLine,
    /// A static pod manifest.
    StaticPod,
    /// kubeadm's ClusterConfiguration with `extraArgs` as a map (up to v1beta3).
    KubeadmMap,
    /// The same with `extraArgs` as a list of names and values (v1beta4).
    KubeadmList,
    /// The `config.yaml` of k3s or RKE2.
    Rancher,
}

impl fmt::Display for FlagSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FlagSource::CommandLine => "command line",
            FlagSource::StaticPod => "static pod manifest",
            FlagSource::KubeadmMap => "kubeadm ClusterConfiguration (extraArgs as a map)",
            FlagSource::KubeadmList => "kubeadm ClusterConfiguration (extraArgs as a list)",
            FlagSource::Rancher => "k3s or RKE2 configuration",
        })
    }
}

/// Detects the format of a text and finds the flags in it.
///
/// # Errors
/// The text cannot contain kube-apiserver flags.
pub fn find_flags(text: &str) -> Result<(FlagSource, OidcFlags), MigrateError> {
    let documents: Vec<Node> = documents(text);
    for document in &documents {
        let Some(mapping) = document.as_mapping() else { continue };
        let kind = field(mapping, "kind").and_then(Node::as_str).unwrap_or_default();
        match kind {
            "Pod" => return Ok((FlagSource::StaticPod, pod(mapping))),
            "ClusterConfiguration" => return kubeadm(mapping),
            _ => {}
        }
        if let Some(arguments) = field(mapping, "kube-apiserver-arg") {
            return Ok((FlagSource::Rancher, OidcFlags::from_assignments(strings(arguments))));
        }
    }
    let looks_like_flags = text.split_whitespace().any(|word| word.starts_with("--"));
    if documents.iter().any(|document| document.as_mapping().is_some()) && !looks_like_flags {
        let problem =
            "expected a Pod, a ClusterConfiguration, a file with `kube-apiserver-arg`, or a command line";
        return Err(MigrateError::Source(problem.to_owned()));
    }
    Ok((FlagSource::CommandLine, OidcFlags::from_words(words(text))))
}

/// The YAML documents of a text; none if it is not YAML. kubeadm puts several in one file.
fn documents(text: &str) -> Vec<Node> {
    let mut parts = vec![String::new()];
    for line in text.lines() {
        if line.trim_end() == "---" {
            parts.push(String::new());
        } else if let Some(part) = parts.last_mut() {
            part.push_str(line);
            part.push('\n');
        }
    }
    parts.iter().filter_map(|part| tree::parse(part.as_bytes(), Syntax::JsonOrYaml).ok()).collect()
}

fn field<'n>(mapping: &'n Mapping, name: &str) -> Option<&'n Node> {
    mapping.last(name).map(|entry| &entry.value)
}

/// The arguments of every container: the flags themselves identify kube-apiserver.
fn pod(pod: &Mapping) -> OidcFlags {
    let containers = field(pod, "spec").and_then(Node::as_mapping).and_then(|spec| field(spec, "containers"));
    let mut words = Vec::new();
    for container in containers.and_then(Node::as_sequence).into_iter().flatten() {
        for part in ["command", "args"] {
            words.extend(
                container
                    .as_mapping()
                    .and_then(|container| field(container, part))
                    .map(strings)
                    .into_iter()
                    .flatten(),
            );
        }
    }
    OidcFlags::from_words(words)
}

fn kubeadm(document: &Mapping) -> Result<(FlagSource, OidcFlags), MigrateError> {
    let server = field(document, "apiServer").and_then(Node::as_mapping);
    let Some(arguments) = server.and_then(|server| field(server, "extraArgs")) else {
        return Ok((FlagSource::KubeadmMap, OidcFlags::default()));
    };
    match &arguments.value {
        Value::Mapping(mapping) => {
            let pair = |entry: &tree::MappingEntry| (entry.key.clone(), text_of(&entry.value));
            Ok((FlagSource::KubeadmMap, OidcFlags::from_pairs(mapping.entries().iter().map(pair))))
        }
        Value::Sequence(items) => {
            let text = |item: &Node, name: &str| {
                item.as_mapping().and_then(|item| field(item, name)).map(text_of).unwrap_or_default()
            };
            let pairs = items.iter().map(|item| (text(item, "name"), text(item, "value")));
            Ok((FlagSource::KubeadmList, OidcFlags::from_pairs(pairs)))
        }
        _ => Err(MigrateError::Source("apiServer.extraArgs: expected a map or a list".to_owned())),
    }
}

/// A string, or a list of strings.
fn strings(node: &Node) -> Vec<String> {
    node.as_sequence().map_or_else(|| vec![text_of(node)], |items| items.iter().map(text_of).collect())
}

fn text_of(node: &Node) -> String {
    node.as_str().map_or_else(|| node.to_json(), ToOwned::to_owned)
}

/// Splits a text into words as a shell does: blanks, quotes, backslashes; a trailing backslash joins lines.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut symbols = text.chars();
    while let Some(symbol) = symbols.next() {
        match (symbol, quote) {
            ('\\', None | Some('"')) => match symbols.next() {
                Some('\n') | None => {}
                Some(next) => word.get_or_insert_default().push(next),
            },
            (mark, Some(open)) if mark == open => quote = None,
            ('\'' | '"', None) => {
                quote = Some(symbol);
                word.get_or_insert_default();
            }
            (blank, None) if blank.is_whitespace() => words.extend(word.take()),
            (other, _) => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    words
}

impl OidcFlags {
    /// Words of a command line, in both forms `--flag=value` and `--flag value`.
    pub fn from_words(words: impl IntoIterator<Item = String>) -> Self {
        let mut flags = OidcFlags::default();
        let mut words = words.into_iter().peekable();
        while let Some(word) = words.next() {
            let Some(flag) = word.strip_prefix("--") else { continue };
            let (name, value) = match flag.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (flag.to_owned(), None),
            };
            // Boolean flags need no value; all other flags read here do.
            let is_switch = normal(&name) == "anonymous-auth";
            let value = value.or_else(|| {
                if is_switch {
                    Some("true".to_owned())
                } else {
                    words.next_if(|next| !next.starts_with("--"))
                }
            });
            // k3s passes arguments on to kube-apiserver.
            if normal(&name) == "kube-apiserver-arg" {
                let inner = value.unwrap_or_default();
                flags.extend(OidcFlags::from_assignments([inner]));
            } else {
                flags.add(&name, value.unwrap_or_default());
            }
        }
        flags
    }

    /// `flag=value`, with or without leading dashes.
    fn from_assignments(arguments: impl IntoIterator<Item = String>) -> Self {
        let mut flags = OidcFlags::default();
        for argument in arguments {
            let (name, value) = argument.split_once('=').unwrap_or((argument.as_str(), ""));
            flags.add(name, value.to_owned());
        }
        flags
    }

    fn from_pairs(pairs: impl Iterator<Item = (String, String)>) -> Self {
        let mut flags = OidcFlags::default();
        for (name, value) in pairs {
            flags.add(&name, value);
        }
        flags
    }

    fn add(&mut self, name: &str, value: String) {
        let name = normal(name.trim().trim_start_matches("--"));
        match name.as_str() {
            "anonymous-auth" => {
                self.anonymous =
                    Some(!matches!(value.as_str(), "false" | "0" | "f" | "F" | "FALSE" | "False"));
            }
            "authentication-config" => self.has_file |= !value.is_empty(),
            _ if name.starts_with("oidc-") => self.given.push((name, value)),
            _ => {}
        }
    }

    fn extend(&mut self, other: OidcFlags) {
        self.given.extend(other.given);
        self.has_file |= other.has_file;
        self.anonymous = other.anonymous.or(self.anonymous);
    }
}

/// kube-apiserver accepts `_` for `-` in flag names.
fn normal(name: &str) -> String {
    name.replace('_', "-")
}
