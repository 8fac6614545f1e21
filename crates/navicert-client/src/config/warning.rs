//! Valid but probably unintended settings.

use std::fmt;

use super::error::ConfigLocation;
use crate::kubeconfig::{Effective, base_address};

/// A setting that does not prevent building a client and is probably unintended.
#[derive(Clone, Debug)]
pub struct ConfigWarning {
    pub(crate) kind: WarningKind,
    pub(crate) location: Option<ConfigLocation>,
}

impl ConfigWarning {
    /// Its position in a file, if known.
    pub fn location(&self) -> Option<&ConfigLocation> {
        self.location.as_ref()
    }

    /// How to fix it, if the message does not say so.
    pub fn help(&self) -> Option<&str> {
        let is_unused = matches!(self.kind, WarningKind::ExecUnused(_));
        is_unused.then_some("remove the static credential to use the plugin")
    }
}

impl fmt::Display for ConfigWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WarningKind {
    // C152
    #[error("context names user {0:?}, which does not exist")]
    UserMissing(String),
    #[error("the context names no user: requests will be anonymous")]
    NoUser,
    // C160
    #[error("server {0:?} is plain http: credentials will not be sent")]
    PlainHttp(String),
    // C161
    #[error(
        "server {0:?} has no scheme and is treated as plain http: credentials will not be sent; add https://"
    )]
    NoScheme(String),
    #[error("insecure-skip-tls-verify is set: an attacker on the network can read the credentials")]
    Insecure,
    // C163
    #[error("client-key of user {0:?} is ignored: there is no client-certificate")]
    KeyIgnored(String),
    // C162
    #[error("user {0:?} has token and tokenFile: tokenFile takes precedence")]
    TokenFileWins(String),
    // C168
    #[error("user {0:?} has a static credential next to exec: the plugin will never run")]
    ExecUnused(String),
}

/// Every warning about the selected context.
pub(super) fn warnings(effective: &Effective) -> Vec<WarningKind> {
    let mut found = Vec::new();
    user_warnings(effective, &mut found);
    let server = || effective.cluster.server.clone();
    let is_valid = base_address(&effective.cluster.server).is_ok();
    if !effective.has_scheme() && is_valid {
        found.push(WarningKind::NoScheme(server()));
    } else if !effective.is_https() && is_valid {
        found.push(WarningKind::PlainHttp(server()));
    }
    if effective.cluster.insecure_skip_tls_verify {
        found.push(WarningKind::Insecure);
    }
    found
}

fn user_warnings(effective: &Effective, found: &mut Vec<WarningKind>) {
    let (user, name) = (&effective.user, &effective.user_name);
    if !effective.user_exists && name.is_empty() {
        found.push(WarningKind::NoUser);
    } else if !effective.user_exists && !effective.user_is_missing() {
        found.push(WarningKind::UserMissing(name.clone()));
    }
    let has_certificate = !user.client_certificate.is_empty() || !user.client_certificate_data.is_empty();
    if !has_certificate && (!user.client_key.is_empty() || !user.client_key_data.is_empty()) {
        found.push(WarningKind::KeyIgnored(name.clone()));
    }
    if !user.token.is_empty() && !user.token_file.is_empty() {
        found.push(WarningKind::TokenFileWins(name.clone()));
    }
    let fixed =
        has_certificate || !user.token.is_empty() || !user.token_file.is_empty() || !user.username.is_empty();
    if fixed && user.exec.is_some() {
        found.push(WarningKind::ExecUnused(name.clone()));
    }
}
