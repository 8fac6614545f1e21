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
