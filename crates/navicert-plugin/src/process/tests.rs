//! Tests of cases that a plugin cannot trigger.

use std::thread;
use std::time::Duration;

use navicert_types::SystemClock;
use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use super::*;
use crate::command::Environment;
use crate::policy::Policy;

const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// A child that blocks reading an open pipe without data.
fn waiting_child() -> (Child, Pid) {
    let command = Command::new("/bin/cat", Environment::empty()).stdin(Stdin::Bytes(Vec::new().into()));
    let (command, program) = Policy::AllowAll.permit(command).unwrap().into_parts();
    let child = spawn(&command, &program).unwrap();
    let pid = Pid::from_child(&child);
    (child, pid)
}

/// Waits until the child is neither running nor a zombie.
fn wait_until_reaped(pid: Pid) {
    let started = SystemClock.monotonic();
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    while !matches!(waitid(WaitId::Pid(pid), look), Err(Errno::CHILD)) {
        assert!(SystemClock.monotonic() - started < TEST_TIMEOUT, "the child was not reaped");
        thread::yield_now();
    }
}

#[test]
fn child_that_survives_kill_is_reaped_when_it_exits() {
    let (mut child, pid) = waiting_child();
    let stdin = child.stdin.take();
    let mut kept = ReapOnDrop(Some(ChildHandle::new(child, ProcessGroup::Inherit, true)));
    assert_eq!(kept.reap_in_background().unwrap_err().kind(), io::ErrorKind::WouldBlock);
    drop(stdin);
    wait_until_reaped(pid);
}

#[test]
fn dropped_child_is_killed_and_reaped() {
    for group in [ProcessGroup::Inherit, ProcessGroup::New] {
        let (mut child, pid) = waiting_child();
        let _stdin = child.stdin.take();
        drop(ReapOnDrop(Some(ChildHandle::new(
            child,
            ProcessGroup::Inherit,
            group == ProcessGroup::Inherit,
        ))));
        wait_until_reaped(pid);
    }
}
