//! A user of `navicert login` with a real provider and a real browser.

pub(crate) mod flows;
pub(crate) mod kubelogin;
pub(crate) mod kubelogin_arguments;
pub(crate) mod person;

use std::path::{Path, PathBuf};
use std::time::Duration;

use navicert_testkit::Program;
use navicert_testkit::cli::program::Outcome;
use navicert_testkit::services::browser::Browser;
use navicert_testkit::services::openid_provider::LOGIN_CLIENT;
use serde_json::{Value, json};

pub(crate) const NAVICERT: &str = env!("CARGO_BIN_EXE_navicert");
/// As a client in the background asks.
const BACKGROUND: &str = r#"{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","spec":{"interactive":false}}"#;
/// A login takes several pages in a browser.
const LIMIT: Duration = Duration::from_mins(3);

/// A provider as a login sees it, and what it offers.
#[derive(Clone, Debug)]
pub(crate) struct ProviderFacts {
    pub(crate) issuer: String,
    pub(crate) ca_file: PathBuf,
    /// Flags that this provider needs.
    pub(crate) flags: Vec<String>,
    /// The name that it puts into tokens.
    pub(crate) display: &'static str,
    /// It has a revocation endpoint and an end-session endpoint.
    pub(crate) ends_sessions: bool,
    /// The use of an old refresh token ends the session.
    pub(crate) detects_reuse: bool,
    /// The person can refuse.
    pub(crate) can_be_refused: bool,
}

/// The user: a provider, a browser, and a cache folder.
pub(crate) struct LoginUser {
    pub(crate) provider: ProviderFacts,
    pub(crate) browser: Browser,
    pub(crate) dir: PathBuf,
}

impl LoginUser {
    pub(crate) fn cache(&self) -> PathBuf {
        self.dir.join("cache")
    }

    /// The flags that select the session.
    pub(crate) fn selection(&self) -> Vec<String> {
        let provider = &self.provider;
        let mut flags = vec![
            format!("--oidc-issuer-url={}", provider.issuer),
            format!("--oidc-client-id={LOGIN_CLIENT}"),
            format!("--certificate-authority={}", provider.ca_file.display()),
            format!("--token-cache-dir={}", self.cache().display()),
        ];
        flags.extend(provider.flags.iter().cloned());
        flags
    }

    /// `navicert WORDS` in an environment of its own.
    pub(crate) fn navicert(&self, words: &[&str]) -> Program {
        Program::new(NAVICERT)
            .arguments(words)
            .own_environment()
            .variable("HOME", &self.dir)
            .variable("PATH", "/usr/bin:/bin")
            .limit(LIMIT)
    }

    /// `navicert login` by hand, with the browser.
    pub(crate) fn login(&self) -> Program {
        self.navicert(&["login"]).arguments(self.selection()).arguments([self.browser_flag()])
    }

    pub(crate) fn browser_flag(&self) -> String {
        format!("--browser-command={}", self.browser.opener().display())
    }

    /// `navicert login` as a client in the background runs it.
    pub(crate) fn background_login(&self) -> Program {
        self.login().variable("KUBERNETES_EXEC_INFO", BACKGROUND)
    }

    /// `navicert login` on a terminal.
    pub(crate) fn terminal_login(&self, more: &[&str]) -> Program {
        let mut words = vec![NAVICERT.to_owned(), "login".to_owned()];
        words.extend(self.selection());
        words.push(self.browser_flag());
        words.extend(more.iter().map(|word| (*word).to_owned()));
        on_terminal(&words)
            .own_environment()
            .variable("HOME", &self.dir)
            .variable("PATH", "/usr/bin:/bin")
            .limit(LIMIT)
    }

    /// The only session's file.
    pub(crate) fn entry_path(&self) -> PathBuf {
        let is_entry = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            name.ends_with(".json") && !name.ends_with(".provider.json")
        };
        let files = std::fs::read_dir(self.cache()).unwrap().map(|entry| entry.unwrap().path());
        let mut entries: Vec<PathBuf> = files.filter(is_entry).collect();
        assert_eq!(entries.len(), 1, "{entries:?}");
        entries.remove(0)
    }

    pub(crate) fn entry(&self) -> Value {
        serde_json::from_slice(&std::fs::read(self.entry_path()).unwrap()).unwrap()
    }

    /// Writes a session with a token that is too old.
    pub(crate) fn put_expired(&self, mut entry: Value) {
        entry["receivedAt"] = json!("2020-01-01T00:00:00Z");
        entry["localExpiry"] = json!("2020-01-01T01:00:00Z");
        std::fs::write(self.entry_path(), entry.to_string()).unwrap();
    }

    pub(crate) fn expire(&self) {
        self.put_expired(self.entry());
    }
}

/// A command line in a terminal of its own; both streams are its standard output.
pub(crate) fn on_terminal(words: &[String]) -> Program {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
    Program::new("script").arguments(["-qec", &quoted.join(" "), "/dev/null"])
}

/// A port that was free a moment ago.
pub(crate) fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Exit code, standard output and standard error.
pub(crate) fn texts(outcome: &Outcome) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (outcome.code(), text(&outcome.stdout), text(&outcome.stderr))
}

pub(crate) fn run(program: &Program) -> (Option<i32>, String, String) {
    texts(&program.run().unwrap())
}

/// The token of an `ExecCredential`.
pub(crate) fn token(stdout: &str) -> String {
    let response: Value = serde_json::from_str(stdout).unwrap_or_else(|error| panic!("{error}: {stdout}"));
    response["status"]["token"].as_str().unwrap().to_owned()
}

/// The claims of a token, which the program has verified.
pub(crate) fn claims(token: &str) -> Value {
    use base64::Engine as _;
    let payload = token.split('.').nth(1).unwrap();
    serde_json::from_slice(&base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(payload).unwrap())
        .unwrap()
}

/// A folder for `PATH` with links of these names to these programs.
pub(crate) fn link_into(bin: &Path, links: &[(&str, &Path)]) -> String {
    std::fs::create_dir(bin).unwrap();
    for (name, program) in links {
        std::os::unix::fs::symlink(std::fs::canonicalize(program).unwrap(), bin.join(name)).unwrap();
    }
    format!("{}:/usr/bin:/bin", bin.display())
}
