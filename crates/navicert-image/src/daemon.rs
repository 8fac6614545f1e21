//! The per-user daemon of `navicert image serve`. Holds the cache in memory and serves credential helpers on a Unix
//! socket with mode 0600.
// I240, I254

use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use navicert_io::private_socket::{BindError, PathProblem, PrivateListener, SocketFile};
use navicert_types::{Clock, error_chain};
use thiserror::Error;

use crate::docker_helper::{self, HelperError, Scopes};
use crate::metrics::TextMetrics;
use crate::provider::{CacheListing, Providers};
use crate::reference::Repository;
use crate::reload::{ConfigReload, Reloader};
use crate::socket::{DaemonReply, DaemonVerb, read_request};

/// Minimum interval between two checks of the configuration files.
const CONFIG_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Interval at which expired secrets are removed from memory.
// I130
const CACHE_SWEEP_INTERVAL: Duration = Duration::from_secs(60);
/// Read and write timeout of a client connection.
const CLIENT_IO_TIMEOUT: Duration = Duration::from_secs(5);
/// Number of concurrent requests; more wait in the socket's backlog.
const WORKER_THREADS: usize = 32;

/// Why the daemon failed to start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DaemonError {
    /// Another daemon is listening.
    #[error("a daemon is already listening on `{}`", .0.display())]
    AlreadyRunning(PathBuf),
    /// The socket's directory is not private to the user.
    #[error("socket directory `{}` must be owned by you and have mode 0700", .0.display())]
    NotPrivate(PathBuf),
    /// The socket cannot be created.
    #[error("failed to listen on `{}`", .path.display())]
    Listen {
        /// The socket.
        path: PathBuf,
        /// I/O error reported by the operating system.
        source: io::Error,
    },
}

/// A bound daemon; [`Daemon::run`] serves requests.
#[derive(Debug)]
pub struct Daemon {
    listener: PrivateListener,
    service: Arc<DaemonService>,
}

/// The daemon's request handler.
#[derive(Debug)]
pub struct DaemonService {
    reloader: Reloader,
    scopes: Scopes,
    metrics: Arc<TextMetrics>,
    clock: Arc<dyn Clock>,
    last_reload: Mutex<Duration>,
}

impl DaemonService {
    /// Creates a service over these providers.
    pub fn new(reloader: Reloader, scopes: Scopes, metrics: Arc<TextMetrics>, clock: Arc<dyn Clock>) -> Self {
        let looked = Mutex::new(clock.monotonic());
        DaemonService { reloader, scopes, metrics, clock, last_reload: looked }
    }

    /// Answers one request.
    pub fn answer(&self, verb: DaemonVerb, text: &str) -> DaemonReply {
        let warning = self.reload_if_due();
        let providers = self.reloader.providers();
        let mut reply = match verb {
            DaemonVerb::Get => match docker_helper::get(&providers, &self.scopes, text) {
                Ok(answer) => DaemonReply::success(answer.encode().expose()),
                Err(error) => error_reply(&error),
            },
            DaemonVerb::List => {
                DaemonReply::success(&docker_helper::encode_list(&docker_helper::list(&providers)))
            }
            DaemonVerb::Erase => match docker_helper::erase(&providers, &self.scopes, text) {
                Ok(_) => DaemonReply::success(b""),
                Err(error) => error_reply(&error),
            },
            DaemonVerb::Invalidate => match Repository::from_image(text) {
                Ok(image) => {
                    DaemonReply::success(format!("{}\n", providers.invalidate(image.as_str())).as_bytes())
                }
                Err(error) => DaemonReply::failure(&error.to_string()),
            },
            DaemonVerb::Metrics => DaemonReply::success(self.metrics.render().as_bytes()),
            DaemonVerb::Cached => DaemonReply::success(list_cached(&providers, text).as_bytes()),
        };
        reply.stderr.push_str(&warning);
        reply
    }

    /// Reloads the configuration if the poll interval has passed. Returns a warning if the change was rejected.
    fn reload_if_due(&self) -> String {
        let now = self.clock.monotonic();
        let mut looked = self.last_reload.lock().unwrap_or_else(PoisonError::into_inner);
        if now.saturating_sub(*looked) < CONFIG_POLL_INTERVAL {
            return String::new();
        }
        *looked = now;
        match self.reloader.reload() {
            ConfigReload::Rejected(rejected) => {
                format!(
                    "navicert: changed configuration rejected, keeping the previous one: {}\n",
                    rejected.reason
                )
            }
            ConfigReload::Unchanged | ConfigReload::Applied => String::new(),
        }
    }
}

/// One line per cached response of an image: provider, key type, key base and expiry, in lookup order.
fn list_cached(providers: &Providers, image: &str) -> String {
    let about = |cached: &CacheListing| cached.key_type.base(image) == cached.base;
    let lines = providers.list_cache().into_iter().filter(about).map(|cached| {
        let until = cached.entry.expires().map(|expires| expires.to_string()).unwrap_or_default();
        format!("{}\t{}\t{}\t{until}\n", cached.provider, cached.key_type.as_str(), cached.base)
    });
    lines.collect()
}

fn error_reply(error: &HelperError) -> DaemonReply {
    let stderr = error.hint().map(|hint| format!("navicert: {hint}\n")).unwrap_or_default();
    DaemonReply { stderr, ..DaemonReply::failure(&error_chain(error)) }
}

impl Daemon {
    /// Creates the socket with mode 0600 in a directory private to the user.
    ///
    /// # Errors
    /// [`DaemonError`].
    pub fn bind(path: &Path, service: DaemonService) -> Result<Self, DaemonError> {
        let failed = |source| DaemonError::Listen { path: path.to_owned(), source };
        let listener = PrivateListener::bind(path).map_err(|error| match error {
            BindError::AlreadyListening => DaemonError::AlreadyRunning(path.to_owned()),
            BindError::Path(PathProblem::SharedDirectory) => {
                let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
                DaemonError::NotPrivate(directory.unwrap_or(Path::new(".")).to_owned())
            }
            BindError::Io(source) => failed(source),
            other => failed(io::Error::other(other)),
        })?;
        Ok(Daemon { listener, service: Arc::new(service) })
    }

    /// The socket file, for signal handlers that remove it.
    pub fn socket_file(&self) -> SocketFile {
        self.listener.file().clone()
    }

    /// Serves requests until the process ends.
    pub fn run(self) {
        let (_alive, stop) = mpsc::channel::<()>();
        let service = Arc::clone(&self.service);
        let sweeper = move || {
            while stop.recv_timeout(CACHE_SWEEP_INTERVAL) == Err(mpsc::RecvTimeoutError::Timeout) {
                service.reloader.providers().purge();
            }
        };
        // Without the sweeper thread secrets stay in memory longer; that does not prevent serving.
        let _ = thread::Builder::new().name("sweeper".to_owned()).spawn(sweeper);
        // Pre-started threads: spawning one per request would cost more than most requests.
        let worker = Arc::new(self);
        for _ in 1..WORKER_THREADS {
            let daemon = Arc::clone(&worker);
            let _ = thread::Builder::new().name("worker".to_owned()).spawn(move || daemon.serve());
        }
        worker.serve();
    }

    fn serve(&self) {
        loop {
            // Errors of one client, such as a closed connection, do not affect others.
            let _ = self.listener.accept().and_then(|stream| serve_one(&self.service, &stream));
        }
    }
}

fn serve_one(service: &DaemonService, stream: &UnixStream) -> io::Result<()> {
    stream.set_read_timeout(Some(CLIENT_IO_TIMEOUT))?;
    stream.set_write_timeout(Some(CLIENT_IO_TIMEOUT))?;
    let (verb, text) = read_request(stream)?;
    service.answer(verb, &text).send(stream)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    use navicert_plugin::{Environment, Script, ScriptedRunner};
    use navicert_types::clock::ManualClock;

    use super::*;
    use crate::provider::ProviderSettings;
    use crate::socket::call;

    fn service(dir: &Path, scripts: impl IntoIterator<Item = Script>) -> DaemonService {
        let path = dir.join("config.yaml");
        let text = "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n\
            - {name: sh, matchImages: [a.io], defaultCacheDuration: 1h, apiVersion: credentialprovider.kubelet.k8s.io/v1}\n";
        fs::write(&path, text).unwrap();
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::at(0));
        let runner = Arc::new(ScriptedRunner::new(scripts));
        let metrics = Arc::new(TextMetrics::new());
        let mut settings =
            ProviderSettings::new(Path::new("/bin"), Environment::empty(), runner, Arc::clone(&clock));
        settings.recorder = Arc::clone(&metrics) as _;
        DaemonService::new(Reloader::open(&path, settings).unwrap(), Scopes::new(), metrics, clock)
    }

    #[test]
    fn serves_helper_over_private_socket() {
        // I240
        let dir = tempfile::tempdir().unwrap();
        let script = || {
            Script::prints(
                r#"{"kind":"CredentialProviderResponse","apiVersion":"credentialprovider.kubelet.k8s.io/v1",
            "cacheKeyType":"Registry","auth":{"a.io":{"username":"ann","password":"p"}}}"#,
            )
        };
        let service = service(dir.path(), [script(), script()]);
        let socket = dir.path().join("private/image.sock");
        let daemon = Daemon::bind(&socket, service).unwrap();
        assert_eq!(fs::metadata(&socket).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(socket.parent().unwrap()).unwrap().mode() & 0o777, 0o700);
        thread::spawn(move || daemon.run());
        let ask = |verb, text| call(&socket, verb, text).unwrap().unwrap();
        for _ in 0..2 {
            let reply = ask(DaemonVerb::Get, "https://a.io");
            assert_eq!(
                &**reply.stdout,
                b"{\"ServerURL\":\"https://a.io\",\"Username\":\"ann\",\"Secret\":\"p\"}\n"
            );
        }
        assert_eq!(&**ask(DaemonVerb::List, "").stdout, b"{\"a.io\":\"ann\"}\n");
        assert_eq!(
            &**ask(DaemonVerb::Cached, "a.io/x").stdout,
            b"sh\tRegistry\ta.io\t1970-01-01T01:00:00Z\n",
            "expiry without secrets"
        );
        assert_eq!(&**ask(DaemonVerb::Cached, "b.io/x").stdout, b"");
        assert_eq!(&**ask(DaemonVerb::Invalidate, "a.io/x").stdout, b"1\n");
        assert_eq!(&**ask(DaemonVerb::List, "").stdout, b"{}\n");
        let missing = ask(DaemonVerb::Get, "b.io");
        assert_eq!(
            (missing.code, &**missing.stdout),
            (1, &b"credentials not found in native keychain\n"[..])
        );
        assert_eq!(ask(DaemonVerb::Erase, "a.io").code, 0);
        let metrics = String::from_utf8(ask(DaemonVerb::Metrics, "").stdout.to_vec()).unwrap();
        assert!(
            metrics.contains("kubelet_credential_provider_plugin_duration_count{plugin_name=\"sh\"} 1"),
            "{metrics}"
        );
    }

    #[test]
    fn removes_only_its_own_socket_on_exit() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("private/image.sock");
        let first = Daemon::bind(&socket, service(dir.path(), [])).unwrap();
        fs::remove_file(&socket).unwrap();
        let second = Daemon::bind(&socket, service(dir.path(), [])).unwrap();
        drop(first);
        assert!(socket.exists(), "the second daemon's socket stays");
        drop(second);
        assert!(!socket.exists());
    }

    #[test]
    fn rejects_second_daemon_and_shared_directory() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("private/image.sock");
        let _first = Daemon::bind(&socket, service(dir.path(), [])).unwrap();
        let second = Daemon::bind(&socket, service(dir.path(), []));
        assert!(matches!(second, Err(DaemonError::AlreadyRunning(_))));
        let open = dir.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(matches!(
            Daemon::bind(&open.join("s"), service(dir.path(), [])),
            Err(DaemonError::NotPrivate(_))
        ));
    }
}
