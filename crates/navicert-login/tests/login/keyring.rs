//! Sessions sealed by a key of the keyring: with a keyring in memory, and with GNOME Keyring.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use navicert_login::cache::CacheFolder;
use navicert_login::keyring::{DesktopKeyring, Keyring, SealKey, Unlock};
use navicert_login::request::Storage;
use navicert_login::{Environment, LoginError, SessionOrigin, SetupOptions, args};
use navicert_testkit::cli::program::{CHILD_INPUT_VARIABLE, child_input};
use navicert_testkit::cli::tools;
use serde_json::json;

use super::support::Setup;

/// A keyring in memory, which may be locked.
#[derive(Debug, Default)]
struct MemoryKeyring(Mutex<MemoryState>);

#[derive(Debug, Default)]
struct MemoryState {
    key: Option<SealKey>,
    is_locked: bool,
    made: usize,
}

impl MemoryKeyring {
    fn state(&self) -> std::sync::MutexGuard<'_, MemoryState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Keyring for MemoryKeyring {
    fn key(&self, _: &Environment, unlock: Unlock, is_made: bool) -> Result<Option<SealKey>, LoginError> {
        let mut state = self.state();
        if state.is_locked && unlock == Unlock::Never {
            return Err(LoginError::Keyring("locked".to_owned()));
        }
        if state.key.is_none() && is_made {
            state.key = SealKey::generate();
            state.made += 1;
        }
        Ok(state.key.clone())
    }

    fn remove_key(&self, _: &Environment) -> Result<(), LoginError> {
        self.state().key = None;
        Ok(())
    }

    fn probe(&self, _: &Environment) -> Result<(), String> {
        if self.state().is_locked { Err("it is locked".to_owned()) } else { Ok(()) }
    }
}

fn sealed() -> (Setup, Arc<MemoryKeyring>) {
    let mut setup = Setup::with_password();
    let keyring: Arc<MemoryKeyring> = Arc::default();
    setup.request.storage = Storage::Keyring;
    setup.context.keyring = Arc::clone(&keyring) as Arc<_>;
    (setup, keyring)
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

// L420, L421, L1316
#[test]
fn session_is_sealed_and_the_keyring_written_once() {
    let (setup, keyring) = sealed();
    setup.login();
    let entry = setup.entry();
    assert_eq!((&entry["kind"], entry.get("refreshToken")), (&json!("LoginSessionSealed"), None));
    assert!(!text(&setup.entry_path()).contains("canary"));
    assert_eq!(setup.login().origin, SessionOrigin::Cached);
    setup.clock.advance(3_590);
    assert_eq!(setup.login().origin, SessionOrigin::Refreshed);
    assert_eq!(keyring.state().made, 1);
}

// L422
#[test]
fn entry_whose_key_is_gone_is_absent() {
    let (setup, keyring) = sealed();
    setup.login();
    keyring.state().key = None;
    assert_eq!(setup.login().origin, SessionOrigin::LoggedIn);
    assert_eq!(keyring.state().made, 2);
}

// L423, L1229
#[test]
fn locked_keyring_is_an_error_and_nothing_is_written_in_plain_text() {
    let (mut setup, keyring) = sealed();
    keyring.state().is_locked = true;
    setup.context.terminals.stderr = false;
    assert_eq!(setup.failure(), "keyring");
    assert_eq!(setup.provider.requests(), 0);
    assert!(!setup.dir.path().join("cache").exists());
}

// L424
#[test]
fn changed_storage_moves_the_entry_at_the_next_write() {
    let (mut setup, _) = sealed();
    setup.login();
    setup.request.storage = Storage::Disk;
    assert_eq!(setup.login().origin, SessionOrigin::Refreshed, "the sealed session is renewed, not lost");
    assert_eq!(setup.entry()["refreshToken"], json!("canary-refresh-2"));
    setup.request.storage = Storage::Keyring;
    assert_eq!(setup.login().origin, SessionOrigin::Cached);
    setup.clock.advance(3_590);
    setup.login();
    assert_eq!(setup.entry()["kind"], json!("LoginSessionSealed"));
}

// L420
#[test]
fn setup_uses_the_keyring_if_it_works_and_says_where_sessions_are_kept() {
    for (is_locked, flags, storage, expected) in [
        (false, &[][..], Storage::Keyring, "sealed by a key in the desktop's keyring, which works"),
        (
            true,
            &[],
            Storage::Disk,
            "files that only you can read; the desktop's keyring cannot be used: it is locked",
        ),
        (false, &["--token-cache-storage=disk"], Storage::Disk, "files that only you can read"),
        (true, &["--token-cache-storage=none"], Storage::None, "sessions are not kept"),
    ] {
        let (mut setup, keyring) = sealed();
        keyring.state().is_locked = is_locked;
        setup.request.storage =
            if flags == ["--token-cache-storage=none"] { Storage::None } else { Storage::Disk };
        let flags = args::parse_with(flags, args::SETUP_FLAGS).unwrap();
        let mut options = SetupOptions::from_flags(&flags, None).unwrap();
        navicert_login::choose_storage(&mut setup.request, &mut options, &setup.context);
        assert_eq!(setup.request.storage, storage, "{options:?}");
        let report = navicert_login::setup(&setup.request, &options, &setup.context).unwrap();
        let step = report.steps.iter().find(|step| step.name == "storage").unwrap();
        assert!(step.text.contains(expected), "{}", step.text);
        let user = report.documents.unwrap().kubeconfig_user;
        assert_eq!(user.contains("--token-cache-storage=keyring"), storage == Storage::Keyring, "{user}");
    }
}

// L1105, L1106
#[test]
fn sealed_sessions_are_listed_and_cleaned_with_their_key() {
    let (setup, keyring) = sealed();
    setup.login();
    let dir = setup.request.cache_dir.as_deref();
    let mut folder = CacheFolder::locate_default(dir, &setup.context).unwrap();
    assert!(navicert_login::status(&folder, &setup.context).unwrap().is_empty(), "not without the key");
    folder.unseal(Unlock::MayAsk, &setup.context).unwrap();
    let sessions = navicert_login::status(&folder, &setup.context).unwrap();
    assert!(sessions.len() == 1 && sessions[0].is_sealed);
    assert_eq!(navicert_login::clean(&folder, &setup.context).unwrap(), 1);
    assert_eq!(keyring.state().key, None);
}

// L421, L422
#[test]
fn without_a_desktop_session_there_is_no_keyring() {
    let error = DesktopKeyring.key(&Environment::empty(), Unlock::Never, true).unwrap_err();
    assert!(error.to_string().contains("DBUS_SESSION_BUS_ADDRESS"), "{error}");
    assert!(error.to_string().contains("--token-cache-storage=disk"), "{error}");
    let nowhere = Environment::from_iter([("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent/bus")]);
    assert_eq!(DesktopKeyring.key(&nowhere, Unlock::Never, true).unwrap_err().code().as_str(), "keyring");
    assert!(DesktopKeyring.probe(&Environment::empty()).unwrap_err().contains("no desktop session"));
    DesktopKeyring.probe(&nowhere).unwrap_err();
}

/// What runs beside a GNOME Keyring: part of the test below.
#[test]
fn process_with_a_desktop_session() {
    if child_input().is_none() {
        return;
    }
    #[expect(clippy::disallowed_methods, reason = "the session of dbus-run-session is in the environment")]
    let environment: Environment = std::env::vars_os().collect();
    let key = |is_made| DesktopKeyring.key(&environment, Unlock::Never, is_made).unwrap();
    assert_eq!(key(false), None);
    DesktopKeyring.probe(&environment).unwrap();
    assert_eq!(key(false), None, "a probe makes no key");
    let made = key(true).unwrap();
    assert_eq!(key(true), Some(made.clone()), "made once");
    assert_eq!(key(false).as_ref(), Some(&made));
    DesktopKeyring.probe(&environment).unwrap();
    assert_eq!(key(false).as_ref(), Some(&made), "nor does it touch one");
    DesktopKeyring.remove_key(&environment).unwrap();
    assert_eq!(key(false), None);
    DesktopKeyring.remove_key(&environment).unwrap();
    let mut setup = Setup::with_password();
    setup.request.storage = Storage::Keyring;
    setup.context.environment = environment;
    setup.login();
    assert_eq!(setup.entry()["kind"], json!("LoginSessionSealed"));
    assert_eq!(setup.login().origin, SessionOrigin::Cached);
}

// L420, L421, L422
#[test]
fn key_is_kept_by_gnome_keyring() {
    let Some(session) = tools::installed("dbus", "dbus-run-session") else { return };
    if tools::installed("gnome-keyring", "gnome-keyring-daemon").is_none() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    // The daemon reads the password of its new collection from standard input: an empty one.
    let script = r#"
        set -e
        eval "$(printf '\n' | gnome-keyring-daemon --unlock --components=secrets)"
        exec "$0" "$@"
    "#;
    #[expect(clippy::disallowed_methods, reason = "a session of its own, with its daemon")]
    let mut command = Command::new(session);
    command
        .args(["--", "sh", "-c", script])
        .arg(std::env::current_exe().unwrap())
        .args(["keyring::process_with_a_desktop_session", "--exact", "--nocapture"])
        .env(CHILD_INPUT_VARIABLE, "{}")
        .env("HOME", dir.path())
        .env("XDG_RUNTIME_DIR", dir.path())
        .env("XDG_DATA_HOME", dir.path().join("data"))
        .stdin(Stdio::null());
    let output = command.output().unwrap();
    let shown = [output.stdout, output.stderr].concat();
    let shown = String::from_utf8_lossy(&shown);
    assert!(output.status.success() && shown.contains("1 passed"), "{shown}");
}
