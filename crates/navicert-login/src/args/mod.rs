//! The command line: kubelogin's flags with pflag's rules, and navicert's own.
//!
//! ```text
//! words ──flags──▶ values by flag ──build──▶ LoginRequest
//! ```
//!
//! The tables [`FLAGS`] and [`SETUP_FLAGS`] are the only lists of flags: parsing, help and manual pages are made from them.

mod build;
pub mod flags;
mod parse;
mod verb_flags;

pub use build::{ExtensionDefaults, login_request};
pub use flags::{FLAGS, Flag, FlagKind};
pub use parse::{ParsedFlags, parse, parse_with};
pub use verb_flags::{LOGOUT_FLAGS, SETUP_FLAGS, STATUS_FLAGS};

use std::ffi::OsStr;
use std::path::Path;

use crate::request::Form;

/// What the first words ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginVerb {
    /// Get a credential.
    Get(Form),
    /// Remove every entry.
    Clean,
    /// Check a provider and print the configuration for it.
    Setup,
    /// Print the version.
    Version,
    /// An alias without a sub-word: kubelogin's stand-alone mode, which does not exist here.
    StandAlone,
}

/// Names of the program under which it behaves as `navicert login`.
const ALIASES: [&str; 3] = ["kubectl-oidc_login", "kubectl-oidc-login", "kubelogin"];

/// Whether the program was started under a name that means `navicert login`.
pub fn is_alias(program: &OsStr) -> bool {
    let name = Path::new(program).file_name().and_then(OsStr::to_str).unwrap_or_default();
    let name = name.strip_suffix(".exe").unwrap_or(name);
    ALIASES.contains(&name)
}

/// Splits the verb from the words after `login`.
pub fn split_verb<S: AsRef<str>>(words: &[S], is_alias: bool) -> (LoginVerb, &[S]) {
    let rest = words.get(1..).unwrap_or_default();
    match words.first().map(AsRef::as_ref) {
        Some("get-token") => (LoginVerb::Get(Form::Compatible), rest),
        Some("clean") => (LoginVerb::Clean, rest),
        Some("setup") => (LoginVerb::Setup, rest),
        Some("version") => (LoginVerb::Version, rest),
        _ if is_alias => (LoginVerb::StandAlone, words),
        _ => (LoginVerb::Get(Form::Own), words),
    }
}

#[cfg(test)]
mod tests;
