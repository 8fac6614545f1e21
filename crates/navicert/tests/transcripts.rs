//! What the command line prints, as transcripts: every `$` line of these pages is run and compared.

use std::path::Path;

use navicert_testkit::transcript::{self, TestContext};

fn context() -> TestContext {
    TestContext::new().program("navicert", env!("CARGO_BIN_EXE_navicert"))
}

#[test]
fn the_transcripts_are_what_the_command_line_prints() {
    transcript::check_directory(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts"), context);
}
