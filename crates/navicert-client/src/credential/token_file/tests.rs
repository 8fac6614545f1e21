//! A file that somebody else writes, and a clock that moves when told.

use navicert_types::clock::ManualClock;

use super::*;
use crate::credential::block_on;
use crate::kubeconfig::Disk;

struct Stage {
    folder: tempfile::TempDir,
    clock: Arc<ManualClock>,
}

impl Stage {
    fn new(content: &str) -> Self {
        let stage =
            Stage { folder: tempfile::tempdir().unwrap(), clock: Arc::new(ManualClock::at(1_900_000_000)) };
        stage.write(content);
        stage
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("token")
    }

    fn write(&self, content: &str) {
        std::fs::write(self.path(), content).unwrap();
    }

    fn source(&self, token: Option<&str>) -> Result<TokenFile, TokenFileError> {
        let token = token.map(|token| HeaderValue::from_str(token).unwrap());
        let clock = Arc::clone(&self.clock) as Arc<dyn Clock>;
        TokenFile::new(self.path(), token, None, Arc::new(Disk), clock, None)
    }
}

fn sent(source: &TokenFile) -> String {
    let credential = block_on(source.current(Asking::Background)).unwrap();
    credential.authorization.as_ref().unwrap().to_str().unwrap().to_owned()
}

fn refuse(source: &TokenFile) -> Option<String> {
    let generation = source.0.held.load().credential.generation;
    let found = block_on(source.refused(generation, Refused::Unauthorized(None))).unwrap();
    found.map(|credential| credential.authorization.as_ref().unwrap().to_str().unwrap().to_owned())
}

// C162
#[test]
fn the_file_is_read_again_after_fifty_seconds() {
    let stage = Stage::new("  one\n");
    let source = stage.source(None).unwrap();
    stage.write("two");
    for (step, expected) in [(0, "Bearer one"), (50, "Bearer one"), (1, "Bearer two")] {
        stage.clock.advance(Duration::from_secs(step));
        assert_eq!(sent(&source), expected, "after {step}s more");
    }
    assert_eq!(source.ready().unwrap().generation.number(), 2);
}

// C162
#[test]
fn a_file_that_cannot_be_read_any_more_keeps_the_last_token() {
    let stage = Stage::new("one");
    let source = stage.source(None).unwrap();
    for broken in ["", " \n", "a\nb", "\u{7f}"] {
        stage.write(broken);
        stage.clock.advance(Duration::from_secs(51));
        assert_eq!(sent(&source), "Bearer one", "{broken:?}");
        assert!(source.ready().is_some(), "and is not looked for at every request");
    }
    std::fs::remove_file(stage.path()).unwrap();
    stage.clock.advance(Duration::from_secs(51));
    assert_eq!(sent(&source), "Bearer one");
    assert_eq!(source.ready().unwrap().generation, Generation::FIRST);
}

// C162
#[test]
fn at_first_the_file_has_to_be_good_unless_there_is_a_token_too() {
    let stage = Stage::new(" \n");
    let error = stage.source(None).unwrap_err().to_string();
    assert_eq!(error, format!("read empty token from file {:?}", stage.path().display().to_string()));
    let source = stage.source(Some("Bearer fallback")).unwrap();
    assert_eq!(sent(&source), "Bearer fallback");
    stage.write("file");
    stage.clock.advance(Duration::from_secs(51));
    assert_eq!(sent(&source), "Bearer file");
    std::fs::remove_file(stage.path()).unwrap();
    assert!(matches!(stage.source(None), Err(TokenFileError::Unreadable { .. })));
}

// C162 as decided
#[test]
fn a_refusal_makes_us_look_at_most_once_in_ten_seconds() {
    let stage = Stage::new("one");
    let source = stage.source(None).unwrap();
    stage.write("two");
    assert_eq!(refuse(&source).as_deref(), Some("Bearer two"));
    stage.write("three");
    stage.clock.advance(Duration::from_secs(9));
    assert_eq!(refuse(&source), None);
    stage.clock.advance(Duration::from_secs(1));
    assert_eq!(refuse(&source).as_deref(), Some("Bearer three"));
    stage.clock.advance(Duration::from_secs(10));
    assert_eq!(refuse(&source), None, "the same again is nothing new");
    let late = block_on(source.refused(Generation::FIRST, Refused::Unauthorized(None))).unwrap().unwrap();
    assert_eq!(late.authorization.as_ref().unwrap(), "Bearer three");
}

#[test]
fn the_token_is_not_shown() {
    let source = Stage::new("c4nary").source(None).unwrap();
    assert!(!format!("{source:?} {:?}", source.ready()).contains("c4nary"));
}
