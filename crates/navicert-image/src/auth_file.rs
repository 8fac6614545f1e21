//! Writes a containers `auth.json` for podman, skopeo and buildah. Unlike a credential helper it supports credentials
//! per path.
// I226–I228, I235

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use base64::Engine as _;
use navicert_go::base64::STANDARD;
use navicert_types::Secret;
use zeroize::Zeroizing;

use crate::credential::RegistryCredential;
use crate::go_json::Object;
use crate::location::Location;
use crate::provider::Lookup;

/// The entries of an `auth.json`: hosts and paths without globs, each with one credential.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthFile(BTreeMap<String, RegistryCredential>);

impl AuthFile {
    /// Creates an empty file.
    pub fn new() -> Self {
        AuthFile::default()
    }

    /// Adds the first non-anonymous credential of a lookup under the narrowest key these tools support. A glob is
    /// replaced by the image's host. Returns whether a credential was added.
    pub fn add(&mut self, lookup: &Lookup) -> bool {
        let found = lookup.attempts().into_iter().find(|attempt| !attempt.credential.is_anonymous());
        let key = found.and_then(|found| Some((concrete_key(found.key, lookup.image())?, found.credential)));
        match key {
            Some((key, credential)) => {
                self.0.insert(key, credential.clone());
                true
            }
            None => false,
        }
    }

    /// The keys in ascending order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The JSON text of the file.
    pub fn encode(&self) -> Secret<Vec<u8>> {
        let auths = self.0.iter().fold(Object::new(), |auths, (key, credential)| {
            let pair = Zeroizing::new(format!("{}:{}", credential.username, credential.password.expose()));
            auths.object(key, Object::new().text("auth", &Zeroizing::new(STANDARD.encode(pair.as_bytes()))))
        });
        Secret::new([Object::new().object("auths", auths).finish().as_bytes(), b"\n"].concat())
    }
}

/// Converts a kubelet key to one for tools that compare whole path segments and do not support globs: the image's
/// host plus the part of its path that the key covers, extended to a segment boundary.
// I227
fn concrete_key(key: &[u8], image: &str) -> Option<String> {
    let key = Location::parse(key).ok()?;
    let location = Location::parse(image.as_bytes()).ok()?;
    let host = str::from_utf8(location.authority()).ok().filter(|host| !host.contains(['%', '@']))?;
    let (key_path, path) = (key.path(), str::from_utf8(location.path()).ok()?);
    let covered = if key_path.is_empty() || !path.as_bytes().starts_with(key_path) {
        ""
    } else {
        // A kubelet key may end in the middle of a segment; extend it to the whole segment of the image.
        let end = path.bytes().enumerate().skip(key_path.len().max(1)).find(|(_, byte)| *byte == b'/');
        let whole = end.and_then(|(at, _)| path.get(..at)).unwrap_or(path);
        if key_path.ends_with(b"/") { str::from_utf8(key_path).ok()?.trim_end_matches('/') } else { whole }
    };
    Some(format!("{host}{covered}"))
}

/// Atomically replaces a file with mode 0600.
///
/// # Errors
/// Any I/O error.
pub fn write_private(path: &Path, text: &[u8]) -> io::Result<()> {
    let name = path.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    let mut temporary = name.to_owned();
    temporary.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(temporary);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&temporary).and_then(|mut file| {
        file.write_all(text)?;
        file.sync_all()
    });
    let renamed = written.and_then(|()| fs::rename(&temporary, path));
    if renamed.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    renamed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expands_keys_to_concrete_hosts_and_whole_segments() {
        // I235
        for (key, image, expected) in [
            ("a.io", "a.io/x/y", "a.io"),
            ("*.io", "a.io/x/y", "a.io"),
            ("a.io/", "a.io/x/y", "a.io"),
            ("a.io/x", "a.io/x/y", "a.io/x"),
            ("a.io/x/", "a.io/x/y", "a.io/x"),
            ("a.io/foo", "a.io/foobar/y", "a.io/foobar"),
            ("*.io:5000/x", "a.io:5000/x", "a.io:5000/x"),
            ("index.docker.io", "docker.io/library/x", "docker.io"),
        ] {
            assert_eq!(concrete_key(key.as_bytes(), image).as_deref(), Some(expected), "{key} {image}");
        }
    }

    #[test]
    fn file_has_mode_0600_and_is_replaced_atomically() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("auth.json");
        fs::write(&path, "old").unwrap();
        let mut file = AuthFile::new();
        file.0.insert("a.io/x".into(), RegistryCredential::new("ann", "p<w".to_owned()));
        write_private(&path, file.encode().expose()).unwrap();
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            "{\"auths\":{\"a.io/x\":{\"auth\":\"YW5uOnA8dw==\"}}}\n"
        );
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left behind");
    }
}
