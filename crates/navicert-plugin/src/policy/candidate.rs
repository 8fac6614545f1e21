//! A command during the policy decision: resolved, opened and hashed at most once for any number of policies.

use std::cell::OnceCell;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Sha256Digest;
use crate::command::{Command, Stderr};
use crate::error::{PermitError, PolicyDenial, ResolveError};
use crate::platform::{self, pinning};
use crate::resolve::resolve;

/// A value that a policy has permitted. Only [`Policy::permit`](crate::Policy::permit) and
/// [`Policy::permit_if_listed`](crate::Policy::permit_if_listed) construct it, so holding a value is the proof. It cannot
/// be cloned: every run needs a new decision.
// C730
pub struct Permitted<T> {
    value: T,
    program: Program,
}

impl<T> Permitted<T> {
    pub(super) fn new(value: T, program: Program) -> Self {
        Permitted { value, program }
    }

    pub(crate) fn into_parts(self) -> (T, Program) {
        (self.value, self.program)
    }
}

impl Permitted<Command> {
    /// The command that may run.
    pub fn command(&self) -> &Command {
        &self.value
    }

    /// The absolute path of the program that will run.
    pub fn program(&self) -> &Path {
        &self.program.path
    }

    /// Sends the program's standard error elsewhere. Policies do not decide about it.
    #[must_use]
    pub fn with_stderr(mut self, stderr: Stderr) -> Self {
        self.value = self.value.stderr(stderr);
        self
    }

    /// Whether exactly the file that the policy checked will run, even if its path is replaced meanwhile.
    // C743
    pub fn is_pinned(&self) -> bool {
        self.program.pinned.is_some()
    }
}

impl<T: fmt::Debug> fmt::Debug for Permitted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permitted").field("value", &self.value).field("program", &self.program.path).finish()
    }
}

/// The file to run.
#[derive(Debug)]
pub(crate) struct Program {
    /// The absolute path, for messages and scripts.
    pub(crate) path: PathBuf,
    pinned: Option<Pinned>,
}

impl Program {
    /// The path to execute.
    pub(crate) fn path_to_run(&self) -> &Path {
        self.pinned.as_ref().map_or(&self.path, |pinned| &pinned.path)
    }

    /// The open file that the child has to inherit, because its interpreter opens it again.
    pub(crate) fn inherited(&self) -> Option<&File> {
        self.pinned.as_ref().filter(|pinned| pinned.is_inherited).map(|pinned| &pinned.file)
    }

    /// Whether the file still exists.
    pub(crate) fn exists(&self) -> bool {
        self.pinned.is_some() || self.path.symlink_metadata().is_ok()
    }
}

/// An open program and the path that refers to it while it is open.
#[derive(Debug)]
struct Pinned {
    path: PathBuf,
    file: File,
    is_inherited: bool,
}

/// A program whose digest is known, and how the hashed bytes run.
struct Hashed {
    digest: Sha256Digest,
    run_from: RunFrom,
}

/// What runs a hashed program.
// C743
enum RunFrom {
    /// The open file, which only root and this user can write to.
    OpenFile,
    /// Its path: only root can change what it leads to.
    Path,
    /// A copy that cannot be changed.
    Copy(Pinned),
    /// Nothing: this file or directory can be replaced or changed between check and start.
    Replaceable(PathBuf),
}

/// What is known about a command's program. Each step runs lazily and at most once: a policy that denies everything does
/// not access the file system.
pub(super) struct Candidate<'a> {
    command: &'a Command,
    cleaned: OsString,
    resolved: OnceCell<Result<PathBuf, ResolveError>>,
    file: OnceCell<Result<File, Arc<io::Error>>>,
    hashed: OnceCell<Hashed>,
}

impl<'a> Candidate<'a> {
    pub(super) fn new(command: &'a Command) -> Self {
        Candidate {
            command,
            cleaned: command.cleaned_program(),
            resolved: OnceCell::new(),
            file: OnceCell::new(),
            hashed: OnceCell::new(),
        }
    }

    /// The configured command, cleaned.
    pub(super) fn cleaned(&self) -> &OsStr {
        &self.cleaned
    }

    /// The cleaned command for messages.
    // C325
    pub(super) fn display_command(&self) -> String {
        self.cleaned.to_string_lossy().into_owned()
    }

    /// The absolute path for messages, or the command if it cannot be resolved.
    pub(super) fn display_path(&self) -> String {
        self.resolved().map_or_else(|_| self.display_command(), |path| path.to_string_lossy().into_owned())
    }

    /// Resolves the command.
    pub(super) fn resolved(&self) -> Result<&Path, &ResolveError> {
        let search = || resolve(&self.cleaned, self.command.search_path());
        self.resolved.get_or_init(search).as_ref().map(PathBuf::as_path)
    }

    /// Opens the file, so that the file that is checked is the file that runs.
    // C743
    pub(super) fn open(&self) -> Result<&File, PermitError> {
        let path = self.resolved().map_err(Clone::clone)?;
        let opened = self.file.get_or_init(|| platform::open_program(path).map_err(Arc::new));
        opened.as_ref().map_err(|source| {
            PolicyDenial::Unreadable { path: self.display_path(), source: source.clone() }.into()
        })
    }

    /// Checks the digest of the program, and that the hashed bytes are those that will run.
    // C741, C743
    pub(super) fn require_digest(&self, expected: Sha256Digest) -> Result<(), PermitError> {
        let hashed = match self.hashed.get() {
            Some(hashed) => hashed,
            None => {
                let hashed = self.hash()?;
                self.hashed.get_or_init(|| hashed)
            }
        };
        let path = || self.display_path();
        if hashed.digest != expected {
            return Err(PolicyDenial::Digest { path: path(), actual: hashed.digest }.into());
        }
        match &hashed.run_from {
            RunFrom::Replaceable(by) => {
                let replaceable = by.to_string_lossy().into_owned();
                Err(PolicyDenial::Replaceable { path: path(), replaceable }.into())
            }
            RunFrom::OpenFile | RunFrom::Path | RunFrom::Copy(_) => Ok(()),
        }
    }

    /// Hashes the program and decides what runs. The cheapest way that is safe is used: a copy is made only of a binary
    /// that other users can write to, and of a script that others than root can replace.
    fn hash(&self) -> Result<Hashed, PermitError> {
        let file = self.open()?;
        let path = self.resolved().map_err(Clone::clone)?;
        let unreadable =
            |error| PolicyDenial::Unreadable { path: self.display_path(), source: Arc::new(error) };
        let digest = |file: &File| Sha256Digest::from_file(file).map_err(unreadable);
        if pinning::path_of_open_program(file).is_some() && pinning::has_trusted_writers(file) {
            return Ok(Hashed { digest: digest(file)?, run_from: RunFrom::OpenFile });
        }
        let Some(replaceable) = pinning::find_replaceable(path, file) else {
            return Ok(Hashed { digest: digest(file)?, run_from: RunFrom::Path });
        };
        let Ok(copy) = pinning::sealed_copy(file) else {
            return Ok(Hashed { digest: digest(file)?, run_from: RunFrom::Replaceable(replaceable) });
        };
        let digest = digest(&copy)?;
        let binary = pinning::path_of_open_program(&copy).map(|path| (path, false));
        let script = || pinning::path_of_sealed_script(&copy).map(|path| (path, true));
        let run_from = match binary.or_else(script) {
            Some((path, is_inherited)) => RunFrom::Copy(Pinned { path, file: copy, is_inherited }),
            None => RunFrom::Replaceable(replaceable),
        };
        Ok(Hashed { digest, run_from })
    }

    /// The program to run: what was hashed, or else the open file if a policy opened it and the platform supports that.
    pub(super) fn into_program(self) -> Result<Program, ResolveError> {
        self.resolved().map_err(Clone::clone)?;
        let path = self.resolved.into_inner().transpose()?.unwrap_or_default();
        let file = self.file.into_inner().and_then(Result::ok);
        let open_file = |file: File| {
            Some(Pinned { path: pinning::path_of_open_program(&file)?, file, is_inherited: false })
        };
        let pinned = match self.hashed.into_inner().map(|hashed| hashed.run_from) {
            Some(RunFrom::Copy(copy)) => Some(copy),
            Some(RunFrom::Path) => None,
            Some(RunFrom::OpenFile | RunFrom::Replaceable(_)) | None => file.and_then(open_file),
        };
        Ok(Program { path, pinned })
    }
}
