//! How a proxy behaves: `servers.proxy` of our own file, strictly read, every field with its default.

use std::str::FromStr;
use std::time::Duration;

use http::header::HeaderName;
use navicert_types::decode::{Decode, Decoder};
use navicert_types::tree::{Node, Value};

use super::client_address::Network;
use super::identity_headers::{Allowed, HeaderNames};

/// All of it.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How the API server is told who is calling.
    pub mode: Mode,
    /// What becomes of `kubectl --as` (S239).
    pub client_impersonation: Nested,
    /// Names of the cluster's own that tokens may stand for (S269).
    pub allowed_names: Allowed,
    /// What becomes of service accounts' tokens (S276).
    pub service_account_tokens: ServiceAccountTokens,
    /// How long a watch, a log or a tunnel may last (S255).
    pub max_stream_age: MaxStreamAge,
    /// Whether cookies cross (S242).
    pub forward_cookies: bool,
    /// Whether the API server is told where a request comes from, in `X-Forwarded-For`.
    pub forward_client_address: bool,
    /// Whose `X-Forwarded-For` is believed: load balancers of our own, and nobody by default.
    pub trusted_proxies: Vec<Network>,
    /// Whether every connection begins with a line of the PROXY protocol. Only those of `trusted_proxies` are taken then.
    pub proxy_protocol: bool,
    /// Whether it matters that users' UIDs arrive: servers before 1.22 (1.32 with request headers) drop them (S266).
    pub require_uid: bool,
    /// What follows from permissions that the proxy lacks (S270).
    pub self_check: SelfCheck,
    /// Whether the API server is spoken to in HTTP/2, where it can (S249).
    pub upstream_http2: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            mode: Mode::Impersonation,
            client_impersonation: Nested::Refuse,
            allowed_names: Allowed::default(),
            service_account_tokens: ServiceAccountTokens::Reject,
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

/// How the API server is told who is calling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// By `Impersonate-*`: any cluster, with permissions of the proxy's own (S233).
    Impersonation,
    /// By the headers of a front proxy: clusters whose API server trusts the proxy's certificate for it (S228).
    RequestHeader(HeaderNames),
}

impl Mode {
    /// What the headers are called.
    pub fn names(&self) -> HeaderNames {
        match self {
            Mode::Impersonation => HeaderNames::impersonation(),
            Mode::RequestHeader(names) => names.clone(),
        }
    }
}

/// What becomes of `Impersonate-*` headers that a client sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Nested {
    /// 403.
    #[default]
    Refuse,
    /// Granted to users who may: asked by `SubjectAccessReview` (impersonation), or left to the API server (request
    /// headers).
    Allow,
}

/// What becomes of tokens that no issuer claims and that may be a service account's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServiceAccountTokens {
    /// 401.
    #[default]
    Reject,
    /// The API server is asked (`TokenReview`); then the token itself goes on, and nothing of ours with it.
    PassThrough,
    /// The API server is asked; then the account is impersonated like anybody.
    Impersonate,
}

/// How long a stream may last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MaxStreamAge {
    /// As long as it likes: kube-apiserver's way.
    #[default]
    Off,
    /// Until its token expires.
    TokenExpiry,
    /// This long.
    After(Duration),
}

/// What follows from permissions that the proxy lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SelfCheck {
    /// It is not ready.
    #[default]
    Required,
    /// A warning in the log.
    Warn,
    /// Nobody looks.
    Off,
}

impl Decode for Settings {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let defaults = Settings::default();
        let settings = decoder.object(node, |fields| {
            let request_header =
                fields.optional::<Word<bool>>("mode").and_then(|word| word.0).unwrap_or(false);
            let names = fields.optional::<HeaderNames>("requestHeaders");
            let age = fields.optional::<Word<MaxStreamAge>>("maxStreamAge");
            let settings = Settings {
                mode: match (request_header, &names) {
                    (false, _) => Mode::Impersonation,
                    (true, names) => Mode::RequestHeader(names.clone().unwrap_or_default()),
                },
                client_impersonation: fields
                    .optional::<Word<Nested>>("clientImpersonation")
                    .and_then(|word| word.0)
                    .unwrap_or_default(),
                allowed_names: fields.default("allowedNames"),
                service_account_tokens: fields
                    .optional::<Word<ServiceAccountTokens>>("serviceAccountTokens")
                    .and_then(|word| word.0)
                    .unwrap_or_default(),
                max_stream_age: age.and_then(|word| word.0).unwrap_or_default(),
                forward_cookies: fields.default("forwardCookies"),
                forward_client_address: fields
                    .optional("forwardClientAddress")
                    .unwrap_or(defaults.forward_client_address),
                trusted_proxies: fields.default("trustedProxies"),
                proxy_protocol: fields.default("proxyProtocol"),
                require_uid: fields.default("requireUid"),
                self_check: fields
                    .optional::<Word<SelfCheck>>("selfCheck")
                    .and_then(|word| word.0)
                    .unwrap_or_default(),
                upstream_http2: fields.optional("upstreamHTTP2").unwrap_or(defaults.upstream_http2),
            };
            (settings, !request_header && names.is_some())
        });
        let (settings, are_names_idle) = settings?;
        if are_names_idle {
            decoder.invalid_value(node, "`requestHeaders` needs `mode: requestHeader`");
        }
        let is_reviewed = settings.service_account_tokens != ServiceAccountTokens::Reject;
        if is_reviewed && settings.mode != Mode::Impersonation {
            let why = "`serviceAccountTokens` needs `mode: impersonation`: a front proxy has no account of its own to ask with";
            decoder.invalid_value(node, why);
        }
        if settings.proxy_protocol && settings.trusted_proxies.is_empty() {
            decoder.invalid_value(node, "`proxyProtocol` needs `trustedProxies`: from whom it is believed");
        }
        Some(settings)
    }
}

/// One of a fixed set of words.
struct Word<T>(Option<T>);

impl<T> Default for Word<T> {
    fn default() -> Self {
        Word(None)
    }
}

macro_rules! words {
    ($type:ty: $($word:literal => $value:expr),+) => {
        impl Decode for Word<$type> {
            fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
                decoder.one_of(node, &[$(($word, $value)),+]).map(|value| Word(Some(value)))
            }
        }
    };
}

// The mode's word; names come from a field of their own.
words!(bool: "impersonation" => false, "requestHeader" => true);
words!(Nested: "refuse" => Nested::Refuse, "allow" => Nested::Allow);
words!(ServiceAccountTokens:
    "reject" => ServiceAccountTokens::Reject,
    "passthrough" => ServiceAccountTokens::PassThrough,
    "impersonate" => ServiceAccountTokens::Impersonate);

impl Decode for Word<SelfCheck> {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        if is_off(node) {
            return Some(Word(Some(SelfCheck::Off)));
        }
        let words = [("required", SelfCheck::Required), ("warn", SelfCheck::Warn), ("off", SelfCheck::Off)];
        decoder.one_of(node, &words).map(|check| Word(Some(check)))
    }
}

/// YAML reads an `off` without quotes as a boolean.
fn is_off(node: &Node) -> bool {
    matches!(node.value, Value::Bool(false))
}

impl Decode for Word<MaxStreamAge> {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        if is_off(node) {
            return Some(Word(Some(MaxStreamAge::Off)));
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
            decoder.invalid_value(
                node,
                "expected `off`, `token-exp` or a duration of a second or more, such as `4h`",
            );
        }
        age.map(|age| Word(Some(age)))
    }
}

impl Decode for Allowed {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        decoder.object(node, |fields| Allowed {
            service_accounts: fields.default("serviceAccounts"),
            nodes: fields.default("nodes"),
            anonymous: fields.default("anonymous"),
        })
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
        let name = HeaderName::try_from(text).ok().filter(|name| is_free(name.as_str()));
        if name.is_none() {
            decoder.invalid_value(node, "expected the name of a header that has no other meaning");
        }
        name.map(|name| Name(Some(name)))
    }
}

#[derive(Default)]
struct Prefix(String);

impl Decode for Prefix {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let text = String::decode(node, decoder)?.to_ascii_lowercase();
        let is_name = HeaderName::try_from(text.as_str()).is_ok() && is_free(&text);
        if !is_name || !text.ends_with('-') {
            decoder.invalid_value(node, "expected the beginning of headers' names, ending in `-`");
            return None;
        }
        Some(Prefix(text))
    }
}

/// Not one of the headers that HTTP or Kubernetes read in their own way.
fn is_free(name: &str) -> bool {
    let taken =
        ["authorization", "host", "connection", "content-length", "transfer-encoding", "upgrade", "cookie"];
    !taken.contains(&name) && !name.starts_with("impersonate") && !name.starts_with("x-forwarded-")
}

#[cfg(test)]
mod tests {
    use navicert_types::decode::{Mode as Reading, decode};
    use navicert_types::tree::{Syntax, parse};

    use super::*;

    fn read(text: &str) -> Result<Settings, Vec<String>> {
        let node = parse(text.as_bytes(), Syntax::JsonOrYaml).unwrap();
        decode(&node, Reading::Strict).map_err(|wrong| wrong.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn nothing_said_is_the_safest_of_everything() {
        let settings = read("{}").unwrap();
        assert_eq!(settings.mode, Mode::Impersonation);
        assert_eq!(settings.client_impersonation, Nested::Refuse);
        assert_eq!(settings.service_account_tokens, ServiceAccountTokens::Reject);
        assert_eq!(settings.max_stream_age, MaxStreamAge::Off);
        assert_eq!(settings.allowed_names, Allowed::default());
        assert!(settings.trusted_proxies.is_empty() && !settings.proxy_protocol && !settings.forward_cookies);
        assert_eq!(settings.self_check, SelfCheck::Required);
    }

    #[test]
    fn every_field_is_read() {
        let settings = read(
            "mode: requestHeader\nrequestHeaders: {user: X-Corp-User, extraPrefix: X-Corp-Extra-}\n\
             clientImpersonation: allow\nallowedNames: {serviceAccounts: true, nodes: true, anonymous: true}\n\
             serviceAccountTokens: reject\nmaxStreamAge: 90m\nforwardCookies: true\nforwardClientAddress: false\n\
             trustedProxies: [10.0.0.0/8, '::1']\nproxyProtocol: true\nrequireUid: true\nselfCheck: warn\nupstreamHTTP2: false\n",
        )
        .unwrap();
        let names = settings.mode.names();
        assert_eq!((names.user.as_str(), names.uid.as_str()), ("x-corp-user", "x-remote-uid"));
        assert_eq!(names.extra_prefix, "x-corp-extra-");
        assert_eq!(settings.max_stream_age, MaxStreamAge::After(Duration::from_secs(5_400)));
        assert_eq!(settings.allowed_names, Allowed::ALL);
        assert_eq!(settings.trusted_proxies.len(), 2);
        assert!(settings.proxy_protocol && settings.require_uid && !settings.forward_client_address);
        assert!(!settings.upstream_http2 && Settings::default().upstream_http2);
        assert_eq!(read("selfCheck: off").unwrap().self_check, SelfCheck::Off);
        assert_eq!(read("maxStreamAge: off").unwrap().max_stream_age, MaxStreamAge::Off);
        assert_eq!(read("maxStreamAge: token-exp").unwrap().max_stream_age, MaxStreamAge::TokenExpiry);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (text, expected) in [
            (
                "mode: requestHeader\nserviceAccountTokens: passthrough",
                "line 1, column 1: `serviceAccountTokens` needs `mode: impersonation`: a front proxy has no account of \
                 its own to ask with",
            ),
            ("mod: x", "mod: unknown field (line 1, column 1); did you mean `mode`?"),
            ("mode: header", "mode: expected one of `impersonation`, `requestHeader` (line 1, column 7)"),
            ("requestHeaders: {user: A}", "line 1, column 1: `requestHeaders` needs `mode: requestHeader`"),
            (
                "proxyProtocol: true",
                "line 1, column 1: `proxyProtocol` needs `trustedProxies`: from whom it is believed",
            ),
            (
                "mode: requestHeader\nrequestHeaders: {user: Impersonate-User}",
                "requestHeaders.user: expected the name of a header that has no other meaning (line 2, column 24)",
            ),
            (
                "mode: requestHeader\nrequestHeaders: {extraPrefix: X-Extra}",
                "requestHeaders.extraPrefix: expected the beginning of headers' names, ending in `-` (line 2, column 31)",
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
                "trustedProxies: [10.0.0.0/33]",
                "trustedProxies[0]: expected an address or a network such as `10.0.0.0/8` (line 1, column 18)",
            ),
        ] {
            assert_eq!(read(text).unwrap_err(), [expected], "{text}");
        }
    }
}
