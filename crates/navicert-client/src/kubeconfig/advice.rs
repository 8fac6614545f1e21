//! Warnings about valid but probably unintended settings. Reported by `kubeconfig check`, never by the library itself.

use super::resolve::Effective;

/// A warning about a setting that does not prevent building a client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Advice {
    /// The context's user does not exist: requests are anonymous.
    // C152
    #[error("context names user {0:?}, which does not exist: requests will be anonymous")]
    UserMissing(String),
    /// The context has no user.
    #[error("the context names no user: requests will be anonymous")]
    NoUser,
    /// Credentials are not sent over plain http.
    // C160
    #[error("server {0:?} is plain http: credentials will not be sent")]
    PlainHttp(String),
    /// An address without a scheme counts as http.
    // C161
    #[error(
        "server {0:?} has no scheme and is treated as plain http: credentials will not be sent; add https://"
    )]
    NoScheme(String),
    /// The server's certificate is not verified.
    #[error("insecure-skip-tls-verify is set: an attacker on the network can read the credentials")]
    Insecure,
    /// An unused client key.
    // C163
    #[error("client-key of user {0:?} is ignored: there is no client-certificate")]
    KeyIgnored(String),
    /// The token file takes precedence over the token.
    // C162
    #[error("user {0:?} has token and tokenFile: tokenFile takes precedence")]
    TokenFileWins(String),
    /// A static credential prevents the plugin from running, even after it has expired.
    // C168
    #[error("user {0:?} has a static credential next to exec: the plugin will never run")]
    ExecUnused(String),
}

impl Effective {
    /// Every warning about the selected context.
    pub fn advice(&self) -> Vec<Advice> {
        let mut advice = Vec::new();
        self.user_advice(&mut advice);
        let server = || self.cluster.server.clone();
        if !self.has_scheme() {
            advice.push(Advice::NoScheme(server()));
        } else if !self.is_https() {
            advice.push(Advice::PlainHttp(server()));
        }
        if self.cluster.insecure_skip_tls_verify {
            advice.push(Advice::Insecure);
        }
        advice
    }

    fn user_advice(&self, advice: &mut Vec<Advice>) {
        let (user, name) = (&self.user, &self.user_name);
        if !self.user_exists && name.is_empty() {
            advice.push(Advice::NoUser);
        } else if !self.user_exists {
            advice.push(Advice::UserMissing(name.clone()));
        }
        let has_certificate = !user.client_certificate.is_empty() || !user.client_certificate_data.is_empty();
        if !has_certificate && (!user.client_key.is_empty() || !user.client_key_data.is_empty()) {
            advice.push(Advice::KeyIgnored(name.clone()));
        }
        if !user.token.is_empty() && !user.token_file.is_empty() {
            advice.push(Advice::TokenFileWins(name.clone()));
        }
        let fixed = has_certificate
            || !user.token.is_empty()
            || !user.token_file.is_empty()
            || !user.username.is_empty();
        if fixed && user.exec.is_some() {
            advice.push(Advice::ExecUnused(name.clone()));
        }
    }
}
