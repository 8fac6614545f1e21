//! Files that somebody else writes, and a clock that moves when told.

use http::HeaderValue;
use navicert_types::clock::ManualClock;

use super::*;
use crate::credential::{Fixed, TokenFile, block_on};
use crate::kubeconfig::Disk;

struct Stage {
    folder: tempfile::TempDir,
    clock: Arc<ManualClock>,
}

impl Stage {
    fn new() -> Self {
        let stage =
            Stage { folder: tempfile::tempdir().unwrap(), clock: Arc::new(ManualClock::at(1_900_000_000)) };
        stage.renew();
        stage
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn renew(&self) {
        let made = rcgen::generate_simple_self_signed(vec!["a.example".to_owned()]).unwrap();
        std::fs::write(self.path("crt"), made.cert.pem()).unwrap();
        std::fs::write(self.path("key"), made.signing_key.serialize_pem()).unwrap();
    }

    fn source(&self, token: Arc<dyn CredentialSource>) -> CertificateFiles {
        let pair = PairFiles { certificate: self.path("crt"), key: self.path("key"), files: Arc::new(Disk) };
        CertificateFiles::new(pair, token, Arc::clone(&self.clock) as Arc<dyn Clock>).unwrap()
    }

    fn with_fixed_token(&self) -> CertificateFiles {
        let authorization = Some(HeaderValue::from_static("Bearer t"));
        self.source(Arc::new(Fixed::new(Credential { authorization, ..Credential::anonymous() })))
    }

    fn later(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }
}

fn number(source: &CertificateFiles) -> u64 {
    block_on(source.current(Asking::Background)).unwrap().generation.number()
}

// C455
#[test]
fn the_files_are_looked_at_once_a_second() {
    let stage = Stage::new();
    let source = stage.with_fixed_token();
    let first = source.ready().unwrap();
    assert!(first.identity.is_some() && first.authorization.is_some());
    stage.renew();
    assert_eq!(number(&source), 1);
    stage.later(1);
    assert!(source.ready().is_none());
    assert_eq!(number(&source), 2);
    assert!(!source.ready().unwrap().has_same_identity(&first));
    stage.renew();
    assert_eq!(number(&source), 2);
    let found = block_on(source.refused(source.ready().unwrap().generation, Refused::TlsAlert)).unwrap();
    assert!(found.is_none(), "it was looked at in this second");
    stage.later(1);
    assert_eq!(number(&source), 3);
}

// C455: the same pair again is no rotation, half a pair is none at all.
#[test]
fn only_another_pair_is_another_generation() {
    let stage = Stage::new();
    let source = stage.with_fixed_token();
    let key = std::fs::read(stage.path("key")).unwrap();
    for step in 0..3 {
        stage.later(301);
        assert_eq!(number(&source), 1, "{step}");
    }
    stage.renew();
    let new_key = std::fs::read(stage.path("key")).unwrap();
    std::fs::write(stage.path("key"), key).unwrap();
    stage.later(301);
    assert_eq!(number(&source), 1, "the files are half written");
    std::fs::write(stage.path("key"), new_key).unwrap();
    stage.later(2);
    assert_eq!(number(&source), 2);
    std::fs::remove_file(stage.path("crt")).unwrap();
    stage.later(301);
    assert_eq!(number(&source), 2);
}

// C167: bearer and certificate go together, and each changes on its own.
#[test]
fn a_token_file_beside_it_keeps_its_own_time() {
    let stage = Stage::new();
    std::fs::write(stage.path("token"), "one").unwrap();
    let clock = Arc::clone(&stage.clock) as Arc<dyn Clock>;
    let token =
        TokenFile::new(stage.path("token"), None, None, Arc::new(Disk), clock, Some("hint".into())).unwrap();
    let source = stage.source(Arc::new(token));
    let sent = || block_on(source.current(Asking::Background)).unwrap().authorization.clone().unwrap();
    assert_eq!((sent(), source.hint()), (HeaderValue::from_static("Bearer one"), Some("hint")));
    std::fs::write(stage.path("token"), "two").unwrap();
    stage.later(51);
    assert!(source.ready().is_none());
    assert_eq!((sent(), number(&source)), (HeaderValue::from_static("Bearer two"), 2));
    std::fs::write(stage.path("token"), "three").unwrap();
    let found =
        block_on(source.refused(source.ready().unwrap().generation, Refused::Unauthorized(None))).unwrap();
    assert_eq!(found.unwrap().authorization.as_ref().unwrap(), "Bearer three");
    stage.later(20);
    let current = block_on(source.current(Asking::Background)).unwrap().generation;
    assert!(block_on(source.refused(current, Refused::TlsAlert)).unwrap().is_none());
}
