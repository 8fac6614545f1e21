//! Where the sessions of the proposed user are kept: sealed by the desktop's keyring if that works.

use super::{SetupOptions, SetupReport, SetupVerdict};
use crate::context::LoginContext;
use crate::request::{LoginRequest, Storage};

/// Why the proposed user keeps its sessions where it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StorageChoice {
    /// A flag says so.
    Given,
    /// Nothing says so, and the keyring has not been tried.
    NotTried,
    /// The keyring works.
    KeyringWorks,
    /// The keyring cannot be used, for this reason.
    NoKeyring(String),
}

/// Tries the keyring if no flag names a storage, and makes the request use it if it works.
// L420
pub fn choose_storage(request: &mut LoginRequest, options: &mut SetupOptions, context: &LoginContext) {
    if options.storage != StorageChoice::NotTried {
        return;
    }
    options.storage = match context.keyring.probe(&context.environment) {
        Ok(()) => {
            request.storage = Storage::Keyring;
            StorageChoice::KeyringWorks
        }
        Err(why) => StorageChoice::NoKeyring(why),
    };
}

/// Says where sessions are kept.
pub(super) fn report_storage(request: &LoginRequest, options: &SetupOptions, report: &mut SetupReport) {
    let kept = match request.storage {
        Storage::Disk => "sessions are kept in files that only you can read",
        Storage::Keyring => "sessions are sealed by a key in the desktop's keyring",
        Storage::None => "sessions are not kept",
    };
    let text = match &options.storage {
        StorageChoice::Given | StorageChoice::NotTried => kept.to_owned(),
        StorageChoice::KeyringWorks => format!("{kept}, which works (--token-cache-storage=keyring)"),
        StorageChoice::NoKeyring(why) => format!("{kept}; the desktop's keyring cannot be used: {why}"),
    };
    report.add("storage", SetupVerdict::Pass, text);
}
