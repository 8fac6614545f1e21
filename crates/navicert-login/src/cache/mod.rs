//! The cache: one entry per key, in files that only this user can read.
//!
//! ```text
//! CacheFolder ──▶ <key>.json   Entry: the tokens           (entry, file)
//!                 <key>.lock   held during refresh and login (lock)
//!                 <key>.state  what the holder does, how its last attempt ended (state)
//!                 <issuer>.provider.json  discovery document and key set
//!                 servers.json, servers.lock  API servers that the person has confirmed
//! ```

pub mod entry;
mod file;
mod folder;
pub mod lock;
mod provider_file;
mod seal;
pub mod state;
pub(crate) mod time_text;

pub use entry::{Entry, History, Memo};
pub use folder::CacheFolder;
pub(crate) use provider_file::ProviderDocuments;

#[cfg(test)]
mod tests;
