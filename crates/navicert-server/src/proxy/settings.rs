//! `servers.proxy` of a `NavicertConfiguration`, parsed strictly; every field has a default.

use std::str::FromStr;
use std::time::Duration;

use http::header::HeaderName;
use navicert_types::decode::{Decode, Decoder};
use navicert_types::tree::{Node, Value};

use super::client_address::Network;
use super::identity_headers::{AllowedNames, HeaderNames, IdentityLimit};

/// Settings of the proxy.
#[derive(Clone, Debug)]
pub struct ProxySettings {
    /// How the API server receives the user's identity.
    pub mode: IdentityMode,
    /// What to do with a client's `Impersonate-*` headers (`kubectl --as`).
    // S239
    pub client_impersonation: ImpersonationPolicy,
    /// Reserved user names that tokens may map to.
    // S269
    pub allowed_names: AllowedNames,
    /// Maximum size of the identity headers.
    // S267
    pub max_identity: IdentityLimit,
    /// What to do with service account tokens.
    // S276
    pub service_account_tokens: ServiceAccountTokens,
    /// Whether watches, logs and tunnels end when the revocation list contains their token.
    // S255
    pub end_streams_on_revocation: bool,
    /// Whether watches, logs and tunnels end when their token expires.
    // S255
    pub end_streams_on_expiry: bool,
    /// Maximum duration of watches, logs and tunnels.
    // S255
    pub max_stream_age: MaxStreamAge,
    /// Whether to forward cookies.
    // S242
    pub forward_cookies: bool,
    /// Whether to send the client address to the API server, in `X-Forwarded-For`.
    pub forward_client_address: bool,
    /// Networks of load balancers whose `X-Forwarded-For` is trusted; none by default.
    pub trusted_proxies: Vec<Network>,
    /// Whether connections start with a PROXY protocol header. Only `trusted_proxies` may connect then.
    pub proxy_protocol: bool,
    /// Whether to require that the API server receives UIDs: versions before 1.22 (1.32 with request headers) drop
    /// them.
    // S266
    pub require_uid: bool,
    /// What to do if the proxy lacks permissions.
    // S270
    pub self_check: SelfCheck,
    /// Whether to use HTTP/2 to the API server, if it supports it.
    // S249
    pub upstream_http2: bool,
}

impl Default for ProxySettings {
    fn default() -> Self {
        ProxySettings {
            mode: IdentityMode::Impersonation,
            client_impersonation: ImpersonationPolicy::Refuse,
            allowed_names: AllowedNames::default(),
            max_identity: IdentityLimit::default(),
            service_account_tokens: ServiceAccountTokens::Reject,
            end_streams_on_revocation: true,
            end_streams_on_expiry: true,
            max_stream_age: MaxStreamAge::Off,
            forward_cookies: false,
            forward_client_address: true,
            trusted_proxies: Vec::new(),
            proxy_protocol: false,
            require_uid: false,
            self_check: SelfCheck::Required,
            upstream_http2: true,
        }
    }
}

/// How the API server receives the user's identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdentityMode {
    /// `Impersonate-*` headers: any cluster; the proxy needs permissions.
    // S233
    Impersonation,
    /// Front-proxy headers: the API server must trust the proxy's certificate for them.
    // S228
    RequestHeader(HeaderNames),
}

impl IdentityMode {
    /// Names of the identity headers.
    pub fn names(&self) -> HeaderNames {
        match self {
            IdentityMode::Impersonation => HeaderNames::impersonation(),
            IdentityMode::RequestHeader(names) => names.clone(),
        }
    }
}

/// What to do with a client's `Impersonate-*` headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ImpersonationPolicy {
    /// Reject with 403.
    #[default]
    Refuse,
    /// Allow for users with the permission: checked by `SubjectAccessReview` (impersonation), or by the API server
    /// itself (request headers).
    Allow,
}

/// What to do with tokens of unknown issuers, which may belong to service accounts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServiceAccountTokens {
    /// Reject with 401.
    #[default]
    Reject,
    /// Review with the API server, then forward the token itself without the proxy's credential.
    PassThrough,
    /// Review with the API server, then impersonate the service account.
    Impersonate,
}

/// Maximum duration of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MaxStreamAge {
    /// Unlimited, as in kube-apiserver.
    #[default]
    Off,
    /// Until the token expires, even if `endStreamsOnExpiry` is off.
    TokenExpiry,
    /// This long.
    After(Duration),
}

/// What to do if the proxy lacks permissions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SelfCheck {
    /// Fail readiness.
    #[default]
    Required,
    /// Log an error.
    Warn,
    /// Do not check.
    Off,
}

impl Decode for ProxySettings {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let defaults = ProxySettings::default();
        let settings = decoder.object(node, |fields| {
            let request_header =
                fields.optional::<ConfigWord<bool>>("mode").and_then(|word| word.0).unwrap_or(false);
            let names = fields.optional::<HeaderNames>("requestHeaders");
            let age = fields.optional::<ConfigWord<MaxStreamAge>>("maxStreamAge");
            let settings = ProxySettings {
                mode: match (request_header, &names) {
                    (false, _) => IdentityMode::Impersonation,
                    (true, names) => IdentityMode::RequestHeader(names.clone().unwrap_or_default()),
                },
                client_impersonation: fields
                    .optional::<ConfigWord<ImpersonationPolicy>>("clientImpersonation")
                    .and_then(|word| word.0)
                    .unwrap_or_default(),
                allowed_names: fields.default("allowedNames"),
                max_identity: fields.default("maxIdentityBytes"),
                service_account_tokens: fields
                    .optional::<ConfigWord<ServiceAccountTokens>>("serviceAccountTokens")
                    .and_then(|word| word.0)
                    .unwrap_or_default(),
                end_streams_on_revocation: fields
                    .optional("endStreamsOnRevocation")
                    .unwrap_or(defaults.end_streams_on_revocation),
                end_streams_on_expiry: fields
                    .optional("endStreamsOnExpiry")
                    .unwrap_or(defaults.end_streams_on_expiry),
                max_stream_age: age.and_then(|word| word.0).unwrap_or_default(),
                forward_cookies: fields.default("forwardCookies"),
                forward_client_address: fields
                    .optional("forwardClientAddress")
                    .unwrap_or(defaults.forward_client_address),
                trusted_proxies: fields.default("trustedProxies"),
                proxy_protocol: fields.default("proxyProtocol"),
                require_uid: fields.default("requireUid"),
                self_check: fields
                    .optional::<ConfigWord<SelfCheck>>("selfCheck")
                    .and_then(|word| word.0)
                    .unwrap_or_default(),
                upstream_http2: fields.optional("upstreamHTTP2").unwrap_or(defaults.upstream_http2),
            };
            (settings, !request_header && names.is_some())
        });
        let (settings, has_unused_names) = settings?;
        if has_unused_names {
            decoder.report_invalid_value(node, "`requestHeaders` needs `mode: requestHeader`");
        }
        let reviews_tokens = settings.service_account_tokens != ServiceAccountTokens::Reject;
        if reviews_tokens && settings.mode != IdentityMode::Impersonation {
            let why = "`serviceAccountTokens` needs `mode: impersonation`: a front proxy has no account to review tokens with";
            decoder.report_invalid_value(node, why);
        }
        if settings.proxy_protocol && settings.trusted_proxies.is_empty() {
            decoder.report_invalid_value(node, "`proxyProtocol` needs `trustedProxies`");
        }
        Some(settings)
    }
}

/// One of a fixed set of words.
struct ConfigWord<T>(Option<T>);

impl<T> Default for ConfigWord<T> {
    fn default() -> Self {
        ConfigWord(None)
    }
}

macro_rules! words {
    ($type:ty: $($word:literal => $value:expr),+) => {
        impl Decode for ConfigWord<$type> {
            fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
                decoder.one_of(node, &[$(($word, $value)),+]).map(|value| ConfigWord(Some(value)))
            }
        }
    };
}

// The mode; the header names are in another field.
words!(bool: "impersonation" => false, "requestHeader" => true);
words!(ImpersonationPolicy: "refuse" => ImpersonationPolicy::Refuse, "allow" => ImpersonationPolicy::Allow);
words!(ServiceAccountTokens:
    "reject" => ServiceAccountTokens::Reject,
    "passthrough" => ServiceAccountTokens::PassThrough,
    "impersonate" => ServiceAccountTokens::Impersonate);

impl Decode for ConfigWord<SelfCheck> {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        if is_off(node) {
            return Some(ConfigWord(Some(SelfCheck::Off)));
        }
        let words = [("required", SelfCheck::Required), ("warn", SelfCheck::Warn), ("off", SelfCheck::Off)];
        decoder.one_of(node, &words).map(|check| ConfigWord(Some(check)))
    }
}

/// YAML parses an unquoted `off` as a boolean.
fn is_off(node: &Node) -> bool {
    matches!(node.value, Value::Bool(false))
}

impl Decode for ConfigWord<MaxStreamAge> {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        if is_off(node) {
            return Some(ConfigWord(Some(MaxStreamAge::Off)));
        }
        let text = String::decode(node, decoder)?;
        let age = match text.as_str() {
            "off" => Some(MaxStreamAge::Off),
            "token-exp" => Some(MaxStreamAge::TokenExpiry),
            text => navicert_types::time::Duration::from_str(text)
                .ok()
                .and_then(navicert_types::time::Duration::to_std)
                .filter(|duration| *duration >= Duration::from_secs(1))
                .map(MaxStreamAge::After),
        };
        if age.is_none() {
            decoder.report_invalid_value(
                node,
                "expected `off`, `token-exp` or a duration of a second or more, such as `4h`",
            );
        }
        age.map(|age| ConfigWord(Some(age)))
    }
}

impl Decode for AllowedNames {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.object(node, |fields| AllowedNames {
            service_accounts: fields.default("serviceAccounts"),
            nodes: fields.default("nodes"),
            anonymous: fields.default("anonymous"),
            masters: fields.default("masters"),
        })
    }
}

impl Decode for IdentityLimit {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let bytes = u32::decode(node, decoder)?;
        let limit = usize::try_from(bytes).ok().and_then(IdentityLimit::from_bytes);
        if limit.is_none() {
            let most = IdentityLimit::MAX.bytes();
            let why = format!("expected a number from 1 to {most}, API servers accept 1 MiB of headers");
            decoder.report_invalid_value(node, why);
        }
        limit
    }
}

impl Default for HeaderNames {
    fn default() -> Self {
        HeaderNames::front_proxy()
    }
}

impl Decode for HeaderNames {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let standard = HeaderNames::front_proxy();
        decoder.object(node, |fields| {
            let mut name = |field: &'static str, otherwise: HeaderName| {
                fields.optional::<Name>(field).and_then(|name| name.0).unwrap_or(otherwise)
            };
            let (user, uid, group) =
                (name("user", standard.user), name("uid", standard.uid), name("group", standard.group));
            let prefix = fields.optional::<Prefix>("extraPrefix").map(|prefix| prefix.0);
            HeaderNames { user, uid, group, extra_prefix: prefix.unwrap_or(standard.extra_prefix) }
        })
    }
}

#[derive(Default)]
struct Name(Option<HeaderName>);

impl Decode for Name {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let text = String::decode(node, decoder)?;
        let name = HeaderName::try_from(text).ok().filter(|name| is_custom_header(name.as_str()));
        if name.is_none() {
            decoder.report_invalid_value(node, "expected a header name that HTTP and Kubernetes do not use");
        }
        name.map(|name| Name(Some(name)))
    }
}

#[derive(Default)]
struct Prefix(String);

impl Decode for Prefix {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let text = String::decode(node, decoder)?.to_ascii_lowercase();
        let is_name = HeaderName::try_from(text.as_str()).is_ok() && is_custom_header(&text);
        if !is_name || !text.ends_with('-') {
            decoder.report_invalid_value(node, "expected a header name prefix ending in `-`");
            return None;
        }
        Some(Prefix(text))
    }
}

/// Whether HTTP and Kubernetes give the header no meaning of their own.
fn is_custom_header(name: &str) -> bool {
    let reserved =
        ["authorization", "host", "connection", "content-length", "transfer-encoding", "upgrade", "cookie"];
    !reserved.contains(&name) && !name.starts_with("impersonate") && !name.starts_with("x-forwarded-")
}

#[cfg(test)]
mod tests {
    use navicert_types::decode::{DecodeMode as Reading, decode};
    use navicert_types::tree::{Syntax, parse};

    use super::*;

    fn read(text: &str) -> Result<ProxySettings, Vec<String>> {
        let node = parse(text.as_bytes(), Syntax::JsonOrYaml).unwrap();
        decode(&node, Reading::Strict).map_err(|wrong| wrong.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn defaults_are_the_safest_values() {
        let settings = read("{}").unwrap();
        assert_eq!(settings.mode, IdentityMode::Impersonation);
        assert_eq!(settings.client_impersonation, ImpersonationPolicy::Refuse);
        assert_eq!(settings.service_account_tokens, ServiceAccountTokens::Reject);
        assert_eq!(settings.max_stream_age, MaxStreamAge::Off);
        assert_eq!(settings.allowed_names, AllowedNames::default());
        assert!(settings.trusted_proxies.is_empty() && !settings.proxy_protocol && !settings.forward_cookies);
        assert_eq!(settings.self_check, SelfCheck::Required);
    }

    #[test]
    fn parses_every_field() {
        let settings = read(
            "mode: requestHeader\nrequestHeaders: {user: X-Corp-User, extraPrefix: X-Corp-Extra-}\n\
             clientImpersonation: allow\nallowedNames: {serviceAccounts: true, nodes: true, anonymous: true, masters: true}\nmaxIdentityBytes: 700000\n\
             serviceAccountTokens: reject\nendStreamsOnRevocation: false\nendStreamsOnExpiry: false\nmaxStreamAge: 90m\nforwardCookies: true\nforwardClientAddress: false\n\
             trustedProxies: [10.0.0.0/8, '::1']\nproxyProtocol: true\nrequireUid: true\nselfCheck: warn\nupstreamHTTP2: false\n",
        )
        .unwrap();
        let names = settings.mode.names();
        assert_eq!((names.user.as_str(), names.uid.as_str()), ("x-corp-user", "x-remote-uid"));
        assert_eq!(names.extra_prefix, "x-corp-extra-");
        assert_eq!(settings.max_stream_age, MaxStreamAge::After(Duration::from_secs(5_400)));
        assert!(!settings.end_streams_on_revocation && !settings.end_streams_on_expiry);
        assert_eq!(settings.allowed_names, AllowedNames::ALL);
        assert_eq!(settings.max_identity.bytes(), 700_000);
        assert_eq!(settings.trusted_proxies.len(), 2);
        assert!(settings.proxy_protocol && settings.require_uid && !settings.forward_client_address);
        assert!(!settings.upstream_http2 && ProxySettings::default().upstream_http2);
        assert_eq!(read("selfCheck: off").unwrap().self_check, SelfCheck::Off);
        assert_eq!(read("maxStreamAge: off").unwrap().max_stream_age, MaxStreamAge::Off);
        assert_eq!(read("maxStreamAge: token-exp").unwrap().max_stream_age, MaxStreamAge::TokenExpiry);
    }

    #[test]
    fn errors_name_the_field_and_position() {
        for (text, expected) in [
            (
                "mode: requestHeader\nserviceAccountTokens: passthrough",
                "line 1, column 1: `serviceAccountTokens` needs `mode: impersonation`: a front proxy has no account to \
                 review tokens with",
            ),
            ("mod: x", "mod: unknown field (line 1, column 1); did you mean `mode`?"),
            ("mode: header", "mode: expected one of `impersonation`, `requestHeader` (line 1, column 7)"),
            ("requestHeaders: {user: A}", "line 1, column 1: `requestHeaders` needs `mode: requestHeader`"),
            ("proxyProtocol: true", "line 1, column 1: `proxyProtocol` needs `trustedProxies`"),
            (
                "mode: requestHeader\nrequestHeaders: {user: Impersonate-User}",
                "requestHeaders.user: expected a header name that HTTP and Kubernetes do not use (line 2, column 24)",
            ),
            (
                "mode: requestHeader\nrequestHeaders: {extraPrefix: X-Extra}",
                "requestHeaders.extraPrefix: expected a header name prefix ending in `-` (line 2, column 31)",
            ),
            (
                "maxStreamAge: 10",
                "maxStreamAge: expected a string, found a number (line 1, column 15); put the value in quotes",
            ),
            (
                "maxStreamAge: 10ms",
                "maxStreamAge: expected `off`, `token-exp` or a duration of a second or more, such as `4h` (line 1, column 15)",
            ),
            (
                "maxIdentityBytes: 1048576",
                "maxIdentityBytes: expected a number from 1 to 720896, API servers accept 1 MiB of headers (line 1, column 19)",
            ),
            (
                "maxIdentityBytes: 0",
                "maxIdentityBytes: expected a number from 1 to 720896, API servers accept 1 MiB of headers (line 1, column 19)",
            ),
            (
                "trustedProxies: [10.0.0.0/33]",
                "trustedProxies[0]: expected an address or a network such as `10.0.0.0/8` (line 1, column 18)",
            ),
        ] {
            assert_eq!(read(text).unwrap_err(), [expected], "{text}");
        }
    }
}
