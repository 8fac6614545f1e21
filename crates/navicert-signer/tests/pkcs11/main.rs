//! Keys in SoftHSM within this process: the contract, PINs, and removed devices. SoftHSM finds its tokens through an
//! environment variable, so every test runs itself again in a child process with that variable set.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod devices;
mod enrollment;
mod keys;
#[expect(dead_code, reason = "other tests use the rest")]
#[path = "../handshakes/memory.rs"]
mod memory;
mod pins;
mod support;
