//! Decides which programs may run. The client reads the policy from a kuberc. Every run needs a new decision, and a runner
//! accepts only its result.
// client-credentials.md §7

mod candidate;
mod digest;

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

pub use candidate::Permitted;
pub(crate) use candidate::Program;
pub use digest::Sha256Digest;

use crate::command::Command;
use crate::error::{DeniedVariables, PermitError, PolicyDenial, PolicyError};
use crate::resolve::{clean, has_separator, resolve};
use candidate::Candidate;

/// Which programs may run.
///
/// ```
/// use navicert_plugin::{AllowlistEntry, Command, Environment, Policy};
///
/// let policy = Policy::from_parts("Allowlist", Some(vec![AllowlistEntry::new("/bin/sh")]))?;
/// assert!(policy.permit(Command::new("/bin/sh", Environment::empty())).is_ok());
/// assert!(policy.permit(Command::new("/bin/cat", Environment::empty())).is_err());
/// # Ok::<(), navicert_plugin::PolicyError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub enum Policy {
    /// Allows every program. The default, as in client-go.
    // C742
    #[default]
    AllowAll,
    /// Denies every program.
    DenyAll,
    /// Allows the listed programs.
    Allowlist(Allowlist),
    /// Allows what both policies allow.
    // C742
    Both(Box<Policy>, Box<Policy>),
}

impl Policy {
    /// Creates a policy from a kuberc's `credentialPluginPolicy` and `credentialPluginAllowlist`.
    ///
    /// # Errors
    /// [`PolicyError`], with client-go's messages.
    // C720
    pub fn from_parts(policy: &str, allowlist: Option<Vec<AllowlistEntry>>) -> Result<Self, PolicyError> {
        match (policy, allowlist) {
            ("" | "AllowAll", None) => Ok(Policy::AllowAll),
            ("DenyAll", None) => Ok(Policy::DenyAll),
            ("" | "AllowAll" | "DenyAll", Some(_)) => Err(PolicyError::UnusedAllowlist(policy.to_owned())),
            ("Allowlist", None) => Err(PolicyError::NoAllowlist),
            ("Allowlist", Some(entries)) => Ok(Policy::Allowlist(Allowlist::new(entries)?)),
            _ => Err(PolicyError::UnknownPolicy(policy.to_owned())),
        }
    }

    /// Names the file that the policy was read from, for messages that say what to change.
    #[must_use]
    pub fn with_file(self, path: &Path) -> Self {
        match self {
            Policy::Allowlist(allowlist) => {
                Policy::Allowlist(Allowlist { file: Some(path.to_path_buf()), ..allowlist })
            }
            other => other,
        }
    }

    /// Combines two policies: both must allow a program, so a caller can only make a policy stricter.
    // C742
    #[must_use]
    pub fn and(self, other: Policy) -> Self {
        Policy::Both(Box::new(self), Box::new(other))
    }

    /// Decides about one run.
    ///
    /// The program is resolved once, and what was checked is what runs: by its absolute path, or, if an allowlist decided,
    /// the file that was opened for the check, where the platform supports that.
    ///
    /// # Errors
    /// [`PermitError`]: the policy denies the command, or the program does not exist.
    // C743
    pub fn permit(&self, command: Command) -> Result<Permitted<Command>, PermitError> {
        self.decide(command, UnlistedPrograms::FollowPolicy)
    }

    /// Like [`Policy::permit`], but an allowlist must name the program; `AllowAll` is not enough. Used for signers.
    ///
    /// # Errors
    /// [`PermitError`]: the policy denies the command, or the program does not exist.
    // C744
    pub fn permit_if_listed(&self, command: Command) -> Result<Permitted<Command>, PermitError> {
        self.decide(command, UnlistedPrograms::Deny)
    }

    /// The program that an allowlist assigns to this signer name, so that a kubeconfig need not contain its path.
    // C880
    pub fn signer(&self, name: &OsStr) -> Option<&OsStr> {
        match self {
            Policy::AllowAll | Policy::DenyAll => None,
            Policy::Allowlist(allowlist) => {
                let called = |entry: &&AllowlistEntry| {
                    entry.signer.as_ref().is_some_and(|signer| OsStr::new(signer) == name)
                };
                allowlist.entries.iter().find(called).map(AllowlistEntry::command)
            }
            Policy::Both(one, other) => one.signer(name).or_else(|| other.signer(name)),
        }
    }

    fn decide(
        &self,
        command: Command,
        unlisted: UnlistedPrograms,
    ) -> Result<Permitted<Command>, PermitError> {
        command.check_shape()?;
        let candidate = Candidate::new(&command);
        self.check(&command, &candidate)?;
        if unlisted == UnlistedPrograms::Deny && !self.has_allowlist() {
            return Err(PolicyDenial::MustBeListed { path: candidate.display_path() }.into());
        }
        let program = candidate.into_program()?;
        Ok(Permitted::new(command, program))
    }

    fn check(&self, command: &Command, candidate: &Candidate<'_>) -> Result<(), PermitError> {
        match self {
            Policy::AllowAll => Ok(()),
            Policy::DenyAll => Err(PolicyDenial::DenyAll { command: candidate.display_command() }.into()),
            Policy::Allowlist(allowlist) => allowlist.check(command, candidate),
            Policy::Both(one, other) => {
                one.check(command, candidate)?;
                other.check(command, candidate)
            }
        }
    }

    fn has_allowlist(&self) -> bool {
        match self {
            Policy::AllowAll | Policy::DenyAll => false,
            Policy::Allowlist(_) => true,
            Policy::Both(one, other) => one.has_allowlist() || other.has_allowlist(),
        }
    }
}

/// How to treat programs without an allowlist.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UnlistedPrograms {
    FollowPolicy,
    Deny,
}

/// A non-empty list of allowed programs, each with a command in its cleaned form.
#[derive(Debug)]
pub struct Allowlist {
    entries: Vec<AllowlistEntry>,
    /// The paths to which bare names were resolved, by entry. client-go keeps them for an authenticator's lifetime, so that
    /// a new program with the same name earlier in `PATH` does not exclude the first one.
    // C731
    found: Mutex<BTreeSet<(usize, PathBuf)>>,
    /// The file that the list was read from.
    file: Option<PathBuf>,
}

impl Allowlist {
    /// Creates a list.
    ///
    /// # Errors
    /// [`PolicyError`] for an empty list, an entry without a command, a command not in its cleaned form, or a variable
    /// name that no environment can have.
    // C720
    pub fn new(entries: Vec<AllowlistEntry>) -> Result<Self, PolicyError> {
        if entries.is_empty() {
            return Err(PolicyError::EmptyAllowlist);
        }
        for (index, entry) in entries.iter().enumerate() {
            if entry.command.is_empty() {
                return Err(PolicyError::EmptyEntry(index.saturating_add(1)));
            }
            let cleaned = clean(&entry.command);
            if cleaned != entry.command {
                let shown = |text: &OsStr| text.to_string_lossy().into_owned();
                return Err(PolicyError::NotNormalized {
                    written: shown(&entry.command),
                    cleaned: shown(&cleaned),
                });
            }
            if let Some(name) = entry.env_names.iter().find(|name| !is_variable_name(name)) {
                let (entry, name) = (index.saturating_add(1), name.to_string_lossy().into_owned());
                return Err(PolicyError::VariableName { entry, name });
            }
        }
        Ok(Allowlist { entries, found: Mutex::default(), file: None })
    }

    /// The entries in order.
    pub fn entries(&self) -> &[AllowlistEntry] {
        &self.entries
    }

    /// Entries are alternatives. If entries name the program but none matches completely, returns the denial of the first
    /// one, which the user has to fix.
    fn check(&self, command: &Command, candidate: &Candidate<'_>) -> Result<(), PermitError> {
        let mut first_denial = None;
        for entry in self.entries_naming(command, candidate)? {
            match entry.check(command, candidate, self.file.as_deref()) {
                Ok(()) => return Ok(()),
                Err(error) => first_denial = first_denial.or(Some(error)),
            }
        }
        let not_listed = || PermitError::from(PolicyDenial::NotListed { path: candidate.display_path() });
        Err(first_denial.unwrap_or_else(not_listed))
    }

    /// The entries that name the candidate, compared as text: with the command as written, with its resolved path, and for
    /// bare names with the path found in `PATH`.
    // C731, C732
    fn entries_naming(
        &self,
        command: &Command,
        candidate: &Candidate<'_>,
    ) -> Result<Vec<&AllowlistEntry>, PermitError> {
        let verbatim = |entry: &&AllowlistEntry| entry.command == *candidate.cleaned();
        let resolved = match candidate.resolved() {
            Ok(path) => path,
            Err(error) if self.entries.iter().any(|entry| verbatim(&entry)) => {
                return Err(error.clone().into());
            }
            Err(error) => {
                let source = error.clone();
                return Err(PolicyDenial::CannotResolve { path: candidate.display_command(), source }.into());
            }
        };
        let names = |(index, entry): &(usize, &AllowlistEntry)| {
            verbatim(entry)
                || *entry.command == *resolved.as_os_str()
                || self.resolves_to(*index, entry, resolved, command.search_path())
        };
        Ok(self.entries.iter().enumerate().filter(names).map(|(_, entry)| entry).collect())
    }

    fn resolves_to(
        &self,
        index: usize,
        entry: &AllowlistEntry,
        resolved: &Path,
        search_path: Option<&OsStr>,
    ) -> bool {
        if has_separator(&entry.command) || resolved.file_name() != Some(&entry.command) {
            return false;
        }
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(path) = resolve(&entry.command, search_path) {
            found.insert((index, path));
        }
        found.contains(&(index, resolved.to_path_buf()))
    }
}

/// A clone starts without remembered paths: it belongs to another authenticator.
impl Clone for Allowlist {
    fn clone(&self) -> Self {
        Allowlist { entries: self.entries.clone(), found: Mutex::default(), file: self.file.clone() }
    }
}

/// One entry of an allowlist; all of its conditions must match.
// C732
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowlistEntry {
    command: OsString,
    sha256: Option<Sha256Digest>,
    args: Vec<OsString>,
    env_names: Vec<OsString>,
    settings: Vec<(String, String)>,
    signer: Option<String>,
    setting_names: Option<Vec<String>>,
}

impl AllowlistEntry {
    /// Allows a program: an absolute path, or a bare name that is searched in `PATH`.
    pub fn new(command: impl Into<OsString>) -> Self {
        AllowlistEntry {
            command: command.into(),
            sha256: None,
            args: Vec::new(),
            env_names: Vec::new(),
            settings: Vec::new(),
            signer: None,
            setting_names: None,
        }
    }

    /// Requires this digest of the file.
    // C741
    #[must_use]
    pub fn sha256(mut self, digest: Sha256Digest) -> Self {
        self.sha256 = Some(digest);
        self
    }

    /// Requires the arguments to begin with exactly these.
    // C741
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, prefix: impl IntoIterator<Item = A>) -> Self {
        self.args = prefix.into_iter().map(Into::into).collect();
        self
    }

    /// Allows a configuration to set these variables, and no others: any variable may make some program load code or
    /// connect elsewhere. Names are compared exactly.
    // C741
    #[must_use]
    pub fn env_names<N: Into<OsString>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.env_names = names.into_iter().map(Into::into).collect();
        self
    }

    /// Allows a value of a declared setting that makes the program load code.
    // X3
    #[must_use]
    pub fn setting(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.push((name.into(), value.into()));
        self
    }

    /// Sets the signer name by which a kubeconfig may refer to this program.
    // C880
    #[must_use]
    pub fn signer(mut self, name: impl Into<String>) -> Self {
        self.signer = Some(name.into());
        self
    }

    /// Allows only these settings.
    // C880
    #[must_use]
    pub fn setting_names<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.setting_names = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// The command as written.
    pub fn command(&self) -> &OsStr {
        &self.command
    }

    /// Checks all conditions except the name: cheap ones first, the digest last.
    fn check(
        &self,
        command: &Command,
        candidate: &Candidate<'_>,
        file: Option<&Path>,
    ) -> Result<(), PermitError> {
        if !command.arguments().starts_with(&self.args) {
            return Err(PolicyDenial::Arguments { path: candidate.display_path() }.into());
        }
        self.check_variables(command, candidate, file)?;
        if let Some((name, value)) =
            command.declared().iter().find(|declared| !self.settings.contains(declared))
        {
            let (path, name, value) = (candidate.display_path(), name.clone(), value.clone());
            return Err(PolicyDenial::Setting { path, name, value }.into());
        }
        let unlisted =
            |name: &&String| self.setting_names.as_ref().is_some_and(|names| !names.contains(name));
        if let Some(name) = command.declared_names().iter().find(unlisted) {
            return Err(
                PolicyDenial::SettingName { path: candidate.display_path(), name: name.clone() }.into()
            );
        }
        match self.sha256 {
            Some(expected) => candidate.require_digest(expected),
            None => {
                // Pin the file if possible; a file that is executable but not readable runs by its path.
                let _ = candidate.open();
                Ok(())
            }
        }
    }

    /// Denies every variable of a configuration that the entry does not name.
    // C741
    fn check_variables(
        &self,
        command: &Command,
        candidate: &Candidate<'_>,
        file: Option<&Path>,
    ) -> Result<(), PolicyDenial> {
        let shown = |name: &OsStr| name.to_string_lossy().into_owned();
        let mut denied: Vec<String> = Vec::new();
        for name in command.extra_names().filter(|name| !self.env_names.iter().any(|known| known == name)) {
            if !denied.contains(&shown(name)) {
                denied.push(shown(name));
            }
        }
        if denied.is_empty() {
            return Ok(());
        }
        Err(PolicyDenial::Variables(Box::new(DeniedVariables {
            path: candidate.display_path(),
            names: denied,
            entry: shown(&self.command),
            allowed: self.env_names.iter().map(|name| shown(name)).collect(),
            file: file.map(|file| file.display().to_string()),
        })))
    }
}

/// Whether an environment can have a variable of this name.
fn is_variable_name(name: &OsStr) -> bool {
    !name.is_empty() && !name.as_encoded_bytes().iter().any(|byte| matches!(byte, b'=' | 0))
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
