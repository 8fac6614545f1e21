//! A PIN in a file (`pin-source` of RFC 7512) that only its owner can read.

use std::io::Read;
use std::path::{Path, PathBuf};

use navicert_types::Secret;
use rustix::fs::{Mode, OFlags};
use zeroize::Zeroizing;

use super::{PinError, PinPrompt, PinProvider};

/// The longest PIN read.
const MAX_PIN_BYTES: u64 = 256;

/// A file with a PIN on its first line.
#[derive(Clone, Debug)]
pub struct PinFile(PathBuf);

impl PinFile {
    /// Parses the value of `pin-source`: `file:/path`, `file:///path` or a path.
    ///
    /// # Errors
    /// [`PinError::Source`]: a command, a relative path, or another scheme.
    pub fn from_source(source: &str) -> Result<Self, PinError> {
        let path = source.strip_prefix("file://").or_else(|| source.strip_prefix("file:")).unwrap_or(source);
        if !path.starts_with('/') {
            return Err(PinError::Source);
        }
        Ok(PinFile(PathBuf::from(path)))
    }

    fn read(&self) -> Result<Secret<String>, PinError> {
        let path = &self.0;
        let bad = |problem: String| PinError::File { path: path.display().to_string(), problem };
        let unreadable = |error: std::io::Error| bad(format!("cannot be read: {error}"));
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = rustix::fs::open(path, flags, Mode::empty()).map_err(|error| unreadable(error.into()))?;
        check(&file).map_err(|problem| bad(problem.to_owned()))?;
        let mut text =
            Zeroizing::new(String::with_capacity(usize::try_from(MAX_PIN_BYTES).unwrap_or_default()));
        let file = std::fs::File::from(file);
        file.take(MAX_PIN_BYTES).read_to_string(&mut text).map_err(unreadable)?;
        let pin = text.lines().next().unwrap_or_default();
        if pin.is_empty() {
            return Err(bad("is empty".to_owned()));
        }
        Ok(Secret::new(pin.to_owned()))
    }
}

/// Checks the open file: regular, owned by this user, and accessible to no other user.
fn check(file: &rustix::fd::OwnedFd) -> Result<(), &'static str> {
    let facts = rustix::fs::fstat(file).map_err(|_| "cannot be inspected")?;
    if rustix::fs::FileType::from_raw_mode(facts.st_mode) != rustix::fs::FileType::RegularFile {
        return Err("is not a regular file");
    }
    if facts.st_uid != rustix::process::geteuid().as_raw() {
        return Err("belongs to another user");
    }
    if facts.st_mode & 0o077 != 0 {
        return Err("can be read or written by others; give it mode 0600 or 0400");
    }
    Ok(())
}

impl PinProvider for PinFile {
    fn request_pin(&self, _: &PinPrompt) -> Result<Secret<String>, PinError> {
        self.read()
    }

    fn is_stored(&self) -> bool {
        true
    }
}

impl AsRef<Path> for PinFile {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn prompt() -> PinPrompt {
        PinPrompt { token: "t".to_owned(), last_try: false }
    }

    #[test]
    fn reads_only_own_file_without_group_or_other_access() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pin");
        std::fs::write(&path, "canary-1234\nmore\n").unwrap();
        for (mode, fine) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false), (0o620, false)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let answer = PinFile::from_source(path.to_str().unwrap()).unwrap().request_pin(&prompt());
            assert_eq!(answer.is_ok(), fine, "mode {mode:o}");
            assert!(!format!("{answer:?}").contains("canary"));
            if let Ok(pin) = answer {
                assert_eq!(pin.expose(), "canary-1234");
            }
        }
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(PinFile(link).request_pin(&prompt()).is_err(), "a symbolic link is not followed");
        assert!(
            PinFile(dir.path().to_owned()).request_pin(&prompt()).is_err(),
            "a directory is not a regular file"
        );
    }

    #[test]
    fn pin_source_is_a_path_and_never_a_command() {
        for (source, path) in [
            ("/run/pin", Some("/run/pin")),
            ("file:/run/pin", Some("/run/pin")),
            ("file:///run/pin", Some("/run/pin")),
            ("|/bin/echo 1234", None),
            ("pin", None),
            ("file://host/pin", None),
            ("https://x/pin", None),
        ] {
            let found = PinFile::from_source(source).ok();
            assert_eq!(found.as_ref().map(|file| file.0.to_str().unwrap()), path, "{source}");
        }
    }
}
