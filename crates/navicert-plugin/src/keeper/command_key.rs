//! The key of a kept output: a hash of everything that decides what a command prints.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::command::Command;
use crate::error::ResolveError;
use crate::resolve::resolve;

/// The first bytes of every hashed text, so that a later version of the key matches no entry of this one.
const DOMAIN: &[u8] = b"navicert kept output v1";

/// Identifies a command with its program file, arguments and environment. Two commands with the same key print the same.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CommandKey([u8; 32]);

impl CommandKey {
    /// Hashes the resolved path of the program, the identity of its file, the arguments, the child's whole environment, the
    /// working directory if it is given, and the identities of other files that decide what the command may print.
    ///
    /// # Errors
    /// [`ResolveError`]: the program does not exist or is not executable.
    pub fn new(command: &Command, directory: Option<&Path>, files: &[&Path]) -> Result<Self, ResolveError> {
        let path = resolve(command.program(), command.search_path())?;
        let mut hash = KeyHash(Sha256::new());
        hash.field(DOMAIN);
        hash.field(path.as_os_str().as_bytes());
        hash.file(&path);
        hash.list(command.arguments().iter().map(|argument| argument.as_bytes()));
        // The last value of a name is the one that the child sees.
        let environment: BTreeMap<&OsStr, &OsStr> = command.environment().collect();
        hash.list(environment.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]));
        hash.list(directory.iter().map(|directory| directory.as_os_str().as_bytes()));
        hash.list(files.iter().map(|path| path.as_os_str().as_bytes()));
        files.iter().for_each(|path| hash.file(path));
        Ok(CommandKey(hash.0.finalize().into()))
    }

    pub(super) fn from_bytes(bytes: [u8; 32]) -> Self {
        CommandKey(bytes)
    }

    pub(super) fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// Shows only the first bytes: enough to tell keys apart.
impl fmt::Debug for CommandKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CommandKey(")?;
        self.0.iter().take(4).try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str("…)")
    }
}

/// Hashes fields with their lengths, so that no two lists of fields have the same text.
struct KeyHash(Sha256);

impl KeyHash {
    fn number(&mut self, number: u64) {
        self.0.update(number.to_be_bytes());
    }

    fn field(&mut self, bytes: &[u8]) {
        self.number(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        self.0.update(bytes);
    }

    fn list<'a>(&mut self, fields: impl Iterator<Item = &'a [u8]>) {
        let mut count = 0_u64;
        for field in fields {
            self.field(field);
            count = count.saturating_add(1);
        }
        self.number(count);
    }

    /// A file that is replaced, edited or given another mode is another file; one that cannot be inspected is missing.
    fn file(&mut self, path: &Path) {
        let found = path.metadata().ok();
        self.number(found.is_some().into());
        let Some(found) = found else { return };
        for number in [found.dev(), found.ino(), found.size(), found.mode().into(), found.uid().into()] {
            self.number(number);
        }
        for number in [found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec()] {
            self.number(number.cast_unsigned());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::command::Environment;

    fn program(dir: &Path, name: &str) -> std::path::PathBuf {
        let path = dir.join(name);
        fs::write(&path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn environment(pairs: &[(&str, &str)]) -> Environment {
        pairs.iter().copied().collect()
    }

    #[test]
    fn key_changes_with_everything_that_decides_the_output() {
        let dir = tempfile::tempdir().unwrap();
        let (one, other) = (program(dir.path(), "one"), program(dir.path(), "other"));
        let base = || Command::new(&one, environment(&[("A", "1"), ("B", "2")])).args(["x", "y"]);
        let key = |command: &Command, files: &[&Path]| CommandKey::new(command, None, files).unwrap();
        let first = key(&base(), &[]);
        assert_eq!(first, key(&base(), &[]));
        let missing = dir.path().join("missing");
        let others = [
            key(&Command::new(&other, environment(&[("A", "1"), ("B", "2")])).args(["x", "y"]), &[]),
            key(&Command::new(&one, environment(&[("A", "1"), ("B", "2")])).args(["xy"]), &[]),
            key(&Command::new(&one, environment(&[("A", "1"), ("B", "2")])).args(["x", "y", ""]), &[]),
            key(&Command::new(&one, environment(&[("A", "1")])).args(["x", "y"]), &[]),
            key(&Command::new(&one, environment(&[("A", "1B"), ("", "2")])).args(["x", "y"]), &[]),
            key(&base().env("B", "3"), &[]),
            key(&base().protocol_env("INFO", "x"), &[]),
            CommandKey::new(&base(), Some(Path::new("/work")), &[]).unwrap(),
            CommandKey::new(&base(), Some(Path::new("")), &[]).unwrap(),
            key(&base(), &[&other]),
            key(&base(), &[&missing]),
        ];
        for (index, other) in others.iter().enumerate() {
            assert_ne!(first, *other, "{index}");
        }
        let without = key(&base(), &[&missing]);
        fs::write(&missing, "").unwrap();
        assert_ne!(without, key(&base(), &[&missing]), "the file was written");
        fs::write(&one, "#!/bin/sh\necho another\n").unwrap();
        assert_ne!(first, key(&base(), &[]), "the file was edited");
    }

    #[test]
    fn key_does_not_depend_on_the_order_of_variables_or_on_those_that_the_child_does_not_get() {
        let dir = tempfile::tempdir().unwrap();
        let path = program(dir.path(), "p");
        let key = |pairs: &[(&str, &str)]| {
            CommandKey::new(&Command::new(&path, environment(pairs)).drop_env("SHLVL"), None, &[]).unwrap()
        };
        assert_eq!(key(&[("A", "1"), ("B", "2")]), key(&[("SHLVL", "3"), ("B", "2"), ("A", "1")]));
        assert_eq!(key(&[("A", "0"), ("A", "1")]), key(&[("A", "1")]));
    }

    #[test]
    fn missing_program_has_no_key() {
        let command = Command::new("no-such-program", environment(&[("PATH", "/usr/bin:/bin")]));
        assert!(matches!(CommandKey::new(&command, None, &[]), Err(ResolveError::NotInPath { .. })));
    }
}
