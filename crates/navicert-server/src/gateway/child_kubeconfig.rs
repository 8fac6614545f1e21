//! The file a child finds its gateway by: a kubeconfig with nothing in it but a loopback address, a throw-away authority and
//! a random token. It lies in a folder of its own that nobody else may enter, in memory where the system has such a place,
//! and goes away with the gateway.
//!
//! The folder is locked for as long as its gateway lives. When a gateway is killed, the system drops the lock, and
//! whoever waits for it ([`remove_when_abandoned`]) or comes next ([`sweep`]) removes the folder.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use navicert_types::Secret;
use navicert_types::kubeconfig::{
    AuthInfo, Cluster, Config, Context, NamedAuthInfo, NamedCluster, NamedContext,
};
use rustix::fs::FlockOperation;

/// What a folder's name begins with once its lock is held.
const PREFIX: &str = "navicert-run-";
/// What it begins with before.
const NEW: &str = ".navicert-new-";
const LOCK: &str = "lock";
const KUBECONFIG: &str = "kubeconfig";
/// Says for what credential a gateway stands, where others may join it.
const KEY: &str = "key";

/// What the child's kubeconfig says, besides where the gateway is.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// The context's name: the user's own, so that prompts and scripts find what they know.
    pub context: String,
    /// The cluster's name.
    pub cluster: String,
    /// The namespace; empty for none.
    pub namespace: String,
}

/// Where a gateway is, for its children.
#[derive(Debug)]
pub(super) struct Whereabouts<'a> {
    pub(super) server: String,
    /// PEM.
    pub(super) authority: &'a str,
    pub(super) token: &'a Secret<String>,
    pub(super) names: &'a Names,
}

/// A private folder with a kubeconfig in it, gone when dropped.
#[derive(Debug)]
pub struct ChildKubeconfig {
    folder: PathBuf,
    _lock: File,
}

impl ChildKubeconfig {
    /// Makes the folder below `base`, and the file in it.
    pub(super) fn write(base: &Path, whereabouts: &Whereabouts<'_>) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix(NEW).rand_bytes(16).tempdir_in(base)?;
        // Whatever the umask and the temporary folder's rules are.
        fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
        let lock = private_file(&folder.path().join(LOCK))?;
        rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        // Only now does it get a name that others look at.
        let name = folder.path().file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let locked = base.join(name.replacen(NEW, PREFIX, 1));
        fs::rename(folder.path(), &locked)?;
        let _ = folder.keep();
        let child = ChildKubeconfig { folder: locked, _lock: lock };
        private_file(&child.path())?.write_all(text(whereabouts).as_bytes())?;
        Ok(child)
    }

    /// Lets other commands of this user join the gateway, if they would have made the same one.
    ///
    /// # Errors
    /// The key cannot be written.
    pub fn announce(&self, key: &str) -> io::Result<()> {
        private_file(&self.folder.join(KEY))?.write_all(key.as_bytes())
    }

    /// The file.
    pub fn path(&self) -> PathBuf {
        self.folder.join(KUBECONFIG)
    }

    /// The folder, for [`remove_when_abandoned`].
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for ChildKubeconfig {
    fn drop(&mut self) {
        remove(&self.folder);
    }
}

/// The best place for such folders: the user's runtime folder, else shared memory, else the temporary folder. The first two
/// are never written to a disk.
///
/// # Errors
/// None of them can be used.
pub fn base(runtime: Option<&Path>, temporary: &Path) -> io::Result<PathBuf> {
    let me = rustix::process::geteuid().as_raw();
    let is_private = |metadata: &fs::Metadata| metadata.uid() == me && metadata.mode() & 0o077 == 0;
    if let Some(runtime) = runtime.filter(|path| path.metadata().is_ok_and(|metadata| is_private(&metadata)))
    {
        let folder = runtime.join("navicert");
        match DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if folder.symlink_metadata().is_ok_and(|found| found.is_dir() && is_private(&found)) {
                    return Ok(folder);
                }
            }
            Err(_) => {}
        }
    }
    // Shared by all users: nobody may remove or rename another one's folder there.
    let is_shared = |path: &&Path| {
        path.metadata()
            .is_ok_and(|found| found.is_dir() && (found.mode() & 0o1002 == 0o1002 || found.uid() == me))
    };
    [Path::new("/dev/shm"), temporary].into_iter().find(is_shared).map(Path::to_owned).ok_or_else(|| {
        io::Error::new(io::ErrorKind::NotFound, "no runtime folder and no usable temporary folder")
    })
}

/// Removes what gateways that were killed left behind.
pub fn sweep(base: &Path) {
    for folder in folders(base).filter(|folder| is_abandoned(folder)) {
        remove(&folder);
    }
}

/// The kubeconfig of a living gateway of this user that announced this key.
pub fn find(base: &Path, key: &str) -> Option<PathBuf> {
    let is_it = |folder: &PathBuf| fs::read(folder.join(KEY)).is_ok_and(|found| found == key.as_bytes());
    folders(base).filter(is_it).find(|folder| !is_abandoned(folder)).map(|folder| folder.join(KUBECONFIG))
}

/// The folders of this user's gateways, dead or alive.
fn folders(base: &Path) -> impl Iterator<Item = PathBuf> {
    let me = rustix::process::geteuid().as_raw();
    let entries = fs::read_dir(base).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX))
        .filter(move |entry| entry.metadata().is_ok_and(|found| found.is_dir() && found.uid() == me))
        .map(|entry| entry.path())
}

/// Whether nobody holds the lock. Looking shares it for a moment, which disturbs nobody.
fn is_abandoned(folder: &Path) -> bool {
    let lock = File::open(folder.join(LOCK));
    lock.is_ok_and(|lock| rustix::fs::flock(&lock, FlockOperation::NonBlockingLockShared).is_ok())
}

/// Waits until the gateway of this folder is gone, however that came, and removes what is left of it.
///
/// # Errors
/// The folder is none of a gateway's.
pub fn remove_when_abandoned(folder: &Path) -> io::Result<()> {
    let is_ours = folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
    if !is_ours {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a gateway's folder"));
    }
    let lock = match File::open(folder.join(LOCK)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        lock => lock?,
    };
    while let Err(error) = rustix::fs::flock(&lock, FlockOperation::LockExclusive) {
        if error != rustix::io::Errno::INTR {
            return Err(error.into());
        }
    }
    remove(folder);
    Ok(())
}

/// The files a gateway makes, and the folder if nothing else is in it.
fn remove(folder: &Path) {
    for name in [KUBECONFIG, KEY, LOCK] {
        let _ = fs::remove_file(folder.join(name));
    }
    let _ = fs::remove_dir(folder);
}

fn private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

fn text(whereabouts: &Whereabouts<'_>) -> zeroize::Zeroizing<String> {
    const USER: &str = "navicert";
    let or = |name: &str| if name.is_empty() { USER.to_owned() } else { name.to_owned() };
    let (context, cluster) = (or(&whereabouts.names.context), or(&whereabouts.names.cluster));
    let config = Config {
        clusters: vec![NamedCluster {
            name: cluster.clone(),
            cluster: Cluster {
                server: whereabouts.server.clone(),
                certificate_authority_data: whereabouts.authority.as_bytes().to_vec(),
                ..Cluster::default()
            },
            ..NamedCluster::default()
        }],
        users: vec![NamedAuthInfo {
            name: USER.to_owned(),
            user: AuthInfo { token: whereabouts.token.clone(), ..AuthInfo::default() },
            ..NamedAuthInfo::default()
        }],
        contexts: vec![NamedContext {
            name: context.clone(),
            context: Context {
                cluster,
                user: USER.to_owned(),
                namespace: whereabouts.names.namespace.clone(),
                ..Context::default()
            },
            ..NamedContext::default()
        }],
        current_context: context,
        ..Config::default()
    };
    config.expose_tree().to_yaml().into()
}

#[cfg(test)]
mod tests;
