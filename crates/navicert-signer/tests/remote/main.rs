//! Keys in other programs: the contract over both versions and the socket, what a signer may get wrong, what it may not be
//! told, and the real signer with SoftHSM.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod faults;
mod keys;
#[expect(dead_code, reason = "how a handshake fails is another test's business")]
#[path = "../handshakes/memory.rs"]
mod memory;
mod openssl;
mod policy;
mod softhsm;
mod support;
