//! Why there is no credential. Every error has a stable code, an exit class and one sentence; no sentence holds a token, a
//! code, a secret or a password.

use std::time::Duration;

use navicert_client::oauth::OAuthError;
use thiserror::Error;

/// The stable name of an error: in `-o json`, in the state file and in tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the names are those of the codes")]
pub enum ErrorCode {
    Usage,
    LoginNeeded,
    TimedOut,
    Denied,
    Interrupted,
    NoBrowser,
    PortTaken,
    RedirectUri,
    Client,
    SecretMissing,
    Scope,
    NoIdToken,
    Grant,
    Target,
    ServerNotTrusted,
    Pkce,
    Issuer,
    Discovery,
    Unreachable,
    Certificate,
    Http,
    Clock,
    Audience,
    Nonce,
    Signature,
    Algorithm,
    AtHash,
    MixUp,
    SubjectChanged,
    IdToken,
    SessionOver,
    ProviderFault,
    Cors,
    Consent,
    DeviceBlocked,
    Pasted,
    CacheFolder,
    CacheUnsafe,
    Keyring,
    Strangers,
    Redirected,
    AnswerTooLong,
    NotJson,
    TokenType,
    SubjectToken,
    ProxyLogin,
    ProviderError,
    File,
    Kubeconfig,
    Internal,
}

/// How the process ends; the binary maps it to navicert's exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExitClass {
    /// The login failed.
    Failure,
    /// The command line is wrong.
    Usage,
    /// A file is missing or invalid.
    BadInput,
    /// The provider cannot be reached.
    Unreachable,
    /// A person is needed and may not be asked.
    Denied,
    /// An internal error.
    Internal,
}

const CODES: &[(ErrorCode, &str, ExitClass)] = {
    use ErrorCode as C;
    use ExitClass::{BadInput, Denied, Failure, Internal, Unreachable, Usage};
    &[
        (C::Usage, "usage", Usage),
        (C::LoginNeeded, "login-needed", Denied),
        (C::TimedOut, "timed-out", Failure),
        (C::Denied, "denied", Failure),
        (C::Interrupted, "interrupted", Failure),
        (C::NoBrowser, "no-browser", Failure),
        (C::PortTaken, "port-taken", Failure),
        (C::RedirectUri, "redirect-uri", Failure),
        (C::Client, "client", Failure),
        (C::SecretMissing, "secret-missing", Failure),
        (C::Scope, "scope", Failure),
        (C::NoIdToken, "no-id-token", Failure),
        (C::Grant, "grant", Failure),
        (C::Target, "target", Failure),
        (C::ServerNotTrusted, "server-not-trusted", Denied),
        (C::Pkce, "pkce", Failure),
        (C::Issuer, "issuer", Failure),
        (C::Discovery, "discovery", Failure),
        (C::Unreachable, "unreachable", Unreachable),
        (C::Certificate, "certificate", Unreachable),
        (C::Http, "http", Usage),
        (C::Clock, "clock", Failure),
        (C::Audience, "audience", Failure),
        (C::Nonce, "nonce", Failure),
        (C::Signature, "signature", Failure),
        (C::Algorithm, "algorithm", Failure),
        (C::AtHash, "at-hash", Failure),
        (C::MixUp, "mix-up", Failure),
        (C::SubjectChanged, "subject-changed", Failure),
        (C::IdToken, "id-token", Failure),
        (C::SessionOver, "session-over", Denied),
        (C::ProviderFault, "provider-fault", Unreachable),
        (C::Cors, "cors", Failure),
        (C::Consent, "consent", Failure),
        (C::DeviceBlocked, "device-blocked", Failure),
        (C::Pasted, "pasted", Failure),
        (C::CacheFolder, "cache-folder", BadInput),
        (C::CacheUnsafe, "cache-unsafe", BadInput),
        (C::Keyring, "keyring", BadInput),
        (C::Strangers, "strangers", Failure),
        (C::Redirected, "redirected", Failure),
        (C::AnswerTooLong, "answer-too-long", Failure),
        (C::NotJson, "not-json", Failure),
        (C::TokenType, "token-type", Failure),
        (C::SubjectToken, "subject-token", BadInput),
        (C::ProxyLogin, "proxy-login", Unreachable),
        (C::ProviderError, "provider-error", Failure),
        (C::File, "file", BadInput),
        (C::Kubeconfig, "kubeconfig", BadInput),
        (C::Internal, "internal", Internal),
    ]
};

impl ErrorCode {
    /// The stable text.
    pub fn as_str(self) -> &'static str {
        CODES.iter().find(|(code, ..)| *code == self).map_or("internal", |(_, text, _)| text)
    }

    /// The code with this text.
    pub fn from_text(text: &str) -> Option<ErrorCode> {
        CODES.iter().find(|(_, known, _)| *known == text).map(|(code, ..)| *code)
    }

    /// How the process ends.
    pub fn exit(self) -> ExitClass {
        CODES.iter().find(|(code, ..)| *code == self).map_or(ExitClass::Internal, |(.., exit)| *exit)
    }
}

/// Why there is no credential. `host` is the issuer's host, `client` the client id.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the fields are what the sentence shows")]
pub enum LoginError {
    /// The command line or the cluster's exec extension is wrong.
    #[error("{0}")]
    Usage(String),
    /// A person has to log in, and may not be asked here.
    #[error("logging in to {host} needs a person; run in a terminal: {command}")]
    LoginNeeded { host: String, command: String },
    /// The session has ended, and a person may not be asked here.
    #[error("the session at {host} has ended ({why}); run in a terminal: {command}")]
    SessionOver { host: String, why: String, command: String },
    /// The person did not answer in time.
    #[error("login timed out after {} s; run the command again, or raise --authentication-timeout-sec", limit.as_secs())]
    TimedOut { limit: Duration },
    /// Another process holds the lock for too long.
    #[error("timed out waiting for the login of process {pid}; end that process, or run the command again")]
    LockTimeout { pid: u32 },
    /// The provider denied access.
    #[error("{host} denied access{}", parenthesized(description))]
    Denied { host: String, description: String },
    /// A signal, or the person at the terminal, ended the login.
    #[error("login interrupted")]
    Interrupted { signal: Option<i32> },
    /// There is no browser, and the provider has no device login.
    #[error(
        "no browser available, and {host} offers no device login; use ssh -L, or --grant-type=authcode-keyboard in a terminal"
    )]
    NoBrowser { host: String },
    /// No listen address is free.
    #[error(
        "failed to listen on {addresses}; free one of them, or register another and name it with --listen-address"
    )]
    PortTaken { addresses: String },
    /// The provider does not know the redirect URI.
    #[error("{host} does not know the redirect URI {uri}; add exactly this text to the client {client}")]
    RedirectUri { host: String, uri: String, client: String },
    /// The provider rejected the client.
    #[error(
        "{host} rejected the client {client}{}; check its id and secret, or that it is a public client",
        parenthesized(description)
    )]
    Client { host: String, client: String, description: String },
    /// The client has a secret, and none was given.
    #[error("the client {client} at {host} is confidential; give its secret with --oidc-client-secret-file")]
    SecretMissing { host: String, client: String },
    /// The provider rejected a scope.
    #[error("{host} rejected the scopes `{scopes}`{}{}", parenthesized(description), allowed(supported))]
    Scope { host: String, scopes: String, description: String, supported: String },
    /// There is no ID token in the answer.
    #[error("{host} sent no ID token; request the scope openid, or use --token-kind=access")]
    NoIdToken { host: String },
    /// There is no access token in the answer.
    #[error("{host} sent no access token")]
    NoAccessToken { host: String },
    /// The provider does not offer the grant.
    #[error("{host} does not offer the grant {grant}{}", allowed(offered))]
    Grant { host: String, grant: String, offered: String },
    /// The provider exchanges no token for this audience.
    #[error(
        "{host} does not exchange the session for a token of the audience `{audience}`{}; check --exchange-audience",
        parenthesized(description)
    )]
    Target { host: String, audience: String, description: String },
    /// An API server has not had a token before, and the person cannot be asked or said no.
    #[error(
        "the API server {server} has not been given a token of {host} before{why}; if you trust it, run the same command in a terminal once"
    )]
    ServerNotTrusted { server: String, host: String, why: String },
    /// PKCE is not possible as requested.
    #[error("{host} rejected PKCE{}; see --oidc-pkce-method", parenthesized(description))]
    Pkce { host: String, description: String },
    /// The discovery document belongs to another issuer.
    #[error("the discovery document names the issuer {found}, the command line {wanted}{hint}")]
    Issuer { found: String, wanted: String, hint: String },
    /// There is no discovery document.
    #[error(
        "{url} is no discovery document ({why}); is the issuer URL complete? Keycloak's ends in /realms/NAME"
    )]
    Discovery { url: String, why: String },
    /// The provider cannot be reached.
    #[error("failed to reach {host}: {why}")]
    Unreachable { host: String, why: String },
    /// The provider's certificate is not trusted.
    #[error(
        "the certificate of {host} is not trusted: {why}; if its root is missing, give it with --certificate-authority"
    )]
    Certificate { host: String, why: String },
    /// The proxy wants a password.
    #[error("the proxy {proxy} requires a password; put it into HTTPS_PROXY or --proxy-url")]
    ProxyLogin { proxy: String },
    /// An address is not https.
    #[error("{url} is not https")]
    Http { url: String },
    /// The provider sent a token that has expired by the provider's own time.
    #[error("{host} sent a token that has already expired")]
    Expired { host: String },
    /// The ID token is for another client.
    #[error("the ID token is for {found}, not for {client}")]
    Audience { found: String, client: String },
    /// The ID token belongs to another login.
    #[error("the ID token of {host} does not have the nonce of this login")]
    Nonce { host: String },
    /// No key of the provider signed the ID token.
    #[error("the signature of the ID token of {host} is not valid")]
    Signature { host: String },
    /// The ID token is signed in a way that no API server accepts.
    #[error(
        "the ID token of {host} is {found}, which no API server accepts; set the client's signature algorithm to RS256 or ES256"
    )]
    Algorithm { host: String, found: String },
    /// The ID token does not belong to the access token.
    #[error("the ID token of {host} does not belong to the access token (`at_hash`)")]
    AtHash { host: String },
    /// An answer came from another provider.
    #[error(
        "an answer came from {found} instead of {issuer}; another program may be tampering with this login"
    )]
    MixUp { found: String, issuer: String },
    /// The session now belongs to another user.
    #[error("{host} sent a token of another user than before; the session was removed, log in again")]
    SubjectChanged { host: String },
    /// A claim of the ID token is missing or wrong.
    #[error("invalid ID token of {host}: {why}")]
    IdToken { host: String, why: String },
    /// The provider answers with an error that may pass.
    #[error("{host} is failing ({why}); nothing was changed, try again")]
    ProviderFault { host: String, why: String },
    /// The client is registered for browsers only.
    #[error(
        "the client {client} is registered as a single-page application; register it as a desktop application, or give --oidc-request-header=Origin=http://localhost"
    )]
    Cors { client: String },
    /// An administrator has to consent.
    #[error("an administrator has to consent to the client {client}")]
    Consent { client: String },
    /// A policy of the provider forbids device logins.
    #[error("a policy of {host} forbids device logins; use a browser: --grant-type=authcode")]
    DeviceBlocked { host: String },
    /// The pasted text is not usable.
    #[error("invalid input: neither a code nor the address of the last page")]
    Pasted,
    /// There is no cache folder.
    #[error("{0}")]
    CacheFolder(String),
    /// The cache folder is open to other users.
    #[error("the cache folder `{path}` {why}; choose another one with --token-cache-dir")]
    CacheUnsafe { path: String, why: String },
    /// The keyring cannot be used.
    #[error("{0}")]
    Keyring(String),
    /// Another program keeps calling the receiver.
    #[error("another program keeps calling {address}; choose another address with --listen-address")]
    Strangers { address: String },
    /// An endpoint redirects, which would send secrets elsewhere.
    #[error("{host} redirects to {target}, which is not allowed")]
    Redirected { host: String, target: String },
    /// An answer is too long.
    #[error("the answer of {host} is longer than {limit} bytes")]
    AnswerTooLong { host: String, limit: usize },
    /// An answer is not JSON.
    #[error("the answer of {host} is not JSON (status {status}{})", quoted(start))]
    NotJson { host: String, status: u16, start: String },
    /// The token is not a bearer token.
    #[error("{host} sent a token of type `{found}`; Kubernetes accepts bearer tokens only")]
    TokenType { host: String, found: String },
    /// There is no subject token.
    #[error("{0}")]
    SubjectToken(String),
    /// An error code of the provider without a rule of its own.
    #[error("{host} answered `{code}`{}", parenthesized(description))]
    ProviderError { host: String, code: String, description: String },
    /// A file cannot be read.
    #[error("failed to read `{path}`: {why}")]
    File { path: String, why: String },
    /// The login of another process failed, or one that failed a short time ago.
    #[error("{message}{note}")]
    Shared { code: ErrorCode, message: String, note: String },
    /// The kubeconfig of `--context` is not usable.
    #[error("{0}")]
    Kubeconfig(String),
    /// Something that should not happen.
    #[error("internal error: {0}")]
    Internal(String),
}

impl From<OAuthError> for LoginError {
    fn from(error: OAuthError) -> Self {
        match error {
            OAuthError::Address { url } => LoginError::Http { url },
            OAuthError::Settings { .. } => LoginError::Usage(error.to_string()),
            OAuthError::Unreachable { host, why } => LoginError::Unreachable { host, why },
            OAuthError::Certificate { host, why } => LoginError::Certificate { host, why },
            OAuthError::ProxyLogin { proxy } => LoginError::ProxyLogin { proxy },
            OAuthError::Redirected { host, target } => LoginError::Redirected { host, target },
            OAuthError::TooLong { host, limit } => LoginError::AnswerTooLong { host, limit },
            OAuthError::NotJson { host, status, start } => LoginError::NotJson { host, status, start },
            OAuthError::TokenType { host, found } => LoginError::TokenType { host, found },
            other => LoginError::Internal(other.to_string()),
        }
    }
}

impl LoginError {
    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        use ErrorCode as C;
        match self {
            LoginError::Usage(_) => C::Usage,
            LoginError::LoginNeeded { .. } => C::LoginNeeded,
            LoginError::SessionOver { .. } => C::SessionOver,
            LoginError::TimedOut { .. } | LoginError::LockTimeout { .. } => C::TimedOut,
            LoginError::Denied { .. } => C::Denied,
            LoginError::Interrupted { .. } => C::Interrupted,
            LoginError::NoBrowser { .. } => C::NoBrowser,
            LoginError::PortTaken { .. } => C::PortTaken,
            LoginError::RedirectUri { .. } => C::RedirectUri,
            LoginError::Client { .. } => C::Client,
            LoginError::SecretMissing { .. } => C::SecretMissing,
            LoginError::Scope { .. } => C::Scope,
            LoginError::NoIdToken { .. } | LoginError::NoAccessToken { .. } => C::NoIdToken,
            LoginError::Grant { .. } => C::Grant,
            LoginError::Target { .. } => C::Target,
            LoginError::ServerNotTrusted { .. } => C::ServerNotTrusted,
            LoginError::Pkce { .. } => C::Pkce,
            LoginError::Issuer { .. } => C::Issuer,
            LoginError::Discovery { .. } => C::Discovery,
            LoginError::Unreachable { .. } => C::Unreachable,
            LoginError::Certificate { .. } => C::Certificate,
            LoginError::ProxyLogin { .. } => C::ProxyLogin,
            LoginError::Http { .. } => C::Http,
            LoginError::Expired { .. } => C::Clock,
            LoginError::Audience { .. } => C::Audience,
            LoginError::Nonce { .. } => C::Nonce,
            LoginError::Signature { .. } => C::Signature,
            LoginError::Algorithm { .. } => C::Algorithm,
            LoginError::AtHash { .. } => C::AtHash,
            LoginError::MixUp { .. } => C::MixUp,
            LoginError::SubjectChanged { .. } => C::SubjectChanged,
            LoginError::IdToken { .. } => C::IdToken,
            LoginError::ProviderFault { .. } => C::ProviderFault,
            LoginError::Cors { .. } => C::Cors,
            LoginError::Consent { .. } => C::Consent,
            LoginError::DeviceBlocked { .. } => C::DeviceBlocked,
            LoginError::Pasted => C::Pasted,
            LoginError::CacheFolder(_) => C::CacheFolder,
            LoginError::CacheUnsafe { .. } => C::CacheUnsafe,
            LoginError::Keyring(_) => C::Keyring,
            LoginError::Strangers { .. } => C::Strangers,
            LoginError::Redirected { .. } => C::Redirected,
            LoginError::AnswerTooLong { .. } => C::AnswerTooLong,
            LoginError::NotJson { .. } => C::NotJson,
            LoginError::TokenType { .. } => C::TokenType,
            LoginError::SubjectToken(_) => C::SubjectToken,
            LoginError::ProviderError { .. } => C::ProviderError,
            LoginError::File { .. } => C::File,
            LoginError::Kubeconfig(_) => C::Kubeconfig,
            LoginError::Shared { code, .. } => *code,
            LoginError::Internal(_) => C::Internal,
        }
    }

    /// How the process ends.
    pub fn exit(&self) -> ExitClass {
        self.code().exit()
    }

    /// Whether the fault may pass: the session stays as it is, and a person is never asked because of it.
    pub fn is_transient(&self) -> bool {
        matches!(self.code(), ErrorCode::Unreachable | ErrorCode::ProviderFault)
    }
}

fn parenthesized(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(" ({text})") }
}

fn quoted(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(", starts with `{text}`") }
}

fn allowed(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("; it offers {text}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    // L1201, L1217, L1219, L1223, L1224, L1229, L1232
    #[test]
    fn every_code_has_one_text_and_an_exit_class() {
        for (code, text, exit) in CODES {
            assert_eq!((code.as_str(), code.exit()), (*text, *exit));
            assert_eq!(ErrorCode::from_text(text), Some(*code));
            assert_eq!(CODES.iter().filter(|(_, other, _)| other == text).count(), 1, "{text}");
        }
        assert_eq!(ErrorCode::LoginNeeded.exit(), ExitClass::Denied);
        assert_eq!(ErrorCode::SessionOver.exit(), ExitClass::Denied);
        assert_eq!(ErrorCode::ProviderFault.exit(), ExitClass::Unreachable);
        assert_eq!(ErrorCode::Unreachable.exit(), ExitClass::Unreachable);
        assert_eq!(ErrorCode::Http.exit(), ExitClass::Usage);
        assert_eq!(ErrorCode::CacheUnsafe.exit(), ExitClass::BadInput);
        assert_eq!(ErrorCode::SubjectToken.exit(), ExitClass::BadInput);
    }
}
