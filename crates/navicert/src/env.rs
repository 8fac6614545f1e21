//! The environment: the one room that reads it. Everything below takes values.

use std::ffi::OsString;
use std::path::PathBuf;

/// A variable navicert reads, and what for. docs/environment.md lists the same table, and a test compares them.
pub(crate) struct Variable {
    pub(crate) name: &'static str,
    pub(crate) meaning: &'static str,
}

/// Every variable navicert itself reads.
pub(crate) const VARIABLES: &[Variable] = &[
    Variable { name: "KUBECONFIG", meaning: "kubeconfig files to merge, separated as in `PATH`" },
    Variable { name: "HOME", meaning: "where `.kube/config` is looked for when `KUBECONFIG` is unset" },
    Variable { name: "NO_COLOR", meaning: "any value: no colours" },
    Variable { name: "CLICOLOR_FORCE", meaning: "any value: colours even into a pipe" },
];

/// What was read from the environment at start.
#[derive(Debug)]
pub(crate) struct Environment {
    /// `KUBECONFIG`, if set (also when empty).
    pub(crate) kubeconfig: Option<OsString>,
    /// The home folder.
    pub(crate) home: Option<PathBuf>,
    /// All of it, for programs that inherit it.
    pub(crate) inherited: navicert_plugin::Environment,
    /// The working folder; relative paths on the command line are relative to it.
    pub(crate) current_dir: PathBuf,
}

impl Environment {
    /// Reads the process's environment.
    #[expect(clippy::disallowed_methods, reason = "this is the one room that reads the environment")]
    pub(crate) fn read() -> Self {
        Environment {
            kubeconfig: std::env::var_os("KUBECONFIG"),
            home: std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from),
            inherited: std::env::vars_os().collect(),
            current_dir: std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::VARIABLES;

    #[test]
    fn the_page_of_variables_lists_exactly_what_is_read() {
        let page = include_str!("../../../docs/environment.md");
        let listed: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
        let expected: Vec<String> = VARIABLES
            .iter()
            .map(|variable| format!("| `{}` | {} |", variable.name, variable.meaning))
            .collect();
        assert_eq!(listed, expected);
    }
}
