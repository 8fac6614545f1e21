//! The keeper and its clients over their socket: one run for all, and no failure of the keeper is one of the client.

#![cfg(unix)]
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use navicert_io::private_socket::PrivateListener;
use navicert_io::runtime_directory::RuntimeDirectory;
use navicert_plugin::keeper::{
    CommandKey, KeeperClient, KeeperReply, KeeperRequest, KeeperServer, MAX_KEPT_BYTES, RunLease,
};
use navicert_plugin::{Command, Environment};
use navicert_types::{Clock as _, Secret, SystemClock, Timestamp};
use tempfile::TempDir;

const SOCKET: &str = "navicert/exec-plugin.sock";

fn runtime() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
    dir
}

fn directory(runtime: &Path) -> RuntimeDirectory {
    RuntimeDirectory::locate(&|name| (name == "XDG_RUNTIME_DIR").then(|| runtime.as_os_str().to_owned()))
}

/// Starts the keeper on a thread.
fn start(descriptor: OwnedFd, path: &Path) -> io::Result<()> {
    let server =
        KeeperServer::take_over(descriptor, path, Arc::new(SystemClock)).map_err(io::Error::other)?;
    thread::spawn(move || server.serve());
    Ok(())
}

fn request(argument: &str, client: u32) -> KeeperRequest {
    let command = Command::new("/bin/sh", Environment::empty()).args([argument]);
    let key = CommandKey::new(&command, None, &[]).unwrap();
    KeeperRequest { key, max_age: Duration::from_secs(3600), client: Some(client) }
}

fn later() -> Timestamp {
    SystemClock.now() + Duration::from_secs(600)
}

fn secret(text: &str) -> Secret<Vec<u8>> {
    Secret::new(text.as_bytes().to_vec())
}

fn lease(reply: io::Result<KeeperReply>) -> RunLease {
    match reply.unwrap() {
        KeeperReply::Run(lease) => lease,
        other => panic!("{other:?}"),
    }
}

fn kept(reply: io::Result<KeeperReply>) -> Secret<Vec<u8>> {
    match reply.unwrap() {
        KeeperReply::Kept(output) => output,
        other => panic!("{other:?}"),
    }
}

#[test]
fn of_many_clients_at_once_one_starts_the_keeper_and_one_runs_the_program() {
    let runtime = runtime();
    let (starts, runs) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let count_and_start = |descriptor: OwnedFd, path: &Path| {
        starts.fetch_add(1, Ordering::SeqCst);
        start(descriptor, path)
    };
    let barrier = Barrier::new(32);
    thread::scope(|scope| {
        for client in 1..=32 {
            let (barrier, runs, runtime, start) = (&barrier, &runs, &runtime, &count_and_start);
            scope.spawn(move || {
                let keeper = KeeperClient::new(directory(runtime.path()), start);
                barrier.wait();
                match keeper.ask(&request("a", client)).unwrap() {
                    KeeperReply::Kept(output) => assert_eq!(output, secret("one")),
                    KeeperReply::Run(lease) => {
                        runs.fetch_add(1, Ordering::SeqCst);
                        lease.finish(secret("one"), later()).unwrap();
                    }
                    other => panic!("{other:?}"),
                }
            });
        }
    });
    assert_eq!((starts.into_inner(), runs.into_inner()), (1, 1));
    let keeper = KeeperClient::new(directory(runtime.path()), &start);
    assert_eq!(keeper.clear().unwrap(), Some(1));
}

#[test]
fn next_client_runs_the_program_if_the_first_is_gone_and_failures_are_not_kept() {
    let runtime = runtime();
    let keeper = KeeperClient::new(directory(runtime.path()), &start);
    let first = lease(keeper.ask(&request("a", 1)));
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let keeper = KeeperClient::new(directory(runtime.path()), &start);
            lease(keeper.ask(&request("a", 2))).fail(7).unwrap();
        });
        drop(first);
        waiting.join().unwrap();
    });
    lease(keeper.ask(&request("a", 3))).finish(secret("two"), later()).unwrap();
    assert_eq!(kept(keeper.ask(&request("a", 4))), secret("two"));
    lease(keeper.ask(&request("b", 4))).finish(Secret::new(vec![7; MAX_KEPT_BYTES + 1]), later()).unwrap();
    lease(keeper.ask(&request("b", 5))).finish(Secret::new(vec![7; MAX_KEPT_BYTES]), later()).unwrap();
    assert_eq!(kept(keeper.ask(&request("b", 6))).expose().len(), MAX_KEPT_BYTES);
    keeper.clear().unwrap();
}

#[test]
fn cleared_keeper_ends_and_another_one_starts_with_the_next_request() {
    let runtime = runtime();
    let keeper = KeeperClient::new(directory(runtime.path()), &start);
    assert_eq!(keeper.clear().unwrap(), None, "nothing is running");
    lease(keeper.ask(&request("a", 1))).finish(secret("one"), later()).unwrap();
    kept(keeper.ask(&request("a", 2)));
    assert_eq!(keeper.clear().unwrap(), Some(1));
    lease(keeper.ask(&request("a", 3))).finish(secret("two"), later()).unwrap();
    assert_eq!(kept(keeper.ask(&request("a", 4))), secret("two"));
    assert_eq!(keeper.clear().unwrap(), Some(1));
}

#[test]
fn keeper_that_does_not_reply_or_is_not_private_is_an_error_and_not_a_hang() {
    let runtime = runtime();
    let path = runtime.path().join(SOCKET);
    let no_start = |_: OwnedFd, _: &Path| -> io::Result<()> { panic!("there is one") };
    let listener = PrivateListener::bind(&path).unwrap();
    let keeper = KeeperClient::new(directory(runtime.path()), &no_start);
    let error = keeper.ask(&request("a", 1)).unwrap_err();
    assert!(matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut), "{error}");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    let error = keeper.ask(&request("a", 1)).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    drop(listener);
}
