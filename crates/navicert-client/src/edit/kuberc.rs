//! Changes of a kuberc: adding programs to the allowlist of credential plugins.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use navicert_plugin::resolve::clean;
use navicert_plugin::{Command, Environment, PermitError, Policy, PolicyDenial, Sha256Digest};
use navicert_types::Diagnostics;
use navicert_types::kubeconfig::ExecConfig;
use navicert_types::tree::edit::{DocumentEditor, EditError, EditStep, find};
use navicert_types::tree::{Mapping, Node, Syntax, source_text};
use zeroize::Zeroizing;

use super::{FileChange, FileEditError, file};
use crate::kubeconfig::MergedKubeconfig;
use crate::kuberc::{self, KubercSource};

/// Content of a new kuberc.
const NEW_DOCUMENT: &str = "apiVersion: kubectl.config.k8s.io/v1beta1\nkind: Preference\n";
const POLICY: &str = "credentialPluginPolicy";
const ALLOWLIST: &str = "credentialPluginAllowlist";

/// A program to allow, and under which conditions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedProgram {
    /// Its path, or a name that is searched in `PATH`.
    pub command: String,
    /// What its arguments must begin with.
    pub args: Vec<String>,
    /// The variables that a kubeconfig may set for it.
    pub env_names: Vec<String>,
    /// The digest of its file.
    pub sha256: Option<Sha256Digest>,
    /// The libraries that it may load as a signer.
    pub libraries: Vec<String>,
}

/// An exec plugin that users of a kubeconfig name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsedPlugin {
    /// Its command.
    pub command: String,
    /// The variables that the kubeconfig sets for it.
    pub env_names: Vec<String>,
    /// The users.
    pub users: Vec<String>,
    /// Whether the list has an entry for it that does not permit how these users run it.
    pub is_listed: bool,
}

impl UsedPlugin {
    /// An entry that allows it as it is used now.
    pub fn to_allowed(&self) -> AllowedProgram {
        let (command, env_names) = (self.command.clone(), self.env_names.clone());
        AllowedProgram { command, env_names, ..AllowedProgram::default() }
    }
}

impl AllowedProgram {
    /// A program with the digest of its file as it is now.
    ///
    /// # Errors
    /// The file cannot be read, or its path is not UTF-8.
    pub fn pinned(path: &Path) -> Result<Self, FileEditError> {
        let digest = File::open(path).and_then(|file| Sha256Digest::from_file(&file));
        let digest = digest.map_err(FileEditError::io("read", path))?;
        let not_text = || FileEditError::io("write the path of", path)(io::Error::other("it is not UTF-8"));
        let cleaned = clean(path.as_os_str());
        let command = cleaned.into_string().map_err(|_| not_text())?;
        Ok(AllowedProgram { command, sha256: Some(digest), ..AllowedProgram::default() })
    }

    fn to_node(&self) -> Node {
        let mut entry = Mapping::default();
        entry.push("command", self.command.as_str());
        for (key, value) in self.conditions() {
            if let Some(value) = value {
                entry.push(key, value.value);
            }
        }
        Node::new(entry)
    }

    fn conditions(&self) -> [(&'static str, Option<Node>); 4] {
        let list = |texts: &[String]| {
            let items: Vec<Node> = texts.iter().map(|text| Node::new(text.as_str())).collect();
            (!items.is_empty()).then(|| Node::new(items))
        };
        [
            ("args", list(&self.args)),
            ("envNames", list(&self.env_names)),
            ("sha256", self.sha256.map(|digest| Node::new(digest.to_string()))),
            ("pathLib", list(&self.libraries)),
        ]
    }
}

/// Changes of one kuberc.
pub struct KubercChanges {
    path: PathBuf,
    before: Option<Zeroizing<Vec<u8>>>,
    policy_before: Policy,
    /// The text before and after the document that is edited.
    around: (String, String),
    editor: DocumentEditor,
}

impl std::fmt::Debug for KubercChanges {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KubercChanges").field("path", &self.path).finish_non_exhaustive()
    }
}

impl KubercChanges {
    /// Reads the file; one that does not exist can be created.
    ///
    /// # Errors
    /// The kuberc is disabled, cannot be read, is not valid, or has a version without a plugin policy.
    pub fn load(source: &KubercSource) -> Result<Self, FileEditError> {
        let (KubercSource::Named(path) | KubercSource::Home(path)) = source else {
            return Err(FileEditError::KubercDisabled);
        };
        let invalid = |diagnostics| FileEditError::Invalid { path: path.clone(), diagnostics };
        let before = file::read(path)?;
        let text = before.as_ref().map_or_else(String::new, |bytes| source_text(bytes).into_owned());
        let policy_before = kuberc::policy_of(text.as_bytes()).map_err(invalid)?;
        let (before_document, document, after_document) = match kuberc::preference_range(&text) {
            Some(range) => {
                let part = |range: std::ops::Range<usize>| text.get(range).unwrap_or_default().to_owned();
                (part(0..range.start), part(range.clone()), part(range.end..text.len()))
            }
            None => {
                let separator = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
                (format!("{text}{separator}"), NEW_DOCUMENT.to_owned(), String::new())
            }
        };
        let editor = DocumentEditor::new(&document, Syntax::JsonOrYaml)
            .map_err(|error| invalid(Diagnostics::from(error)))?;
        let version = find(editor.root(), &[EditStep::Key("apiVersion")]).and_then(Node::as_str);
        if version.is_some_and(|version| version.ends_with("/v1alpha1")) {
            return Err(FileEditError::NoPolicyInVersion { path: path.clone() });
        }
        let around = (before_document, after_document);
        Ok(KubercChanges { path: path.clone(), before, policy_before, around, editor })
    }

    /// Whether the file has no allowlist yet, so that the first entry forbids every other plugin.
    pub fn starts_allowlist(&self) -> bool {
        !matches!(self.policy_before, Policy::Allowlist(_))
    }

    /// Adds an entry to the allowlist, and makes the policy an allowlist. Libraries are added to those of the program's entry. Another
    /// entry of the command, and the policy `DenyAll`, are replaced only if `replaces`.
    ///
    /// # Errors
    /// The file has another entry or policy, or the text cannot be changed.
    pub fn allow(&mut self, program: &AllowedProgram, replaces: bool) -> Result<(), FileEditError> {
        match find(self.editor.root(), &[EditStep::Key(POLICY)]).and_then(Node::as_str) {
            Some("Allowlist") => {}
            Some("DenyAll") if !replaces => {
                return Err(FileEditError::DeniesAll { path: self.path.clone() });
            }
            _ => self.edit(|editor| editor.set(&[], POLICY, &Node::new("Allowlist")))?,
        }
        let Some((index, entry)) = self.entry_of(&program.command) else {
            return self.edit(|editor| editor.append(&[], ALLOWLIST, &program.to_node()));
        };
        if !program.libraries.is_empty() {
            return self.add_libraries(index, &entry, &program.libraries);
        }
        if entry == program.to_node() {
            return Ok(());
        }
        if !replaces {
            let command = program.command.clone();
            return Err(FileEditError::EntryExists { command, path: self.path.clone() });
        }
        let path = [EditStep::Key(ALLOWLIST), EditStep::Index(index)];
        for (key, value) in program.conditions() {
            let present = entry.as_mapping().and_then(|entry| entry.last(key)).map(|entry| &entry.value);
            // A condition that no longer applies is emptied; a digest is always given.
            let emptied = || (present.is_some() && key != "sha256").then(|| Node::new(Vec::<Node>::new()));
            if let Some(value) = value.or_else(emptied).filter(|value| Some(value) != present) {
                self.edit(|editor| editor.set(&path, key, &value))?;
            }
        }
        Ok(())
    }

    /// The plugins of a kubeconfig that may run as the file is, and may not after the change.
    ///
    /// # Errors
    /// The changed file is not valid.
    pub fn newly_denied(
        &self,
        kubeconfig: &MergedKubeconfig,
        environment: &Environment,
    ) -> Result<Vec<UsedPlugin>, FileEditError> {
        let policy = self.policy()?;
        let mut found: Vec<UsedPlugin> = Vec::new();
        for (user, exec) in plugins(kubeconfig) {
            let was_permitted = self.policy_before.permit(command(&exec, environment)).is_ok();
            if let (true, Err(PermitError::Denied(denial))) =
                (was_permitted, policy.permit(command(&exec, environment)))
            {
                add_use(&mut found, user, &exec, !matches!(denial, PolicyDenial::NotListed { .. }));
            }
        }
        Ok(found)
    }

    /// The policy of the changed file.
    ///
    /// # Errors
    /// The changed file is not valid.
    pub fn policy(&self) -> Result<Policy, FileEditError> {
        kuberc::policy_of(self.text().as_bytes())
            .map_err(|diagnostics| FileEditError::Invalid { path: self.path.clone(), diagnostics })
    }

    /// The change.
    ///
    /// # Errors
    /// The changed file is not valid.
    pub fn finish(self) -> Result<FileChange, FileEditError> {
        self.policy()?;
        let text = self.text();
        Ok(FileChange::new(&self.path, self.before, &text, ToOwned::to_owned))
    }

    fn text(&self) -> String {
        [self.around.0.as_str(), self.editor.expose_text(), self.around.1.as_str()].concat()
    }

    fn entry_of(&self, command: &str) -> Option<(usize, Node)> {
        let items = find(self.editor.root(), &[EditStep::Key(ALLOWLIST)])?.as_sequence()?;
        let is_of_command = |item: &Node| {
            let field = |name| {
                item.as_mapping().and_then(|item| item.last(name)).and_then(|entry| entry.value.as_str())
            };
            field("command").or(field("name")) == Some(command)
        };
        let index = items.iter().position(is_of_command)?;
        items.get(index).map(|item| (index, item.clone()))
    }

    fn add_libraries(&mut self, index: usize, entry: &Node, added: &[String]) -> Result<(), FileEditError> {
        let known = entry.as_mapping().and_then(|entry| entry.last("pathLib"));
        let known = known.and_then(|entry| entry.value.as_sequence()).unwrap_or_default();
        let path = [EditStep::Key(ALLOWLIST), EditStep::Index(index)];
        for library in
            added.iter().filter(|library| !known.iter().any(|item| item.as_str() == Some(library.as_str())))
        {
            self.edit(|editor| editor.append(&path, "pathLib", &Node::new(library.as_str())))?;
        }
        Ok(())
    }

    fn edit(
        &mut self,
        change: impl FnOnce(&mut DocumentEditor) -> Result<(), EditError>,
    ) -> Result<(), FileEditError> {
        change(&mut self.editor).map_err(|source| FileEditError::Text { path: self.path.clone(), source })
    }
}

/// The names of the variables that a kubeconfig sets for a program, by the path that its command leads to.
pub fn variables_set_for(
    program: &Path,
    kubeconfig: &MergedKubeconfig,
    environment: &Environment,
) -> Vec<String> {
    let search_path = environment.variable("PATH");
    let is_program = |exec: &ExecConfig| {
        navicert_plugin::resolve::resolve(exec.command.as_ref(), search_path)
            .is_ok_and(|path| clean(path.as_os_str()) == clean(program.as_os_str()))
    };
    let mut names: Vec<String> = Vec::new();
    for (_, exec) in plugins(kubeconfig).filter(|(_, exec)| is_program(exec)) {
        names.extend(exec.env.into_iter().map(|variable| variable.name));
    }
    names.sort();
    names.dedup();
    names
}

/// Every user with an exec plugin.
fn plugins(kubeconfig: &MergedKubeconfig) -> impl Iterator<Item = (&str, ExecConfig)> {
    let names = kubeconfig.config.users.iter().map(|entry| entry.name.as_str());
    names.filter_map(|name| Some((name, kubeconfig.user(name)?.exec?)))
}

fn command(exec: &ExecConfig, environment: &Environment) -> Command {
    let command = Command::new(exec.command.as_str(), environment.clone()).args(&exec.args);
    exec.env.iter().fold(command, |command, variable| command.env(&variable.name, variable.value.expose()))
}

fn add_use(found: &mut Vec<UsedPlugin>, user: &str, exec: &ExecConfig, is_listed: bool) {
    let cleaned = clean(exec.command.as_ref()).to_string_lossy().into_owned();
    let names = exec.env.iter().map(|variable| variable.name.clone());
    match found.iter_mut().find(|plugin| plugin.command == cleaned && plugin.is_listed == is_listed) {
        Some(plugin) => {
            plugin.users.push(user.to_owned());
            plugin.env_names.extend(names);
            plugin.env_names.sort();
            plugin.env_names.dedup();
        }
        None => {
            let env_names = names.collect();
            found.push(UsedPlugin { command: cleaned, env_names, users: vec![user.to_owned()], is_listed });
        }
    }
}
