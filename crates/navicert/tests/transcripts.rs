//! What the command line prints, as transcripts: every `$` line of these pages is run and compared.

use std::path::Path;

use navicert_testkit::transcript::{self, TestContext};

fn context() -> TestContext {
    TestContext::new().program("navicert", env!("CARGO_BIN_EXE_navicert"))
}

#[test]
fn transcripts_equal_the_output_of_the_command_line() {
    transcript::check_directory(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts"), context);
}
