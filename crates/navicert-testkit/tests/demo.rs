//! `make demo` ends well, and README.md shows what it really prints.

use std::path::Path;

use navicert_testkit::Program;

#[test]
fn the_demo_ends_well_and_the_readme_shows_its_real_output() {
    let demo = Path::new(env!("CARGO_BIN_EXE_demo"));
    for binary in ["navicert", "docker-credential-navicert"] {
        assert!(
            demo.with_file_name(binary).is_file(),
            "build the binaries first: cargo build --package navicert --package navicert-image"
        );
    }
    let outcome = Program::new(demo).merged().run().unwrap();
    let told = String::from_utf8_lossy(&outcome.stdout);
    assert_eq!(outcome.code(), Some(0), "{told}");
    for secret in ["ey.this-is-a-secret", "this-is-a-password"] {
        assert!(!told.contains(secret), "{told}");
    }
    let pulled = told.contains("\nmanifest.json\n");
    assert!(
        pulled || told.contains("skopeo is not installed"),
        "skopeo pulled, or it was said why not: {told}"
    );

    let readme =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md")).unwrap();
    let (_, block) = readme.split_once("$ make demo\n").expect("README.md shows `make demo`");
    let (block, _) = block.split_once("```").expect("the block ends");
    let mut lines = told.lines();
    for shown in block.lines().filter(|line| *line != "...") {
        assert!(
            lines.any(|line| line == shown),
            "README.md shows a line the demo does not print there: {shown}"
        );
    }
}
