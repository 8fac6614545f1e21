//! The text of a kubeconfig with its secrets masked in place, so that lines of it can be shown.

use std::ops::Range;

use super::write::NON_SECRET_PROVIDER_SETTINGS;
use crate::redact::{self, REDACTED, is_secret_name};
use crate::tree::{Mapping, Node, Syntax, Value, parse};

/// Fields of a user that hold no secret; every field that is not known is masked.
const PLAIN_USER_FIELDS: [&str; 8] = [
    "client-certificate",
    "client-key",
    "tokenFile",
    "as",
    "as-uid",
    "as-groups",
    "as-user-extra",
    "username",
];
/// Fields of an exec plugin that hold no secret.
const PLAIN_EXEC_FIELDS: [&str; 5] =
    ["command", "apiVersion", "installHint", "provideClusterInfo", "interactiveMode"];
/// Words of a comment that are at least this long may be keys or tokens.
const MAX_COMMENT_WORD: usize = 32;

/// [`super::masked_text`].
pub(super) fn masked_text(text: &str) -> String {
    let Ok(root) = parse(text.as_bytes(), Syntax::Yaml) else { return String::new() };
    let mut masks = Masks::default();
    masks.config(&root);
    mask_comments(&masks.apply(text))
}

/// The places to mask, with what to show there; `None` for `REDACTED`.
#[derive(Default)]
struct Masks(Vec<(Range<usize>, Option<String>)>);

impl Masks {
    fn config(&mut self, root: &Node) {
        for (key, node) in fields(root) {
            match key {
                "users" => items(node).for_each(|item| self.named(item, "user", Masks::user)),
                "clusters" => items(node).for_each(|item| self.named(item, "cluster", Masks::cluster)),
                _ => self.by_name(key, node),
            }
        }
    }

    fn named(&mut self, item: &Node, field: &str, mask: fn(&mut Masks, &Node)) {
        for (key, node) in fields(item) {
            if key == field { mask(self, node) } else { self.by_name(key, node) }
        }
    }

    fn user(&mut self, user: &Node) {
        for (key, node) in fields(user) {
            match key {
                "exec" => self.exec(node),
                "auth-provider" => self.auth_provider(node),
                "extensions" => self.by_name(key, node),
                _ if PLAIN_USER_FIELDS.contains(&key) => {}
                _ => self.all(node),
            }
        }
    }

    fn cluster(&mut self, cluster: &Node) {
        for (key, node) in fields(cluster) {
            match key {
                "certificate-authority-data" => self.all(node),
                "server" | "proxy-url" => self.shown_as(node, |text| redact::url(text).into_owned()),
                _ => self.by_name(key, node),
            }
        }
    }

    fn exec(&mut self, exec: &Node) {
        for (key, node) in fields(exec) {
            match key {
                "args" => self.arguments(node),
                "env" => items(node).flat_map(fields).for_each(|(key, value)| {
                    if key != "name" {
                        self.all(value);
                    }
                }),
                _ if PLAIN_EXEC_FIELDS.contains(&key) => {}
                _ => self.all(node),
            }
        }
    }

    fn arguments(&mut self, list: &Node) {
        let words: Vec<&str> = items(list).map(|item| item.as_str().unwrap_or_default()).collect();
        for (item, masked) in items(list).zip(redact::arguments(&words)) {
            self.shown_as(item, |_| masked.into_owned());
        }
    }

    fn auth_provider(&mut self, provider: &Node) {
        for (key, node) in fields(provider).filter(|(key, _)| *key != "name") {
            for (setting, value) in fields(node) {
                if key != "config" || !NON_SECRET_PROVIDER_SETTINGS.contains(&setting) {
                    self.all(value);
                }
            }
        }
    }

    /// Masks what stands below a name of a secret.
    fn by_name(&mut self, key: &str, node: &Node) {
        match &node.value {
            _ if is_secret_name(key) => self.all(node),
            Value::Mapping(_) => fields(node).for_each(|(key, value)| self.by_name(key, value)),
            Value::Sequence(items) => items.iter().for_each(|item| self.by_name(key, item)),
            _ => {}
        }
    }

    /// Masks every value in it.
    fn all(&mut self, node: &Node) {
        match &node.value {
            Value::Mapping(_) => fields(node).for_each(|(_, value)| self.all(value)),
            Value::Sequence(items) => items.iter().for_each(|item| self.all(item)),
            Value::Null | Value::Bool(_) => {}
            _ => self.0.push((node.span.start..node.span.end, None)),
        }
    }

    fn shown_as(&mut self, node: &Node, shown: impl FnOnce(&str) -> String) {
        let Some(text) = node.as_str() else { return };
        let shown = shown(text);
        if shown != text {
            self.0.push((node.span.start..node.span.end, Some(shown)));
        }
    }

    fn apply(mut self, text: &str) -> String {
        // Values of aliases are found several times.
        self.0.sort_by_key(|(range, _)| range.start);
        let (mut masked, mut at) = (String::with_capacity(text.len()), 0);
        for (range, shown) in self.0 {
            if range.start < at {
                continue;
            }
            masked.push_str(text.get(at..range.start).unwrap_or_default());
            let value = text.get(range.clone()).unwrap_or_default();
            match shown {
                Some(shown) if !value.contains('\n') => masked.push_str(&shown),
                _ => masked.push_str(&masked_lines(value)),
            }
            at = range.end;
        }
        masked.push_str(text.get(at..).unwrap_or_default());
        masked
    }
}

/// The same number of lines with the same indentation.
fn masked_lines(value: &str) -> String {
    let mask = |line: &str| {
        let text = line.trim();
        if text.is_empty() { line.to_owned() } else { line.replacen(text, REDACTED, 1) }
    };
    value.split_inclusive('\n').map(mask).collect()
}

/// Masks what follows the name of a secret in a comment, and long words.
fn mask_comments(text: &str) -> String {
    let masked = |line: &str| {
        let Some(at) = comment_start(line) else { return line.to_owned() };
        let (before, comment) = line.split_at_checked(at).unwrap_or((line, ""));
        let end = comment.trim_end().len();
        let (comment, line_end) = comment.split_at_checked(end).unwrap_or((comment, ""));
        let shown = match comment.split_once(':') {
            Some((name, value)) if is_secret_name(name) && !value.trim().is_empty() => {
                format!("{name}: {REDACTED}")
            }
            _ => {
                let word = |word: &str| match word.len() >= MAX_COMMENT_WORD {
                    true => REDACTED.to_owned(),
                    false => word.to_owned(),
                };
                comment.split(' ').map(word).collect::<Vec<_>>().join(" ")
            }
        };
        format!("{before}{shown}{line_end}")
    };
    text.split_inclusive('\n').map(masked).collect()
}

/// Where a comment may begin. Inside a quoted text there may be none, and too much is masked.
fn comment_start(line: &str) -> Option<usize> {
    if line.trim_start().starts_with('#') {
        return line.find('#');
    }
    line.find(" #").map(|at| at + 1)
}

fn fields(node: &Node) -> impl Iterator<Item = (&str, &Node)> {
    let entries = node.as_mapping().map(Mapping::entries).unwrap_or_default();
    entries.iter().map(|entry| (entry.key.as_str(), &entry.value))
}

fn items(node: &Node) -> impl Iterator<Item = &Node> {
    node.as_sequence().unwrap_or_default().iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    // L1112
    #[test]
    fn no_secret_is_left_and_no_line_is_lost() {
        let text = "\
clusters:
- name: c
  cluster: {server: 'https://u:canary@h', certificate-authority-data: Y2FuYXJ5, proxy-url: http://p:1}
users:
- name: ann
  user:
    token: \"canary\"
    client-key-data: |
      canary
        canary
    username: ann
    unknown: [canary, {a: canary}]
    exec:
      command: aws
      args: [get, --token, canary, --password=canary, --region=eu]
      env:
      - {name: KEY, value: canary}
    auth-provider: {name: oidc, config: {client-id: kube, client-secret: canary, other: canary}}
    # old token: canary
    # eyJcanaryeyJcanaryeyJcanaryeyJcanaryeyJcanary of last week
extensions:
- {name: x, extension: {apiToken: canary, shown: yes}}
";
        let masked = masked_text(text);
        assert!(!masked.contains("canary") && !masked.contains("Y2FuYXJ5"), "{masked}");
        assert_eq!(masked.lines().count(), text.lines().count());
        for kept in [
            "username: ann",
            "--region=eu",
            "client-id: kube",
            "name: KEY",
            "shown: yes",
            "of last week",
            "http://p:1",
        ] {
            assert!(masked.contains(kept), "{kept}: {masked}");
        }
        assert_eq!(masked_text(": :\n\t"), "");
    }
}
