//! Programs: running one with a limit, examining its process, comparing what it prints with a transcript, searching it
//! for secrets, and finding programs: the workspace's own, and the tools of others.

pub mod canary;
pub mod json_schema;
pub mod output_schema;
pub mod process;
pub mod program;
#[cfg(unix)]
pub mod pseudo_terminal;
pub mod sibling;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub mod system_calls;
pub mod tools;
pub mod transcript;

/// Path of `navicert-fake-plugin`, a program for tests of programs that run others: what it does is in
/// `programs/fake_plugin`.
pub const FAKE_PLUGIN: &str = concat!(env!("OUT_DIR"), "/navicert-fake-plugin");
