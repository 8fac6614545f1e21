#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
//!
//! # Modules
//!
//! - [`wake_gate`] and [`repoll`] save polls and wake-ups of tasks that drive a connection.
#![cfg_attr(feature = "stream", doc = "- [`coalescing`] wraps TLS streams: fewer reads, fewer records.")]
#![cfg_attr(
    feature = "stream",
    doc = "- [`forward`] writes the methods that a stream wrapper passes on unchanged."
)]
//! - [`connection_owner`] finds the user at the other end of a loopback connection.
#![cfg_attr(feature = "flights", doc = "- [`flights`]: tasks that want the same result share the work.")]
//! - [`private_socket`] and [`runtime_directory`]: how a user's long-running programs and their clients find each other
//!   on Unix sockets, and check that both are the same user.
//! - [`process_memory`] keeps secrets out of core dumps and away from other processes; [`inherited_descriptors`] closes what a
//!   process was started with.

#[cfg(feature = "stream")]
pub mod coalescing;
#[cfg(unix)]
pub mod connection_owner;
#[cfg(feature = "flights")]
pub mod flights;
#[cfg(feature = "stream")]
pub mod forward;
#[cfg(unix)]
pub mod inherited_descriptors;
#[cfg(unix)]
pub mod private_socket;
#[cfg(unix)]
pub mod process_memory;
pub mod repoll;
#[cfg(unix)]
pub mod runtime_directory;
pub mod wake_gate;
