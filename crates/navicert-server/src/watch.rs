//! Watches files for changes. It watches their parent directories, so it also notices replaced files and ConfigMap
//! mounts whose symbolic link is switched.
// S182

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Watches directories. On systems without support it never reports a change, and callers must poll.
#[derive(Debug)]
pub(crate) struct Watcher(Option<platform::Events>);

impl Watcher {
    /// Creates a watcher without watches. If the system's inotify limit is reached, logs that and never reports a
    /// change.
    pub(crate) fn start() -> Self {
        let events = platform::Events::new();
        Watcher(
            events
                .inspect_err(
                    |error| tracing::warn!(event = "file_watch_unavailable", %error, "failed to watch files, polling instead"),
                )
                .ok(),
        )
    }

    /// Adds watches for the directories of these files. Existing watches stay; missing directories are skipped, so
    /// call this before every check.
    pub(crate) fn watch(&mut self, files: &[PathBuf]) {
        let Some(events) = &self.0 else { return };
        let folders: BTreeSet<PathBuf> = files.iter().flat_map(|file| folders(file)).collect();
        for dir in folders {
            let _ = events.add(&dir);
        }
    }

    /// Completes when a watched directory has changed since the last call.
    pub(crate) async fn changed(&mut self) {
        match &mut self.0 {
            Some(events) => events.next().await,
            None => std::future::pending().await,
        }
    }
}

/// Maximum number of symbolic links that are followed, as in the kernel.
const MAX_LINKS: usize = 40;

/// The parent directories of the path, of every symbolic link that it leads through, and of the file at the end.
pub(crate) fn folders(file: &Path) -> Vec<PathBuf> {
    let dir = |path: &Path| match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Some(PathBuf::from(".")),
        Some(parent) => Some(parent.to_owned()),
        None => None,
    };
    // A relative link starts at the directory of the link.
    let next = |link: &PathBuf| Some(dir(link)?.join(std::fs::read_link(link).ok()?));
    let links = std::iter::successors(Some(file.to_owned()), next).take(MAX_LINKS);
    let mut folders: Vec<PathBuf> = Vec::new();
    for folder in links.chain(std::fs::canonicalize(file).ok()).filter_map(|path| dir(&path)) {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    folders
}

#[cfg(target_os = "linux")]
mod platform {
    use std::io;
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;
    use std::path::Path;

    use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};
    use tokio::io::unix::AsyncFd;

    /// Events from inotify(7).
    #[derive(Debug)]
    pub(super) struct Events(AsyncFd<OwnedFd>);

    impl Events {
        #[expect(
            deprecated,
            reason = "the other way is unsafe code; an OwnedFd keeps what the safe one relies on"
        )]
        pub(super) fn new() -> io::Result<Self> {
            let events = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
            AsyncFd::new(events).map(Events)
        }

        pub(super) fn add(&self, dir: &Path) -> io::Result<()> {
            let changes = WatchFlags::CLOSE_WRITE
                | WatchFlags::CREATE
                | WatchFlags::DELETE
                | WatchFlags::MOVED_FROM
                | WatchFlags::MOVED_TO
                | WatchFlags::DELETE_SELF
                | WatchFlags::MOVE_SELF
                | WatchFlags::ONLYDIR;
            inotify::add_watch(self.0.get_ref(), dir, changes)?;
            Ok(())
        }

        pub(super) async fn next(&mut self) {
            loop {
                let Ok(mut ready) = self.0.readable().await else { return std::future::pending().await };
                let mut buffer = [MaybeUninit::uninit(); 4096];
                let mut reader = Reader::new(ready.get_inner(), &mut buffer);
                let mut has_any = false;
                while reader.next().is_ok() {
                    has_any = true;
                }
                ready.clear_ready();
                if has_any {
                    return;
                }
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod platform {
    use std::io;
    use std::path::Path;

    /// Not supported.
    #[derive(Debug)]
    pub(super) struct Events;

    impl Events {
        pub(super) fn new() -> io::Result<Self> {
            Ok(Events)
        }

        pub(super) fn add(&self, _: &Path) -> io::Result<()> {
            Ok(())
        }

        pub(super) async fn next(&mut self) {
            std::future::pending().await
        }
    }
}
