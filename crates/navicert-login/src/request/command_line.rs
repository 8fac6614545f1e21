//! A request as a command line again: for the kubeconfig that `setup` prints, and for the command that an error names.

use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use navicert_go::base64::STANDARD;

use super::{
    DEFAULT_MIN_VALIDITY, Form, GrantType, LoginRequest, ParMode, PkceMethod, PromptWhen, SecretSource,
    Storage, TokenKind, TrustServer,
};

/// Flags that a command for a person leaves out: one is too long to type, the others are about runs of clients.
const NOT_FOR_PEOPLE: [&str; 3] = ["certificate-authority-data", "prompt-when", "trust-server"];

impl LoginRequest {
    /// The command that a person can run in a terminal to log in to the same entry. Contains no secret: those are left out.
    pub fn command_line(&self) -> String {
        let is_short = |flag: &&SetFlag| !NOT_FOR_PEOPLE.contains(&flag.name);
        let flags = self.set_flags();
        let mut words = vec!["navicert".to_owned()];
        words.extend(self.verb().iter().map(|word| (*word).to_owned()));
        words.extend(flags.iter().filter(is_short).map(|flag| shell_word(&flag.word())));
        if !(self.left_out().is_empty() && self.connection.authority_data.is_empty()) {
            words.push("… (and the other flags of this kubeconfig user)".to_owned());
        }
        words.join(" ")
    }

    /// The arguments of the program for this request, without those in [`LoginRequest::left_out`].
    pub(crate) fn arguments(&self) -> Vec<String> {
        let verb = self.verb().iter().map(|word| (*word).to_owned());
        verb.chain(self.set_flags().iter().map(SetFlag::word)).collect()
    }

    /// Flags whose values are secrets or may contain one: no file and no error gets them.
    pub(crate) fn left_out(&self) -> Vec<&'static str> {
        let is_argument = |source: &Option<SecretSource>| matches!(source, Some(SecretSource::Argument(_)));
        [
            ("oidc-client-secret", is_argument(&self.client.secret)),
            ("password", is_argument(&self.password)),
            ("oidc-request-header", !self.connection.headers.is_empty()),
            ("proxy-url", self.connection.proxy_url.contains('@')),
        ]
        .into_iter()
        .filter_map(|(name, is_left_out)| is_left_out.then_some(name))
        .collect()
    }

    fn verb(&self) -> &'static [&'static str] {
        match self.form {
            Form::Own => &["login"],
            Form::Compatible => &["login", "get-token"],
        }
    }

    /// Every flag that differs from its default. `--force-refresh` and `-v` belong to one run.
    fn set_flags(&self) -> Vec<SetFlag> {
        let mut flags = SetFlags::default();
        flags.add("oidc-issuer-url", &self.issuer);
        flags.add("oidc-client-id", &self.client_id);
        flags.list("oidc-extra-scope", &self.extra_scopes);
        flags.add("account", &self.account);
        flags.choice("token-kind", self.token_kind == TokenKind::Access, "access");
        flags.choice("grant-type", self.grant != GrantType::Auto, self.grant.as_str());
        self.add_client(&mut flags);
        self.add_connection(&mut flags);
        self.add_cache(&mut flags);
        self.add_parameters(&mut flags);
        self.add_browser(&mut flags);
        self.add_exchange(&mut flags);
        flags.0
    }

    fn add_client(&self, flags: &mut SetFlags) {
        flags.secret("oidc-client-secret-file", self.client.secret.as_ref());
        if let Some((key, kid)) = &self.client.assertion_key {
            flags.path("oidc-client-assertion-key", Some(key));
            flags.text("oidc-client-assertion-kid", kid.as_deref());
        }
        flags.path("oidc-client-assertion-file", self.client.assertion_file.as_deref());
        flags.text("username", self.username.as_deref());
        flags.secret("password-file", self.password.as_ref());
        flags.pair("with-client-certificate", "with-client-key", self.with_certificate.as_ref());
    }

    fn add_connection(&self, flags: &mut SetFlags) {
        let connection = &self.connection;
        for path in &connection.authorities {
            flags.path("certificate-authority", Some(path));
        }
        for data in &connection.authority_data {
            flags.add("certificate-authority-data", &STANDARD.encode(data));
        }
        flags.switch("insecure-skip-tls-verify", connection.is_insecure);
        flags.add("tls-server-name", &connection.tls_server_name);
        if !connection.proxy_url.contains('@') {
            flags.add("proxy-url", &connection.proxy_url);
        }
        flags.pair("client-certificate", "client-key", connection.client_certificate.as_ref());
    }

    fn add_cache(&self, flags: &mut SetFlags) {
        flags.path("token-cache-dir", self.cache_dir.as_deref());
        let storage = match self.storage {
            Storage::Disk => "disk",
            Storage::Keyring => "keyring",
            Storage::None => "none",
        };
        flags.choice("token-cache-storage", self.storage != Storage::Disk, storage);
        flags.switch("no-refresh-token", self.no_refresh_token);
        let min_validity = Some(self.min_validity).filter(|duration| *duration != DEFAULT_MIN_VALIDITY);
        flags.duration("min-validity", min_validity);
        flags.duration("session-max", self.session_max);
        let prompt_when = match self.prompt_when {
            PromptWhen::Terminal => "terminal",
            PromptWhen::Interactive => "interactive",
            PromptWhen::Always => "always",
            PromptWhen::Never => "never",
        };
        flags.choice("prompt-when", self.prompt_when != PromptWhen::Terminal, prompt_when);
        let trust_server = if self.trust_server == Some(TrustServer::Any) { "any" } else { "ask" };
        flags.choice("trust-server", self.trust_server.is_some(), trust_server);
    }

    fn add_parameters(&self, flags: &mut SetFlags) {
        let parameters = &self.parameters;
        flags.text("login-hint", parameters.login_hint.as_deref());
        flags.text("prompt", parameters.prompt.as_deref());
        flags.text("max-age", parameters.max_age.map(|age| age.to_string()).as_deref());
        flags.text("acr-values", parameters.acr_values.as_deref());
        flags.text("ui-locales", parameters.ui_locales.as_deref());
        for audience in &parameters.audiences {
            flags.add("audience", audience);
        }
        for resource in &parameters.resources {
            flags.add("resource", resource);
        }
        for (name, value) in &parameters.extra {
            flags.list("oidc-auth-request-extra-params", &[format!("{name}={value}")]);
        }
    }

    fn add_browser(&self, flags: &mut SetFlags) {
        let browser = &self.browser;
        flags.list("listen-address", &browser.listen);
        flags.text("oidc-redirect-url", browser.redirect_url.as_deref());
        flags.switch("skip-open-browser", browser.skip_open);
        flags.text("browser-command", browser.command.as_deref());
        flags.pair("local-server-cert", "local-server-key", browser.certificate.as_ref());
        flags.text("open-url-after-authentication", browser.open_after.as_deref());
        let pkce = if browser.pkce == PkceMethod::No { "no" } else { "S256" };
        flags.choice("oidc-pkce-method", browser.pkce != PkceMethod::Auto, pkce);
        let par = if browser.par == ParMode::Always { "always" } else { "never" };
        flags.choice("par", browser.par != ParMode::Auto, par);
        flags.text(
            "authentication-timeout-sec",
            self.timeout.map(|limit| limit.as_secs().to_string()).as_deref(),
        );
    }

    fn add_exchange(&self, flags: &mut SetFlags) {
        let exchange = &self.exchange;
        flags.text("subject-token", exchange.subject.as_ref().map(super::TokenSource::as_text).as_deref());
        flags.text("subject-token-type", exchange.subject_type.as_deref());
        if let Some((source, kind)) = &exchange.actor {
            flags.add("actor-token", &source.as_text());
            flags.add("actor-token-type", kind);
        }
        flags.text("requested-token-type", exchange.requested_type.as_deref());
        flags.text("exchange-audience", exchange.audience.as_deref());
    }
}

/// A flag with its value; a switch has none.
struct SetFlag {
    name: &'static str,
    value: Option<String>,
}

impl SetFlag {
    fn word(&self) -> String {
        match &self.value {
            Some(value) => format!("--{}={value}", self.name),
            None => format!("--{}", self.name),
        }
    }
}

/// The flags in the order in which they were added. Empty values are the default of every flag and are left out.
#[derive(Default)]
struct SetFlags(Vec<SetFlag>);

impl SetFlags {
    fn add(&mut self, name: &'static str, value: &str) {
        if !value.is_empty() {
            self.0.push(SetFlag { name, value: Some(value.to_owned()) });
        }
    }

    fn text(&mut self, name: &'static str, value: Option<&str>) {
        self.add(name, value.unwrap_or_default());
    }

    fn switch(&mut self, name: &'static str, is_set: bool) {
        if is_set {
            self.0.push(SetFlag { name, value: None });
        }
    }

    fn choice(&mut self, name: &'static str, is_set: bool, value: &str) {
        self.add(name, if is_set { value } else { "" });
    }

    /// One flag per value, quoted as CSV where that is needed.
    fn list(&mut self, name: &'static str, values: &[String]) {
        for value in values {
            let is_plain = !value.contains([',', '"']);
            let quoted = format!("\"{}\"", value.replace('"', "\"\""));
            self.add(name, if is_plain { value } else { &quoted });
        }
    }

    fn path(&mut self, name: &'static str, path: Option<&Path>) {
        self.text(name, path.map(|path| path.display().to_string()).as_deref());
    }

    fn pair<P: AsRef<Path>>(&mut self, first: &'static str, second: &'static str, pair: Option<&(P, P)>) {
        if let Some((one, other)) = pair {
            self.path(first, Some(one.as_ref()));
            self.path(second, Some(other.as_ref()));
        }
    }

    /// The file of a secret; a secret that was an argument is left out.
    fn secret(&mut self, name: &'static str, source: Option<&SecretSource>) {
        if let Some(SecretSource::File(path)) = source {
            self.path(name, Some(path));
        }
    }

    fn duration(&mut self, name: &'static str, duration: Option<Duration>) {
        let text = duration.map(|duration| match duration.subsec_nanos() {
            0 => format!("{}s", duration.as_secs()),
            _ => format!("{}ns", duration.as_nanos()),
        });
        self.text(name, text.as_deref());
    }
}

/// Quotes a word for a POSIX shell if that is needed.
pub(crate) fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,@%+".contains(c);
    if word.chars().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use navicert_types::Secret;

    use super::*;
    use crate::args::{ExtensionDefaults, login_request, parse};

    // L212
    #[test]
    fn command_line_is_quoted_and_contains_no_secret() {
        let mut request = LoginRequest::new(Form::Own, "https://id.example/realms/a b", "it's");
        request.client.secret = Some(SecretSource::Argument(Secret::new("canary".to_owned())));
        let line = request.command_line();
        assert!(
            line.starts_with(r"navicert login '--oidc-issuer-url=https://id.example/realms/a b'"),
            "{line}"
        );
        assert!(line.contains(r"'--oidc-client-id=it'\''s'"), "{line}");
        assert!(!line.contains("canary") && line.contains("other flags"), "{line}");
    }

    const REQUIRED: [&str; 2] = ["--oidc-issuer-url=https://id.example", "--oidc-client-id=c"];

    fn read(form: Form, words: &[impl AsRef<str>]) -> LoginRequest {
        let flags = parse(words).unwrap();
        login_request(form, &flags, None, ExtensionDefaults::default()).unwrap()
    }

    /// Flags that exclude each other are in different lines.
    const LINES: [&str; 5] = [
        "--oidc-extra-scope=a,\"b,c\" --account=x --token-kind=access --token-cache-dir=/d --token-cache-storage=none \
         --no-refresh-token --min-validity=90s --session-max=1500ms --prompt-when=never --trust-server=any \
         --exchange-audience=cluster",
        "--grant-type=device-code --certificate-authority=/ca --certificate-authority-data=QQ== --tls-server-name=n \
         --proxy-url=http://p:1 --client-certificate=/c --client-key=/k --oidc-client-secret-file=/s",
        "--oidc-redirect-url=http://localhost:1 --listen-address=127.0.0.1:1,127.0.0.1:2 --skip-open-browser \
         --browser-command=open --authentication-timeout-sec=7 --local-server-cert=/c --local-server-key=/k \
         --open-url-after-authentication=https://x --oidc-pkce-method=no --par=always --insecure-skip-tls-verify \
         --oidc-auth-request-extra-params=a=1,\"b=2,3\" --login-hint=h --prompt=login --max-age=3 --acr-values=v \
         --ui-locales=de --audience=one --audience=two --resource=r",
        "--username=ann --password-file=/p --oidc-client-assertion-key=/k --oidc-client-assertion-kid=i \
         --oidc-pkce-method=S256 --par=never",
        "--subject-token=env:A --subject-token-type=t --actor-token=file:/b --actor-token-type=u \
         --requested-token-type=v --oidc-client-assertion-file=/f --with-client-certificate=/c --with-client-key=/k",
    ];

    // L212, L1111
    #[test]
    fn arguments_mean_the_same_request_again() {
        for (line, form) in LINES.iter().flat_map(|line| [(line, Form::Own), (line, Form::Compatible)]) {
            let words: Vec<&str> = REQUIRED.into_iter().chain(line.split_whitespace()).collect();
            let request = read(form, &words);
            let arguments = request.arguments();
            let flags = arguments.get(request.verb().len()..).unwrap();
            assert_eq!(read(form, flags), request, "{line}");
            assert!(request.left_out().is_empty(), "{line}");
        }
    }

    #[test]
    fn every_flag_of_a_request_is_repeated_or_left_out_by_name() {
        let of_one_run = ["force-refresh", "v", "output", "oidc-use-access-token", "oidc-use-pkce"];
        let words = [
            "--oidc-client-secret=canary",
            "--password=canary",
            "--username=a",
            "--oidc-request-header=x=canary",
            "--proxy-url=http://u:canary@p",
        ];
        let request = read(Form::Own, &[&REQUIRED[..], &words[..]].concat());
        assert!(!format!("{:?}{}", request.arguments(), request.command_line()).contains("canary"));
        let left_out = request.left_out();
        assert_eq!(left_out, ["oidc-client-secret", "password", "oidc-request-header", "proxy-url"]);
        for flag in crate::args::FLAGS.iter().filter(|flag| !flag.help.is_empty()) {
            let word = format!("--{}", flag.name);
            let is_repeated = LINES.iter().chain(&REQUIRED).any(|line| {
                line.split_whitespace().any(|found| found.split('=').next() == Some(word.as_str()))
            });
            assert!(
                is_repeated || left_out.contains(&flag.name) || of_one_run.contains(&flag.name),
                "{} is not tested",
                flag.name
            );
        }
    }
}
