//! Programs of others that tests use where they are installed. A missing one is reported as skipped, with the package
//! that `scripts/install-tools` installs. With `NAVICERT_WITHOUT_TOOLS=1` none counts as installed (`make test-fast`).

use std::path::{Path, PathBuf};

use crate::{environment, report};

const WITHOUT_TOOLS: &str = "NAVICERT_WITHOUT_TOOLS";
/// Where `make peers-tools` puts programs.
const PEER_TOOLS: &str = "NAVICERT_PEERS_TOOLS";

/// Where administrators' programs are, which an ordinary user's `PATH` does not name.
const SYSTEM: &str = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin";

/// The path of an installed program; `None`, reported as skipped, if it is missing.
///
/// ```
/// use navicert_testkit::cli::tools;
///
/// assert!(tools::installed("dash", "sh").is_some());
/// ```
///
/// # Panics
/// If it is missing and nothing may be skipped.
pub fn installed(package: &str, program: &str) -> Option<PathBuf> {
    if left_out(package) {
        return None;
    }
    let found = find(program);
    if found.is_none() {
        report::skipped(package, &format!("{program} is not installed"));
    }
    found
}

/// A file that `scripts/install-tools` puts below `target/tools`; `None`, reported as skipped, if it is missing.
///
/// # Panics
/// If it is missing and nothing may be skipped.
pub fn unpacked(package: &str, file: &str) -> Option<PathBuf> {
    below_target("tools", package, file)
}

/// A file that `scripts/install-clients` puts below `target/clients`; `None`, reported as skipped, if it is missing.
///
/// # Panics
/// If it is missing and nothing may be skipped.
pub fn client(package: &str, file: &str) -> Option<PathBuf> {
    below_target("clients", package, file)
}

/// A program that `make peers-tools` builds, in the directory that `NAVICERT_PEERS_TOOLS` names; `None`, reported as skipped, if
/// it is missing.
///
/// # Panics
/// If it is missing and nothing may be skipped.
pub fn peer_tool(package: &str, program: &str) -> Option<PathBuf> {
    if left_out(package) {
        return None;
    }
    let found = environment::variable(PEER_TOOLS).map(|dir| Path::new(&dir).join(program));
    let found = found.filter(|path| path.is_file());
    if found.is_none() {
        report::skipped(package, "it is not built: run `make peers-tools`");
    }
    found
}

/// Debian's kubectl, from the package `kubernetes-client`; `None`, reported as skipped, if it is missing.
///
/// # Panics
/// If it is missing and nothing may be skipped.
pub fn kubectl() -> Option<PathBuf> {
    unpacked("kubernetes-client", "usr/bin/kubectl")
}

/// Where a program is, if it is installed.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = environment::variable("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(std::env::split_paths(SYSTEM))
        .map(|dir| dir.join(program))
        .find(|file| file.is_file())
}

/// Whether this run does without other people's programs; reported as skipped if so.
fn left_out(package: &str) -> bool {
    let left_out = environment::variable(WITHOUT_TOOLS).is_some_and(|value| value == "1");
    if left_out {
        report::skipped(package, "this run does without other programs");
    }
    left_out
}

fn below_target(dir: &str, package: &str, file: &str) -> Option<PathBuf> {
    if left_out(package) {
        return None;
    }
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let path = target.join(dir).join(file);
    if path.exists() {
        return Some(path);
    }
    report::skipped(package, &format!("it is not in target/{dir}"));
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_by_name_and_only_if_they_exist() {
        assert!(find("sh").is_some_and(|path| path.is_absolute()));
        assert_eq!(find("no-such-program-anywhere"), None);
    }
}
