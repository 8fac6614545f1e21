//! Single flight, timeouts and process groups with the compiled fake plugin.

use std::io::Read;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use navicert_client::credential::{CredentialSource, RequestOrigin};
use navicert_client::exec::interactive::FixedTerminal;
use navicert_client::exec::{Authenticator, AuthenticatorRegistry, ExecSettings};
use navicert_client::metrics::{CallStatus, Metrics};
use navicert_client::{ClientContext, Config};
use navicert_plugin::Environment;

use super::{TestDirectory, fs, output};

fn authenticator(test_dir: &TestDirectory, settings: ExecSettings, metrics: &Arc<Metrics>) -> Authenticator {
    authenticator_at(test_dir, settings, metrics, FixedTerminal::default())
}

fn authenticator_at(
    test_dir: &TestDirectory,
    settings: ExecSettings,
    metrics: &Arc<Metrics>,
    terminal: FixedTerminal,
) -> Authenticator {
    let config = Config::from_kubeconfig(test_dir.config()).unwrap();
    let plugin = config.exec_plugin().unwrap().clone();
    let client_context = ClientContext {
        terminal: Arc::new(terminal),
        recorder: Arc::clone(metrics) as Arc<dyn navicert_client::metrics::Recorder>,
        registry: AuthenticatorRegistry::new(),
        ..ClientContext::new(Environment::empty())
    };
    Authenticator::new(plugin, settings, client_context)
}

// T05, C420: the plugin waits for the listener, which continues after all requests have been sent.
#[test]
fn sixty_four_requests_share_one_process() {
    let sockets = tempfile::tempdir().unwrap();
    let socket = sockets.path().join("hold");
    let listener = UnixListener::bind(&socket).unwrap();
    let runs = sockets.path().join("runs");
    let test_dir = TestDirectory::new(
        "Never",
        &[
            ("FAKE_RUNS", runs.to_str().unwrap()),
            ("FAKE_HOLD", socket.to_str().unwrap()),
            ("FAKE_STDOUT", &output("\"token\":\"t{n}\"")),
        ],
    );
    let authenticator = authenticator(&test_dir, ExecSettings::default(), &Arc::default());
    thread::scope(|scope| {
        let callers: Vec<_> = (0..64)
            .map(|_| {
                scope.spawn(|| {
                    authenticator
                        .get_blocking(RequestOrigin::Background)
                        .map_err(|error| navicert_types::error_chain(&error))
                })
            })
            .collect();
        let (mut held, _) = listener.accept().unwrap();
        held.read_exact(&mut [0]).unwrap();
        drop(held);
        for caller in callers {
            assert_eq!(caller.join().unwrap().unwrap().authorization.as_ref().unwrap(), "Bearer t1");
        }
    });
    assert_eq!(fs::read_to_string(runs).unwrap().lines().count(), 1);
}

// T06, C306
#[test]
fn plugin_that_never_exits_is_killed_after_the_timeout() {
    let sockets = tempfile::tempdir().unwrap();
    let socket = sockets.path().join("hold");
    let listener = UnixListener::bind(&socket).unwrap();
    let test_dir = TestDirectory::new("Never", &[("FAKE_HOLD", socket.to_str().unwrap())]);
    let settings = ExecSettings {
        timeout: Some(Duration::from_millis(200)),
        grace: Duration::from_millis(200),
        ..ExecSettings::default()
    };
    let metrics = Arc::new(Metrics::new());
    let authenticator = authenticator(&test_dir, settings, &metrics);
    let error = authenticator.get_blocking(RequestOrigin::Background).unwrap_err().to_string();
    assert!(error.ends_with("timed out after 200ms"), "{error}");
    assert_eq!(metrics.calls(CallStatus::ClientInternalError, 1), 1);
    // Only the plugin's exit closes its end of the socket.
    let (mut held, _) = listener.accept().unwrap();
    held.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    assert_eq!(held.read_to_end(&mut Vec::new()).unwrap(), 1, "one byte, then end of stream");
}

// T09, C502: codes 0, 1, 2, 0, each twice.
#[test]
fn exit_codes_are_counted() {
    let metrics = Arc::new(Metrics::new());
    for code in ["0", "1", "2", "0"] {
        for _ in 0..2 {
            let test_dir = TestDirectory::new(
                "Never",
                &[("FAKE_EXIT", code), ("FAKE_STDOUT", &output("\"token\":\"t\""))],
            );
            let result = authenticator(&test_dir, ExecSettings::default(), &metrics)
                .get_blocking(RequestOrigin::Background);
            assert_eq!(result.is_ok(), code == "0");
        }
    }
    let count = |status, code| metrics.calls(status, code);
    assert_eq!(count(CallStatus::NoError, 0), 4);
    assert_eq!(
        (count(CallStatus::PluginExecutionError, 1), count(CallStatus::PluginExecutionError, 2)),
        (2, 2)
    );
}

// T02, C410: the fast path after the first run.
#[test]
fn second_request_uses_the_cached_credential() {
    let test_dir = TestDirectory::new("Never", &[("FAKE_STDOUT", &output("\"token\":\"t\""))]);
    let authenticator = authenticator(&test_dir, ExecSettings::default(), &Arc::default());
    assert!(authenticator.cached().is_none());
    let credential = authenticator.get_blocking(RequestOrigin::Background).unwrap();
    assert!(Arc::ptr_eq(&authenticator.cached().unwrap(), &credential));
}

// C308: Ctrl-C at a terminal reaches the plugin; a daemon's plugin is killed with its children.
#[test]
fn client_with_a_terminal_keeps_plugins_in_its_process_group() {
    for (controlling, expected) in [(true, "the caller's group"), (false, "its own group")] {
        let scratch = tempfile::tempdir().unwrap();
        let dump = scratch.path().join("dump");
        let status = output("\"token\":\"t\"");
        let test_dir =
            TestDirectory::new("Never", &[("FAKE_DUMP", dump.to_str().unwrap()), ("FAKE_STDOUT", &status)]);
        let terminal = FixedTerminal { stdin: false, controlling };
        let authenticator = authenticator_at(&test_dir, ExecSettings::default(), &Arc::default(), terminal);
        authenticator.get_blocking(RequestOrigin::Background).unwrap();
        assert_eq!(fs::read_to_string(dump).unwrap().lines().nth(1), Some(expected));
    }
}
