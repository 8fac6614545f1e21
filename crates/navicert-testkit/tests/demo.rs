//! `make demo` ends well, and README.md shows what it really prints.

use std::path::Path;

use navicert_testkit::Program;

#[test]
fn the_demo_ends_well_and_the_readme_shows_its_real_output() {
    let demo = Path::new(env!("CARGO_BIN_EXE_demo"));
    for binary in ["navicert", "docker-credential-navicert", "navicert-signer-pkcs11", "navicert-fake-signer"]
    {
        assert!(
            demo.with_file_name(binary).is_file(),
            "build the binaries first: cargo build --package navicert --package navicert-image --package navicert-signer"
        );
    }
    let outcome = Program::new(demo).merged().run().unwrap();
    let told = String::from_utf8_lossy(&outcome.stdout);
    assert_eq!(outcome.code(), Some(0), "{told}");
    for secret in ["ey.this-is-a-secret", "this-is-a-password", "demo-pin-271828"] {
        assert!(!told.contains(secret), "{told}");
    }
    let pulled = told.contains("\nmanifest.json\n");
    assert!(
        pulled || told.contains("skopeo is not installed"),
        "skopeo pulled, or it was said why not: {told}"
    );
    let kept = told.contains("always sensitive, never extractable, local");
    assert!(kept || told.contains("a software signer stands in"), "a key was born in a token: {told}");

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

// Issue 8: where SoftHSM is absent, the scene is told with a software signer, and says so.
#[test]
fn without_softhsm_the_scene_about_keys_is_told_with_a_software_signer() {
    let outcome =
        Program::new(env!("CARGO_BIN_EXE_demo")).arguments(["--software-signer"]).merged().run().unwrap();
    let told = String::from_utf8_lossy(&outcome.stdout);
    assert_eq!(outcome.code(), Some(0), "{told}");
    assert!(told.contains("a software signer stands in") && told.contains("username  ann"), "{told}");
}
