//! Values of flags to a [`LoginRequest`], with every check that needs no file and no provider.

use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use http::{HeaderName, HeaderValue};
use navicert_go::base64::STANDARD;
use navicert_types::Secret;
use navicert_types::tree::{Node, Value};

use super::parse::ParsedFlags;
use crate::error::LoginError;
use crate::request::{
    BrowserSettings, ClientAuthentication, ExchangeSettings, Form, GrantType, LoginParameters, LoginRequest,
    ParMode, PkceMethod, PromptWhen, ProviderConnection, SecretSource, Storage, TokenKind, TokenSource,
    TrustServer,
};

/// Headers that requests set themselves.
const OWN_HEADERS: [&str; 7] =
    ["host", "content-length", "transfer-encoding", "connection", "authorization", "cookie", "content-type"];

/// Parameters that requests set themselves.
const OWN_PARAMETERS: [&str; 11] = [
    "client_id",
    "redirect_uri",
    "response_type",
    "scope",
    "state",
    "nonce",
    "code_challenge",
    "code_challenge_method",
    "request",
    "request_uri",
    "client_secret",
];

/// Defaults from the kubeconfig cluster's exec extension, which the client passes on with `provideClusterInfo`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtensionDefaults {
    issuer: Option<String>,
    client_id: Option<String>,
    scopes: Vec<String>,
    audience: Option<String>,
    token: Option<TokenKind>,
}

impl ExtensionDefaults {
    /// Reads the extension. Another kind or version is ignored.
    ///
    /// # Errors
    /// A field has the wrong type; the error names it and not its value.
    pub fn read(config: Option<&Node>) -> Result<Self, LoginError> {
        let Some(members) = config.and_then(Node::as_mapping) else { return Ok(Self::default()) };
        let field =
            |name: &str| members.last(name).map(|entry| &entry.value).filter(|value| !value.is_null());
        let is = |name: &str, wanted: &str| field(name).and_then(Node::as_str) == Some(wanted);
        if !is("apiVersion", "navicert/v1alpha1") || !is("kind", "Login") {
            return Ok(Self::default());
        }
        let wrong = |name: &str, wanted: &str| {
            LoginError::Usage(format!("invalid `{name}` in the cluster's exec extension: expected {wanted}"))
        };
        let text = |name: &str| match field(name) {
            None => Ok(None),
            Some(value) => {
                value.as_str().map(|text| Some(text.to_owned())).ok_or_else(|| wrong(name, "a string"))
            }
        };
        let scopes = match field("scopes").map(|node| &node.value) {
            None => Vec::new(),
            Some(Value::Sequence(items)) => {
                let texts = items.iter().map(|item| item.as_str().map(ToOwned::to_owned));
                texts.collect::<Option<Vec<_>>>().ok_or_else(|| wrong("scopes", "a list of strings"))?
            }
            Some(_) => return Err(wrong("scopes", "a list of strings")),
        };
        let token = match text("token")?.as_deref() {
            None => None,
            Some("id") => Some(TokenKind::Id),
            Some("access") => Some(TokenKind::Access),
            Some(_) => return Err(wrong("token", "id or access")),
        };
        Ok(ExtensionDefaults {
            issuer: text("issuerURL")?,
            client_id: text("clientID")?,
            scopes,
            audience: text("audience")?,
            token,
        })
    }
}

/// Builds the request.
///
/// # Errors
/// A flag is missing, has an invalid value, or contradicts another one.
pub fn login_request(
    form: Form,
    flags: &ParsedFlags,
    home: Option<&Path>,
    defaults: ExtensionDefaults,
) -> Result<LoginRequest, LoginError> {
    let flags = Flags { flags, home };
    let required = |name: &str, default: Option<String>| {
        let value = flags.flags.filled(name).or(default);
        value.ok_or_else(|| LoginError::Usage(format!("missing --{name}")))
    };
    let issuer = required("oidc-issuer-url", defaults.issuer)?;
    let client_id = required("oidc-client-id", defaults.client_id)?;
    let mut request = LoginRequest::new(form, issuer, client_id);
    request.client = flags.client()?;
    request.extra_scopes = flags.flags.list("oidc-extra-scope");
    if request.extra_scopes.is_empty() {
        request.extra_scopes = defaults.scopes;
    }
    request.token_kind = flags.token_kind(defaults.token)?;
    request.connection = flags.connection()?;
    request.force_refresh = flags.flags.is_set("force-refresh");
    request.cache_dir = flags.path("token-cache-dir")?;
    request.storage = flags.storage()?;
    request.grant = flags.one_of("grant-type", GrantType::ALL)?.unwrap_or_default();
    request.browser = flags.browser()?;
    request.timeout = flags.seconds("authentication-timeout-sec")?.map(Duration::from_secs);
    request.parameters = flags.parameters()?;
    if request.parameters.audiences.is_empty() {
        request.parameters.audiences.extend(defaults.audience);
    }
    request.username = flags.flags.filled("username");
    request.password = flags.secret("password", "password-file")?;
    request.account = flags.flags.filled("account").unwrap_or_default();
    request.prompt_when = flags.prompt_when()?;
    request.no_refresh_token = flags.flags.is_set("no-refresh-token");
    request.min_validity = flags.duration("min-validity")?.unwrap_or(request.min_validity);
    request.session_max = flags.duration("session-max")?;
    request.exchange = flags.exchange()?;
    request.trust_server =
        flags.one_of("trust-server", &[("ask", TrustServer::Ask), ("any", TrustServer::Any)])?;
    request.with_certificate = flags.pair("with-client-certificate", "with-client-key")?;
    request.verbosity =
        flags.flags.integer("v").map_or(0, |level| u8::try_from(level.clamp(0, 9)).unwrap_or(9));
    check_together(&request)?;
    Ok(request)
}

/// The rules between flags.
fn check_together(request: &LoginRequest) -> Result<(), LoginError> {
    let usage = |text: &str| Err(LoginError::Usage(text.to_owned()));
    let grant = request.grant_by_flags();
    if matches!(grant, GrantType::TokenExchange | GrantType::Ambient) && request.exchange.subject.is_none() {
        return usage("missing --subject-token");
    }
    if grant == GrantType::Password && request.username.is_none() {
        return usage("missing --username");
    }
    if grant == GrantType::ClientCredentials && !request.client.is_present() {
        return usage(
            "client-credentials needs --oidc-client-secret-file, --oidc-client-assertion-key or --oidc-client-assertion-file",
        );
    }
    if request.connection.is_insecure
        && !(request.connection.authorities.is_empty() && request.connection.authority_data.is_empty())
    {
        return usage("--insecure-skip-tls-verify contradicts --certificate-authority");
    }
    if request.exchange.audience.is_some() && matches!(grant, GrantType::TokenExchange | GrantType::Ambient) {
        return usage("--exchange-audience belongs to a login; give a token exchange its --audience");
    }
    Ok(())
}

struct Flags<'f> {
    flags: &'f ParsedFlags,
    home: Option<&'f Path>,
}

impl Flags<'_> {
    /// A path; `~` at its start is the home folder.
    fn expand(&self, name: &str, text: &str) -> Result<PathBuf, LoginError> {
        let rest = match text.strip_prefix('~') {
            Some("") => "",
            Some(rest) if rest.starts_with('/') => rest.trim_start_matches('/'),
            _ => return Ok(PathBuf::from(text)),
        };
        let home = self.home.ok_or_else(|| {
            LoginError::Usage(format!("invalid --{name}: there is no home folder to replace `~` with"))
        })?;
        Ok(home.join(rest))
    }

    fn path(&self, name: &str) -> Result<Option<PathBuf>, LoginError> {
        self.flags.filled(name).map(|text| self.expand(name, &text)).transpose()
    }

    /// Two files that belong together.
    fn pair(&self, first: &str, second: &str) -> Result<Option<(PathBuf, PathBuf)>, LoginError> {
        match (self.path(first)?, self.path(second)?) {
            (Some(first), Some(second)) => Ok(Some((first, second))),
            (None, None) => Ok(None),
            (Some(_), None) => Err(LoginError::Usage(format!("--{first} needs --{second}"))),
            (None, Some(_)) => Err(LoginError::Usage(format!("--{second} needs --{first}"))),
        }
    }

    fn secret(&self, argument: &str, file: &str) -> Result<Option<SecretSource>, LoginError> {
        if let Some(path) = self.path(file)? {
            return Ok(Some(SecretSource::File(path)));
        }
        Ok(self.flags.filled(argument).map(|text| SecretSource::Argument(Secret::new(text))))
    }

    fn one_of<T: Copy>(&self, name: &str, values: &[(&str, T)]) -> Result<Option<T>, LoginError> {
        let Some(text) = self.flags.filled(name) else { return Ok(None) };
        let found = values.iter().find(|(known, _)| *known == text).map(|(_, value)| *value);
        let wanted = || {
            let names: Vec<&str> = values.iter().map(|(known, _)| *known).collect();
            LoginError::Usage(format!("invalid value of --{name}: expected {}", names.join(", ")))
        };
        found.map(Some).ok_or_else(wanted)
    }

    fn seconds(&self, name: &str) -> Result<Option<u64>, LoginError> {
        let value = self.flags.integer(name).map(u64::try_from).transpose();
        value.map_err(|_| LoginError::Usage(format!("invalid value of --{name}: negative")))
    }

    fn duration(&self, name: &str) -> Result<Option<Duration>, LoginError> {
        let Some(text) = self.flags.filled(name) else { return Ok(None) };
        let nanoseconds =
            navicert_go::duration::parse(&text).ok().and_then(|value| u64::try_from(value).ok());
        let wrong =
            || LoginError::Usage(format!("invalid value of --{name}: expected a duration such as 90s"));
        nanoseconds.map(|value| Some(Duration::from_nanos(value))).ok_or_else(wrong)
    }

    fn client(&self) -> Result<ClientAuthentication, LoginError> {
        let key = self.path("oidc-client-assertion-key")?;
        let kid = self.flags.filled("oidc-client-assertion-kid");
        if key.is_none() && kid.is_some() {
            return Err(LoginError::Usage(
                "--oidc-client-assertion-kid needs --oidc-client-assertion-key".to_owned(),
            ));
        }
        Ok(ClientAuthentication {
            secret: self.secret("oidc-client-secret", "oidc-client-secret-file")?,
            assertion_key: key.map(|key| (key, kid)),
            assertion_file: self.path("oidc-client-assertion-file")?,
        })
    }

    fn token_kind(&self, default: Option<TokenKind>) -> Result<TokenKind, LoginError> {
        let kinds = [("id", TokenKind::Id), ("access", TokenKind::Access)];
        let kind = self.one_of("token-kind", &kinds)?;
        if self.flags.is_set("oidc-use-access-token") {
            return Ok(TokenKind::Access);
        }
        Ok(kind.or(default).unwrap_or_default())
    }

    fn connection(&self) -> Result<ProviderConnection, LoginError> {
        let authorities = self.flags.array("certificate-authority").into_iter();
        let authorities = authorities
            .filter(|path| !path.is_empty())
            .map(|path| self.expand("certificate-authority", &path))
            .collect::<Result<_, _>>()?;
        let data = self.flags.array("certificate-authority-data").into_iter().filter(|text| !text.is_empty());
        let data = data.map(|text| STANDARD.decode(text)).collect::<Result<_, _>>();
        let data = data.map_err(|_| {
            LoginError::Usage("invalid value of --certificate-authority-data: expected base64".to_owned())
        })?;
        Ok(ProviderConnection {
            authorities,
            authority_data: data,
            is_insecure: self.flags.is_set("insecure-skip-tls-verify"),
            tls_server_name: self.flags.filled("tls-server-name").unwrap_or_default(),
            proxy_url: self.flags.filled("proxy-url").unwrap_or_default(),
            client_certificate: self.pair("client-certificate", "client-key")?,
            headers: self.headers()?,
        })
    }

    fn headers(&self) -> Result<Vec<(String, String)>, LoginError> {
        let headers = self.flags.map("oidc-request-header");
        for (name, value) in &headers {
            let parsed = name.parse::<HeaderName>();
            if HeaderValue::from_str(value).is_err() || parsed.is_err() {
                return Err(LoginError::Usage(
                    "invalid value of --oidc-request-header: not a header".to_owned(),
                ));
            }
            if parsed.is_ok_and(|name| OWN_HEADERS.contains(&name.as_str())) {
                return Err(LoginError::Usage(format!("--oidc-request-header may not set `{name}`")));
            }
        }
        Ok(headers)
    }

    fn storage(&self) -> Result<Storage, LoginError> {
        let values = [("disk", Storage::Disk), ("keyring", Storage::Keyring), ("none", Storage::None)];
        Ok(self.one_of("token-cache-storage", &values)?.unwrap_or_default())
    }

    fn prompt_when(&self) -> Result<PromptWhen, LoginError> {
        let values = ["terminal", "interactive", "always", "never"]
            .map(|text| (text, PromptWhen::from_text(text).unwrap_or_default()));
        Ok(self.one_of("prompt-when", &values)?.unwrap_or_default())
    }

    fn browser(&self) -> Result<BrowserSettings, LoginError> {
        let pkce = [("auto", PkceMethod::Auto), ("no", PkceMethod::No), ("S256", PkceMethod::S256)];
        let par = [("auto", ParMode::Auto), ("always", ParMode::Always), ("never", ParMode::Never)];
        let open_after = self.flags.filled("open-url-after-authentication");
        let is_web = |url: &String| url.starts_with("https://") || url.starts_with("http://");
        if open_after.as_ref().is_some_and(|url| !is_web(url)) {
            return Err(LoginError::Usage(
                "invalid value of --open-url-after-authentication: expected an http or https URL".to_owned(),
            ));
        }
        let is_forced = self.flags.is_set("oidc-use-pkce").then_some(PkceMethod::S256);
        Ok(BrowserSettings {
            redirect_url: self.flags.filled("oidc-redirect-url"),
            listen: self.flags.list("listen-address"),
            skip_open: self.flags.is_set("skip-open-browser"),
            command: self.flags.filled("browser-command"),
            certificate: self.pair("local-server-cert", "local-server-key")?,
            open_after,
            pkce: self.one_of("oidc-pkce-method", &pkce)?.or(is_forced).unwrap_or_default(),
            par: self.one_of("par", &par)?.unwrap_or_default(),
        })
    }

    fn parameters(&self) -> Result<LoginParameters, LoginError> {
        let extra = self.flags.map("oidc-auth-request-extra-params");
        for (name, value) in &extra {
            if OWN_PARAMETERS.contains(&name.as_str()) {
                return Err(LoginError::Usage(format!(
                    "--oidc-auth-request-extra-params may not set `{name}`"
                )));
            }
            if name == "response_mode" && !["query", "form_post"].contains(&value.as_str()) {
                return Err(LoginError::Usage(
                    "--oidc-auth-request-extra-params: `response_mode` may be query or form_post".to_owned(),
                ));
            }
        }
        Ok(LoginParameters {
            login_hint: self.flags.filled("login-hint"),
            prompt: self.flags.filled("prompt"),
            max_age: self.seconds("max-age")?,
            acr_values: self.flags.filled("acr-values"),
            ui_locales: self.flags.filled("ui-locales"),
            audiences: self.flags.array("audience"),
            resources: self.flags.array("resource"),
            extra,
        })
    }

    fn token_source(&self, name: &str) -> Result<Option<TokenSource>, LoginError> {
        let Some(text) = self.flags.filled(name) else { return Ok(None) };
        let source = match text.split_once(':') {
            Some(("file", path)) if !path.is_empty() => TokenSource::File(self.expand(name, path)?),
            Some(("env", variable)) if !variable.is_empty() => TokenSource::Variable(variable.to_owned()),
            None if text == "github-actions" => TokenSource::GithubActions,
            // The value may be a token that was given by mistake, so it is not shown.
            _ => {
                return Err(LoginError::Usage(format!(
                    "invalid value of --{name}: expected file:PATH, env:NAME or github-actions"
                )));
            }
        };
        Ok(Some(source))
    }

    fn exchange(&self) -> Result<ExchangeSettings, LoginError> {
        let actor = match (self.token_source("actor-token")?, self.flags.filled("actor-token-type")) {
            (Some(source), Some(kind)) => Some((source, kind)),
            (None, None) => None,
            _ => {
                return Err(LoginError::Usage(
                    "--actor-token and --actor-token-type belong together".to_owned(),
                ));
            }
        };
        Ok(ExchangeSettings {
            subject: self.token_source("subject-token")?,
            subject_type: self.flags.filled("subject-token-type"),
            actor,
            requested_type: self.flags.filled("requested-token-type"),
            audience: self.flags.filled("exchange-audience"),
        })
    }
}
