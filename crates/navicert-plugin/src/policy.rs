//! Which programs may run. The policy is a value (reading it from a kuberc is the client's business); the decision is
//! made anew for every run, and its result is the only thing a runner takes (client-credentials.md §7).

mod candidate;
mod digest;

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

pub use candidate::Permitted;
pub(crate) use candidate::Program;
pub use digest::Sha256Digest;

use crate::command::{Command, same_name};
use crate::error::{PermitError, PolicyError, Refusal};
use crate::resolve::{clean, has_separator, resolve};
use candidate::Candidate;

/// What may run.
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
    /// Everything: upstream's default, and the library's (C742).
    #[default]
    AllowAll,
    /// Nothing.
    DenyAll,
    /// What the list names.
    Allowlist(Allowlist),
    /// What both permit (C742).
    Both(Box<Policy>, Box<Policy>),
}

impl Policy {
    /// A policy as a kuberc spells it: `credentialPluginPolicy` and `credentialPluginAllowlist`, where present.
    ///
    /// # Errors
    /// [`PolicyError`], with upstream's texts (C720).
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

    /// The policy that permits what both permit: a caller can only make it stricter (C742).
    #[must_use]
    pub fn and(self, other: Policy) -> Self {
        Policy::Both(Box::new(self), Box::new(other))
    }

    /// Decides about one run. The permission is used up by that run.
    ///
    /// The program is resolved once, and what was compared with the policy is what will run: by its absolute path,
    /// and where an allowlist decided, by the very file that was opened for it if the system can do that (C743).
    ///
    /// # Errors
    /// [`PermitError`]: the policy says no, or there is no such program.
    pub fn permit(&self, command: Command) -> Result<Permitted<Command>, PermitError> {
        self.decide(command, Unlisted::AsThePolicySays)
    }

    /// Like [`Policy::permit`], but `AllowAll` is not enough: some allowlist has to name the program. Signers are run
    /// only this way (C744).
    ///
    /// # Errors
    /// [`PermitError`]: the policy says no, or there is no such program.
    pub fn permit_if_listed(&self, command: Command) -> Result<Permitted<Command>, PermitError> {
        self.decide(command, Unlisted::Refused)
    }

    /// The program that an allowlist calls by this name: a file of the user's own says where it is, so that a kubeconfig
    /// need not (C880).
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

    fn decide(&self, command: Command, unlisted: Unlisted) -> Result<Permitted<Command>, PermitError> {
        command.check_shape()?;
        let candidate = Candidate::new(&command);
        self.check(&command, &candidate)?;
        if unlisted == Unlisted::Refused && !self.has_allowlist() {
            return Err(Refusal::MustBeListed { path: candidate.shown_path() }.into());
        }
        let program = candidate.into_program()?;
        Ok(Permitted::new(command, program))
    }

    fn check(&self, command: &Command, candidate: &Candidate<'_>) -> Result<(), PermitError> {
        match self {
            Policy::AllowAll => Ok(()),
            Policy::DenyAll => Err(Refusal::DenyAll { command: candidate.shown() }.into()),
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

/// What becomes of a program that no allowlist speaks about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unlisted {
    AsThePolicySays,
    Refused,
}

/// A list of programs that may run: at least one entry, each with a command in its cleaned form.
#[derive(Debug)]
pub struct Allowlist {
    entries: Vec<AllowlistEntry>,
    /// Where entries that are bare names were found, by entry. Upstream keeps these for an authenticator's lifetime
    /// (C731): a second program of the same name turning up earlier in `PATH` does not shut the first one out.
    found: Mutex<BTreeSet<(usize, PathBuf)>>,
}

impl Allowlist {
    /// A list of these entries.
    ///
    /// # Errors
    /// [`PolicyError`] for an empty list, an entry without a command, or a command not in its cleaned form (C720).
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
        }
        Ok(Allowlist { entries, found: Mutex::default() })
    }

    /// The entries in order.
    pub fn entries(&self) -> &[AllowlistEntry] {
        &self.entries
    }

    /// Entries are alternatives. When some name the program but none fits in full, the first such one's objection is
    /// the answer: it is what the user has to look at.
    fn check(&self, command: &Command, candidate: &Candidate<'_>) -> Result<(), PermitError> {
        let mut objection = None;
        for entry in self.naming(command, candidate)? {
            match entry.check(command, candidate) {
                Ok(()) => return Ok(()),
                Err(error) => objection = objection.or(Some(error)),
            }
        }
        let nobody = || PermitError::from(Refusal::NotListed { path: candidate.shown_path() });
        Err(objection.unwrap_or_else(nobody))
    }

    /// The entries that name the candidate, compared as text (C731, C732): with the command as written, with where it
    /// leads, and, for bare names, where `PATH` leads.
    fn naming(
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
                return Err(Refusal::CannotResolve { path: candidate.shown(), source }.into());
            }
        };
        let names = |(index, entry): &(usize, &AllowlistEntry)| {
            verbatim(entry)
                || *entry.command == *resolved.as_os_str()
                || self.leads_to(*index, entry, resolved, command.search_path())
        };
        Ok(self.entries.iter().enumerate().filter(names).map(|(_, entry)| entry).collect())
    }

    fn leads_to(
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

/// A copy starts with nothing remembered: it is another authenticator's policy.
impl Clone for Allowlist {
    fn clone(&self) -> Self {
        Allowlist { entries: self.entries.clone(), found: Mutex::default() }
    }
}

/// One alternative of an allowlist; all of its conditions have to hold (C732).
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
    /// The program: an absolute path, or a bare name that means what `PATH` finds.
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

    /// The file must have this digest (C741).
    #[must_use]
    pub fn sha256(mut self, digest: Sha256Digest) -> Self {
        self.sha256 = Some(digest);
        self
    }

    /// The arguments must begin with exactly these (C741).
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, prefix: impl IntoIterator<Item = A>) -> Self {
        self.args = prefix.into_iter().map(Into::into).collect();
        self
    }

    /// These variables may be set although they can make a program run something else (C741).
    #[must_use]
    pub fn env_names<N: Into<OsString>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.env_names = names.into_iter().map(Into::into).collect();
        self
    }

    /// What the program may be told that makes it run other code: a value for a declared setting (X3).
    #[must_use]
    pub fn setting(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.push((name.into(), value.into()));
        self
    }

    /// The name by which a kubeconfig may call this program, if it is a signer (C880).
    #[must_use]
    pub fn signer(mut self, name: impl Into<String>) -> Self {
        self.signer = Some(name.into());
        self
    }

    /// The only settings it may be told (C880).
    #[must_use]
    pub fn setting_names<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.setting_names = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// The command as written.
    pub fn command(&self) -> &OsStr {
        &self.command
    }

    /// Everything but the name: cheap conditions first, the digest last.
    fn check(&self, command: &Command, candidate: &Candidate<'_>) -> Result<(), PermitError> {
        if !command.arguments().starts_with(&self.args) {
            return Err(Refusal::Arguments { path: candidate.shown_path() }.into());
        }
        let opted_in = |name: &OsStr| self.env_names.iter().any(|allowed| same_name(allowed, name));
        if let Some(name) = command.extra_names().find(|name| steers_a_loader(name) && !opted_in(name)) {
            let name = name.to_string_lossy().into_owned();
            return Err(Refusal::Variable { path: candidate.shown_path(), name }.into());
        }
        if let Some((name, value)) =
            command.declared().iter().find(|declared| !self.settings.contains(declared))
        {
            let (path, name, value) = (candidate.shown_path(), name.clone(), value.clone());
            return Err(Refusal::Setting { path, name, value }.into());
        }
        let unlisted =
            |name: &&String| self.setting_names.as_ref().is_some_and(|names| !names.contains(name));
        if let Some(name) = command.declared_names().iter().find(unlisted) {
            return Err(Refusal::SettingName { path: candidate.shown_path(), name: name.clone() }.into());
        }
        match self.sha256 {
            Some(expected) => candidate.require_digest(expected),
            None => {
                // Pinned all the same where it can be; a file that may be executed but not read runs by its path.
                let _ = candidate.open();
                Ok(())
            }
        }
    }
}

/// Whether a variable of this name can make a loader or an interpreter run other code than the program's own (C741).
fn steers_a_loader(name: &OsStr) -> bool {
    const NAMES: [&str; 4] = ["PATH", "JAVA_TOOL_OPTIONS", "BASH_ENV", "ENV"];
    const PREFIXES: [&str; 6] = ["LD_", "DYLD_", "PYTHON", "NODE_", "RUBY", "PERL5"];
    const SUFFIX: &str = "_PRELOAD";
    let name = if cfg!(windows) { name.to_ascii_uppercase() } else { name.to_owned() };
    let name = name.as_encoded_bytes();
    NAMES.iter().any(|whole| name == whole.as_bytes())
        || PREFIXES.iter().any(|prefix| name.starts_with(prefix.as_bytes()))
        || name.ends_with(SUFFIX.as_bytes())
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
