//! Reads the files of a configuration path.
// I10–I16

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Maximum size of a configuration file.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// A file's name and content.
#[derive(Clone, PartialEq, Eq)]
pub struct ConfigFile {
    /// Where it was found.
    pub path: PathBuf,
    /// Its bytes. They may contain secrets, so `Debug` shows only the length.
    pub text: Vec<u8>,
}

impl std::fmt::Debug for ConfigFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConfigFile").field("path", &self.path).field("bytes", &self.text.len()).finish()
    }
}

/// Why the configuration files could not be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConfigFileError {
    /// The configured path is empty.
    // I10
    #[error("credential provider config path is empty")]
    EmptyPath,
    /// The path does not exist or cannot be opened.
    // I10
    #[error("unable to access path `{}`", .path.display())]
    Access {
        /// The path.
        path: PathBuf,
        /// I/O error reported by the operating system.
        source: io::Error,
    },
    /// The directory contains no configuration file.
    // I14
    #[error("no configuration files found in directory `{}`: names must end in `.json`, `.yaml` or `.yml`", .path.display())]
    NoFiles {
        /// The directory.
        path: PathBuf,
    },
    /// The path is not a regular file; opening a pipe would block forever.
    // I15
    #[error("`{}` is not a regular file", .path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// The file exceeds the size limit.
    // I15
    #[error("`{}` is larger than {MAX_FILE_BYTES} bytes", .path.display())]
    TooLarge {
        /// The path.
        path: PathBuf,
    },
    /// The file exists but cannot be read.
    #[error("unable to read file `{}`", .path.display())]
    Read {
        /// The path.
        path: PathBuf,
        /// I/O error reported by the operating system.
        source: io::Error,
    },
}

/// Reads a file, or the configuration files of a directory in the order of their names.
///
/// # Errors
/// [`ConfigFileError`].
pub fn read_files(path: &Path) -> Result<Vec<ConfigFile>, ConfigFileError> {
    if path.as_os_str().is_empty() {
        return Err(ConfigFileError::EmptyPath);
    }
    let access = |source| ConfigFileError::Access { path: path.to_owned(), source };
    if !fs::metadata(path).map_err(access)?.is_dir() {
        return Ok(vec![read_file(path.to_owned())?]);
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(path).map_err(access)? {
        let entry = entry.map_err(access)?;
        // As in the kubelet, a symlink to a directory is selected by its name; reading it fails.
        let is_directory = entry.file_type().map_err(access)?.is_dir();
        if !is_directory && has_known_extension(&entry.file_name()) {
            names.push(entry.file_name());
        }
    }
    names.sort_by(|one, other| one.as_encoded_bytes().cmp(other.as_encoded_bytes()));
    if names.is_empty() {
        return Err(ConfigFileError::NoFiles { path: path.to_owned() });
    }
    names.into_iter().map(|name| read_file(path.join(name))).collect()
}

/// Whether the extension is `.json`, `.yaml` or `.yml`, case-sensitively; a file named `.yaml` counts.
// I12
fn has_known_extension(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    let extension = name.iter().rposition(|&byte| byte == b'.').and_then(|dot| name.get(dot..));
    extension.is_some_and(|extension| [&b".json"[..], b".yaml", b".yml"].contains(&extension))
}

fn read_file(path: PathBuf) -> Result<ConfigFile, ConfigFileError> {
    let metadata = match fs::metadata(&path) {
        Ok(metadata) => metadata,
        Err(source) => return Err(ConfigFileError::Read { path, source }),
    };
    if !metadata.is_file() {
        return Err(ConfigFileError::NotAFile { path });
    }
    let mut text = Vec::new();
    match File::open(&path).and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_end(&mut text)) {
        Ok(length) if u64::try_from(length).is_ok_and(|length| length > MAX_FILE_BYTES) => {
            Err(ConfigFileError::TooLarge { path })
        }
        Ok(_) => Ok(ConfigFile { path, text }),
        Err(source) => Err(ConfigFileError::Read { path, source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(path: &Path) -> Vec<String> {
        let files = read_files(path).unwrap();
        files.iter().map(|file| file.path.file_name().unwrap().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn reads_directory_files_in_byte_order() {
        // I12, I13, I278
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for name in
            ["a.yml", "B.json", "9.yaml", "10.yaml", ".hidden.yaml", "x.YAML", "x.yaml~", "x.yaml.bak", "x"]
        {
            fs::write(at(name), "").unwrap();
        }
        fs::create_dir(at("sub.yaml")).unwrap();
        fs::write(at("sub.yaml").join("in.yaml"), "").unwrap();
        assert_eq!(names(directory.path()), [".hidden.yaml", "10.yaml", "9.yaml", "B.json", "a.yml"]);
        fs::write(at(".yaml"), "").unwrap();
        assert_eq!(names(directory.path())[1], ".yaml");
    }

    #[test]
    fn reads_single_file_with_any_name() {
        // I11
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("config"), "text").unwrap();
        assert_eq!(read_files(&directory.path().join("config")).unwrap()[0].text, b"text");
    }

    #[test]
    fn reports_why_files_cannot_be_read() {
        // I10, I14, I15
        let directory = tempfile::tempdir().unwrap();
        assert!(matches!(read_files(Path::new("")), Err(ConfigFileError::EmptyPath)));
        assert!(matches!(read_files(&directory.path().join("no")), Err(ConfigFileError::Access { .. })));
        assert!(matches!(read_files(directory.path()), Err(ConfigFileError::NoFiles { .. })));
        std::os::unix::fs::symlink(directory.path(), directory.path().join("loop.yaml")).unwrap();
        assert!(matches!(read_files(directory.path()), Err(ConfigFileError::NotAFile { .. })));
        fs::remove_file(directory.path().join("loop.yaml")).unwrap();
        std::os::unix::fs::symlink("nowhere", directory.path().join("dangling.yaml")).unwrap();
        assert!(matches!(read_files(directory.path()), Err(ConfigFileError::Read { .. })));
        let large = directory.path().join("large");
        File::create(&large).unwrap().set_len(MAX_FILE_BYTES + 1).unwrap();
        assert!(matches!(read_files(&large), Err(ConfigFileError::TooLarge { .. })));
    }
}
