//! Changes of kubeconfig and kuberc files, and what they mean for other plugins, as reports.

use std::fmt;

use serde::Serialize;

use crate::edit::FileChange;

/// One file that a verb changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileChangeReport {
    /// The file.
    pub file: String,
    /// What the verb does with it.
    pub action: FileAction,
    /// Whether that was done; otherwise the file is as it was.
    pub written: bool,
    /// The change as a unified diff, with secrets masked; empty if there is none.
    pub diff: String,
    /// The copy of the previous file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup: Option<String>,
}

/// What a verb does with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum FileAction {
    /// Creates it.
    Create,
    /// Changes it.
    Change,
    /// Nothing: it is as it should be.
    Keep,
}

impl FileChangeReport {
    /// A change that is not written.
    pub fn new(change: &FileChange) -> Self {
        let action = match (change.is_unchanged(), change.is_new()) {
            (true, _) => FileAction::Keep,
            (false, true) => FileAction::Create,
            (false, false) => FileAction::Change,
        };
        let (file, diff) = (change.path().display().to_string(), change.diff().to_owned());
        FileChangeReport { file, action, written: false, diff, backup: None }
    }

    /// The line after the diff.
    pub fn conclusion(&self) -> String {
        let file = &self.file;
        match (self.action, self.written, &self.backup) {
            (FileAction::Keep, ..) => format!("{file} is as it should be"),
            (_, false, _) => format!("{file} is not written"),
            (FileAction::Create, true, _) => format!("created {file}"),
            (FileAction::Change, true, Some(backup)) => {
                format!("changed {file}; the previous file is {backup}")
            }
            (FileAction::Change, true, None) => format!("changed {file}"),
        }
    }
}

impl fmt::Display for FileChangeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}{}", self.diff, self.conclusion())
    }
}

/// An exec plugin that an allowlist would forbid.
#[cfg(feature = "exec")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ForbiddenPluginReport {
    /// Its command.
    pub command: String,
    /// The users of the kubeconfig that name it.
    pub users: Vec<String>,
    /// Whether it was added to the allowlist as well.
    pub added: bool,
}

/// The result of `exec-plugin pin`.
#[cfg(feature = "exec")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PinReport {
    /// The program.
    pub command: String,
    /// Its digest.
    pub sha256: String,
    /// Other plugins in use, which the new allowlist forbids unless they were added.
    pub other_plugins: Vec<ForbiddenPluginReport>,
    /// The kuberc.
    pub files: Vec<FileChangeReport>,
}

/// The result of `signer setup`.
#[cfg(feature = "exec")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SignerSetupReport {
    /// The user of the kubeconfig.
    pub user: String,
    /// The key, as a `pkcs11:` URI.
    pub uri: String,
    /// Plugins in use, which the new allowlist forbids unless they were added.
    pub other_plugins: Vec<ForbiddenPluginReport>,
    /// The kubeconfig and the kuberc.
    pub files: Vec<FileChangeReport>,
}
