//! A projected volume as the kubelet writes it: the files are links into `..data`, itself a link to a directory with the
//! current contents. An update replaces that one link, so all files change at once, and the old directory is removed.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory that is updated atomically.
///
/// ```
/// use navicert_testkit::ProjectedVolume;
///
/// let directory = tempfile::tempdir().unwrap();
/// let volume = ProjectedVolume::create(directory.path(), &[("bundle.pem", "one")]);
/// volume.update(&[("bundle.pem", "two")]);
/// assert_eq!(std::fs::read_to_string(volume.path("bundle.pem")).unwrap(), "two");
/// ```
#[derive(Debug)]
pub struct ProjectedVolume {
    directory: PathBuf,
    versions: AtomicU32,
}

impl ProjectedVolume {
    /// Writes the first contents into an existing directory.
    ///
    /// # Panics
    /// If a file cannot be written.
    pub fn create(directory: &Path, files: &[(&str, impl AsRef<str>)]) -> Self {
        let volume = ProjectedVolume { directory: directory.to_owned(), versions: AtomicU32::new(0) };
        volume.update(files);
        for (name, _) in files {
            symlink(Path::new("..data").join(name), volume.path(name)).expect("a link to a file");
        }
        volume
    }

    /// Replaces all files at once.
    ///
    /// # Panics
    /// If a file cannot be written.
    pub fn update(&self, files: &[(&str, impl AsRef<str>)]) {
        let version = format!("..{}", self.versions.fetch_add(1, Ordering::Relaxed));
        let (data, next) = (self.path("..data"), self.path("..data_tmp"));
        fs::create_dir(self.path(&version)).expect("a directory for the new contents");
        for (name, text) in files {
            fs::write(self.path(&version).join(name), text.as_ref()).expect("a file of the volume");
        }
        let old = fs::read_link(&data).ok();
        symlink(&version, &next).expect("a link to the new contents");
        fs::rename(&next, &data).expect("the new contents in place");
        if let Some(old) = old {
            fs::remove_dir_all(self.directory.join(old)).expect("the old contents removed");
        }
    }

    /// The path of a file.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}
