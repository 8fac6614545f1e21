//! A login inside the test's own process, with a clock and waits that the test controls.

use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use navicert_client::credential::BoxFuture;
use navicert_client::transport::Timer;
use navicert_login::request::{Form, SecretSource};
use navicert_login::{Invocation, LoginContext, LoginRequest, Messages, Pause, Terminals};
use navicert_plugin::Environment;
use navicert_types::{Clock, SystemClock, Timestamp};

use navicert_testkit::LoginProvider;
use navicert_testkit::services::login_provider::CLIENT;

/// The system's clock plus offsets.
#[derive(Debug, Default)]
pub(crate) struct ShiftedClock {
    wall_seconds: AtomicI64,
    monotonic_millis: AtomicU64,
}

impl ShiftedClock {
    pub(crate) fn advance(&self, seconds: i64) {
        self.wall_seconds.fetch_add(seconds, Ordering::SeqCst);
    }
}

/// Waits before there is a runtime: the monotonic clock moves instead.
#[derive(Debug)]
struct QuickPause(Arc<ShiftedClock>);

impl Pause for QuickPause {
    fn pause(&self, duration: Duration) {
        let millis = u64::try_from(duration.as_millis()).unwrap();
        self.0.monotonic_millis.fetch_add(millis, Ordering::SeqCst);
    }
}

impl Clock for ShiftedClock {
    fn now(&self) -> Timestamp {
        let offset = jiff::SignedDuration::from_secs(self.wall_seconds.load(Ordering::SeqCst));
        SystemClock.now().checked_add(offset).unwrap()
    }

    fn monotonic(&self) -> Duration {
        SystemClock.monotonic() + Duration::from_millis(self.monotonic_millis.load(Ordering::SeqCst))
    }
}

/// Short waits end at once and are recorded; limits never end.
#[derive(Debug, Default)]
pub(crate) struct QuickTimer(Mutex<Vec<Duration>>);

/// Waits of this length and more are limits.
const LIMIT: Duration = Duration::from_secs(25);

impl QuickTimer {
    pub(crate) fn waits(&self) -> Vec<u128> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().map(Duration::as_millis).collect()
    }
}

impl Timer for QuickTimer {
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        if duration >= LIMIT {
            return Box::pin(std::future::pending());
        }
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(duration);
        Box::pin(std::future::ready(()))
    }
}

/// Messages, recorded, and passed on to a test that waits for one.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    all: Mutex<Vec<String>>,
    listener: Mutex<Option<std::sync::mpsc::Sender<String>>>,
}

impl Recorded {
    pub(crate) fn all(&self) -> Vec<String> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Receives every message from now on.
    pub(crate) fn listen(&self) -> std::sync::mpsc::Receiver<String> {
        let (sender, receiver) = std::sync::mpsc::channel();
        *self.listener.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
        receiver
    }
}

impl Messages for Recorded {
    fn show(&self, text: &str) {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).push(text.to_owned());
        if let Some(listener) = &*self.listener.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = listener.send(text.to_owned());
        }
    }
}

/// A provider, a cache folder and a person at a terminal.
pub(crate) struct Setup {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) provider: LoginProvider,
    pub(crate) request: LoginRequest,
    pub(crate) context: LoginContext,
    pub(crate) clock: Arc<ShiftedClock>,
    pub(crate) timer: Arc<QuickTimer>,
    pub(crate) messages: Arc<Recorded>,
}

impl Setup {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let provider = LoginProvider::start(dir.path());
        let mut request = LoginRequest::new(Form::Own, provider.issuer.issuer_url(), CLIENT);
        request.connection.authorities.push(provider.ca_file.clone());
        request.cache_dir = Some(dir.path().join("cache"));
        let clock: Arc<ShiftedClock> = Arc::default();
        let (timer, messages): (Arc<QuickTimer>, Arc<Recorded>) = (Arc::default(), Arc::default());
        let mut context = LoginContext::new(
            Environment::empty(),
            None,
            Invocation::Exec { is_interactive: false },
            Arc::clone(&messages) as Arc<_>,
        );
        context.terminals = Terminals { stdin: false, stdout: false, stderr: true };
        context.clock = Arc::clone(&clock) as Arc<_>;
        context.timer = Arc::clone(&timer) as Arc<_>;
        context.pause = Arc::new(QuickPause(Arc::clone(&clock)));
        Setup { dir, provider, request, context, clock, timer, messages }
    }

    /// A setup whose session is obtained without a person.
    pub(crate) fn with_password() -> Self {
        let mut setup = Setup::new();
        setup.request.username = Some("ann".to_owned());
        let file = setup.dir.path().join("password");
        std::fs::write(&file, "canary-password\n").unwrap();
        setup.request.password = Some(SecretSource::File(file));
        setup
    }

    /// The entry's file.
    pub(crate) fn entry(&self) -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(self.entry_path()).unwrap()).unwrap()
    }

    pub(crate) fn entry_path(&self) -> std::path::PathBuf {
        entry_path(&self.dir.path().join("cache"))
    }

    /// The code of the error that a login ends with.
    pub(crate) fn failure(&self) -> &'static str {
        navicert_login::login(&self.request, &self.context).unwrap_err().code().as_str()
    }

    pub(crate) fn login(&self) -> navicert_login::LoginSession {
        navicert_login::login(&self.request, &self.context).unwrap()
    }
}

/// The only entry of a folder.
pub(crate) fn entry_path(folder: &Path) -> std::path::PathBuf {
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut entries: Vec<_> = names.filter(|path| is_entry(path)).collect();
    assert_eq!(entries.len(), 1, "{entries:?}");
    entries.remove(0)
}

fn is_entry(path: &Path) -> bool {
    let name = path.file_name().unwrap().to_str().unwrap();
    name.ends_with(".json") && !name.ends_with(".provider.json") && name != "servers.json"
}
