//! A signer that answers in this process, and a kubeconfig that uses it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use navicert_client::exec::{self, PluginPolicy, Registry, Surroundings};
use navicert_client::kubeconfig::{self, Disk, Overrides, Sources};
use navicert_client::transport::{self, Body, BuildError, Environment, Transport, TransportError};
use navicert_plugin::{AllowlistEntry, Command, Completed, Exit, Permitted, Policy, RunError, Runner};
use navicert_signer::remote::{KeyRing, answer, answer_v1alpha1};
use navicert_signer::{Identity, SignError, SoftwareKey};
use navicert_testkit::{ApiServer, Ca, Cut, KeyKind, wait};
use navicert_types::clock::ManualClock;
use navicert_types::external_signer::{CONFIG_VARIABLE, Configuration, v1, v1alpha1};
use navicert_types::{Clock, Secret};
use serde_json::{Value, json};
use tokio::sync::watch;

/// A program that exists: the policy looks for it. It is not run.
pub(crate) const PROGRAM: &str = "/bin/sh";

pub(crate) fn allowed(modules: &[&str]) -> Policy {
    let entry =
        modules.iter().fold(AllowlistEntry::new(PROGRAM), |entry, module| entry.setting("pathLib", *module));
    Policy::from_parts("Allowlist", Some(vec![entry])).unwrap()
}

/// Who answers where a program would.
#[derive(Debug)]
pub(crate) struct Signer {
    ring: Ring,
    other: Ring,
    lies: Mutex<bool>,
    asked: Mutex<Vec<String>>,
    pub(crate) at_once: AtomicUsize,
    pub(crate) most_at_once: AtomicUsize,
    held: (Mutex<bool>, Condvar),
    signing: watch::Sender<usize>,
    slow: Mutex<Option<Slow>>,
}

/// How long a signature takes by a clock that is moved by hand, and when the server has had enough.
struct Slow {
    takes: Duration,
    patience: Duration,
    clock: Arc<ManualClock>,
    cut: Arc<dyn Fn() + Send + Sync>,
}

impl std::fmt::Debug for Slow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slow").field("takes", &self.takes).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Ring(Arc<Identity>);

impl KeyRing for Ring {
    fn find(&self, _: &Configuration, _: bool) -> Result<Arc<Identity>, SignError> {
        Ok(Arc::clone(&self.0))
    }
}

impl Ring {
    fn new(ca: &Ca, kind: KeyKind) -> Self {
        let issued = ca.client("ann").key(kind).issue();
        let key = SoftwareKey::from_der(issued.key_der()).unwrap();
        Ring(Arc::new(Identity::new(issued.chain().to_vec(), Arc::new(key)).unwrap()))
    }
}

impl Signer {
    fn new(ca: &Ca, kind: KeyKind) -> Self {
        Signer {
            ring: Ring::new(ca, kind),
            other: Ring::new(ca, kind),
            lies: Mutex::default(),
            asked: Mutex::default(),
            at_once: AtomicUsize::default(),
            most_at_once: AtomicUsize::default(),
            held: Default::default(),
            signing: watch::Sender::new(0),
            slow: Mutex::default(),
        }
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// `Certificate` or `Sign`, in order.
    pub(crate) fn kinds(&self) -> Vec<String> {
        let kind = |text: &String| if text.contains(r#""kind":"Sign"#) { "Sign" } else { "Certificate" };
        self.asked().iter().map(|text| kind(text).to_owned()).collect()
    }

    pub(crate) fn sign_with_another_key(&self) {
        *self.lies.lock().unwrap() = true;
    }

    /// Nothing is signed before the handle is released.
    pub(crate) fn hold(self: &Arc<Self>) -> Held {
        *self.held.0.lock().unwrap() = true;
        Held(Arc::clone(self))
    }

    pub(crate) async fn wait_until_signing(&self) {
        let mut signing = self.signing.subscribe();
        wait::within("a signature to be asked for", signing.wait_for(|count| *count > 0)).await.unwrap();
    }

    /// Every signature takes this long on the clock; a server that is less patient hangs up meanwhile.
    pub(crate) fn take(
        &self,
        takes: Duration,
        clock: &Arc<ManualClock>,
        api: &Arc<ApiServer>,
        patience: u64,
    ) {
        let server = Arc::clone(api);
        let cut: Arc<dyn Fn() + Send + Sync> = Arc::new(move || server.cut_connections(Cut::Reset));
        let (clock, patience) = (Arc::clone(clock), Duration::from_secs(patience));
        *self.slow.lock().unwrap() = Some(Slow { takes, patience, clock, cut });
    }

    fn sign_slowly(&self) {
        if let Some(slow) = &*self.slow.lock().unwrap() {
            slow.clock.advance(slow.takes);
            if slow.takes > slow.patience {
                (slow.cut)();
            }
        }
    }
}

pub(crate) struct Held(Arc<Signer>);

impl Held {
    pub(crate) fn release(self) {
        *self.0.held.0.lock().unwrap() = false;
        self.0.held.1.notify_all();
    }
}

impl Runner for Signer {
    fn run(&self, command: Permitted<Command>) -> Result<Completed, RunError> {
        let now = self.at_once.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_at_once.fetch_max(now, Ordering::SeqCst);
        let in_variable =
            command.command().variable(CONFIG_VARIABLE).map(|text| text.to_str().unwrap().to_owned());
        let on_pipe =
            || String::from_utf8(command.command().stdin_bytes().unwrap().expose().clone()).unwrap();
        let question = in_variable.unwrap_or_else(on_pipe);
        self.asked.lock().unwrap().push(question.clone());
        let is_sign = question.contains(r#""kind":"Sign"#);
        let mut ring = &self.ring;
        if is_sign {
            self.signing.send_modify(|count| *count += 1);
            let held = self.held.0.lock().unwrap();
            drop(self.held.1.wait_while(held, |held| *held).unwrap());
            self.sign_slowly();
            if *self.lies.lock().unwrap() {
                ring = &self.other;
            }
        }
        let stdout = match v1::Request::from_json(question.as_bytes()) {
            Ok(request) => answer(ring, &request).to_json(),
            Err(_) => {
                let request = v1alpha1::Request::from_json(question.as_bytes()).unwrap();
                answer_v1alpha1(ring, &request, false).unwrap()
            }
        };
        self.at_once.fetch_sub(1, Ordering::SeqCst);
        Ok(Completed {
            program: PathBuf::from(PROGRAM),
            exit: Exit::Code(0),
            stdout: Secret::new(stdout.into_bytes()),
            stdout_closed: true,
            stderr: None,
            took: Duration::ZERO,
        })
    }
}

/// A client for a server, with a signer.
pub(crate) struct Setup {
    pub(crate) signer: Arc<Signer>,
    pub(crate) transport: Transport,
    pub(crate) clock: Arc<ManualClock>,
    around: Surroundings,
}

impl std::fmt::Debug for Setup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Setup")
    }
}

impl Setup {
    pub(crate) fn new(api: &ApiServer, ca: &Ca, kind: KeyKind, config: &Value) -> Result<Self, BuildError> {
        Setup::with(api, ca, kind, config, allowed(&[]).into(), &exec::Settings::default())
    }

    pub(crate) fn with(
        api: &ApiServer,
        ca: &Ca,
        kind: KeyKind,
        config: &Value,
        policy: PluginPolicy,
        settings: &exec::Settings,
    ) -> Result<Self, BuildError> {
        Setup::with_user(api, ca, kind, config, json!({}), policy, settings)
    }

    pub(crate) fn with_user(
        api: &ApiServer,
        ca: &Ca,
        kind: KeyKind,
        config: &Value,
        user: Value,
        policy: PluginPolicy,
        settings: &exec::Settings,
    ) -> Result<Self, BuildError> {
        let (signer, clock) = (Arc::new(Signer::new(ca, kind)), Arc::new(ManualClock::at(1_800_000_000)));
        let around = Surroundings {
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            runner: Arc::clone(&signer) as Arc<dyn Runner>,
            registry: Registry::new(),
            policy,
            ..Surroundings::new(navicert_plugin::Environment::empty())
        };
        let transport = Setup::connect(api, ca, config, user, settings, &around)?;
        Ok(Setup { signer, transport, clock, around })
    }

    /// Another client of the same process.
    pub(crate) fn another(&self, api: &ApiServer, ca: &Ca, config: &Value, policy: Policy) -> Transport {
        let around = Surroundings { policy: policy.into(), ..self.around.clone() };
        Setup::connect(api, ca, config, json!({}), &exec::Settings::default(), &around).unwrap()
    }

    fn connect(
        api: &ApiServer,
        ca: &Ca,
        config: &Value,
        mut user: Value,
        settings: &exec::Settings,
        around: &Surroundings,
    ) -> Result<Transport, BuildError> {
        let folder = tempfile::tempdir().unwrap();
        user["auth-provider"] = json!({"name": "externalSigner", "config": config});
        let text = json!({
            "current-context": "x",
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": api.url(), "certificate-authority": "ca.crt"}}],
            "users": [{"name": "u", "user": user}],
        });
        std::fs::write(folder.path().join("ca.crt"), ca.pem()).unwrap();
        let path = folder.path().join("config");
        std::fs::write(&path, text.to_string()).unwrap();
        let sources = Sources::locate(Some(&path), None, None);
        let (_, effective) =
            kubeconfig::select(&sources, &Overrides::default(), folder.path(), &Disk).unwrap();
        transport::connect(&effective, settings, around, &Environment::default())
    }

    pub(crate) async fn status(&self) -> Result<u16, TransportError> {
        status(&self.transport).await
    }
}

pub(crate) async fn status(transport: &Transport) -> Result<u16, TransportError> {
    let request = http::Request::get("/version").body(Body::empty()).unwrap();
    let answer = wait::within("an answer", transport.clone().send(request)).await?;
    Ok(answer.status().as_u16())
}
