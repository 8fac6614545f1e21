//! Files that change while the transport runs: certificate authorities (C181) and client certificates (C455).

use std::sync::Arc;
use std::time::Duration;

use navicert_testkit::net::http_server::HttpServerBuilder;
use navicert_testkit::{ApiServer, Ca, ProjectedVolume};
use navicert_types::Clock;
use navicert_types::clock::ManualClock;

use super::support::{ScriptedSource, bearer, rig_with, settings};
use crate::context::ClientContext;
use crate::credential::{CertificateFiles, Credential, CredentialSource, KeyPairFiles};
use crate::kubeconfig::OsFileSystem;
use crate::metrics::AuthorityReload::{Empty, ParseError, ReadError, Unchanged, Updated};
use crate::transport::{BuildError, Timeouts, Transport, TransportError, TransportSettings, Trust};

// C181
#[tokio::test]
async fn new_authority_is_trusted_after_five_minutes_and_an_invalid_file_never() {
    let (old, new) = (Ca::new("old"), Ca::new("new"));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ca.crt");
    std::fs::write(&path, old.pem()).unwrap();
    let api = ApiServer::start_with(&old, HttpServerBuilder::http1_only);
    api.accept_token("t", "ann", &[]);
    // A long idle timeout, so that connections close only because of the new authority.
    let timeouts = Timeouts { idle: Duration::from_secs(1_000_000), ..Timeouts::default() };
    let settings = TransportSettings { trust: Trust::File(path.clone()), timeouts, ..settings(&api, &old) };
    let fixture = rig_with(settings, ScriptedSource::new([bearer("t")]));
    assert_eq!(fixture.read("/version").await.0, 200);

    // A missing, empty or invalid file changes nothing.
    for content in [None, Some(""), Some("nonsense")] {
        match content {
            Some(text) => std::fs::write(&path, text).unwrap(),
            None => std::fs::remove_file(&path).unwrap(),
        }
        fixture.clock.advance(Duration::from_secs(301));
        assert_eq!(fixture.read("/version").await.0, 200, "{content:?}");
    }

    std::fs::write(&path, new.pem()).unwrap();
    api.present(&new.server().issue());
    fixture.clock.advance(Duration::from_secs(299));
    assert_eq!(fixture.read("/version").await.0, 200, "not due yet: the old connection is reused");
    assert_eq!(api.connections().len(), 1);
    fixture.clock.advance(Duration::from_secs(2));
    assert_eq!(fixture.read("/version").await.0, 200, "a new connection trusts the new authority");
    assert_eq!(api.requests().last().unwrap().connection, 1);
    api.wait_until("the old connection to close", |log| log.connections[0].closed).await;
    fixture.clock.advance(Duration::from_secs(301));
    assert_eq!(fixture.read("/version").await.0, 200);
    for outcome in [ReadError, Empty, ParseError, Updated, Unchanged] {
        assert_eq!(fixture.metrics.authority_reloads(outcome), 1, "{outcome:?}");
    }
}

// C180
#[tokio::test]
async fn empty_authority_file_trusts_no_server_and_a_missing_one_is_an_error() {
    let ca = Ca::new("root");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ca.crt");
    std::fs::write(&path, "").unwrap();
    let api = ApiServer::start(&ca);
    let settings = |path: &std::path::Path| TransportSettings {
        trust: Trust::File(path.to_owned()),
        ..settings(&api, &ca)
    };
    let error = rig_with(settings(&path), ScriptedSource::new([bearer("t")])).get("/x").await.unwrap_err();
    assert!(matches!(error, TransportError::Handshake { .. }), "{error}");
    let missing = settings(&dir.path().join("missing"));
    let error = Transport::new(missing, ScriptedSource::new([]), ClientContext::system()).unwrap_err();
    assert!(matches!(error, BuildError::ReadAuthority { .. }), "{error}");
}

// C455
#[tokio::test]
async fn renewed_certificate_is_used_within_a_second_and_a_mismatched_pair_is_not() {
    let ca = Ca::new("root");
    let dir = tempfile::tempdir().unwrap();
    let ann = ca.client("ann").issue();
    let files = ann.write_to(dir.path(), "user");
    let api = ApiServer::start(&ca);
    let clock = Arc::new(ManualClock::at(super::support::NOW));
    let pair = KeyPairFiles { certificate: files.certificate, key: files.key, files: Arc::new(OsFileSystem) };
    let token = ScriptedSource::new([Credential::anonymous()]);
    let read = (Arc::new(pair.read().unwrap()), clock.monotonic());
    let source = Arc::new(CertificateFiles::new(pair, read, token, Arc::clone(&clock) as Arc<dyn Clock>));
    let fixture = rig_with(settings(&api, &ca), Arc::clone(&source) as Arc<_>);
    let user = || api.requests().last().unwrap().client.clone().unwrap().common_name;
    assert_eq!(fixture.read("/version").await.0, 200);
    let first = source.cached().expect("looked at a moment ago").generation;

    let bob = ca.client("bob").issue();
    std::fs::write(dir.path().join("user.crt"), bob.chain_pem()).unwrap();
    clock.advance(Duration::from_secs(1));
    assert!(source.cached().is_none(), "the files are due for a read");
    assert_eq!(fixture.read("/version").await.0, 200);
    assert_eq!(user(), "ann", "a certificate without its key is not used");
    assert_eq!(source.cached().unwrap().generation, first);

    std::fs::write(dir.path().join("user.key"), bob.key_pem()).unwrap();
    assert_eq!(fixture.read("/version").await.0, 200);
    assert_eq!(user(), "ann", "at most once per second");
    clock.advance(Duration::from_secs(1));
    assert_eq!(fixture.read("/version").await.0, 200);
    assert_eq!(user(), "bob");
    assert!(source.cached().unwrap().generation > first);
    assert_eq!(api.connections().len(), 2, "one per certificate");
}

// A pod certificate (`credentialBundlePath`) and a cluster trust bundle, as the kubelet mounts and rotates them.
#[tokio::test]
async fn pod_certificate_in_one_file_is_followed_when_the_kubelet_rotates_it() {
    let (old, new) = (Ca::new("old"), Ca::new("new"));
    let dir = tempfile::tempdir().unwrap();
    let bundle = |name: &str| old.client(name).issue().credential_bundle_pem();
    let volume =
        ProjectedVolume::create(dir.path(), &[("bundle.pem", &bundle("ann")), ("trust.pem", &old.pem())]);
    let api = ApiServer::start_with(&old, HttpServerBuilder::http1_only);
    let clock = Arc::new(ManualClock::at(super::support::NOW));
    let path = volume.path("bundle.pem");
    let pair = KeyPairFiles { certificate: path.clone(), key: path, files: Arc::new(OsFileSystem) };
    let read = (Arc::new(pair.read().unwrap()), clock.monotonic());
    let token = ScriptedSource::new([Credential::anonymous()]);
    let source = Arc::new(CertificateFiles::new(pair, read, token, Arc::clone(&clock) as Arc<dyn Clock>));
    let trust = Trust::File(volume.path("trust.pem"));
    let fixture = rig_with(TransportSettings { trust, ..settings(&api, &old) }, source as Arc<_>);
    let user = || api.requests().last().unwrap().client.clone().unwrap().common_name;
    assert_eq!(fixture.read("/version").await.0, 200);
    assert_eq!(user(), "ann");

    let both = old.pem() + &new.pem();
    volume.update(&[("bundle.pem", &bundle("bob")), ("trust.pem", &both)]);
    clock.advance(Duration::from_secs(1));
    assert_eq!(fixture.read("/version").await.0, 200);
    assert_eq!(user(), "bob");

    api.present(&new.server().issue());
    volume.update(&[("bundle.pem", &bundle("cat")), ("trust.pem", &both)]);
    clock.advance(Duration::from_secs(301));
    fixture.clock.advance(Duration::from_secs(301));
    assert_eq!(fixture.read("/version").await.0, 200, "the new authority is trusted");
    assert_eq!(user(), "cat");
}
