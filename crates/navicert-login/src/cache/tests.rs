use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use navicert_plugin::Environment;
use navicert_types::clock::ManualClock;
use navicert_types::{Clock as _, Secret, Timestamp};

use super::state::{LoginState, Phase};
use super::*;
use crate::context::{Invocation, LoginContext, Pause};
use crate::error::{ErrorCode, LoginError};
use crate::key::KeyFields;
use crate::request::{Form, LoginRequest, Storage};
use crate::test_support::Silent;

const NOW: i64 = 1_800_000_000;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn entry(received: i64, lifetime: i64) -> Entry {
    let key = KeyFields::new(&LoginRequest::new(Form::Own, "https://id.example", "c")).unwrap();
    let mut entry = Entry::new(key, at(received));
    entry.local_expiry = at(received + lifetime);
    entry.id_token = Some(Secret::new("canary-id".to_owned()));
    entry.refresh_token = Some(Secret::new("canary-refresh".to_owned()));
    entry
}

fn folder() -> (tempfile::TempDir, CacheFolder) {
    let dir = tempfile::tempdir().unwrap();
    let folder = CacheFolder::at(dir.path().join("cache"), Storage::Disk).unwrap();
    folder.create().unwrap();
    (dir, folder)
}

fn context(variables: &[(&str, &str)], home: Option<&str>) -> LoginContext {
    let environment: Environment = variables.iter().copied().collect();
    LoginContext::new(environment, home.map(PathBuf::from), Invocation::ByHand, Arc::new(Silent))
}

const MINUTE: Duration = Duration::from_secs(60);

// L310, L312
#[test]
fn token_is_fresh_until_the_margin_before_its_local_expiry() {
    let hour = entry(NOW, 3600);
    assert!(hour.is_fresh(at(NOW + 3539), MINUTE));
    assert!(!hour.is_fresh(at(NOW + 3540), MINUTE));
    assert_eq!(hour.handed_expiry(MINUTE), at(NOW + 3570));
    // A fifth of a short lifetime.
    let short = entry(NOW, 120);
    assert!(short.is_fresh(at(NOW + 95), MINUTE));
    assert!(!short.is_fresh(at(NOW + 96), MINUTE));
    assert!(short.is_valid(at(NOW + 119)) && !short.is_valid(at(NOW + 120)));
    assert_eq!(short.handed_expiry(MINUTE), at(NOW + 108));
}

// L313
#[test]
fn clock_that_was_set_back_makes_an_entry_stale() {
    let entry = entry(NOW, 3600);
    assert!(entry.is_fresh(at(NOW - 60), MINUTE));
    assert!(!entry.is_fresh(at(NOW - 61), MINUTE));
}

#[test]
fn session_has_a_longest_duration() {
    let entry = entry(NOW, 3600);
    assert!(!entry.is_over(at(NOW + 100), None));
    assert!(!entry.is_over(at(NOW + 99), Some(Duration::from_secs(100))));
    assert!(entry.is_over(at(NOW + 100), Some(Duration::from_secs(100))));
}

// L405, L416, L417
#[test]
fn entry_survives_its_file_and_debug_shows_no_token() {
    let (_dir, folder) = folder();
    let entry = entry(NOW, 3600);
    folder.write(&entry).unwrap();
    let key = entry.key.cache_key();
    let read = folder.read(&key).unwrap();
    assert_eq!(read, entry);
    assert!(!format!("{read:?}").contains("canary"));
    let path = folder.path().join(format!("{}.json", key.as_str()));
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    assert_eq!(folder.keys().unwrap(), std::slice::from_ref(&key));
    let names: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 1, "no temporary file remains: {names:?}");
    folder.remove(&key).unwrap();
    assert_eq!(folder.read(&key), None);
}

// L404, L1314
#[test]
fn files_that_are_not_usable_are_absent() {
    let (dir, folder) = folder();
    let entry = entry(NOW, 3600);
    let key = entry.key.cache_key();
    let path = folder.path().join(format!("{}.json", key.as_str()));
    let good = serde_json::to_string(&entry).unwrap();
    let wrong_key = good.replace("\"clientId\":\"c\"", "\"clientId\":\"d\"");
    let other_version = good.replace("navicert/v1alpha1", "navicert/v9");
    for text in ["", "{", good.get(..good.len() / 2).unwrap(), &wrong_key, &other_version, "[]", "null"] {
        fs::write(&path, text).unwrap();
        assert_eq!(folder.read(&key), None, "{text:.40}");
        assert!(!path.exists() && path.with_extension("bad").exists(), "{text:.40}");
    }
    let target = dir.path().join("elsewhere.json");
    fs::write(&target, &good).unwrap();
    symlink(&target, &path).unwrap();
    assert_eq!(folder.read(&key), None, "a link is not followed");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &path,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    assert_eq!(folder.read(&key), None, "a FIFO is not waited for");
    fs::write(&path, &good).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    assert_eq!(folder.read(&key), Some(entry));
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600, "permissions of others are removed");
}

// L402
#[test]
fn folder_that_others_can_write_to_is_rejected() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("open");
    fs::create_dir(&path).unwrap();
    for (mode, is_safe) in [(0o700, true), (0o755, true), (0o770, false), (0o777, false)] {
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        let found = CacheFolder::at(path.clone(), Storage::Disk);
        assert_eq!(found.is_ok(), is_safe, "{mode:o}");
        if let Err(error) = found {
            assert_eq!(error.code(), ErrorCode::CacheUnsafe);
        }
    }
    fs::write(dir.path().join("file"), "").unwrap();
    assert!(CacheFolder::at(dir.path().join("file"), Storage::Disk).is_err());
    let created = CacheFolder::at(dir.path().join("a/b"), Storage::Disk).unwrap();
    created.create().unwrap();
    assert_eq!(fs::metadata(created.path()).unwrap().mode() & 0o777, 0o700);
}

// L401
#[test]
fn folder_comes_from_the_flag_or_the_environment() {
    let locate = |flag: Option<&str>, variables: &[(&str, &str)], home: Option<&str>| {
        let folder = CacheFolder::locate_default(flag.map(Path::new), &context(variables, home));
        folder.map(|folder| folder.path().to_str().unwrap().to_owned())
    };
    let all = [("NAVICERT_LOGIN_DIR", "/x/n"), ("KUBECACHEDIR", "/x/k"), ("XDG_STATE_HOME", "/x/s")];
    assert_eq!(locate(Some("/x/f"), &all, Some("/x/h")).unwrap(), "/x/f");
    assert_eq!(locate(None, &all, Some("/x/h")).unwrap(), "/x/n");
    assert_eq!(locate(None, &all[1..], Some("/x/h")).unwrap(), "/x/k/navicert-login");
    assert_eq!(locate(None, &all[2..], Some("/x/h")).unwrap(), "/x/s/navicert/login");
    assert_eq!(locate(None, &[], Some("/x/h")).unwrap(), "/x/h/.local/state/navicert/login");
    let error = locate(None, &[], None).unwrap_err();
    assert!(error.to_string().contains("--token-cache-dir"), "{error}");
}

// L420
#[test]
fn without_storage_nothing_is_read_or_written() {
    let dir = tempfile::tempdir().unwrap();
    let folder = CacheFolder::at(dir.path().join("cache"), Storage::None).unwrap();
    folder.create().unwrap();
    let entry = entry(NOW, 3600);
    folder.write(&entry).unwrap();
    assert_eq!(folder.read(&entry.key.cache_key()), None);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

// L405
#[test]
fn temporary_files_of_killed_processes_are_removed_after_an_hour() {
    let (_dir, folder) = folder();
    let key = entry(NOW, 60).key.cache_key();
    let old = folder.path().join(format!(".{}.json.1.abc", key.as_str()));
    let foreign = folder.path().join(".keep.1.abc");
    fs::write(&old, "").unwrap();
    fs::write(&foreign, "").unwrap();
    let written = fs::metadata(&old).unwrap().mtime();
    folder.remove_old_temporary_files(at(written + 3600));
    assert!(old.exists());
    folder.remove_old_temporary_files(at(written + 3601));
    assert!(!old.exists() && foreign.exists());
}

#[derive(Debug)]
struct AdvancingPause(Arc<ManualClock>);

impl Pause for AdvancingPause {
    fn pause(&self, duration: Duration) {
        self.0.advance(duration);
    }
}

// L501, L503
#[test]
fn lock_is_exclusive_and_waiting_is_bounded() {
    let (_dir, folder) = folder();
    let key = entry(NOW, 60).key.cache_key();
    let clock = Arc::new(ManualClock::at(NOW));
    let mut context = context(&[], None);
    context.pause = Arc::new(AdvancingPause(Arc::clone(&clock)));
    context.clock = Arc::clone(&clock) as Arc<_>;
    let end = clock.monotonic() + Duration::from_secs(10);
    let deadline = || (end, 77);
    let held = folder.open_lock(&key, &context).unwrap().acquire(&context, deadline).unwrap();
    assert!(!held.has_waited);
    assert!(!folder.open_lock(&key, &context).unwrap().try_acquire().unwrap());
    let error = folder.open_lock(&key, &context).unwrap().acquire(&context, deadline).unwrap_err();
    assert_eq!(error, LoginError::LockTimeout { pid: 77 });
    assert!(clock.monotonic() >= end);
    drop(held);
    assert!(folder.open_lock(&key, &context).unwrap().try_acquire().unwrap());
}

fn after_login(error: &LoginError, unanswered: u32) -> LoginState {
    let idle = LoginState { unanswered, ..LoginState::default() };
    idle.started(Phase::Login, at(NOW), at(NOW + 180), String::new()).finished(at(NOW + 10), Some(error))
}

// L520, L521
#[test]
fn processes_that_waited_share_the_failure() {
    let state = after_login(&LoginError::TimedOut { limit: Duration::from_secs(2) }, 0);
    let shared = state.shared_failure(at(NOW + 5)).unwrap();
    assert_eq!(shared.code(), ErrorCode::TimedOut);
    assert!(shared.to_string().ends_with(&format!("(asked by process {})", std::process::id())), "{shared}");
    assert_eq!(state.shared_failure(at(NOW + 11)), None, "a process that came later asks for itself");
    let good = LoginState::default().finished(at(NOW), None);
    assert_eq!(good.shared_failure(at(NOW - 5)), None);
}

// L522
#[test]
fn unanswered_logins_delay_the_next_one() {
    let timed_out = LoginError::TimedOut { limit: Duration::from_secs(2) };
    for (unanswered, delay) in [(0, 60), (1, 120), (2, 240), (4, 900), (30, 900)] {
        let state = after_login(&timed_out, unanswered);
        assert!(state.backoff(at(NOW + 10 + delay - 1)).is_some(), "{unanswered}");
        assert_eq!(state.backoff(at(NOW + 10 + delay)), None, "{unanswered}");
    }
    let error = after_login(&timed_out, 0).backoff(at(NOW + 15)).unwrap();
    assert!(error.to_string().ends_with("(next attempt in 55 s)"), "{error}");
    assert_eq!(error.code(), ErrorCode::TimedOut);
    let interrupted = after_login(&LoginError::Interrupted { signal: None }, 0);
    assert!(interrupted.backoff(at(NOW + 14)).is_some() && interrupted.backoff(at(NOW + 15)).is_none());
    let other = after_login(&LoginError::Pasted, 0);
    assert_eq!(other.backoff(at(NOW + 10)), None);
    assert_eq!(after_login(&timed_out, 3).finished(at(NOW), None).unanswered, 0, "success resets the count");
}

// L524
#[test]
fn killed_holder_counts_as_interrupted() {
    let login = LoginState::default().started(Phase::Login, at(NOW), at(NOW + 180), String::new());
    assert!(login.was_interrupted(at(NOW + 1)));
    assert!(login.backoff(at(NOW + 4)).is_some() && login.backoff(at(NOW + 5)).is_none());
    let refresh = LoginState::default().started(Phase::Refresh, at(NOW), at(NOW + 180), String::new());
    assert!(!refresh.was_interrupted(at(NOW + 1)), "a refresh needs no person");
}

// L523
#[test]
fn background_logins_are_rare() {
    let mut state = LoginState::default();
    assert!(state.allows_background_login(at(NOW)));
    state.add_tab(at(NOW));
    assert!(!state.allows_background_login(at(NOW + 599)));
    assert!(state.allows_background_login(at(NOW + 600)));
    state.add_tab(at(NOW + 600));
    state.add_tab(at(NOW + 1200));
    assert!(!state.allows_background_login(at(NOW + 9000)));
    assert!(state.allows_background_login(at(NOW + 86_400)));
}
