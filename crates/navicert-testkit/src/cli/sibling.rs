//! Programs of the workspace that belong to another crate than the test: Cargo names the binaries of a test's own crate
//! (`CARGO_BIN_EXE_…`), the others are found in the same target directory.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cli::program::Program;

/// A program of the workspace and how to build it.
#[derive(Clone, Copy, Debug)]
pub struct Sibling {
    name: &'static str,
    package: &'static str,
    feature: Option<&'static str>,
}

/// The main binary.
pub const NAVICERT: Sibling = Sibling { name: "navicert", package: "navicert", feature: None };

/// Docker's credential helper.
pub const DOCKER_HELPER: Sibling =
    Sibling { name: "docker-credential-navicert", package: "navicert-image", feature: None };

/// The signer for PKCS#11 tokens.
pub const PKCS11_SIGNER: Sibling =
    Sibling { name: "navicert-signer-pkcs11", package: "navicert-signer", feature: None };

/// The signer with keys in files.
pub const FAKE_SIGNER: Sibling = Sibling {
    name: "navicert-fake-signer",
    package: "navicert-signer",
    feature: Some("navicert-signer/test-util"),
};

impl Sibling {
    /// File name of the program.
    pub fn name(self) -> &'static str {
        self.name
    }

    /// The program beside this one, or in the directory above, where this one is a test.
    ///
    /// # Errors
    /// It is missing; the error says how to build it.
    pub fn find(self) -> Result<PathBuf, String> {
        let own = std::env::current_exe().map_err(|error| format!("failed to find this program: {error}"))?;
        let directories = own.ancestors().skip(1).take(2);
        let found = directories.map(|directory| directory.join(self.name)).find(|program| program.is_file());
        found.ok_or_else(|| {
            let near = own.parent().unwrap_or(Path::new(".")).display();
            let build = self.build_arguments().join(" ");
            format!("missing program `{}` near `{near}`; build it with `cargo {build}`", self.name)
        })
    }

    /// The program; a missing one is built. What `cargo test --package …` needs, which builds only its own binaries.
    ///
    /// # Panics
    /// If it cannot be built.
    pub fn find_or_build(self) -> PathBuf {
        self.find().unwrap_or_else(|_| {
            let cargo = option_env!("CARGO").unwrap_or("cargo");
            let build =
                Program::new(cargo).arguments(self.build_arguments()).arguments(["--profile", profile()]);
            let outcome = build.merged().limit(BUILD_LIMIT).run().expect("cargo can be started");
            assert!(outcome.status.success(), "{}", String::from_utf8_lossy(&outcome.stdout));
            self.find().unwrap_or_else(|error| panic!("{error}"))
        })
    }

    fn build_arguments(self) -> Vec<&'static str> {
        let mut arguments = vec!["build", "--locked", "--package", self.package, "--bins"];
        arguments.extend(self.feature.iter().flat_map(|feature| ["--features", feature]));
        arguments
    }
}

/// The profile with which this program was built, so that the other one is built into the same directory.
fn profile() -> &'static str {
    if cfg!(debug_assertions) { "dev" } else { "release" }
}

/// A build from nothing takes minutes.
const BUILD_LIMIT: Duration = Duration::from_mins(15);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_program_is_reported_with_the_command_that_builds_it() {
        let missing = Sibling { name: "no-such-program", ..FAKE_SIGNER }.find().unwrap_err();
        let expected = "; build it with `cargo build --locked --package navicert-signer --bins --features \
                        navicert-signer/test-util`";
        assert!(missing.starts_with("missing program `no-such-program` near `"), "{missing}");
        assert!(missing.ends_with(expected), "{missing}");
    }
}
