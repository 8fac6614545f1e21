//! What a run is asked for: every flag as a typed value.

mod command_line;

use std::path::PathBuf;
use std::time::Duration;

use navicert_types::Secret;

pub(crate) use command_line::shell_word;
pub(crate) use navicert_client::oauth::host_of;

/// The default limit of a login that a person answers.
pub const DEFAULT_LOGIN_LIMIT: Duration = Duration::from_secs(180);
/// The default of `--min-validity`.
pub const DEFAULT_MIN_VALIDITY: Duration = Duration::from_secs(60);

/// Which defaults apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// `navicert login`: a random port, a callback path, refresh tokens where the provider offers them.
    #[default]
    Own,
    /// `navicert login get-token`: kubelogin's ports, redirect URI and scopes.
    Compatible,
}

/// Which token is handed to Kubernetes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TokenKind {
    /// The ID token.
    #[default]
    Id,
    /// The access token.
    Access,
}

/// How a token is obtained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GrantType {
    /// Chosen by the other flags, by whether there is a browser, and by the provider.
    #[default]
    Auto,
    /// Authorization code in a browser on this machine.
    Authcode,
    /// Authorization code, pasted by the person.
    AuthcodeKeyboard,
    /// Resource owner password credentials.
    Password,
    /// Device code.
    DeviceCode,
    /// Client credentials.
    ClientCredentials,
    /// Token exchange.
    TokenExchange,
    /// The subject token itself.
    Ambient,
}

impl GrantType {
    /// Every value with the text of its flag.
    pub const ALL: &'static [(&'static str, GrantType)] = &[
        ("auto", GrantType::Auto),
        ("authcode", GrantType::Authcode),
        ("authcode-keyboard", GrantType::AuthcodeKeyboard),
        ("password", GrantType::Password),
        ("device-code", GrantType::DeviceCode),
        ("client-credentials", GrantType::ClientCredentials),
        ("token-exchange", GrantType::TokenExchange),
        ("ambient", GrantType::Ambient),
    ];

    /// The text of the flag.
    pub fn as_str(self) -> &'static str {
        GrantType::ALL.iter().find(|(_, grant)| *grant == self).map_or("auto", |(text, _)| text)
    }
}

/// Where tokens are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Storage {
    /// In files of this user.
    #[default]
    Disk,
    /// In files that a key in the desktop's keyring seals.
    Keyring,
    /// Nowhere.
    None,
}

/// Whether PKCE is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PkceMethod {
    /// With a hashed challenge, unless discovery lists other methods only.
    #[default]
    Auto,
    /// Never.
    No,
    /// Always with a hashed challenge.
    S256,
}

/// When a person may be asked to log in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PromptWhen {
    /// If a person is present: an interactive client, a terminal on standard error, or a run by hand.
    #[default]
    Terminal,
    /// If the client is interactive, or the run is by hand.
    Interactive,
    /// Always, also in the background, at a limited rate.
    Always,
    /// Never.
    Never,
}

impl PromptWhen {
    /// The value with this text.
    pub fn from_text(text: &str) -> Option<PromptWhen> {
        match text {
            "terminal" => Some(PromptWhen::Terminal),
            "interactive" => Some(PromptWhen::Interactive),
            "always" => Some(PromptWhen::Always),
            "never" => Some(PromptWhen::Never),
            _ => None,
        }
    }
}

/// Whether the person confirms an API server that has not had a token of this provider and client before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustServer {
    /// Yes, once, if the client names the server.
    Ask,
    /// No.
    Any,
}

/// Whether authorization requests are pushed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ParMode {
    /// If the provider requires it.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// A secret on the command line, or the file that contains it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretSource {
    /// Given as an argument, which other users of the machine can see.
    Argument(Secret<String>),
    /// The content of this file, without surrounding white space; read when it is used.
    File(PathBuf),
}

/// Where a subject token comes from. Its value is read at each use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenSource {
    /// A file.
    File(PathBuf),
    /// An environment variable.
    Variable(String),
    /// The token service of GitHub Actions.
    GithubActions,
}

impl TokenSource {
    /// The text of the flag.
    pub fn as_text(&self) -> String {
        match self {
            TokenSource::File(path) => format!("file:{}", path.display()),
            TokenSource::Variable(name) => format!("env:{name}"),
            TokenSource::GithubActions => "github-actions".to_owned(),
        }
    }
}

/// How the client authenticates to the provider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientAuthentication {
    /// The client secret.
    pub secret: Option<SecretSource>,
    /// The private key that signs client assertions, and its key id.
    pub assertion_key: Option<(PathBuf, Option<String>)>,
    /// A file with a client assertion, read at each use.
    pub assertion_file: Option<PathBuf>,
}

impl ClientAuthentication {
    /// Whether the client has any means of authentication.
    pub fn is_present(&self) -> bool {
        self.secret.is_some() || self.assertion_key.is_some() || self.assertion_file.is_some()
    }
}

/// How the provider is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProviderConnection {
    /// Root certificate files. With any root the system's are not used.
    pub authorities: Vec<PathBuf>,
    /// Root certificates as PEM text.
    pub authority_data: Vec<Vec<u8>>,
    /// Accepts any server certificate.
    pub is_insecure: bool,
    /// The name that the certificate is verified for; empty: the host.
    pub tls_server_name: String,
    /// The proxy; empty: as the environment says.
    pub proxy_url: String,
    /// TLS client certificate and key.
    pub client_certificate: Option<(PathBuf, PathBuf)>,
    /// Additional headers of every request.
    pub headers: Vec<(String, String)>,
}

/// Parameters of the authorization request that have a flag of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoginParameters {
    /// `login_hint`.
    pub login_hint: Option<String>,
    /// `prompt`.
    pub prompt: Option<String>,
    /// `max_age`, in seconds.
    pub max_age: Option<u64>,
    /// `acr_values`.
    pub acr_values: Option<String>,
    /// `ui_locales`.
    pub ui_locales: Option<String>,
    /// `audience`, in order.
    pub audiences: Vec<String>,
    /// `resource`, in order.
    pub resources: Vec<String>,
    /// Any other parameter.
    pub extra: Vec<(String, String)>,
}

/// Settings of a token exchange.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExchangeSettings {
    /// The subject token.
    pub subject: Option<TokenSource>,
    /// Its type.
    pub subject_type: Option<String>,
    /// The actor token and its type.
    pub actor: Option<(TokenSource, String)>,
    /// The requested type.
    pub requested_type: Option<String>,
    /// Audience of the token that is exchanged for the access token after the login.
    pub audience: Option<String>,
}

/// Settings of the browser login.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BrowserSettings {
    /// The exact redirect URI.
    pub redirect_url: Option<String>,
    /// Listen addresses as given; empty: the defaults of the form.
    pub listen: Vec<String>,
    /// Print the address and open nothing.
    pub skip_open: bool,
    /// Program that opens an address.
    pub command: Option<String>,
    /// Certificate and key of the receiver.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// Where the browser goes after success.
    pub open_after: Option<String>,
    /// Whether PKCE is used.
    pub pkce: PkceMethod,
    /// Whether the authorization request is pushed.
    pub par: ParMode,
}

/// One run, as the command line and the cluster's exec extension ask for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginRequest {
    /// Which defaults apply.
    pub form: Form,
    /// The issuer URL.
    pub issuer: String,
    /// The client id.
    pub client_id: String,
    /// How the client authenticates.
    pub client: ClientAuthentication,
    /// Scopes besides the defaults of the form.
    pub extra_scopes: Vec<String>,
    /// Which token is handed over.
    pub token_kind: TokenKind,
    /// How the provider is reached.
    pub connection: ProviderConnection,
    /// Renew although the token is fresh.
    pub force_refresh: bool,
    /// The cache folder, if given.
    pub cache_dir: Option<PathBuf>,
    /// Where tokens are kept.
    pub storage: Storage,
    /// How a token is obtained.
    pub grant: GrantType,
    /// Settings of the browser login.
    pub browser: BrowserSettings,
    /// Limit of a login that a person answers, if given.
    pub timeout: Option<Duration>,
    /// Parameters of the authorization request.
    pub parameters: LoginParameters,
    /// User name of the password grant.
    pub username: Option<String>,
    /// Password of the password grant.
    pub password: Option<SecretSource>,
    /// Label that separates several accounts at one provider.
    pub account: String,
    /// When a person may be asked.
    pub prompt_when: PromptWhen,
    /// Request no refresh token, and keep none.
    pub no_refresh_token: bool,
    /// Remaining validity at which a token is renewed.
    pub min_validity: Duration,
    /// Longest time between two logins of the person.
    pub session_max: Option<Duration>,
    /// Token exchange.
    pub exchange: ExchangeSettings,
    /// Whether the person confirms new API servers, if given.
    pub trust_server: Option<TrustServer>,
    /// Client certificate and key to hand over beside the token.
    pub with_certificate: Option<(PathBuf, PathBuf)>,
    /// Number of `-v`.
    pub verbosity: u8,
}

impl LoginRequest {
    /// A request with default values.
    pub fn new(form: Form, issuer: impl Into<String>, client_id: impl Into<String>) -> Self {
        LoginRequest {
            form,
            issuer: issuer.into(),
            client_id: client_id.into(),
            client: ClientAuthentication::default(),
            extra_scopes: Vec::new(),
            token_kind: TokenKind::default(),
            connection: ProviderConnection::default(),
            force_refresh: false,
            cache_dir: None,
            storage: Storage::default(),
            grant: GrantType::default(),
            browser: BrowserSettings::default(),
            timeout: None,
            parameters: LoginParameters::default(),
            username: None,
            password: None,
            account: String::new(),
            prompt_when: PromptWhen::default(),
            no_refresh_token: false,
            min_validity: DEFAULT_MIN_VALIDITY,
            session_max: None,
            exchange: ExchangeSettings::default(),
            trust_server: None,
            with_certificate: None,
            verbosity: 0,
        }
    }

    /// The issuer's host, for messages.
    pub fn host(&self) -> &str {
        host_of(&self.issuer)
    }

    /// The grant as far as the flags decide it: `Auto` remains if a person is needed.
    pub fn grant_by_flags(&self) -> GrantType {
        match self.grant {
            GrantType::Auto if self.exchange.subject.is_some() => GrantType::TokenExchange,
            GrantType::Auto if self.username.is_some() => GrantType::Password,
            grant => grant,
        }
    }

    /// The token of the provider's answers that the session is about: what is handed over, or exchanged for that.
    pub(crate) fn base_token_kind(&self) -> TokenKind {
        if self.exchange.audience.is_some() { TokenKind::Access } else { self.token_kind }
    }

    /// The limit of a login that a person answers.
    pub fn login_limit(&self) -> Duration {
        self.timeout.unwrap_or(DEFAULT_LOGIN_LIMIT)
    }
}
