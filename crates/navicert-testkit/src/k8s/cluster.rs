//! A real control plane for a test: etcd, kube-apiserver and a test issuer on loopback, as `make cluster` starts them.
//!
//! The programs come from `peers/` and are named by `NAVICERT_PEERS`, the directory they were built into; `make
//! interop` builds them and sets it. Tests that need a control plane are built only with the feature `interop`, which
//! `make interop` switches on.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::Value;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::cli::program::Program;
use crate::environment;
use crate::pki::ca::Ca;

/// Where the programs of `peers/` are.
const VARIABLE: &str = "NAVICERT_PEERS";

/// A running control plane with RBAC, client certificates, a front proxy's authority and an issuer of tokens.
///
/// It is gone when dropped, and also when the test run ends without a chance to drop it: the program that runs it
/// ends with its standard input.
///
/// ```no_run
/// use navicert_testkit::k8s::cluster::Cluster;
///
/// let cluster = Cluster::start();
/// let namespaces = cluster.kubectl(cluster.admin_kubeconfig()).arguments(["get", "namespaces"]).run().unwrap();
/// assert!(namespaces.status.success());
/// ```
#[derive(Debug)]
pub struct Cluster {
    child: Child,
    /// Closing it ends the cluster.
    stdin: Option<ChildStdin>,
    program: PathBuf,
    directory: PathBuf,
    server: String,
    issuer: String,
    audience: String,
    files: Files,
}

#[derive(Debug)]
struct Files {
    ca: PathBuf,
    issuer_ca: PathBuf,
    issuer_key: PathBuf,
    client_ca: PathBuf,
    client_ca_key: PathBuf,
    front_proxy: PathBuf,
    front_proxy_key: PathBuf,
    admin_kubeconfig: PathBuf,
    jwt_kubeconfig: PathBuf,
    authentication_config: PathBuf,
    kubectl: PathBuf,
}

impl Cluster {
    /// Starts a control plane.
    ///
    /// # Panics
    /// If `NAVICERT_PEERS` is not set or has no such programs, or the control plane does not come up.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// The same with further flags for kube-apiserver, such as `--authentication-token-webhook-config-file=…`.
    ///
    /// # Panics
    /// As [`start`](Self::start).
    pub fn start_with(apiserver_flags: &[&str]) -> Self {
        let programs = environment::variable(VARIABLE).unwrap_or_else(|| {
            panic!("missing {VARIABLE}: `make interop` runs the tests that need a control plane")
        });
        Self::run(Path::new(&programs), apiserver_flags)
    }

    /// One control plane for all tests of this process, which leave each other's objects alone.
    ///
    /// # Panics
    /// As [`start`](Self::start).
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Cluster> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }

    fn run(programs: &Path, apiserver_flags: &[&str]) -> Self {
        let program = programs.join("cluster");
        assert!(
            program.exists(),
            "{VARIABLE} is set, but `{}` is missing: run `make interop`",
            program.display()
        );
        let directory =
            tempfile::Builder::new().prefix("navicert-cluster-").tempdir().expect("a temporary directory");
        let directory = directory.keep(); // the program takes it over and removes it
        let mut child = spawn(&program, &directory, apiserver_flags);
        let stdout = child.stdout.take().expect("a piped stdout");
        let mut line = String::new();
        // One line when it is ready; if it fails, which it does within three minutes, the end of its output.
        BufReader::new(stdout).read_line(&mut line).expect("the cluster's line");
        assert!(!line.is_empty(), "the control plane did not come up; its error is above");
        let description: Value = serde_json::from_str(&line).expect("the cluster's line is JSON");
        Cluster {
            stdin: child.stdin.take(),
            child,
            program,
            directory,
            server: text(&description, "server"),
            issuer: text(&description, "issuer"),
            audience: text(&description, "audience"),
            files: Files::read(&description),
        }
    }

    /// The API server's URL.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The certificate that vouches for the API server.
    pub fn ca(&self) -> &Path {
        &self.files.ca
    }

    /// The test issuer's URL; users from it are called `peers:<sub>`, their groups `peers:<group>`.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// The certificate that vouches for the test issuer.
    pub fn issuer_ca(&self) -> &Path {
        &self.files.issuer_ca
    }

    /// The key the test issuer signs with (ES256, `kid` is `peers`), for tokens [`token`](Self::token) does not make.
    pub fn issuer_key(&self) -> &Path {
        &self.files.issuer_key
    }

    /// The audience that the API server requires in a token.
    pub fn audience(&self) -> &str {
        &self.audience
    }

    /// The authority of client certificates, and its key.
    pub fn client_ca(&self) -> (&Path, &Path) {
        (&self.files.client_ca, &self.files.client_ca_key)
    }

    /// Client certificate and key of a front proxy, which may set `X-Remote-*` headers.
    pub fn front_proxy(&self) -> (&Path, &Path) {
        (&self.files.front_proxy, &self.files.front_proxy_key)
    }

    /// A kubeconfig with a client certificate of `system:masters`.
    pub fn admin_kubeconfig(&self) -> &Path {
        &self.files.admin_kubeconfig
    }

    /// A kubeconfig with an exec plugin that gives tokens of `peers:ann` in `peers:developers`.
    pub fn jwt_kubeconfig(&self) -> &Path {
        &self.files.jwt_kubeconfig
    }

    /// The API server's AuthenticationConfiguration; it is read again when it changes.
    pub fn authentication_config(&self) -> &Path {
        &self.files.authentication_config
    }

    /// The matching kubectl.
    pub fn kubectl_program(&self) -> &Path {
        &self.files.kubectl
    }

    /// The matching kubectl with a kubeconfig; its caches go with the cluster.
    pub fn kubectl(&self, kubeconfig: &Path) -> Program {
        Program::new(&self.files.kubectl)
            .variable("KUBECONFIG", kubeconfig)
            .variable("KUBECACHEDIR", self.directory.join("kubectl-cache"))
    }

    /// A fresh token of the test issuer.
    ///
    /// # Panics
    /// If none could be made.
    pub fn token(&self, subject: &str, groups: &[&str]) -> String {
        self.mint(subject, groups, None)
    }

    fn mint(&self, subject: &str, groups: &[&str], lifetime: Option<Duration>) -> String {
        let groups = groups.iter().flat_map(|group| ["-group", group]);
        let lifetime = lifetime.map(|lifetime| format!("-lifetime={}ms", lifetime.as_millis()));
        let outcome = Program::new(&self.program)
            .arguments(["token", "-bare", "-sub", subject, "-dir"])
            .arguments([&self.directory])
            .arguments(groups)
            .arguments(lifetime)
            .run()
            .expect("the cluster program starts");
        assert!(outcome.status.success(), "{}", String::from_utf8_lossy(&outcome.stderr));
        String::from_utf8_lossy(&outcome.stdout).trim().to_owned()
    }

    /// A new token of the test issuer with this lifetime.
    ///
    /// # Panics
    /// If none could be made.
    pub fn short_token(&self, subject: &str, groups: &[&str], lifetime: Duration) -> String {
        self.mint(subject, groups, Some(lifetime))
    }

    /// The authority of client certificates, ready to issue some.
    ///
    /// # Panics
    /// If its key cannot be read.
    pub fn client_authority(&self) -> Ca {
        let (certificate, key) = self.client_ca();
        let read = |path: &Path| std::fs::read_to_string(path).expect("the cluster's own files");
        Ca::in_the_name_of(&common_name(&read(certificate)), &read(key))
    }

    /// Stops it and waits until nothing of it is left. Dropping does the same.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        drop(self.stdin.take());
        let _ = self.child.wait(); // it has limits of its own for everything it waits for
    }
}

/// The kubectl of `peers/`, without a cluster.
///
/// # Panics
/// If `NAVICERT_PEERS` is not set.
pub fn current_kubectl() -> PathBuf {
    let programs = environment::variable(VARIABLE);
    Path::new(&programs.unwrap_or_else(|| panic!("missing {VARIABLE}: run `make interop`"))).join("kubectl")
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.end();
    }
}

impl Files {
    fn read(description: &Value) -> Self {
        let file = |name| PathBuf::from(text(description, name));
        Files {
            ca: file("ca"),
            issuer_ca: file("issuerCA"),
            issuer_key: file("issuerKey"),
            client_ca: file("clientCA"),
            client_ca_key: file("clientCAKey"),
            front_proxy: file("frontProxy"),
            front_proxy_key: file("frontProxyKey"),
            admin_kubeconfig: file("adminKubeconfig"),
            jwt_kubeconfig: file("jwtKubeconfig"),
            authentication_config: file("authenticationConfig"),
            kubectl: file("kubectl"),
        }
    }
}

/// The common name of a certificate.
fn common_name(pem: &str) -> String {
    let der = CertificateDer::from_pem_slice(pem.as_bytes()).expect("a certificate in PEM");
    let (_, certificate) = X509Certificate::from_der(&der).expect("a certificate");
    let name = certificate.subject().iter_common_name().next().expect("a common name");
    name.as_str().expect("a common name that is text").to_owned()
}

fn text(description: &Value, name: &str) -> String {
    let member = description.get(name).and_then(Value::as_str);
    member.unwrap_or_else(|| panic!("the cluster's line has no `{name}`")).to_owned()
}

#[expect(
    clippy::disallowed_methods,
    reason = "runs for as long as the test does, which `Program` is not made for"
)]
fn spawn(program: &Path, directory: &Path, apiserver_flags: &[&str]) -> Child {
    let flags =
        apiserver_flags.iter().flat_map(|flag| [OsString::from("-apiserver-flag"), OsString::from(flag)]);
    Command::new(program)
        .args(["run", "-until-stdin-closes", "-dir"])
        .arg(directory)
        .args(flags)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("`{}` does not start: {error}", program.display()))
}
