//! Keeps secrets in this process's memory away from core dumps and from other processes of the user.

use std::io;

/// Prevents other processes of this user, such as the commands behind a gateway, from reading this process's memory, and
/// the system from writing it to a core dump. Child processes are not affected.
///
/// # Errors
/// The system does not support it.
#[cfg(target_os = "linux")]
pub fn hide_memory() -> io::Result<()> {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

/// Disables core dumps and, on Linux, [hides the memory](hide_memory). The limit on core dumps also holds for child
/// processes.
///
/// # Errors
/// The operating system rejects the setting.
// I266
pub fn forbid_core_dumps() -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, setrlimit};
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    #[cfg(target_os = "linux")]
    hide_memory()?;
    Ok(())
}

/// Keeps this process's memory from being swapped to disk, where the system permits locking all of it: with the capability
/// `CAP_IPC_LOCK`, or without a limit on locked memory (`ulimit -l unlimited`). Otherwise nothing is locked: the process would
/// fail to allocate memory once it reached the limit.
///
/// # Errors
/// The operating system does not permit it.
#[cfg(target_os = "linux")]
pub fn lock_memory() -> io::Result<()> {
    use rustix::mm::{MlockAllFlags, mlockall};
    use rustix::process::{Resource, getrlimit};
    use rustix::thread::{CapabilitySet, capabilities};
    let is_capable = capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::IPC_LOCK));
    if getrlimit(Resource::Memlock).current.is_some() && !is_capable {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the size of locked memory is limited"));
    }
    Ok(mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT)?)
}
