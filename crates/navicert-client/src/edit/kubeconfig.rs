//! Changes of kubeconfig files: adding or replacing a user, and choosing the user of a context.

use std::path::{Path, PathBuf};

use navicert_types::Diagnostics;
use navicert_types::kubeconfig::{self, AuthInfo};
use navicert_types::tree::edit::{DocumentEditor, EditError, EditStep, find};
use navicert_types::tree::{Mapping, Node, Syntax, source_text};
use zeroize::Zeroizing;

use super::{FileChange, FileEditError, file};
use crate::kubeconfig::KubeconfigSources;

/// Content of a new kubeconfig.
const NEW_FILE: &str = "apiVersion: v1\nkind: Config\n";

/// Changes of the files of a kubeconfig. Entries are changed in the file that defines them; a new one goes into the file that kubectl
/// would choose.
#[derive(Debug)]
pub struct KubeconfigChanges {
    files: Vec<EditedFile>,
    /// The index of the file for new entries.
    default: usize,
}

struct EditedFile {
    path: PathBuf,
    before: Option<Zeroizing<Vec<u8>>>,
    editor: DocumentEditor,
}

impl std::fmt::Debug for EditedFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EditedFile").field("path", &self.path).finish_non_exhaustive()
    }
}

impl KubeconfigChanges {
    /// Reads the files; those that do not exist can be created.
    ///
    /// # Errors
    /// There is no place for a file, or one of them cannot be read or is not a kubeconfig.
    pub fn load(sources: &KubeconfigSources, current_dir: &Path) -> Result<Self, FileEditError> {
        let files = sources.files().iter().map(|path| EditedFile::load(&current_dir.join(path)));
        let files = files.collect::<Result<Vec<_>, _>>()?;
        let Some(last) = files.len().checked_sub(1) else {
            return Err(FileEditError::NoLocation { flag: "--kubeconfig" });
        };
        // As client-go does: the first file that exists, else the last one.
        let default = files.iter().position(|file| file.before.is_some()).unwrap_or(last);
        Ok(KubeconfigChanges { files, default })
    }

    /// Adds a user, or replaces the content of the one with this name if `replaces`.
    ///
    /// # Errors
    /// The user exists with other content, or the text cannot be changed.
    // L1112
    pub fn put_user(&mut self, name: &str, user: &Node, replaces: bool) -> Result<(), FileEditError> {
        let Some((file, index)) = self.find("users", name) else {
            let mut entry = Mapping::default();
            entry.push("name", name);
            entry.push("user", user.value.clone());
            return self.edit(self.default, |editor| editor.append(&[], "users", &Node::new(entry)));
        };
        let path = [EditStep::Key("users"), EditStep::Index(index)];
        let present = self.files.get(file).and_then(|file| {
            let path = [path[0], path[1], EditStep::Key("user")];
            find(file.editor.root(), &path)
        });
        if present.is_some_and(|present| present == user || is_same_user(present, user)) {
            return Ok(());
        }
        if !replaces {
            let path = self.files.get(file).map(|file| file.path.clone()).unwrap_or_default();
            return Err(FileEditError::UserExists { name: name.to_owned(), path });
        }
        self.edit(file, |editor| editor.set(&path, "user", user))
    }

    /// Sets the user of a context.
    ///
    /// # Errors
    /// No file has the context, or the text cannot be changed.
    // L1112
    pub fn set_context_user(&mut self, context: &str, user: &str) -> Result<(), FileEditError> {
        let Some((file, index)) = self.find("contexts", context) else {
            return Err(FileEditError::UnknownContext { name: context.to_owned() });
        };
        let path = [EditStep::Key("contexts"), EditStep::Index(index), EditStep::Key("context")];
        let present = self.files.get(file).and_then(|file| {
            let path = [path[0], path[1], path[2], EditStep::Key("user")];
            find(file.editor.root(), &path).and_then(Node::as_str)
        });
        if present == Some(user) {
            return Ok(());
        }
        self.edit(file, |editor| editor.set(&path, "user", &Node::new(user)))
    }

    /// The changes of the files that change.
    ///
    /// # Errors
    /// A changed file would not be a kubeconfig.
    pub fn finish(self) -> Result<Vec<FileChange>, FileEditError> {
        let mut changes = Vec::new();
        for EditedFile { path, before, editor } in self.files {
            let text = editor.expose_text();
            let change = FileChange::new(&path, before, text, kubeconfig::masked_text);
            // A file that does not exist and gets no entry stays away.
            let is_new_and_empty = change.is_new() && text == NEW_FILE;
            if change.is_unchanged() || is_new_and_empty {
                continue;
            }
            kubeconfig::decode(text.as_bytes())
                .map_err(|diagnostics| FileEditError::Invalid { path, diagnostics })?;
            changes.push(change);
        }
        Ok(changes)
    }

    /// The first file with an entry of this name, and the index of the entry.
    fn find(&self, list: &str, name: &str) -> Option<(usize, usize)> {
        self.files.iter().enumerate().find_map(|(number, file)| {
            let items = find(file.editor.root(), &[EditStep::Key(list)])?.as_sequence()?;
            let has_name = |item: &Node| {
                item.as_mapping().and_then(|item| item.last("name")).and_then(|entry| entry.value.as_str())
                    == Some(name)
            };
            items.iter().position(has_name).map(|index| (number, index))
        })
    }

    fn edit(
        &mut self,
        file: usize,
        change: impl FnOnce(&mut DocumentEditor) -> Result<(), EditError>,
    ) -> Result<(), FileEditError> {
        let Some(file) = self.files.get_mut(file) else {
            return Err(FileEditError::NoLocation { flag: "--kubeconfig" });
        };
        change(&mut file.editor).map_err(|source| FileEditError::Text { path: file.path.clone(), source })
    }
}

impl EditedFile {
    fn load(path: &Path) -> Result<Self, FileEditError> {
        let before = file::read(path)?;
        let invalid = |diagnostics| FileEditError::Invalid { path: path.to_owned(), diagnostics };
        if let Some(bytes) = &before {
            kubeconfig::decode(bytes).map_err(invalid)?;
        }
        let text = before.as_ref().map(|bytes| Zeroizing::new(source_text(bytes).into_owned()));
        let text = text.unwrap_or_else(|| Zeroizing::new(NEW_FILE.to_owned()));
        let editor =
            DocumentEditor::new(&text, Syntax::Yaml).map_err(|error| invalid(Diagnostics::from(error)))?;
        Ok(EditedFile { path: path.to_owned(), before, editor })
    }
}

/// Whether two users mean the same: kubectl writes empty fields that others leave out.
fn is_same_user(one: &Node, other: &Node) -> bool {
    let decoded = |user: &Node| -> Option<AuthInfo> {
        let mut entry = Mapping::default();
        entry.push("user", user.value.clone());
        let mut config = Mapping::default();
        config.push("users", vec![Node::new(entry)]);
        let text = Zeroizing::new(Node::new(config).to_json());
        Some(kubeconfig::decode(text.as_bytes()).ok()?.users.into_iter().next()?.user)
    };
    decoded(one).is_some_and(|one| decoded(other) == Some(one))
}
