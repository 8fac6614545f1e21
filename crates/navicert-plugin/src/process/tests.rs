//! Tests of the corners that no plugin can reach from outside.

use std::thread;
use std::time::Duration;

use navicert_types::SystemClock;
use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use super::*;
use crate::command::Environment;
use crate::policy::Policy;

const SOON: Duration = Duration::from_secs(60);

/// A child that reads from a pipe nobody writes to.
fn waiting_child() -> (Child, Pid) {
    let command = Command::new("/bin/cat", Environment::empty()).stdin(Stdin::Bytes(Vec::new().into()));
    let (command, program) = Policy::AllowAll.permit(command).unwrap().into_parts();
    let child = spawn(&command, &program).unwrap();
    let pid = Pid::from_child(&child);
    (child, pid)
}

/// Waits until the child is neither running nor a zombie.
fn is_reaped(pid: Pid) {
    let started = SystemClock.monotonic();
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    while !matches!(waitid(WaitId::Pid(pid), look), Err(Errno::CHILD)) {
        assert!(SystemClock.monotonic() - started < SOON, "still there");
        thread::yield_now();
    }
}

#[test]
fn a_child_that_outlives_its_killing_is_reaped_when_it_ends() {
    let (mut child, pid) = waiting_child();
    let stdin = child.stdin.take();
    let mut kept = Kept(Some(Watched::new(child, ProcessGroup::Inherit, true)));
    assert_eq!(kept.reap_elsewhere().unwrap_err().kind(), io::ErrorKind::WouldBlock);
    drop(stdin);
    is_reaped(pid);
}

#[test]
fn a_child_that_is_dropped_is_killed_and_reaped() {
    for group in [ProcessGroup::Inherit, ProcessGroup::New] {
        let (mut child, pid) = waiting_child();
        let _stdin = child.stdin.take();
        drop(Kept(Some(Watched::new(child, ProcessGroup::Inherit, group == ProcessGroup::Inherit))));
        is_reaped(pid);
    }
}
