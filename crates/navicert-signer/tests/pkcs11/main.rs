//! Keys in SoftHSM, in this process: the contract, PINs, and devices that come and go. A module finds its tokens through
//! a variable of the environment, so every test runs itself again as a process of its own with that variable set.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod devices;
mod keys;
#[expect(dead_code, reason = "how a handshake fails is another test's business")]
#[path = "../handshakes/memory.rs"]
mod memory;
mod pins;
mod support;
