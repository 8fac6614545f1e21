//! Faulty signers and the client's errors.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::time::Duration;

use navicert_signer::error::Reason;
use navicert_signer::remote::wire::sample_message;
use navicert_signer::remote::{ExecSigner, ExecSignerSettings, SignerProtocol, SignerTimeouts, SocketSigner};
use navicert_signer::{Input, Scheme, SignError};
use navicert_testkit::{KeyKind, Program};
use navicert_types::error_chain;
use navicert_types::external_signer::v1;

use crate::support::{FakeSigner, V1ALPHA1};

const SCHEME: Scheme = Scheme::EcdsaP256Sha256;
const BOTH: [SignerProtocol; 2] = [V1ALPHA1, SignerProtocol::V1];

fn sign(fake: &FakeSigner, protocol: SignerProtocol) -> SignError {
    let identity = fake.connect(protocol).unwrap();
    identity.sign(SCHEME, Input::Message(&sample_message(1))).unwrap_err()
}

#[test]
fn rejects_signature_of_signer_with_wrong_key() {
    // C834
    for protocol in BOTH {
        let error = sign(&FakeSigner::new(KeyKind::EcP256).mode("wrong-key"), protocol);
        assert!(matches!(error, SignError::WrongSignature { .. }), "{error:?}");
    }
}

#[test]
fn invalid_response_is_never_quoted() {
    for protocol in BOTH {
        let error = sign(&FakeSigner::new(KeyKind::EcP256).mode("garbage"), protocol);
        assert!(matches!(error, SignError::InvalidResponse { .. }), "{error:?}");
        assert!(!error_chain(&error).contains("segmentation") && !error_chain(&error).contains('\u{1b}'));
    }
}

#[test]
fn output_of_failed_signer_is_ignored() {
    // C821: stdout is ignored.
    for protocol in BOTH {
        let error = sign(&FakeSigner::new(KeyKind::EcP256).mode("fail"), protocol);
        assert!(matches!(error, SignError::Run { .. }), "{error:?}");
    }
}

#[test]
fn hanging_signer_times_out() {
    // T43
    for protocol in BOTH {
        let fake = FakeSigner::new(KeyKind::EcP256).mode("hang");
        assert!(
            Program::new("mkfifo").arguments([fake.dir.path().join("pipe")]).run().unwrap().status.success()
        );
        let limits = SignerTimeouts { sign: Duration::from_millis(300), ..SignerTimeouts::default() };
        let identity = ExecSigner::connect(ExecSignerSettings { limits, ..fake.settings(protocol) }).unwrap();
        let error = identity.sign(SCHEME, Input::Message(&sample_message(1))).unwrap_err();
        assert!(matches!(error, SignError::TimedOut { .. }), "{error:?}");
        assert!(error.to_string().contains("enter the PIN beforehand"), "{error}");
    }
}

#[test]
fn locked_device_is_not_retried_immediately() {
    // C884
    let fake = FakeSigner::new(KeyKind::EcP256).mode("locked");
    let identity = fake.connect(SignerProtocol::V1).unwrap();
    for _ in 0..5 {
        let error = identity.sign(SCHEME, Input::Message(&sample_message(1))).unwrap_err();
        assert_eq!(error.reason(), Reason::PinLocked, "{error:?}");
        assert!(error.to_string().ends_with("failed with PinLocked: locked U+0007"), "{error}");
    }
    assert_eq!(fake.asked().len(), 2, "the certificate, and one attempt to sign");
}

#[test]
fn prompts_are_sanitized_and_prefixed_with_the_signer_name() {
    // C851, X5, T43
    let fake = FakeSigner::new(KeyKind::EcP256).mode("prompt");
    let identity = fake.connect(SignerProtocol::V1).unwrap();
    identity.sign(SCHEME, Input::Message(&sample_message(1))).unwrap();
    let shown = fake.shown.lock().unwrap().clone();
    assert_eq!(shown.len(), 2, "{shown:?}");
    assert!(shown[0].ends_with("navicert-fake-signer: touch U+001B[31mme now"), "{shown:?}");
}

#[test]
fn concurrent_signatures_run_one_process_at_a_time() {
    // C821
    let fake = FakeSigner::new(KeyKind::EcP256);
    let identity = fake.connect(V1ALPHA1).unwrap();
    std::thread::scope(|scope| {
        for number in 0..16 {
            let identity = &identity;
            scope.spawn(move || identity.sign(SCHEME, Input::Message(&sample_message(number))).unwrap());
        }
    });
    assert_eq!(fake.asked().len(), 17);
}

/// Runs a server that calls `behaves` for every connection after reading one line.
fn fake_server(behaves: impl Fn(&mut UnixStream) + Send + 'static) -> (tempfile::TempDir, SocketSigner) {
    let dir = tempfile::tempdir().unwrap();
    let private = dir.path().join("private");
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
    (dir, SocketSigner::new(path, "fake_server"))
}

#[test]
fn server_may_hang_close_or_send_invalid_data() {
    // C885
    let ignore_prompts: Arc<dyn Fn(&str) + Send + Sync> = Arc::new(|_| {});
    let ask = |socket: &SocketSigner| {
        let request = v1::Request::Sign(v1::SignRequest {
            scheme: SCHEME.name().to_owned(),
            message: sample_message(1),
            ..v1::SignRequest::default()
        });
        socket.request(&request, Duration::from_millis(300), &ignore_prompts).unwrap_err()
    };
    let (_folder, hangs) = fake_server(|stream| {
        // Blocks until the client closes the connection.
        let _ = BufReader::new(stream).read_line(&mut String::new());
    });
    let error = ask(&hangs);
    assert!(matches!(error, SignError::TimedOut { .. }), "{error:?}");
    let (_folder, hangs_up) = fake_server(|_| {});
    let error = ask(&hangs_up);
    assert!(matches!(error, SignError::InvalidResponse { .. }), "{error:?}");
    for nonsense in ["\u{1b}[2Jsegmentation fault\n", "{}\n", "[1,2\n", "{\"kind\":\"SignResponse\"}\n", "\n"]
    {
        let (_folder, talks) = fake_server(move |stream| {
            let _ = stream.write_all(nonsense.as_bytes());
        });
        for _ in 0..2 {
            let error = ask(&talks);
            assert!(matches!(error, SignError::InvalidResponse { .. }), "{nonsense:?}: {error:?}");
            assert!(!error_chain(&error).contains("segmentation"), "{error}");
        }
    }
}
