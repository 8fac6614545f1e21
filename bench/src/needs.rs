//! What a row needs besides this program: programs that are installed (`bench/needs.list` says where each is looked for and
//! what installs it) and programs of this workspace that `make bench` builds beside this one. Checked before anything is measured.

use std::path::{Path, PathBuf};

use crate::fault::Fault;

const LIST: &str = include_str!("../needs.list");

/// A program that a row cannot be measured without.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Need {
    /// By its name in `bench/needs.list`.
    Installed(&'static str),
    /// A binary of this workspace, in the directory of this program.
    Built(&'static str),
}

impl Need {
    /// Why the program cannot be used; `None` if it can.
    pub(crate) fn missing(self) -> Option<String> {
        match self {
            Need::Installed(name) => match entry(name) {
                Some(entry) if entry.path().is_some() => None,
                Some(entry) => Some(format!("{name} is not installed ({})", entry.command)),
                None => Some(format!("{name} is missing from bench/needs.list")),
            },
            Need::Built(name) => {
                let is_built = built(name).is_ok_and(|path| path.is_file());
                (!is_built).then(|| format!("{name} is not built (make bench builds it)"))
            }
        }
    }
}

/// Where an installed program is.
pub(crate) fn installed(name: &'static str) -> Result<PathBuf, Fault> {
    let found = entry(name).and_then(|entry| entry.path());
    Ok(found.ok_or_else(|| Need::Installed(name).missing().unwrap_or_default())?)
}

/// The path of a program of this workspace.
pub(crate) fn built(name: &str) -> Result<PathBuf, Fault> {
    Ok(std::env::current_exe()?.with_file_name(name))
}

/// Compiles a C program that a row compares with or is measured by.
pub(crate) fn compile_c(flags: &[&str], source: &Path, program: &Path) -> Result<(), Fault> {
    #[expect(clippy::disallowed_methods, reason = "a compiler, before anything is measured")]
    let mut compiler = std::process::Command::new(installed("cc")?);
    let status = compiler.args(flags).arg("-o").arg(program).arg(source).status()?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("failed to compile {}: {status}", source.display()).into())
    }
}

/// The list with the path of every program that was found.
pub(crate) fn report() -> String {
    let line = |entry: Entry| {
        let state = match entry.path() {
            Some(path) => path.display().to_string(),
            None => format!("missing: {}", entry.command),
        };
        format!("{:<28} {state}\n", entry.name)
    };
    entries().map(line).collect()
}

/// One line of the list.
struct Entry {
    name: &'static str,
    places: &'static str,
    command: &'static str,
}

impl Entry {
    fn path(&self) -> Option<PathBuf> {
        self.places.split(':').find_map(|place| {
            if place.contains('/') {
                let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(place);
                return path.is_file().then_some(path);
            }
            #[expect(
                clippy::disallowed_methods,
                reason = "a binary crate that looks for a program as a shell does"
            )]
            let folders = std::env::var_os("PATH")?;
            std::env::split_paths(&folders).map(|dir| dir.join(place)).find(|path| path.is_file())
        })
    }
}

fn entries() -> impl Iterator<Item = Entry> {
    LIST.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')).filter_map(|line| {
        let (name, rest) = line.split_once(' ')?;
        let (_package, rest) = rest.trim_start().split_once(' ')?;
        let (places, command) = rest.trim_start().split_once(' ')?;
        Some(Entry { name, places, command: command.trim() })
    })
}

fn entry(name: &str) -> Option<Entry> {
    entries().find(|entry| entry.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_list_has_its_four_columns() {
        let lines = LIST.lines().filter(|line| !line.starts_with('#'));
        for line in lines.clone() {
            assert!(line.split_whitespace().count() >= 4, "{line}");
        }
        assert_eq!(entries().count(), lines.count());
    }

    #[test]
    fn program_in_path_is_found_and_a_missing_one_says_what_installs_it() {
        let shell = Entry { name: "sh", places: "no/such/file:sh", command: "" };
        assert!(shell.path().unwrap().ends_with("sh"));
        let missing = Entry { name: "x", places: "no/such/file:no-such-program", command: "" };
        assert_eq!(missing.path(), None);
        assert_eq!(
            Need::Built("no-such-program").missing().unwrap(),
            "no-such-program is not built (make bench builds it)"
        );
        assert_eq!(
            Need::Installed("no-such-program").missing().unwrap(),
            "no-such-program is missing from bench/needs.list"
        );
    }
}
