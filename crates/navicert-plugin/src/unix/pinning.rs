//! Runs exactly the bytes that were checked: an open file, or a sealed copy in memory.
//!
//! A native binary runs through its open descriptor. A script cannot: the kernel passes its interpreter a *path*, which
//! is opened again, and by then another file may be there.
// C743

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Component, Path, PathBuf};
use std::process::Child;
use std::sync::{PoisonError, RwLock};

use rustix::io::FdFlags;

/// A path that executes exactly this open file even if its name is replaced, where the platform has one.
///
/// Only for native binaries. A program run this way has its own name in `argv[0]` and `/proc/self/exe`; only its `comm`,
/// which `top` shows, is the descriptor's number.
pub(crate) fn path_of_open_program(file: &File) -> Option<PathBuf> {
    if !is_native_binary(file) { None } else { path_of_descriptor(file) }
}

/// The path of an open file in this process and in a child that inherits it.
fn path_of_descriptor(file: &File) -> Option<PathBuf> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    // The child's own streams would replace a descriptor below 3 before the program starts. Rust programs always have
    // these three open, so this does not happen.
    let descriptor = file.as_raw_fd();
    let path = PathBuf::from(format!("/proc/self/fd/{descriptor}"));
    (descriptor > 2 && path.symlink_metadata().is_ok()).then_some(path)
}

/// Whether the ELF header names this architecture: `e_machine`, two bytes at offset 18, after class and byte order.
pub(crate) fn is_native_binary(file: &File) -> bool {
    let (class, order, machine) = if cfg!(target_arch = "x86_64") {
        (2, 1, [62, 0])
    } else if cfg!(target_arch = "aarch64") && cfg!(target_endian = "little") {
        (2, 1, [183, 0])
    } else {
        return false;
    };
    let mut header = [0; 20];
    file.read_exact_at(&mut header, 0).is_ok()
        && header.starts_with(&[0x7f, b'E', b'L', b'F', class, order])
        && header.ends_with(&machine)
}

/// Whether only root and this user can write to the file. An access control list that lets others write shows in the
/// group's bits of the mode.
pub(crate) fn has_trusted_writers(file: &File) -> bool {
    let me = rustix::process::geteuid().as_raw();
    file.metadata().is_ok_and(|facts| [0, me].contains(&facts.uid()) && !is_writable_by_others(&facts))
}

fn is_writable_by_others(facts: &Metadata) -> bool {
    facts.mode() & 0o022 != 0
}

/// Symbolic links to follow, as the kernel does.
const MAX_LINKS: usize = 40;

/// The first file or directory on the way to this open file, through symbolic links, that others than root can change;
/// `None` if only root can change what the path leads to.
pub(crate) fn find_replaceable(path: &Path, file: &File) -> Option<PathBuf> {
    let refused = || Some(path.to_path_buf());
    let is_roots = |facts: &Metadata| facts.uid() == 0 && !is_writable_by_others(facts);
    let steps = |path: &Path| -> Vec<PathBuf> {
        let names = path.components().filter(|part| !matches!(part, Component::RootDir | Component::CurDir));
        names.map(|part| PathBuf::from(part.as_os_str())).rev().collect()
    };
    if !path.is_absolute() || !std::fs::metadata("/").is_ok_and(|facts| is_roots(&facts)) {
        return Some(PathBuf::from("/"));
    }
    let (mut current, mut pending, mut links) = (PathBuf::from("/"), steps(path), 0_usize);
    let mut reached = None;
    while let Some(step) = pending.pop() {
        if step.as_os_str() == ".." {
            current.pop();
            continue;
        }
        let next = current.join(&step);
        let Ok(facts) = next.symlink_metadata() else { return refused() };
        if facts.is_symlink() {
            // The link itself cannot be changed: its directory has been checked.
            links = links.saturating_add(1);
            let Some(target) = next.read_link().ok().filter(|_| links <= MAX_LINKS) else { return refused() };
            if target.is_absolute() {
                current = PathBuf::from("/");
            }
            pending.extend(steps(&target));
            continue;
        }
        if !is_roots(&facts) {
            return Some(next);
        }
        reached = Some((facts.dev(), facts.ino()));
        current = next;
    }
    let opened = file.metadata().ok().map(|facts| (facts.dev(), facts.ino()));
    if opened.is_some() && opened == reached { None } else { refused() }
}

/// The largest file that is copied.
const MAX_COPY_BYTES: u64 = 256 << 20;

/// Copies a file into memory that nothing can change any more.
#[cfg(target_os = "linux")]
pub(crate) fn sealed_copy(file: &File) -> io::Result<File> {
    use std::io::{Seek, SeekFrom};

    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
    use rustix::io::Errno;

    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // Kernels before 6.3 do not know the flag, and need none.
    let copy = match memfd_create("navicert-plugin", flags | MemfdFlags::EXEC) {
        Err(Errno::INVAL) => memfd_create("navicert-plugin", flags)?,
        other => other?,
    };
    let (mut source, mut copy) = (file, File::from(copy));
    source.seek(SeekFrom::Start(0))?;
    let copied = io::copy(&mut source.take(MAX_COPY_BYTES.saturating_add(1)), &mut copy)?;
    if copied > MAX_COPY_BYTES {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    fcntl_add_seals(&copy, SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE)?;
    Ok(copy)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn sealed_copy(_: &File) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

/// A path that runs a script from this sealed copy, in a child that inherits the descriptor; `None` if the script may look
/// for its own file.
pub(crate) fn path_of_sealed_script(copy: &File) -> Option<PathBuf> {
    let mut text = Vec::new();
    let length =
        usize::try_from(copy.metadata().ok()?.len()).ok().filter(|length| *length <= MAX_SCRIPT_BYTES)?;
    text.resize(length, 0);
    copy.read_exact_at(&mut text, 0).ok()?;
    if is_self_contained(&text) { path_of_descriptor(copy) } else { None }
}

/// The longest script that is searched.
const MAX_SCRIPT_BYTES: usize = 1 << 20;

/// Shells, which read a script once and look for nothing beside it. Other interpreters do: Python's first directory for
/// modules is the script's own.
const SHELLS: [&[u8]; 6] = [b"sh", b"bash", b"dash", b"ash", b"ksh", b"zsh"];

/// What shell scripts find their own file with.
const SELF_REFERENCES: [&[u8]; 8] =
    [b"$0", b"${0", b"${!", b"BASH_SOURCE", b"BASH_ARGV0", b"%x", b"eval", b"/proc/"];

/// Whether this is a shell script that does not look at its own path, as far as its text shows. An error here cannot run
/// other bytes; the script would only miss its own path.
fn is_self_contained(text: &[u8]) -> bool {
    let Some(rest) = text.strip_prefix(b"#!") else { return false };
    let line = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let mut words = line.split(|byte| matches!(byte, b' ' | b'\t')).filter(|word| !word.is_empty());
    let name = |word: &[u8]| word.rsplit(|byte| *byte == b'/').next().unwrap_or_default().to_vec();
    let mut interpreter = words.next().map(name).unwrap_or_default();
    if interpreter == b"env" {
        interpreter = words.next().map(name).unwrap_or_default();
    }
    SHELLS.contains(&interpreter.as_slice())
        && !SELF_REFERENCES
            .iter()
            .any(|reference| text.windows(reference.len()).any(|part| part == *reference))
}

/// Children started while a descriptor can be inherited would inherit it too.
static STARTS: RwLock<()> = RwLock::new(());

/// Starts a child; with a descriptor, this child and no other of this crate inherits it.
pub(crate) fn spawn(child: &mut std::process::Command, inherited: Option<&File>) -> io::Result<Child> {
    let Some(file) = inherited else {
        let _others = STARTS.read().unwrap_or_else(PoisonError::into_inner);
        return child.spawn();
    };
    let _alone = STARTS.write().unwrap_or_else(PoisonError::into_inner);
    rustix::io::fcntl_setfd(file, FdFlags::empty())?;
    let spawned = child.spawn();
    // Cannot fail for an open descriptor.
    let _ = rustix::io::fcntl_setfd(file, FdFlags::CLOEXEC);
    spawned
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn recognizes_scripts_that_do_not_look_for_themselves() {
        for text in [
            "#!/bin/sh\necho a\n",
            "#! /usr/bin/env bash\necho \"$1\"\n",
            "#!/usr/bin/dash -e\n",
            "#!/bin/sh",
        ] {
            assert!(is_self_contained(text.as_bytes()), "{text}");
        }
        for text in [
            "",
            "echo a\n",
            "#!\n",
            "#!/usr/bin/python3\nprint(1)\n",
            "#!/usr/bin/env python3\n",
            "#!/usr/bin/env -S sh\n",
            "#!/bin/sh\n. \"$(dirname \"$0\")/lib\"\n",
            "#!/bin/bash\n. \"${0%/*}/lib\"\n",
            "#!/bin/bash\n. \"${BASH_SOURCE%/*}/lib\"\n",
            "#!/bin/bash\nzero=0; echo ${!zero}\n",
        ] {
            assert!(!is_self_contained(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn finds_what_others_than_root_can_replace() {
        let shell = Path::new("/bin/sh");
        let open = |path: &Path| File::open(path).unwrap();
        assert_eq!(find_replaceable(shell, &open(shell)), None);
        let directory = tempfile::tempdir().unwrap();
        let temporary = directory.path().parent().unwrap().to_path_buf();
        let file = directory.path().join("file");
        fs::write(&file, "#!/bin/sh\n").unwrap();
        // Every user can write to the parent of the temporary directory.
        let found = find_replaceable(&file, &open(&file));
        assert_eq!(found, Some(temporary.canonicalize().unwrap()));
        // A link in such a directory to a file of root's.
        let link = directory.path().join("link");
        symlink("/bin/sh", &link).unwrap();
        assert!(find_replaceable(&link, &open(&link)).is_some());
        // Another file than the opened one.
        assert!(find_replaceable(shell, &open(&file)).is_some());
        assert!(find_replaceable(Path::new("bin/sh"), &open(shell)).is_some());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn sealed_copy_cannot_be_changed() {
        use std::io::Write;

        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, "abc").unwrap();
        let mut copy = sealed_copy(&File::open(&path).unwrap()).unwrap();
        assert!(copy.write_all(b"x").is_err() && copy.set_len(0).is_err() && copy.set_len(10).is_err());
        let mut text = [0; 3];
        copy.read_exact_at(&mut text, 0).unwrap();
        assert_eq!(&text, b"abc");
    }

    #[test]
    fn files_that_others_can_write_are_not_trusted() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, "").unwrap();
        for (mode, trusted) in [(0o755, true), (0o700, true), (0o775, false), (0o757, false)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(has_trusted_writers(&File::open(&path).unwrap()), trusted, "{mode:o}");
        }
    }
}
