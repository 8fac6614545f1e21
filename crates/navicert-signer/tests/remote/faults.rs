//! What a signer may get wrong, and what its client makes of it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::time::Duration;

use navicert_signer::error::Reason;
use navicert_signer::remote::wire::sample_message;
use navicert_signer::remote::{ExecSigner, Limits, Protocol, Settings, SocketSigner};
use navicert_signer::{Input, Scheme, SignError};
use navicert_testkit::{KeyKind, Program};
use navicert_types::external_signer::v1;

use crate::support::{Fake, V1ALPHA1};

const SCHEME: Scheme = Scheme::EcdsaP256Sha256;
const BOTH: [Protocol; 2] = [V1ALPHA1, Protocol::V1];

fn sign(fake: &Fake, protocol: Protocol) -> SignError {
    let identity = fake.connect(protocol).unwrap();
    identity.sign(SCHEME, Input::Message(&sample_message(1))).unwrap_err()
}

#[test]
fn a_signer_with_the_wrong_key_is_caught_here() {
    // C834
    for protocol in BOTH {
        let error = sign(&Fake::new(KeyKind::EcP256).mode("wrong-key"), protocol);
        assert!(matches!(error, SignError::WrongSignature { .. }), "{error:?}");
    }
}

#[test]
fn a_signer_that_answers_garbage_is_quoted_nowhere() {
    for protocol in BOTH {
        let error = sign(&Fake::new(KeyKind::EcP256).mode("garbage"), protocol);
        assert!(matches!(error, SignError::Garbage { .. }), "{error:?}");
        assert!(!error.with_sources().contains("segmentation") && !error.with_sources().contains('\u{1b}'));
    }
}

#[test]
fn a_signer_that_fails_is_not_believed() {
    // C821: stdout is ignored.
    for protocol in BOTH {
        let error = sign(&Fake::new(KeyKind::EcP256).mode("fail"), protocol);
        assert!(matches!(error, SignError::Run { .. }), "{error:?}");
    }
}

#[test]
fn a_signer_that_hangs_is_ended_and_explained() {
    // T43
    for protocol in BOTH {
        let fake = Fake::new(KeyKind::EcP256).mode("hang");
        assert!(
            Program::new("mkfifo")
                .arguments([fake.folder.path().join("pipe")])
                .run()
                .unwrap()
                .status
                .success()
        );
        let limits = Limits { sign: Duration::from_millis(300), ..Limits::default() };
        let identity = ExecSigner::connect(Settings { limits, ..fake.settings(protocol) }).unwrap();
        let error = identity.sign(SCHEME, Input::Message(&sample_message(1))).unwrap_err();
        assert!(matches!(error, SignError::Slow { .. }), "{error:?}");
        assert!(error.to_string().contains("navicert signer serve"), "{error}");
    }
}

#[test]
fn a_locked_device_is_not_asked_again_at_once() {
    // C884
    let fake = Fake::new(KeyKind::EcP256).mode("locked");
    let identity = fake.connect(Protocol::V1).unwrap();
    for _ in 0..5 {
        let error = identity.sign(SCHEME, Input::Message(&sample_message(1))).unwrap_err();
        assert_eq!(error.reason(), Reason::PinLocked, "{error:?}");
        assert!(error.to_string().ends_with("says PinLocked: locked U+0007"), "{error}");
    }
    assert_eq!(fake.asked().len(), 2, "the certificate, and one attempt to sign");
}

#[test]
fn prompts_are_cleaned_and_shown_with_the_signers_name() {
    // C851, X5, T43
    let fake = Fake::new(KeyKind::EcP256).mode("prompt");
    let identity = fake.connect(Protocol::V1).unwrap();
    identity.sign(SCHEME, Input::Message(&sample_message(1))).unwrap();
    let shown = fake.shown.lock().unwrap().clone();
    assert_eq!(shown.len(), 2, "{shown:?}");
    assert!(shown[0].ends_with("navicert-fake-signer: touch U+001B[31mme now"), "{shown:?}");
}

#[test]
fn many_signatures_at_once_are_one_process_at_a_time() {
    // C821
    let fake = Fake::new(KeyKind::EcP256);
    let identity = fake.connect(V1ALPHA1).unwrap();
    std::thread::scope(|scope| {
        for number in 0..16 {
            let identity = &identity;
            scope.spawn(move || identity.sign(SCHEME, Input::Message(&sample_message(number))).unwrap());
        }
    });
    assert_eq!(fake.asked().len(), 17);
}

/// A signer that stays, and does this with every connection once it was asked something.
fn staying(behaves: impl Fn(&mut UnixStream) + Send + 'static) -> (tempfile::TempDir, SocketSigner) {
    let folder = tempfile::tempdir().unwrap();
    let private = folder.path().join("private");
    std::fs::DirBuilder::new().mode(0o700).create(&private).unwrap();
    let path = private.join("signer.sock");
    let listener = UnixListener::bind(&path).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = BufReader::new(stream.try_clone().unwrap()).read_line(&mut String::new());
            behaves(&mut stream);
        }
    });
    (folder, SocketSigner::new(path, "staying"))
}

#[test]
fn a_signer_that_stays_may_hang_hang_up_or_talk_nonsense() {
    // Issue 8, C885
    let quiet: Arc<dyn Fn(&str) + Send + Sync> = Arc::new(|_| {});
    let ask = |socket: &SocketSigner| {
        let request = v1::Request::Sign(v1::SignRequest {
            scheme: SCHEME.name().to_owned(),
            message: sample_message(1),
            ..v1::SignRequest::default()
        });
        socket.ask(&request, Duration::from_millis(300), &quiet).unwrap_err()
    };
    let (_folder, hangs) = staying(|stream| {
        // Until the client has had enough.
        let _ = BufReader::new(stream).read_line(&mut String::new());
    });
    let error = ask(&hangs);
    assert!(matches!(error, SignError::Slow { .. }), "{error:?}");
    let (_folder, hangs_up) = staying(|_| {});
    let error = ask(&hangs_up);
    assert!(matches!(error, SignError::Garbage { .. }), "{error:?}");
    for nonsense in ["\u{1b}[2Jsegmentation fault\n", "{}\n", "[1,2\n", "{\"kind\":\"SignResponse\"}\n", "\n"]
    {
        let (_folder, talks) = staying(move |stream| {
            let _ = stream.write_all(nonsense.as_bytes());
        });
        for _ in 0..2 {
            let error = ask(&talks);
            assert!(matches!(error, SignError::Garbage { .. }), "{nonsense:?}: {error:?}");
            assert!(!error.with_sources().contains("segmentation"), "{error}");
        }
    }
}
