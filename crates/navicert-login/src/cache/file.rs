//! Files of the cache: read only if they are this user's regular files, replaced atomically.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use navicert_types::Timestamp;
use rustix::fs::OFlags;
use zeroize::Zeroizing;

/// The largest file that is read.
const MAX_BYTES: u64 = 1 << 20;
/// Temporary files that are older were left by a process that was killed.
const TEMPORARY_AGE_SECONDS: i64 = 3600;

/// Reads a regular file of this user without following a link. Permissions of other users are removed first.
pub(super) fn read(path: &Path) -> io::Result<Zeroizing<Vec<u8>>> {
    // Without NONBLOCK, opening a FIFO would wait for its writer.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    let mut file = OpenOptions::new().read(true).custom_flags(flags.cast_signed()).open(path)?;
    let found = file.metadata()?;
    let invalid = |why: &str| Err(io::Error::new(io::ErrorKind::InvalidData, why.to_owned()));
    if !found.is_file() {
        return invalid("not a regular file");
    }
    if found.uid() != rustix::process::geteuid().as_raw() {
        return invalid("belongs to another user");
    }
    if found.mode() & 0o077 != 0 {
        file.set_permissions(Permissions::from_mode(0o600))?;
    }
    if found.len() > MAX_BYTES {
        return invalid("too long");
    }
    let length = usize::try_from(found.len()).unwrap_or_default();
    // One allocation, so that no copy of a token remains.
    let mut bytes = Zeroizing::new(Vec::with_capacity(length + 1));
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Writes a new file with mode 0600 and renames it, so that a reader sees the old or the new content.
pub(super) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a file name"));
    };
    let mut random = [0; 9];
    aws_lc_rs::rand::fill(&mut random).map_err(|_| io::Error::other("no random numbers"))?;
    let temporary = folder.join(format!(".{name}.{}.{}", std::process::id(), URL_SAFE_NO_PAD.encode(random)));
    let written = write_new(&temporary, bytes).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
        return written;
    }
    // The new name is on disk too before the token is used.
    File::open(folder)?.sync_all()
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Renames a file that is not usable; one such file is kept.
pub(super) fn set_aside(path: &Path) {
    let _ = fs::rename(path, path.with_extension("bad"));
}

/// Removes temporary files of processes that were killed.
pub(super) fn remove_old_temporary_files(folder: &Path, now: Timestamp) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_temporary = name.to_str().is_some_and(is_temporary_name);
        let age = entry.metadata().map_or(0, |found| now.as_second().saturating_sub(found.mtime()));
        if is_temporary && age > TEMPORARY_AGE_SECONDS {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Whether the name is `.<key>.<extension>.<pid>.<random>`.
fn is_temporary_name(name: &str) -> bool {
    let key = name.strip_prefix('.').and_then(|rest| rest.split('.').next());
    key.and_then(crate::key::CacheKey::from_text).is_some()
}
