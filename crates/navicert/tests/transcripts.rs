//! What the command line prints, as transcripts: every `$` line of these pages is run and compared.

use std::path::Path;

use navicert_testkit::cli::transcript::{self, TestContext};

fn context() -> TestContext {
    TestContext::new()
        .program("navicert", env!("CARGO_BIN_EXE_navicert"))
        // Derived from the memory of the machine.
        .filter(r"limits: \d+ connections.*", "limits: [LIMITS]")
        // Depends on the kernel and on where files are.
        .filter(r"confinement: .*(\n  (read|write): .*)*", "confinement: [CONFINEMENT]")
}

#[test]
fn transcripts_equal_the_output_of_the_command_line() {
    transcript::check_directory(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts"), context);
}
