//! Tells when files may have changed. It watches the folders they are in, so that a file that is replaced, or a mounted
//! ConfigMap whose link is turned to another folder, is noticed like one that is written to (S182).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Watches folders. Where the system cannot, nothing is ever told, and whoever waits has to look by himself.
#[derive(Debug)]
pub struct Watcher(Option<platform::Events>);

impl Watcher {
    /// Watches nothing yet. Where the system has no more of what it takes, that is logged, and it never will.
    pub fn start() -> Self {
        let events = platform::Events::new();
        Watcher(
            events
                .inspect_err(
                    |error| tracing::warn!(%error, "files are not watched, only looked at now and then"),
                )
                .ok(),
        )
    }

    /// Watches what surrounds these files from now on, also. What is watched already stays so, and a folder that is not
    /// there is passed over: call this again before every look.
    pub fn watch(&mut self, files: &[PathBuf]) {
        let Some(events) = &self.0 else { return };
        let folders: BTreeSet<PathBuf> = files.iter().flat_map(|file| folders(file)).collect();
        for folder in folders {
            let _ = events.add(&folder);
        }
    }

    /// Done when something happened in one of the folders since the last time.
    pub async fn changed(&mut self) {
        match &mut self.0 {
            Some(events) => events.next().await,
            None => std::future::pending().await,
        }
    }
}

/// Where a file's name is, and where the file itself is if that is a link.
fn folders(file: &Path) -> Vec<PathBuf> {
    let folder = |path: &Path| match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Some(PathBuf::from(".")),
        Some(parent) => Some(parent.to_owned()),
        None => None,
    };
    let target = std::fs::canonicalize(file).ok();
    [folder(file), target.as_deref().and_then(folder)].into_iter().flatten().collect()
}

#[cfg(target_os = "linux")]
mod platform {
    use std::io;
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;
    use std::path::Path;

    use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};
    use tokio::io::unix::AsyncFd;

    /// Events of inotify(7).
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

        pub(super) fn add(&self, folder: &Path) -> io::Result<()> {
            let changes = WatchFlags::CLOSE_WRITE
                | WatchFlags::CREATE
                | WatchFlags::DELETE
                | WatchFlags::MOVED_FROM
                | WatchFlags::MOVED_TO
                | WatchFlags::DELETE_SELF
                | WatchFlags::MOVE_SELF
                | WatchFlags::ONLYDIR;
            inotify::add_watch(self.0.get_ref(), folder, changes)?;
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

    /// There are none.
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
