//! Why an exchange with a provider failed. No text contains a token or a secret.

use thiserror::Error;

/// A failed exchange. `host` is the provider's.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the fields are what the sentence shows")]
pub enum OAuthError {
    /// An address is not https.
    #[error("{url} is not https")]
    Address { url: String },
    /// The connection settings are invalid.
    #[error("invalid connection settings for {host}: {why}")]
    Settings { host: String, why: String },
    /// The provider cannot be reached.
    #[error("failed to reach {host}: {why}")]
    Unreachable { host: String, why: String },
    /// The provider's certificate is not trusted.
    #[error("the certificate of {host} is not trusted: {why}")]
    Certificate { host: String, why: String },
    /// The proxy wants a password.
    #[error("the proxy {proxy} requires a password")]
    ProxyLogin { proxy: String },
    /// An endpoint redirects, which would send secrets elsewhere.
    #[error("{host} redirects to {target}, which is not allowed")]
    Redirected { host: String, target: String },
    /// An answer is too long.
    #[error("the answer of {host} is longer than {limit} bytes")]
    TooLong { host: String, limit: usize },
    /// An answer is not JSON, or lacks a member.
    #[error("the answer of {host} is not JSON (status {status})")]
    NotJson { host: String, status: u16, start: String },
    /// The token is not a bearer token.
    #[error("{host} sent a token of type `{found}`")]
    TokenType { host: String, found: String },
}

/// A request without a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendError {
    /// Why.
    pub error: OAuthError,
    /// The provider may have received the request.
    pub was_sent: bool,
}

impl From<OAuthError> for SendError {
    fn from(error: OAuthError) -> Self {
        SendError { error, was_sent: false }
    }
}
