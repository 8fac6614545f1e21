//! Explains why the server did not accept the credential. The server gives no reason, so it is derived from what was
//! sent.

use base64::Engine as _;
use navicert_go::base64::RAW_STANDARD;
use rustls::AlertDescription;
use zeroize::Zeroizing;

use super::DoctorInputs;
use super::connection::Target;
use super::credential::claims;
use super::handshake;
use super::kubeconfig::quoted;
use super::plugin::ObtainedCredential;
use super::tls_probe;
use crate::credential::claims::Claims;
use crate::kubeconfig::Effective;

/// Shorter texts decode to printable characters by chance.
const MIN_ENCODED_TOKEN_BYTES: usize = 12;

/// What was sent, and to which server.
pub(super) struct Sent<'a> {
    pub(super) inputs: &'a DoctorInputs,
    pub(super) effective: &'a Effective,
    pub(super) target: &'a Target<'a>,
    pub(super) obtained: &'a ObtainedCredential,
}

impl Sent<'_> {
    pub(super) fn has_credential(&self) -> bool {
        let credential = &self.obtained.credential;
        credential.authorization.is_some() || credential.identity.is_some()
    }

    pub(super) fn impersonates(&self) -> bool {
        self.target.settings.impersonation.is_some()
    }

    /// Whether the credential has a form that no server accepts.
    pub(super) fn has_known_mistake(&self) -> bool {
        self.authorization("Basic").is_some()
            || self.authorization("Bearer").is_some_and(|token| token_mistake(token).is_some())
    }

    /// The `Authorization` header without its scheme, if the scheme is this.
    fn authorization(&self, scheme: &str) -> Option<&str> {
        let header = self.obtained.credential.authorization.as_ref()?.to_str().ok()?;
        header.strip_prefix(scheme)?.strip_prefix(' ')
    }

    /// The alert that the server sends for the client certificate.
    pub(super) async fn observed_alert(&self) -> Option<AlertDescription> {
        if self.target.proxy.is_some() {
            return None;
        }
        let (host, port) = self.target.host_and_port();
        let identity = self.obtained.credential.identity.as_deref();
        let observed = tls_probe::observe((&host, port), &self.target.server_name(), identity).await;
        observed?.alert
    }

    /// Whether a client certificate is the only credential, and the server does not request one.
    async fn certificate_is_lost(&self) -> bool {
        let credential = &self.obtained.credential;
        credential.identity.is_some()
            && credential.authorization.is_none()
            && handshake::observe(self.target).await.is_some_and(|observed| !observed.requests_certificate)
    }
}

/// The request arrived without a user: the credential was lost, is of a kind the server ignores, or does not exist.
pub(super) async fn explain_anonymous(sent: &Sent<'_>) -> (String, String) {
    let (user, cluster) = (quoted(&sent.effective.user_name), sent.target.cluster());
    let server = quoted(&sent.target.server());
    let prefix = "the server treats the request as `system:anonymous`";
    if !sent.effective.is_https() {
        let text = format!("{prefix}: no credential was sent over plain http");
        return (
            text,
            format!("use https:// in the server of cluster {cluster}: credentials are sent only over https"),
        );
    }
    if !sent.has_credential() {
        let text = format!("{prefix}: no credential was sent");
        return (text, add_credential(&sent.effective.user_name));
    }
    if sent.authorization("Basic").is_some() {
        return (format!("{prefix}: it ignores username and password"), no_basic(&user));
    }
    if sent.certificate_is_lost().await {
        return lost_certificate(sent, prefix);
    }
    (
        format!("{prefix}: your credential did not reach the API server"),
        format!(
            "set the server of cluster {cluster} to the API server's own address: a load balancer or proxy at {server} removes the credential"
        ),
    )
}

/// The likely reason for a 401.
pub(super) async fn explain_unauthorized(sent: &Sent<'_>, is_status: bool) -> (String, String) {
    let prefix = "server responded with 401 Unauthorized";
    let (text, to_do) = explain_credential(sent, prefix).await;
    if is_status {
        return (text, to_do);
    }
    let note = "the response is not an API server's: a load balancer or proxy may have sent it";
    (format!("{text} ({note})"), to_do)
}

async fn explain_credential(sent: &Sent<'_>, prefix: &str) -> (String, String) {
    let (effective, credential) = (sent.effective, &sent.obtained.credential);
    let user = quoted(&effective.user_name);
    if !sent.has_credential() {
        let text = format!("{prefix}: no credential was sent, and anonymous requests are not allowed");
        return (text, add_credential(&sent.effective.user_name));
    }
    if let Some(token) = sent.authorization("Bearer")
        && let Some(mistake) = token_mistake(token)
    {
        return (format!("{prefix}: {}", mistake.found()), mistake.to_do(&user));
    }
    if let Some(claims) = claims(credential) {
        return explain_claims(sent, &claims, prefix);
    }
    if let (true, Some(exec)) = (sent.obtained.from_plugin, effective.user.exec.as_ref()) {
        let text = format!("{prefix}, although the plugin has just returned the credential");
        return (text, format!("log in again with {} as a user this cluster accepts", quoted(&exec.command)));
    }
    if sent.authorization("Basic").is_some() {
        return (format!("{prefix}: username and password are not accepted"), no_basic(&user));
    }
    if let (None, Some(identity)) = (&credential.authorization, &credential.identity) {
        let expired = identity.validity().not_after;
        if expired <= sent.inputs.client_context.clock.now() {
            let text = format!("{prefix}: the client certificate expired at {expired}");
            return (text, format!("give user {user} a new client certificate"));
        }
        if sent.certificate_is_lost().await {
            return lost_certificate(sent, prefix);
        }
        let text =
            format!("{prefix}: the client certificate is not issued by a trusted certificate authority");
        return (text, other_certificate(&user));
    }
    (format!("{prefix}: unknown token"), format!("give user {user} a token that this cluster accepts"))
}

/// The likely reason for the rejection of a JWT.
fn explain_claims(sent: &Sent<'_>, claims: &Claims, prefix: &str) -> (String, String) {
    let user = quoted(&sent.effective.user_name);
    let now = sent.inputs.client_context.clock.now();
    if let Some(from) = claims.not_before.filter(|from| *from > now) {
        let text = format!("{prefix}: the token is not valid before {from}");
        return (text, "correct the local clock, or wait".to_owned());
    }
    if let Some(end) = claims.expires.filter(|end| *end <= now) {
        let text = format!("{prefix}: the token expired at {end}");
        return (text, format!("give user {user} a new token"));
    }
    let (issuer, audiences) = (quoted(&claims.issuer), claims.audiences.join(", "));
    let text = format!(
        "{prefix}: issuer {issuer} or audience `{audiences}` is not accepted, or the token was revoked"
    );
    let to_do = format!(
        "compare issuer {issuer} and audience `{audiences}` with the API server's authentication configuration"
    );
    (text, to_do)
}

/// The server ended the handshake because of the client certificate, or because there is none.
pub(super) fn explain_alert(sent: &Sent<'_>, alert: &str) -> (String, String) {
    let user = quoted(&sent.effective.user_name);
    if sent.obtained.credential.identity.is_none() {
        let text = format!("the server requires a client certificate, and none was sent ({alert})");
        return (text, format!("give user {user} a client certificate and key for this cluster"));
    }
    let text = format!("the server rejected the client certificate: {alert}");
    match alert {
        "CertificateExpired" => (text, format!("give user {user} a new client certificate")),
        "CertificateRevoked" => {
            (text, format!("give user {user} a new client certificate: this one is revoked"))
        }
        _ => (text, other_certificate(&user)),
    }
}

fn lost_certificate(sent: &Sent<'_>, prefix: &str) -> (String, String) {
    let server = quoted(&sent.target.server());
    (
        format!(
            "{prefix}: your credential did not reach the API server, because {server} does not request client certificates"
        ),
        format!(
            "set the server of cluster {} to the API server's own address: a load balancer at {server} ends TLS",
            sent.target.cluster()
        ),
    )
}

fn add_credential(user_name: &str) -> String {
    match user_name {
        "" => "add `user:` to the context".to_owned(),
        name => format!("give user {} a credential, or name another user in the context", quoted(name)),
    }
}

fn other_certificate(user: &str) -> String {
    format!("give user {user} a certificate issued by this cluster's certificate authority")
}

fn no_basic(user: &str) -> String {
    format!(
        "give user {user} a token, a client certificate or an exec plugin: Kubernetes 1.19 removed username and password"
    )
}

/// A token in a form that no server accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenMistake {
    /// The field contains the header's scheme.
    Scheme,
    /// The token is still encoded, as in a Secret.
    Base64,
}

impl TokenMistake {
    fn found(self) -> &'static str {
        match self {
            TokenMistake::Scheme => "the token begins with `Bearer `, which is sent twice",
            TokenMistake::Base64 => "the token is still encoded in base64",
        }
    }

    fn to_do(self, user: &str) -> String {
        match self {
            TokenMistake::Scheme => format!("remove `Bearer ` from the token of user {user}"),
            TokenMistake::Base64 => {
                format!("decode the token of user {user} with `base64 -d`: a Secret's data is encoded")
            }
        }
    }
}

/// Recognises a token that was copied in the wrong form.
pub(super) fn token_mistake(token: &str) -> Option<TokenMistake> {
    let scheme = token.split_once([' ', ':']).map(|(scheme, _)| scheme);
    if scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("bearer")) {
        return Some(TokenMistake::Scheme);
    }
    let decoded = Zeroizing::new(RAW_STANDARD.decode(token.trim().trim_end_matches('=')).ok()?);
    let is_text =
        decoded.len() >= MIN_ENCODED_TOKEN_BYTES && decoded.trim_ascii().iter().all(u8::is_ascii_graphic);
    is_text.then_some(TokenMistake::Base64)
}
