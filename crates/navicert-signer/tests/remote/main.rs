//! Keys in other programs: the contract over both protocol versions and the socket, faulty signers, the policy, and the
//! real signer with SoftHSM.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod faults;
mod keys;
#[expect(dead_code, reason = "other tests use the rest")]
#[path = "../handshakes/memory.rs"]
mod memory;
mod openssl;
mod policy;
mod softhsm;
mod support;
