//! The compared clients, and how to make each send a request.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use navicert_client::ConfigOptions;
use navicert_testkit::{Ca, HttpClient, Program};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::Fault;

/// Timeout of one step.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(60);

/// A client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Client {
    /// Debian's kubectl.
    DebianKubectl,
    /// The kubectl that `peers/` builds.
    Kubectl,
    /// PyPI `kubernetes`.
    Python,
    /// npm `@kubernetes/client-node`.
    Node,
    /// Unmodified kube-rs.
    KubeRs,
    /// kube-rs with navicert's transport.
    Navicert,
}

impl Client {
    /// All of them, in the order of the table.
    pub(crate) const ALL: [Client; 6] = [
        Client::DebianKubectl,
        Client::Kubectl,
        Client::Python,
        Client::Node,
        Client::KubeRs,
        Client::Navicert,
    ];

    /// The package to install.
    pub(crate) fn package(self) -> &'static str {
        match self {
            Client::DebianKubectl => "Debian's kubernetes-client",
            Client::Kubectl => "peers/'s kubectl",
            Client::Python => "PyPI kubernetes",
            Client::Node => "npm @kubernetes/client-node",
            Client::KubeRs => "kube-rs",
            Client::Navicert => "navicert",
        }
    }

    /// Its name with the version, if it is installed.
    pub(crate) fn installed(self) -> Option<String> {
        let version = match self {
            Client::DebianKubectl | Client::Kubectl => {
                let printed = printed(self.program(), &["version", "--client", "-o", "json"])?;
                let version: serde_json::Value = serde_json::from_str(&printed).ok()?;
                version.pointer("/clientVersion/gitVersion")?.as_str()?.trim_start_matches('v').to_owned()
            }
            Client::Python => {
                printed(self.program(), &["-c", "import kubernetes; print(kubernetes.__version__)"])?
            }
            Client::Node => {
                let about =
                    self.program().parent()?.join("node_modules/@kubernetes/client-node/package.json");
                let about: serde_json::Value = serde_json::from_slice(&std::fs::read(about).ok()?).ok()?;
                about.get("version")?.as_str()?.to_owned()
            }
            Client::KubeRs => return Some(format!("kube-rs {}", kube_version()?)),
            Client::Navicert => return Some("**navicert**".to_owned()),
        };
        let name =
            if matches!(self, Client::DebianKubectl | Client::Kubectl) { "kubectl" } else { self.package() };
        Some(format!("{name} {}", version.trim()))
    }

    /// Where `make clients` and `make tools` install it.
    fn program(self) -> PathBuf {
        let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
        match self {
            Client::DebianKubectl => target.join("tools/usr/bin/kubectl"),
            Client::Kubectl => target.join("peers/bin/kubectl"),
            Client::Python => target.join("clients/python/bin/python"),
            _ => target.join("clients/node/client.mjs"),
        }
    }

    /// Starts it with a kubeconfig.
    pub(crate) async fn start(self, kubeconfig: &Path) -> Result<Session, Fault> {
        let script = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/clients").join(name);
        match self {
            Client::DebianKubectl | Client::Kubectl => Session::proxy(&self.program(), kubeconfig).await,
            Client::Python => {
                let script = script("client.py");
                Session::driver(&self.program(), &[&script, kubeconfig])
            }
            Client::Node => {
                let (script, program) = (script("client.mjs"), self.program());
                let packages = program.parent().unwrap_or(&program);
                Session::driver(Path::new("node"), &[&script, kubeconfig, packages])
            }
            Client::KubeRs => {
                let read = kube::config::Kubeconfig::read_from(kubeconfig)?;
                let options = kube::config::KubeConfigOptions::default();
                let config = kube::Config::from_custom_kubeconfig(read, &options).await?;
                Ok(Session::InProcess(kube::Client::try_from(config)?))
            }
            Client::Navicert => {
                let environment = [("PATH", "/usr/bin:/bin")].into_iter().collect();
                let config = ConfigOptions::new(environment, "/").kubeconfig(kubeconfig).resolve()?;
                Ok(Session::InProcess(navicert_kube::from_config(config)?))
            }
        }
    }
}

/// The kube-rs release that this workspace uses.
fn kube_version() -> Option<&'static str> {
    let (_, rest) = include_str!("../../../../Cargo.lock").split_once("name = \"kube\"\nversion = \"")?;
    Some(rest.split_once('"')?.0)
}

/// A client that has been started.
pub(crate) enum Session {
    /// `kubectl proxy`, which forwards every request with kubectl's credential.
    Proxy { address: String, _proxy: Child },
    /// A script that sends requests on command.
    Driver { stdin: ChildStdin, lines: Lines<BufReader<ChildStdout>>, _driver: Child },
    /// A Rust client.
    InProcess(kube::Client),
}

impl Session {
    async fn proxy(program: &Path, kubeconfig: &Path) -> Result<Self, Fault> {
        let mut proxy = command(program)
            .args(["proxy", "--port=0"])
            .env("KUBECONFIG", kubeconfig)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let stdout = proxy.stdout.take().ok_or("no output")?;
        let line = within(BufReader::new(stdout).lines().next_line()).await??.unwrap_or_default();
        let address = line.rsplit(' ').next().unwrap_or_default().to_owned();
        Ok(Session::Proxy { address, _proxy: proxy })
    }

    fn driver(program: &Path, arguments: &[&Path]) -> Result<Self, Fault> {
        let mut driver = command(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let stdin = driver.stdin.take().ok_or("no input")?;
        let lines = BufReader::new(driver.stdout.take().ok_or("no output")?).lines();
        Ok(Session::Driver { stdin, lines, _driver: driver })
    }

    /// Sends so many concurrent requests and waits until all have ended, successfully or not.
    pub(crate) async fn send(&mut self, count: usize) -> Result<(), Fault> {
        match self {
            Session::Proxy { address, .. } => {
                // The proxy is reached without TLS, so no certificate is verified.
                let client = HttpClient::trusting(&Ca::new("unused"));
                let url = format!("http://{address}/version");
                let asked = (0..count).map(|_| client.get(&url));
                let _ = within(futures_util::future::join_all(asked)).await?;
            }
            Session::Driver { stdin, lines, .. } => {
                stdin.write_all(format!("{count}\n").as_bytes()).await?;
                within(lines.next_line()).await??;
            }
            Session::InProcess(client) => {
                let asked = (0..count).map(|_| client.apiserver_version());
                let _ = within(futures_util::future::join_all(asked)).await?;
            }
        }
        Ok(())
    }
}

async fn within<T>(future: impl Future<Output = T>) -> Result<T, Fault> {
    tokio::time::timeout(CLIENT_TIMEOUT, future)
        .await
        .map_err(|_| "a client did not answer within a minute".into())
}

/// A program that is killed when this one ends, with only `PATH` and home variables in its environment.
#[expect(clippy::disallowed_methods, reason = "other people's clients are no credential plugins")]
fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.kill_on_drop(true).env_remove("KUBECONFIG").env_remove("HTTPS_PROXY").env_remove("https_proxy");
    command
}

fn printed(program: PathBuf, arguments: &[&str]) -> Option<String> {
    let outcome = Program::new(program).arguments(arguments).run().ok()?;
    outcome.status.success().then(|| String::from_utf8_lossy(&outcome.stdout).into_owned())
}
