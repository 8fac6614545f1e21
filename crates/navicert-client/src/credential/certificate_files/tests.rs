//! Certificate files that are rewritten while in use, with a manual clock.

use http::HeaderValue;
use navicert_types::clock::ManualClock;

use super::*;
use crate::credential::{StaticCredential, TokenFile, block_on};
use crate::kubeconfig::OsFileSystem;

struct Fixture {
    dir: tempfile::TempDir,
    clock: Arc<ManualClock>,
}

impl Fixture {
    fn new() -> Self {
        let fixture =
            Fixture { dir: tempfile::tempdir().unwrap(), clock: Arc::new(ManualClock::at(1_900_000_000)) };
        fixture.renew();
        fixture
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn renew(&self) {
        let made = rcgen::generate_simple_self_signed(vec!["a.example".to_owned()]).unwrap();
        std::fs::write(self.path("crt"), made.cert.pem()).unwrap();
        std::fs::write(self.path("key"), made.signing_key.serialize_pem()).unwrap();
    }

    fn source(&self, token: Arc<dyn CredentialSource>) -> CertificateFiles {
        let pair = KeyPairFiles {
            certificate: self.path("crt"),
            key: self.path("key"),
            files: Arc::new(OsFileSystem),
        };
        let read = (Arc::new(pair.read().unwrap()), self.clock.monotonic());
        CertificateFiles::new(pair, read, token, Arc::clone(&self.clock) as Arc<dyn Clock>)
    }

    fn with_static_token(&self) -> CertificateFiles {
        let authorization = Some(HeaderValue::from_static("Bearer t"));
        self.source(Arc::new(StaticCredential::new(Credential { authorization, ..Credential::anonymous() })))
    }

    fn advance(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }
}

fn generation(source: &CertificateFiles) -> u64 {
    block_on(source.get(RequestOrigin::Background)).unwrap().generation.number()
}

// C455
#[test]
fn files_are_read_at_most_once_a_second() {
    let fixture = Fixture::new();
    let source = fixture.with_static_token();
    let first = source.cached().unwrap();
    assert!(first.identity.is_some() && first.authorization.is_some());
    fixture.renew();
    assert_eq!(generation(&source), 1);
    fixture.advance(1);
    assert!(source.cached().is_none());
    assert_eq!(generation(&source), 2);
    assert!(!source.cached().unwrap().has_same_identity(&first));
    fixture.renew();
    assert_eq!(generation(&source), 2);
    let found =
        block_on(source.refresh_rejected(source.cached().unwrap().generation, Rejection::TlsAlert)).unwrap();
    assert!(found.is_none(), "the files were read within this second");
    fixture.advance(1);
    assert_eq!(generation(&source), 3);
}

// C455: an unchanged pair is not a rotation, and neither is a mismatched one.
#[test]
fn only_a_different_pair_starts_a_new_generation() {
    let fixture = Fixture::new();
    let source = fixture.with_static_token();
    let key = std::fs::read(fixture.path("key")).unwrap();
    for step in 0..3 {
        fixture.advance(301);
        assert_eq!(generation(&source), 1, "{step}");
    }
    fixture.renew();
    let new_key = std::fs::read(fixture.path("key")).unwrap();
    std::fs::write(fixture.path("key"), key).unwrap();
    fixture.advance(301);
    assert_eq!(generation(&source), 1, "only one of the files is written");
    std::fs::write(fixture.path("key"), new_key).unwrap();
    fixture.advance(2);
    assert_eq!(generation(&source), 2);
    std::fs::remove_file(fixture.path("crt")).unwrap();
    fixture.advance(301);
    assert_eq!(generation(&source), 2);
}

// C167: token and certificate are sent together, and each changes independently.
#[test]
fn token_file_is_reread_independently() {
    let fixture = Fixture::new();
    std::fs::write(fixture.path("token"), "one").unwrap();
    let clock = Arc::clone(&fixture.clock) as Arc<dyn Clock>;
    let unused = HeaderValue::from_static("Bearer unused");
    let token = TokenFile::new(
        fixture.path("token"),
        unused,
        None,
        Arc::new(OsFileSystem),
        clock,
        Some("hint".into()),
    );
    let source = fixture.source(Arc::new(token));
    let sent = || block_on(source.get(RequestOrigin::Background)).unwrap().authorization.clone().unwrap();
    assert_eq!((sent(), source.hint()), (HeaderValue::from_static("Bearer one"), Some("hint")));
    std::fs::write(fixture.path("token"), "two").unwrap();
    fixture.advance(51);
    assert!(source.cached().is_none());
    assert_eq!((sent(), generation(&source)), (HeaderValue::from_static("Bearer two"), 2));
    std::fs::write(fixture.path("token"), "three").unwrap();
    let found =
        block_on(source.refresh_rejected(source.cached().unwrap().generation, Rejection::Unauthorized(None)))
            .unwrap();
    assert_eq!(found.unwrap().authorization.as_ref().unwrap(), "Bearer three");
    fixture.advance(20);
    let current = block_on(source.get(RequestOrigin::Background)).unwrap().generation;
    assert!(block_on(source.refresh_rejected(current, Rejection::TlsAlert)).unwrap().is_none());
}
