//! A token file that is rewritten while in use, with a manual clock.

use navicert_types::clock::ManualClock;

use super::*;
use crate::credential::block_on;
use crate::kubeconfig::OsFileSystem;

struct Fixture {
    dir: tempfile::TempDir,
    clock: Arc<ManualClock>,
}

impl Fixture {
    fn new(content: &str) -> Self {
        let fixture =
            Fixture { dir: tempfile::tempdir().unwrap(), clock: Arc::new(ManualClock::at(1_900_000_000)) };
        fixture.write(content);
        fixture
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("token")
    }

    fn write(&self, content: &str) {
        std::fs::write(self.path(), content).unwrap();
    }

    fn source(&self, token: Option<&str>) -> Result<TokenFile, TokenFileError> {
        let token = token.map(|token| HeaderValue::from_str(token).unwrap());
        let clock = Arc::clone(&self.clock) as Arc<dyn Clock>;
        let token = match token {
            Some(token) => token,
            None => read_token_file(&self.path(), &OsFileSystem)?,
        };
        Ok(TokenFile::new(self.path(), token, None, Arc::new(OsFileSystem), clock, None))
    }
}

fn sent(source: &TokenFile) -> String {
    let credential = block_on(source.get(RequestOrigin::Background)).unwrap();
    credential.authorization.as_ref().unwrap().to_str().unwrap().to_owned()
}

fn reject(source: &TokenFile) -> Option<String> {
    let generation = source.0.cached.load().credential.generation;
    let found = block_on(source.refresh_rejected(generation, Rejection::Unauthorized(None))).unwrap();
    found.map(|credential| credential.authorization.as_ref().unwrap().to_str().unwrap().to_owned())
}

// C162
#[test]
fn file_is_reread_after_fifty_seconds() {
    let fixture = Fixture::new("  one\n");
    let source = fixture.source(None).unwrap();
    fixture.write("two");
    for (step, expected) in [(0, "Bearer one"), (50, "Bearer one"), (1, "Bearer two")] {
        fixture.clock.advance(Duration::from_secs(step));
        assert_eq!(sent(&source), expected, "after {step}s more");
    }
    assert_eq!(source.cached().unwrap().generation.number(), 2);
}

// C162
#[test]
fn unreadable_file_keeps_the_last_token() {
    let fixture = Fixture::new("one");
    let source = fixture.source(None).unwrap();
    for broken in ["", " \n", "a\nb", "\u{7f}"] {
        fixture.write(broken);
        fixture.clock.advance(Duration::from_secs(51));
        assert_eq!(sent(&source), "Bearer one", "{broken:?}");
        assert!(source.cached().is_some(), "the file is not read at every request");
    }
    std::fs::remove_file(fixture.path()).unwrap();
    fixture.clock.advance(Duration::from_secs(51));
    assert_eq!(sent(&source), "Bearer one");
    assert_eq!(source.cached().unwrap().generation, Generation::FIRST);
}

// C162
#[test]
fn first_read_must_succeed_unless_there_is_a_fallback_token() {
    let fixture = Fixture::new(" \n");
    let error = fixture.source(None).unwrap_err().to_string();
    assert_eq!(error, format!("read empty token from file {:?}", fixture.path().display().to_string()));
    let source = fixture.source(Some("Bearer fallback")).unwrap();
    assert_eq!(sent(&source), "Bearer fallback");
    fixture.write("file");
    fixture.clock.advance(Duration::from_secs(51));
    assert_eq!(sent(&source), "Bearer file");
    std::fs::remove_file(fixture.path()).unwrap();
    assert!(matches!(fixture.source(None), Err(TokenFileError::Unreadable { .. })));
}

// C162 as decided
#[test]
fn rejection_rereads_the_file_at_most_once_in_ten_seconds() {
    let fixture = Fixture::new("one");
    let source = fixture.source(None).unwrap();
    fixture.write("two");
    assert_eq!(reject(&source).as_deref(), Some("Bearer two"));
    fixture.write("three");
    fixture.clock.advance(Duration::from_secs(9));
    assert_eq!(reject(&source), None);
    fixture.clock.advance(Duration::from_secs(1));
    assert_eq!(reject(&source).as_deref(), Some("Bearer three"));
    fixture.clock.advance(Duration::from_secs(10));
    assert_eq!(reject(&source), None, "an unchanged token is not a new credential");
    let late =
        block_on(source.refresh_rejected(Generation::FIRST, Rejection::Unauthorized(None))).unwrap().unwrap();
    assert_eq!(late.authorization.as_ref().unwrap(), "Bearer three");
}

#[test]
fn debug_output_hides_the_token() {
    let source = Fixture::new("c4nary").source(None).unwrap();
    assert!(!format!("{source:?} {:?}", source.cached()).contains("c4nary"));
}
