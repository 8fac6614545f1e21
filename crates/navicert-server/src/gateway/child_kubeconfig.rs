//! The kubeconfig of a child process: the gateway's loopback address, its ephemeral certificate authority and a
//! random token. It is in a private directory, in memory where possible, and is removed with the gateway.
//!
//! The directory is locked while its gateway runs. When a gateway is killed, the kernel releases the lock;
//! [`remove_when_abandoned`] or the next [`remove_abandoned`] then removes the directory.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use navicert_types::Secret;
use navicert_types::kubeconfig::{
    AuthInfo, Cluster, Context, Kubeconfig, NamedAuthInfo, NamedCluster, NamedContext,
};
use rustix::fs::FlockOperation;

/// Prefix of the directory name once the lock is held.
const PREFIX: &str = "navicert-run-";
/// Prefix before that.
const UNLOCKED_PREFIX: &str = ".navicert-new-";
const LOCK: &str = "lock";
const KUBECONFIG: &str = "kubeconfig";
/// File that identifies the credential of a gateway that other commands may share.
const KEY: &str = "key";

/// Names in the child's kubeconfig.
#[derive(Clone, Debug, Default)]
pub struct ContextNames {
    /// Context name: the user's own, so that prompts and scripts keep working.
    pub context: String,
    /// Cluster name.
    pub cluster: String,
    /// Namespace; empty for none.
    pub namespace: String,
}

/// How a child reaches the gateway.
#[derive(Debug)]
pub(super) struct GatewayEndpoint<'a> {
    pub(super) server: String,
    /// Certificate authority in PEM.
    pub(super) authority: &'a str,
    pub(super) token: &'a Secret<String>,
    pub(super) names: &'a ContextNames,
}

/// A private directory with a kubeconfig, removed when dropped.
#[derive(Debug)]
pub struct ChildKubeconfig {
    dir: PathBuf,
    _lock: File,
}

impl ChildKubeconfig {
    /// Creates the directory below `base` and writes the file.
    pub(super) fn write(base: &Path, endpoint: &GatewayEndpoint<'_>) -> io::Result<Self> {
        let dir = tempfile::Builder::new().prefix(UNLOCKED_PREFIX).rand_bytes(16).tempdir_in(base)?;
        // Independent of the umask.
        fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
        let lock = private_file(&dir.path().join(LOCK))?;
        rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        // Other processes look at this name only once the lock is held.
        let name = dir.path().file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let locked = base.join(name.replacen(UNLOCKED_PREFIX, PREFIX, 1));
        fs::rename(dir.path(), &locked)?;
        let _ = dir.keep();
        let child = ChildKubeconfig { dir: locked, _lock: lock };
        private_file(&child.path())?.write_all(text(endpoint).as_bytes())?;
        Ok(child)
    }

    /// Lets other commands of this user share the gateway, if their key is equal.
    ///
    /// # Errors
    /// The key file cannot be written.
    pub fn announce(&self, key: &str) -> io::Result<()> {
        private_file(&self.dir.join(KEY))?.write_all(key.as_bytes())
    }

    /// Path of the kubeconfig.
    pub fn path(&self) -> PathBuf {
        self.dir.join(KUBECONFIG)
    }

    /// The directory, for [`remove_when_abandoned`].
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

impl Drop for ChildKubeconfig {
    fn drop(&mut self) {
        remove(&self.dir);
    }
}

/// Removes the directories of killed gateways.
pub fn remove_abandoned(base: &Path) {
    for dir in folders(base).filter(|dir| is_abandoned(dir)) {
        remove(&dir);
    }
}

/// The kubeconfig of a running gateway of this user that announced this key.
pub fn find_announced(base: &Path, key: &str) -> Option<PathBuf> {
    let is_it = |dir: &PathBuf| fs::read(dir.join(KEY)).is_ok_and(|found| found == key.as_bytes());
    folders(base).filter(is_it).find(|dir| !is_abandoned(dir)).map(|dir| dir.join(KUBECONFIG))
}

/// The directories of this user's gateways, running or not.
fn folders(base: &Path) -> impl Iterator<Item = PathBuf> {
    let me = rustix::process::geteuid().as_raw();
    let entries = fs::read_dir(base).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX))
        .filter(move |entry| entry.metadata().is_ok_and(|found| found.is_dir() && found.uid() == me))
        .map(|entry| entry.path())
}

/// Whether the lock is free. The check takes a shared lock for a moment, which blocks nothing.
fn is_abandoned(dir: &Path) -> bool {
    let lock = File::open(dir.join(LOCK));
    lock.is_ok_and(|lock| rustix::fs::flock(&lock, FlockOperation::NonBlockingLockShared).is_ok())
}

/// Waits until the gateway of this directory has ended, and removes the rest of it.
///
/// # Errors
/// The directory does not belong to a gateway.
pub fn remove_when_abandoned(dir: &Path) -> io::Result<()> {
    let is_ours = dir.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
    if !is_ours {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a gateway directory"));
    }
    let lock = match File::open(dir.join(LOCK)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        lock => lock?,
    };
    while let Err(error) = rustix::fs::flock(&lock, FlockOperation::LockExclusive) {
        if error != rustix::io::Errno::INTR {
            return Err(error.into());
        }
    }
    remove(dir);
    Ok(())
}

/// Removes the gateway's files, and the directory if it is then empty.
fn remove(dir: &Path) {
    for name in [KUBECONFIG, KEY, LOCK] {
        let _ = fs::remove_file(dir.join(name));
    }
    let _ = fs::remove_dir(dir);
}

fn private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

fn text(endpoint: &GatewayEndpoint<'_>) -> zeroize::Zeroizing<String> {
    const USER: &str = "navicert";
    let or = |name: &str| if name.is_empty() { USER.to_owned() } else { name.to_owned() };
    let (context, cluster) = (or(&endpoint.names.context), or(&endpoint.names.cluster));
    let config = Kubeconfig {
        clusters: vec![NamedCluster {
            name: cluster.clone(),
            cluster: Cluster {
                server: endpoint.server.clone(),
                certificate_authority_data: endpoint.authority.as_bytes().to_vec(),
                ..Cluster::default()
            },
            ..NamedCluster::default()
        }],
        users: vec![NamedAuthInfo {
            name: USER.to_owned(),
            user: AuthInfo { token: endpoint.token.clone(), ..AuthInfo::default() },
            ..NamedAuthInfo::default()
        }],
        contexts: vec![NamedContext {
            name: context.clone(),
            context: Context {
                cluster,
                user: USER.to_owned(),
                namespace: endpoint.names.namespace.clone(),
                ..Context::default()
            },
            ..NamedContext::default()
        }],
        current_context: context,
        ..Kubeconfig::default()
    };
    config.expose_tree().to_yaml().into()
}

#[cfg(test)]
mod tests;
