//! Programs: running one with a limit, examining its process, comparing what it prints with a transcript, searching it
//! for secrets, and finding the tools of others.

pub mod canary;
pub mod process;
pub mod program;
pub mod tools;
pub mod transcript;
