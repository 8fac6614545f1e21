//! Step one: which files (C120, C121). Nothing is read here.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The files a kubeconfig is made of, in order of precedence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sources {
    /// One file named on purpose: it has to exist and is never merged with another.
    Explicit(PathBuf),
    /// The files of `KUBECONFIG`: those that exist are merged.
    List(Vec<PathBuf>),
    /// `~/.kube/config`, which may be absent.
    Home(PathBuf),
    /// Nowhere to look.
    Nothing,
}

impl Sources {
    /// Chooses: an explicit path alone, else `KUBECONFIG`, else the file in the home folder.
    pub fn locate(explicit: Option<&Path>, variable: Option<&OsStr>, home: Option<&Path>) -> Self {
        if let Some(path) = explicit {
            return Sources::Explicit(path.to_owned());
        }
        // A variable that is set but empty counts as unset, as in client-go.
        if let Some(variable) = variable.filter(|variable| !variable.is_empty()) {
            return Sources::list(std::env::split_paths(variable));
        }
        home.map_or(Sources::Nothing, |home| Sources::Home(home.join(".kube").join("config")))
    }

    /// A list of files: empty names are skipped, repeated ones dropped; what is missing is decided by whoever reads (C121).
    pub fn list(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut kept: Vec<PathBuf> = Vec::new();
        for path in paths {
            if !path.as_os_str().is_empty() && !kept.iter().any(|known| known.as_os_str() == path.as_os_str())
            {
                kept.push(path);
            }
        }
        Sources::List(kept)
    }

    /// The files, most important first.
    pub fn files(&self) -> &[PathBuf] {
        match self {
            Sources::Explicit(path) | Sources::Home(path) => std::slice::from_ref(path),
            Sources::List(paths) => paths,
            Sources::Nothing => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locate(explicit: Option<&str>, variable: Option<&str>, home: Option<&str>) -> Sources {
        Sources::locate(explicit.map(Path::new), variable.map(OsStr::new), home.map(Path::new))
    }

    #[test]
    fn an_explicit_path_stands_alone() {
        // C120
        assert_eq!(locate(Some("x"), Some("a:b"), Some("/h")), Sources::Explicit("x".into()));
    }

    #[test]
    fn the_variable_is_split_and_its_repeats_dropped() {
        // C121
        let expected = Sources::List(vec!["a".into(), "./a".into(), "b".into()]);
        assert_eq!(locate(None, Some("a::./a:b:a:"), Some("/h")), expected);
    }

    #[test]
    fn home_is_the_last_resort() {
        for variable in [None, Some("")] {
            assert_eq!(locate(None, variable, Some("/h")), Sources::Home("/h/.kube/config".into()));
        }
        assert_eq!(locate(None, None, None), Sources::Nothing);
        assert_eq!(locate(None, Some(":"), None), Sources::List(Vec::new()));
    }
}
