//! Step one: locates the files without reading them.
// C120, C121

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The files of a kubeconfig in order of precedence.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KubeconfigSources {
    /// One explicitly named file: it must exist and is not merged with others.
    Explicit(PathBuf),
    /// The files of `KUBECONFIG`: existing ones are merged.
    List(Vec<PathBuf>),
    /// `~/.kube/config`, which may be missing.
    Home(PathBuf),
    /// No location.
    Nothing,
}

impl KubeconfigSources {
    /// Selects an explicit path alone, else `KUBECONFIG`, else the file in the home directory.
    pub fn locate(explicit: Option<&Path>, variable: Option<&OsStr>, home: Option<&Path>) -> Self {
        if let Some(path) = explicit {
            return KubeconfigSources::Explicit(path.to_owned());
        }
        // A variable that is set but empty counts as unset, as in client-go.
        if let Some(variable) = variable.filter(|variable| !variable.is_empty()) {
            return KubeconfigSources::list(std::env::split_paths(variable));
        }
        home.map_or(KubeconfigSources::Nothing, |home| {
            KubeconfigSources::Home(home.join(".kube").join("config"))
        })
    }

    /// A list of files without empty and duplicate names. Loading them handles missing files.
    // C121
    pub fn list(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut kept: Vec<PathBuf> = Vec::new();
        for path in paths {
            if !path.as_os_str().is_empty() && !kept.iter().any(|known| known.as_os_str() == path.as_os_str())
            {
                kept.push(path);
            }
        }
        KubeconfigSources::List(kept)
    }

    /// The files, highest precedence first.
    pub fn files(&self) -> &[PathBuf] {
        match self {
            KubeconfigSources::Explicit(path) | KubeconfigSources::Home(path) => std::slice::from_ref(path),
            KubeconfigSources::List(paths) => paths,
            KubeconfigSources::Nothing => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locate(explicit: Option<&str>, variable: Option<&str>, home: Option<&str>) -> KubeconfigSources {
        KubeconfigSources::locate(explicit.map(Path::new), variable.map(OsStr::new), home.map(Path::new))
    }

    #[test]
    fn explicit_path_is_used_alone() {
        // C120
        assert_eq!(locate(Some("x"), Some("a:b"), Some("/h")), KubeconfigSources::Explicit("x".into()));
    }

    #[test]
    fn variable_is_split_and_duplicates_dropped() {
        // C121
        let expected = KubeconfigSources::List(vec!["a".into(), "./a".into(), "b".into()]);
        assert_eq!(locate(None, Some("a::./a:b:a:"), Some("/h")), expected);
    }

    #[test]
    fn home_directory_is_used_last() {
        for variable in [None, Some("")] {
            assert_eq!(locate(None, variable, Some("/h")), KubeconfigSources::Home("/h/.kube/config".into()));
        }
        assert_eq!(locate(None, None, None), KubeconfigSources::Nothing);
        assert_eq!(locate(None, Some(":"), None), KubeconfigSources::List(Vec::new()));
    }
}
