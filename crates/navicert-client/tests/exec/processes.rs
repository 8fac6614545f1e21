//! One run at a time, limits, and what a plugin finds: with the compiled fake plugin.

use std::io::Read;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use navicert_client::credential::{Asking, CredentialSource};
use navicert_client::exec::interactive::FixedTerminal;
use navicert_client::exec::{Authenticator, Plugin, Registry, Settings, Surroundings};
use navicert_client::kubeconfig::{self, Disk, Overrides, Sources};
use navicert_client::metrics::{CallStatus, Metrics};
use navicert_plugin::Environment;

use super::{Folder, fs, output};

fn authenticator(folder: &Folder, settings: Settings, metrics: &Arc<Metrics>) -> Authenticator {
    authenticator_at(folder, settings, metrics, FixedTerminal::default())
}

fn authenticator_at(
    folder: &Folder,
    settings: Settings,
    metrics: &Arc<Metrics>,
    terminal: FixedTerminal,
) -> Authenticator {
    let sources = Sources::locate(Some(&folder.config()), None, None);
    let (_, effective) = kubeconfig::select(&sources, &Overrides::default(), folder.path(), &Disk).unwrap();
    let plugin = Plugin::of(&effective, &Disk).unwrap().unwrap();
    let around = Surroundings {
        terminal: Arc::new(terminal),
        recorder: Arc::clone(metrics) as Arc<dyn navicert_client::metrics::Recorder>,
        registry: Registry::new(),
        ..Surroundings::new(Environment::empty())
    };
    Authenticator::new(plugin, settings, around)
}

// T05, C420: nobody but the listener lets the plugin go on, and it is let go only when all have asked.
#[test]
fn sixty_four_requests_share_one_process() {
    let sockets = tempfile::tempdir().unwrap();
    let socket = sockets.path().join("hold");
    let listener = UnixListener::bind(&socket).unwrap();
    let runs = sockets.path().join("runs");
    let folder = Folder::new(
        "Never",
        &[
            ("FAKE_RUNS", runs.to_str().unwrap()),
            ("FAKE_HOLD", socket.to_str().unwrap()),
            ("FAKE_STDOUT", &output("\"token\":\"t{n}\"")),
        ],
    );
    let authenticator = authenticator(&folder, Settings::default(), &Arc::default());
    thread::scope(|scope| {
        let askers: Vec<_> = (0..64)
            .map(|_| {
                scope.spawn(|| {
                    authenticator.current_blocking(Asking::Background).map_err(|error| error.to_string())
                })
            })
            .collect();
        let (mut held, _) = listener.accept().unwrap();
        held.read_exact(&mut [0]).unwrap();
        drop(held);
        for asker in askers {
            assert_eq!(asker.join().unwrap().unwrap().authorization.as_ref().unwrap(), "Bearer t1");
        }
    });
    assert_eq!(fs::read_to_string(runs).unwrap().lines().count(), 1);
}

// T06, C306
#[test]
fn a_plugin_that_never_ends_is_ended_and_gone() {
    let sockets = tempfile::tempdir().unwrap();
    let socket = sockets.path().join("hold");
    let listener = UnixListener::bind(&socket).unwrap();
    let folder = Folder::new("Never", &[("FAKE_HOLD", socket.to_str().unwrap())]);
    let settings = Settings {
        limit: Some(Duration::from_millis(200)),
        grace: Duration::from_millis(200),
        ..Settings::default()
    };
    let metrics = Arc::new(Metrics::new());
    let authenticator = authenticator(&folder, settings, &metrics);
    let error = authenticator.current_blocking(Asking::Background).unwrap_err().to_string();
    assert!(error.ends_with("timed out after 200ms"), "{error}");
    assert_eq!(metrics.calls(CallStatus::ClientInternalError, 1), 1);
    // The plugin's end of the socket is closed by its death and by nothing else.
    let (mut held, _) = listener.accept().unwrap();
    held.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    assert_eq!(held.read_to_end(&mut Vec::new()).unwrap(), 1, "its greeting, then the end");
}

// T09, C502: codes 0, 1, 2, 0, each twice.
#[test]
fn exit_codes_are_counted() {
    let metrics = Arc::new(Metrics::new());
    for code in ["0", "1", "2", "0"] {
        for _ in 0..2 {
            let folder =
                Folder::new("Never", &[("FAKE_EXIT", code), ("FAKE_STDOUT", &output("\"token\":\"t\""))]);
            let result =
                authenticator(&folder, Settings::default(), &metrics).current_blocking(Asking::Background);
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
fn a_second_request_finds_the_credential_ready() {
    let folder = Folder::new("Never", &[("FAKE_STDOUT", &output("\"token\":\"t\""))]);
    let authenticator = authenticator(&folder, Settings::default(), &Arc::default());
    assert!(authenticator.ready().is_none());
    let credential = authenticator.current_blocking(Asking::Background).unwrap();
    assert!(Arc::ptr_eq(&authenticator.ready().unwrap(), &credential));
}

// C308: Ctrl-C at a terminal reaches the plugin; a daemon's plugin can be ended with all it started.
#[test]
fn a_client_with_a_terminal_keeps_its_plugins_in_its_own_group() {
    for (controlling, expected) in [(true, "the caller's group"), (false, "its own group")] {
        let place = tempfile::tempdir().unwrap();
        let dump = place.path().join("dump");
        let status = output("\"token\":\"t\"");
        let folder = Folder::new("Never", &[("FAKE_DUMP", dump.to_str().unwrap()), ("FAKE_STDOUT", &status)]);
        let terminal = FixedTerminal { stdin: false, controlling };
        let authenticator = authenticator_at(&folder, Settings::default(), &Arc::default(), terminal);
        authenticator.current_blocking(Asking::Background).unwrap();
        assert_eq!(fs::read_to_string(dump).unwrap().lines().nth(1), Some(expected));
    }
}
