//! Every flag: its name, type and description.

/// The type of a flag's value, as in pflag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlagKind {
    /// One value; the last one counts.
    Text,
    /// `--x`, `--x=true`, `--x=false`: never takes the next word.
    Bool,
    /// A number.
    Integer,
    /// Comma-separated with CSV quoting, and repeatable.
    List,
    /// Repeatable; commas are part of the value.
    Array,
    /// A list of `key=value`.
    Map,
    /// `--x` or `--x=v`: never takes the next word.
    OptionalText,
}

/// Who knows the flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A flag of kubelogin with an effect.
    Kubelogin,
    /// A flag of kubelogin that is accepted and has no effect.
    Ignored,
    /// A flag of navicert.
    Navicert,
}

/// A flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flag {
    /// The name without dashes.
    pub name: &'static str,
    /// The one-letter name.
    pub short: Option<char>,
    /// The type of its value.
    pub kind: FlagKind,
    /// Name of the value in the help.
    pub value: &'static str,
    /// Who knows it.
    pub origin: Origin,
    /// The description; empty for flags that the help leaves out.
    pub help: &'static str,
}

const fn flag(name: &'static str, kind: FlagKind, value: &'static str, help: &'static str) -> Flag {
    Flag { name, short: None, kind, value, origin: Origin::Kubelogin, help }
}

pub(super) const fn own(name: &'static str, kind: FlagKind, value: &'static str, help: &'static str) -> Flag {
    Flag { name, short: None, kind, value, origin: Origin::Navicert, help }
}

const fn ignored(name: &'static str, kind: FlagKind) -> Flag {
    Flag { name, short: None, kind, value: "VALUE", origin: Origin::Ignored, help: "" }
}

const fn short(letter: char, flag: Flag) -> Flag {
    Flag { short: Some(letter), ..flag }
}

/// Every flag of `navicert login`.
pub const FLAGS: &[Flag] = {
    use FlagKind::{Array, Bool, Integer, List, Map, Text};
    &[
        flag("oidc-issuer-url", Text, "URL", "Issuer URL of the OpenID provider"),
        flag("oidc-client-id", Text, "ID", "Client id"),
        flag(
            "oidc-client-secret",
            Text,
            "SECRET",
            "Client secret; other users can see it, prefer --oidc-client-secret-file",
        ),
        own("oidc-client-secret-file", Text, "FILE", "File with the client secret"),
        own(
            "oidc-client-assertion-key",
            Text,
            "FILE",
            "Private key that signs client assertions (private_key_jwt)",
        ),
        own("oidc-client-assertion-kid", Text, "ID", "Key id of that key"),
        own("oidc-client-assertion-file", Text, "FILE", "File with a client assertion, read at each use"),
        flag("oidc-redirect-url", Text, "URL", "Exact redirect URI [default: from the listen address]"),
        flag("oidc-extra-scope", List, "SCOPE", "Scopes besides openid"),
        flag("oidc-use-access-token", Bool, "", "Hand over the access token, as --token-kind=access"),
        own("token-kind", Text, "KIND", "Token to hand over: id or access [default: id]"),
        flag("oidc-request-header", Map, "NAME=VALUE", "Header of every request to the provider"),
        flag("force-refresh", Bool, "", "Renew the token although it is fresh"),
        flag("token-cache-dir", Text, "DIR", "Cache folder"),
        flag(
            "token-cache-storage",
            Text,
            "STORAGE",
            "Where tokens are kept: disk, keyring or none [default: disk]",
        ),
        flag("certificate-authority", Array, "FILE", "Trusted root certificates, instead of the system's"),
        flag(
            "certificate-authority-data",
            Array,
            "BASE64",
            "Trusted root certificates as base64 of PEM text",
        ),
        flag("insecure-skip-tls-verify", Bool, "", "Do not verify the provider's certificate"),
        own("tls-server-name", Text, "NAME", "Name to verify the provider's certificate for"),
        own("proxy-url", Text, "URL", "Proxy for the provider [default: HTTPS_PROXY]"),
        own("client-certificate", Text, "FILE", "TLS client certificate for the provider"),
        own("client-key", Text, "FILE", "Key of that certificate"),
        flag("oidc-pkce-method", Text, "METHOD", "PKCE: auto, no or S256 [default: auto]"),
        flag("oidc-use-pkce", Bool, "", "As --oidc-pkce-method=S256"),
        flag(
            "grant-type",
            Text,
            "GRANT",
            "auto, authcode, authcode-keyboard, password, device-code, client-credentials, token-exchange or ambient [default: auto]",
        ),
        flag(
            "listen-address",
            List,
            "ADDRESS",
            "Addresses to try for the callback [default: 127.0.0.1:0; get-token: 127.0.0.1:8000,127.0.0.1:18000]",
        ),
        flag("skip-open-browser", Bool, "", "Print the address instead of opening it"),
        flag("browser-command", Text, "COMMAND", "Command that opens the address"),
        flag("authentication-timeout-sec", Integer, "SECONDS", "Limit of a login [default: 180]"),
        flag("local-server-cert", Text, "FILE", "Certificate for an https callback"),
        flag("local-server-key", Text, "FILE", "Key of that certificate"),
        flag("open-url-after-authentication", Text, "URL", "Where the browser goes after success"),
        flag(
            "oidc-auth-request-extra-params",
            Map,
            "NAME=VALUE",
            "Additional parameters of the authorization request",
        ),
        own("login-hint", Text, "TEXT", "Parameter login_hint"),
        own("prompt", Text, "TEXT", "Parameter prompt"),
        own("max-age", Integer, "SECONDS", "Parameter max_age"),
        own("acr-values", Text, "TEXT", "Parameter acr_values"),
        own("ui-locales", Text, "TEXT", "Parameter ui_locales"),
        own("audience", Array, "TEXT", "Parameter audience"),
        own("resource", Array, "URI", "Parameter resource"),
        own("par", Text, "WHEN", "Push the authorization request: auto, always or never [default: auto]"),
        flag("username", Text, "NAME", "User name of the password grant"),
        flag(
            "password",
            Text,
            "PASSWORD",
            "Password of the password grant; other users can see it, prefer --password-file",
        ),
        own("password-file", Text, "FILE", "File with that password"),
        own("account", Text, "LABEL", "Label that separates several accounts at one provider"),
        own(
            "prompt-when",
            Text,
            "WHEN",
            "When a person may be asked: terminal, interactive, always or never [default: terminal]",
        ),
        own("no-refresh-token", Bool, "", "Request no refresh token, and keep none"),
        own("min-validity", Text, "DURATION", "Renew a token with less remaining validity [default: 60s]"),
        own("session-max", Text, "DURATION", "Longest time between two logins [default: none]"),
        own(
            "exchange-audience",
            Text,
            "AUDIENCE",
            "After the login, exchange the access token for one of this audience",
        ),
        own("subject-token", Text, "SOURCE", "Subject token: file:PATH, env:NAME or github-actions"),
        own(
            "subject-token-type",
            Text,
            "URI",
            "Type of the subject token [default: urn:ietf:params:oauth:token-type:jwt]",
        ),
        own("actor-token", Text, "SOURCE", "Actor token: file:PATH or env:NAME"),
        own("actor-token-type", Text, "URI", "Type of the actor token"),
        own("requested-token-type", Text, "URI", "Type of the token to request"),
        own(
            "trust-server",
            Text,
            "WHEN",
            "Ask before an API server gets a token for the first time: ask or any [default: ask if the client names the server]",
        ),
        own("with-client-certificate", Text, "FILE", "Client certificate to hand over beside the token"),
        own("with-client-key", Text, "FILE", "Key of that certificate"),
        short('o', own("output", Text, "FORMAT", "Output format: text or json")),
        short('v', flag("v", Integer, "LEVEL", "Verbosity: 1 stages, 2 requests")),
        ignored("tls-renegotiation-once", Bool),
        ignored("tls-renegotiation-freely", Bool),
        ignored("add_dir_header", Bool),
        ignored("alsologtostderr", Bool),
        ignored("alsologtostderrthreshold", Text),
        ignored("legacy_stderr_threshold_behavior", Bool),
        ignored("log_backtrace_at", Text),
        ignored("log_dir", Text),
        ignored("log_file", Text),
        ignored("log_file_max_size", Integer),
        ignored("logtostderr", Bool),
        ignored("one_output", Bool),
        ignored("skip_headers", Bool),
        ignored("skip_log_headers", Bool),
        ignored("stderrthreshold", Text),
        ignored("vmodule", Text),
    ]
};

/// Flags that the specification has or kubelogin has for its other modes, and that do not exist here: the name, and what to do
/// instead.
const UNSUPPORTED: &[(&str, &str)] = &[
    ("force-keyring", "use --token-cache-storage=keyring"),
    ("no-keyring", "use --token-cache-storage=disk, the default"),
    ("kubeconfig", "give --oidc-issuer-url and --oidc-client-id"),
    ("context", "give --oidc-issuer-url and --oidc-client-id"),
    ("user", "give --oidc-issuer-url and --oidc-client-id"),
    ("all", "it is a flag of `navicert logout`"),
    ("browser", "it is a flag of `navicert logout`"),
    ("post-logout-redirect-url", "it is a flag of `navicert logout`"),
];

/// What to do instead of a flag that other programs or later versions have.
pub fn instead_of(name: &str) -> Option<&'static str> {
    UNSUPPORTED.iter().find(|(known, _)| *known == name).map(|(_, instead)| *instead)
}

/// The flag of `navicert login`, or of the verb with these further flags. Like kubelogin, `-` and `_` are different characters.
pub fn find(name: &str, further: &'static [Flag]) -> Option<&'static Flag> {
    FLAGS.iter().chain(further).find(|flag| flag.name == name)
}

/// The flag with this letter.
pub fn find_short(letter: char) -> Option<&'static Flag> {
    FLAGS.iter().find(|flag| flag.short == Some(letter))
}
