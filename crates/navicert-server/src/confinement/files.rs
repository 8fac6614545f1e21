//! The files that a server uses after its start: directories that it may read, and those where it writes.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::watch;

/// Directories and files that a server may use, as canonical paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfinedFiles {
    readable: BTreeSet<PathBuf>,
    appendable: BTreeSet<PathBuf>,
    replaceable: BTreeSet<PathBuf>,
}

/// What name resolution reads.
const RESOLVER_FILES: &[&str] = &["resolv.conf", "hosts", "nsswitch.conf", "host.conf", "gai.conf"];

/// Where distributions keep the files that the directory of root certificates links to.
const CERTIFICATE_SOURCES: &[&str] = &[
    "/etc/ca-certificates",
    "/etc/pki/ca-trust",
    "/usr/local/share/ca-certificates",
    "/usr/share/ca-certificates",
    "/usr/share/pki",
    "/var/lib/ca-certificates",
];

/// Devices, and what the C library's allocator asks for.
const SYSTEM_FILES: &[&str] = &["/dev/null", "/dev/urandom", "/sys/devices/system/cpu"];

impl ConfinedFiles {
    /// What every server reads: system root certificates, the files of name resolution, a few devices.
    pub fn of_system() -> Self {
        let mut files = ConfinedFiles::default();
        for path in SYSTEM_FILES.iter().chain(CERTIFICATE_SOURCES) {
            files.readable.extend(canonical(Path::new(path)));
        }
        files.allow_root_certificates();
        files.allow_resolver(Path::new("/etc"));
        files
    }

    /// Allows reading a file, also after it was replaced: its directory, and that of the file it links to. Of a file in `/`
    /// only itself.
    pub fn allow_reading(&mut self, file: &Path) {
        for folder in watch::folders(file) {
            match canonical(&folder) {
                Some(folder) if folder.parent().is_some() => self.readable.insert(folder),
                _ => canonical(file).is_some_and(|file| self.readable.insert(file)),
            };
        }
    }

    /// Allows appending to a file, and creating it again: its directory. Of a device or a pipe only itself.
    pub fn allow_appending(&mut self, file: &Path) {
        match canonical(file) {
            Some(target) if !target.is_file() => {
                self.appendable.insert(target);
            }
            _ => self.appendable.extend(watch::folders(file).iter().filter_map(|folder| canonical(folder))),
        }
    }

    /// Allows reading a file, and replacing it by a new one in its directory.
    pub fn allow_replacing(&mut self, file: &Path) {
        self.allow_reading(file);
        let folder = watch::folders(file).into_iter().next();
        self.replaceable.extend(folder.as_deref().and_then(canonical));
    }

    /// The directories and files that may be read.
    pub fn readable(&self) -> impl Iterator<Item = &Path> {
        self.readable.iter().map(PathBuf::as_path)
    }

    /// The directories and files where files may be created and written.
    pub fn appendable(&self) -> impl Iterator<Item = &Path> {
        self.appendable.iter().map(PathBuf::as_path)
    }

    /// The directories where files may also be replaced.
    pub fn replaceable(&self) -> impl Iterator<Item = &Path> {
        self.replaceable.iter().map(PathBuf::as_path)
    }

    /// Whether a file, which need not exist, may be read.
    pub fn may_read(&self, file: &Path) -> bool {
        target(file).is_some_and(|file| self.readable.iter().any(|allowed| file.starts_with(allowed)))
    }

    /// Whether a file, which need not exist, may be replaced.
    pub fn may_replace(&self, file: &Path) -> bool {
        target(file).is_some_and(|file| self.replaceable.iter().any(|allowed| file.starts_with(allowed)))
    }

    /// The places that the root certificates are loaded from, `SSL_CERT_FILE` and `SSL_CERT_DIR` included.
    fn allow_root_certificates(&mut self) {
        let places = openssl_probe::probe();
        self.readable.extend(places.cert_dir.iter().filter_map(|dir| canonical(dir)));
        let file = places.cert_file.as_deref().and_then(canonical);
        self.readable.extend(file.as_deref().and_then(Path::parent).map(Path::to_owned));
    }

    /// The files of name resolution. Where they are ordinary files of their directory, a program may replace them, so the
    /// directory is allowed; container runtimes mount each file instead, and others link to a directory of their own.
    fn allow_resolver(&mut self, dir: &Path) {
        let device = |path: &Path| path.metadata().ok().map(|metadata| metadata.dev());
        for name in RESOLVER_FILES {
            let path = dir.join(name);
            let Some(file) = canonical(&path) else { continue };
            let is_replaceable = *name == "resolv.conf" && device(&file) == device(dir);
            match file.parent() {
                Some(parent) if parent != dir || is_replaceable => self.readable.insert(parent.to_owned()),
                _ => self.readable.insert(file),
            };
        }
    }
}

impl navicert_authn::config::FileScope for ConfinedFiles {
    fn may_read(&self, file: &Path) -> bool {
        ConfinedFiles::may_read(self, file)
    }

    fn may_replace(&self, file: &Path) -> bool {
        ConfinedFiles::may_replace(self, file)
    }
}

fn canonical(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok()
}

/// The file that a path leads to; one that does not exist yet by its directory.
fn target(file: &Path) -> Option<PathBuf> {
    canonical(file).or_else(|| {
        let folder = watch::folders(file).into_iter().next()?;
        Some(canonical(&folder)?.join(file.file_name()?))
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn files_are_allowed_with_their_directory_and_that_of_their_target() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().canonicalize().unwrap().join(name);
        for dir in ["live", "archive", "other"] {
            fs::create_dir(at(dir)).unwrap();
        }
        fs::write(at("archive/1.pem"), "").unwrap();
        fs::write(at("other/key"), "").unwrap();
        symlink("../archive/1.pem", at("live/cert.pem")).unwrap();
        let mut files = ConfinedFiles::default();
        files.allow_reading(&at("live/cert.pem"));
        assert_eq!(files.readable().collect::<Vec<_>>(), [at("archive"), at("live")]);
        for (name, expected) in [
            ("live/cert.pem", true),
            ("archive/2.pem", true),
            ("live/new/deep", false),
            ("other/key", false),
            ("other/missing", false),
        ] {
            assert_eq!(files.may_read(&at(name)), expected, "{name}");
        }
        // A link that leads out of the directories does not help.
        symlink("../other/key", at("live/key")).unwrap();
        assert!(!files.may_read(&at("live/key")) && !files.may_replace(&at("live/cert.pem")));
    }

    // A mounted ConfigMap: the link `..data` is switched to a new directory beside the old one.
    #[test]
    fn mounted_config_maps_stay_readable_when_they_change() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::create_dir(at("..1")).unwrap();
        fs::write(at("..1/auth.yaml"), "").unwrap();
        symlink("..1", at("..data")).unwrap();
        symlink("..data/auth.yaml", at("auth.yaml")).unwrap();
        let mut files = ConfinedFiles::default();
        files.allow_reading(&at("auth.yaml"));
        fs::create_dir(at("..2")).unwrap();
        fs::write(at("..2/auth.yaml"), "").unwrap();
        fs::remove_file(at("..data")).unwrap();
        symlink("..2", at("..data")).unwrap();
        assert!(files.may_read(&at("auth.yaml")));
    }

    #[test]
    fn root_directory_and_devices_are_not_opened_up() {
        let mut files = ConfinedFiles::default();
        files.allow_reading(Path::new("/proc"));
        files.allow_appending(Path::new("/dev/null"));
        assert_eq!(files.readable().collect::<Vec<_>>(), [Path::new("/proc")]);
        assert_eq!(files.appendable().collect::<Vec<_>>(), [Path::new("/dev/null")]);
        assert!(!files.may_read(Path::new("/etc/passwd")));
    }

    #[test]
    fn log_may_be_created_again_and_a_copy_replaced() {
        let root = tempfile::tempdir().unwrap();
        let (log, copy) = (root.path().join("audit.log"), root.path().join("copy.yaml"));
        let mut files = ConfinedFiles::default();
        files.allow_appending(&log);
        assert_eq!(files.appendable().collect::<Vec<_>>(), [root.path().canonicalize().unwrap()]);
        assert!(!files.may_read(&log) && !files.may_replace(&copy));
        files.allow_replacing(&copy);
        assert!(files.may_read(&copy) && files.may_replace(&copy));
    }

    #[test]
    fn resolver_files_are_allowed_as_they_are_replaced() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let (etc, run) = (root.join("etc"), root.join("run"));
        fs::create_dir(&etc).unwrap();
        fs::create_dir(&run).unwrap();
        fs::write(run.join("stub.conf"), "").unwrap();
        fs::write(etc.join("hosts"), "").unwrap();
        symlink("../run/stub.conf", etc.join("resolv.conf")).unwrap();
        let mut files = ConfinedFiles::default();
        files.allow_resolver(&etc);
        assert_eq!(files.readable().collect::<Vec<_>>(), [etc.join("hosts"), run]);
        fs::remove_file(etc.join("resolv.conf")).unwrap();
        fs::write(etc.join("resolv.conf"), "").unwrap();
        let mut files = ConfinedFiles::default();
        files.allow_resolver(&etc);
        assert!(files.may_read(&etc.join("resolv.conf.new")));
    }
}
