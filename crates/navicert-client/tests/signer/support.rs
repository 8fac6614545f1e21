//! An in-process signer, and a kubeconfig that uses it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use navicert_client::ClientContext;
use navicert_client::exec::{AuthenticatorRegistry, PluginPolicy};
use navicert_client::transport::{Body, Transport, TransportError};
use navicert_client::{Client, ConfigErrors, ConfigOptions};
use navicert_plugin::{AllowlistEntry, Command, Completed, Exit, Permitted, Policy, RunError, Runner};
use navicert_signer::remote::{KeyStore, handle_request, handle_v1alpha1_request};
use navicert_signer::{SignError, SigningIdentity, SoftwareKey};
use navicert_testkit::{ApiServer, Ca, Cut, KeyKind, Kubeconfig, wait};
use navicert_types::clock::ManualClock;
use navicert_types::external_signer::{CONFIG_VARIABLE, SignerConfiguration, v1, v1alpha1};
use navicert_types::{Clock, Secret};
use serde_json::{Value, json};
use tokio::sync::watch;

/// An existing program, which the policy requires. It is not run.
pub(crate) const PROGRAM: &str = "/bin/sh";

pub(crate) fn allowed(modules: &[&str]) -> Policy {
    let entry =
        modules.iter().fold(AllowlistEntry::new(PROGRAM), |entry, module| entry.setting("pathLib", *module));
    Policy::from_parts("Allowlist", Some(vec![entry])).unwrap()
}

/// Responds in place of a signer program.
#[derive(Debug)]
pub(crate) struct Signer {
    key_store: SingleKeyStore,
    other_key_store: SingleKeyStore,
    use_other_key: Mutex<bool>,
    requests: Mutex<Vec<String>>,
    pub(crate) concurrent: AtomicUsize,
    pub(crate) max_concurrent: AtomicUsize,
    held: (Mutex<bool>, Condvar),
    signing: watch::Sender<usize>,
    slow: Mutex<Option<SlowSigning>>,
}

/// How long a signature duration on the manual clock, and the server's timeout.
struct SlowSigning {
    duration: Duration,
    server_timeout: Duration,
    clock: Arc<ManualClock>,
    cut: Arc<dyn Fn() + Send + Sync>,
}

impl std::fmt::Debug for SlowSigning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SlowSigning").field("duration", &self.duration).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct SingleKeyStore(Arc<SigningIdentity>);

impl KeyStore for SingleKeyStore {
    fn find(&self, _: &SignerConfiguration, _: bool) -> Result<Arc<SigningIdentity>, SignError> {
        Ok(Arc::clone(&self.0))
    }
}

impl SingleKeyStore {
    fn new(ca: &Ca, kind: KeyKind) -> Self {
        let issued = ca.client("ann").key(kind).issue();
        let key = SoftwareKey::from_der(issued.key_der()).unwrap();
        SingleKeyStore(Arc::new(SigningIdentity::new(issued.chain().to_vec(), Arc::new(key)).unwrap()))
    }
}

impl Signer {
    fn new(ca: &Ca, kind: KeyKind) -> Self {
        Signer {
            key_store: SingleKeyStore::new(ca, kind),
            other_key_store: SingleKeyStore::new(ca, kind),
            use_other_key: Mutex::default(),
            requests: Mutex::default(),
            concurrent: AtomicUsize::default(),
            max_concurrent: AtomicUsize::default(),
            held: Default::default(),
            signing: watch::Sender::new(0),
            slow: Mutex::default(),
        }
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    /// `Certificate` or `Sign`, in order.
    pub(crate) fn kinds(&self) -> Vec<String> {
        let kind = |text: &String| if text.contains(r#""kind":"Sign"#) { "Sign" } else { "Certificate" };
        self.requests().iter().map(|text| kind(text).to_owned()).collect()
    }

    pub(crate) fn sign_with_another_key(&self) {
        *self.use_other_key.lock().unwrap() = true;
    }

    /// Blocks signing until the handle is released.
    pub(crate) fn hold(self: &Arc<Self>) -> SignerHold {
        *self.held.0.lock().unwrap() = true;
        SignerHold(Arc::clone(self))
    }

    pub(crate) async fn wait_until_signing(&self) {
        let mut signing = self.signing.subscribe();
        wait::within("a signature request", signing.wait_for(|count| *count > 0)).await.unwrap();
    }

    /// Makes every signature take this long on the clock; a server with a shorter timeout closes the connection.
    pub(crate) fn sign_slowly_for(
        &self,
        duration: Duration,
        clock: &Arc<ManualClock>,
        api: &Arc<ApiServer>,
        server_timeout: u64,
    ) {
        let server = Arc::clone(api);
        let cut: Arc<dyn Fn() + Send + Sync> = Arc::new(move || server.cut_connections(Cut::Reset));
        let (clock, server_timeout) = (Arc::clone(clock), Duration::from_secs(server_timeout));
        *self.slow.lock().unwrap() = Some(SlowSigning { duration, server_timeout, clock, cut });
    }

    fn simulate_slow_signing(&self) {
        if let Some(slow) = &*self.slow.lock().unwrap() {
            slow.clock.advance(slow.duration);
            if slow.duration > slow.server_timeout {
                (slow.cut)();
            }
        }
    }
}

pub(crate) struct SignerHold(Arc<Signer>);

impl SignerHold {
    pub(crate) fn release(self) {
        *self.0.held.0.lock().unwrap() = false;
        self.0.held.1.notify_all();
    }
}

impl Runner for Signer {
    fn run(&self, command: Permitted<Command>) -> Result<Completed, RunError> {
        let now = self.concurrent.fetch_add(1, Ordering::SeqCst) + 1;
        self.max_concurrent.fetch_max(now, Ordering::SeqCst);
        let in_variable =
            command.command().variable(CONFIG_VARIABLE).map(|text| text.to_str().unwrap().to_owned());
        let on_pipe =
            || String::from_utf8(command.command().stdin_bytes().unwrap().expose().clone()).unwrap();
        let request_text = in_variable.unwrap_or_else(on_pipe);
        self.requests.lock().unwrap().push(request_text.clone());
        let is_sign = request_text.contains(r#""kind":"Sign"#);
        let mut key_store = &self.key_store;
        if is_sign {
            self.signing.send_modify(|count| *count += 1);
            let held = self.held.0.lock().unwrap();
            drop(self.held.1.wait_while(held, |held| *held).unwrap());
            self.simulate_slow_signing();
            if *self.use_other_key.lock().unwrap() {
                key_store = &self.other_key_store;
            }
        }
        let stdout = match v1::Request::from_json(request_text.as_bytes()) {
            Ok(request) => handle_request(key_store, &request).to_json(),
            Err(_) => {
                let request = v1alpha1::Request::from_json(request_text.as_bytes()).unwrap();
                handle_v1alpha1_request(key_store, &request, false).unwrap()
            }
        };
        self.concurrent.fetch_sub(1, Ordering::SeqCst);
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
    client_context: ClientContext,
}

impl std::fmt::Debug for Setup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Setup")
    }
}

impl Setup {
    pub(crate) fn new(api: &ApiServer, ca: &Ca, kind: KeyKind, config: &Value) -> Result<Self, ConfigErrors> {
        Setup::with(api, ca, kind, config, allowed(&[]).into(), false)
    }

    pub(crate) fn with(
        api: &ApiServer,
        ca: &Ca,
        kind: KeyKind,
        config: &Value,
        policy: PluginPolicy,
        allow_pin: bool,
    ) -> Result<Self, ConfigErrors> {
        Setup::with_user(api, ca, kind, config, json!({}), policy, allow_pin)
    }

    pub(crate) fn with_user(
        api: &ApiServer,
        ca: &Ca,
        kind: KeyKind,
        config: &Value,
        user: Value,
        policy: PluginPolicy,
        allow_pin: bool,
    ) -> Result<Self, ConfigErrors> {
        let (signer, clock) = (Arc::new(Signer::new(ca, kind)), Arc::new(ManualClock::at(1_800_000_000)));
        let client_context = ClientContext {
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            runner: Arc::clone(&signer) as Arc<dyn Runner>,
            registry: AuthenticatorRegistry::new(),
            policy,
            ..ClientContext::new(navicert_plugin::Environment::empty())
        };
        let transport = Setup::connect(api, ca, config, user, allow_pin, &client_context)?;
        Ok(Setup { signer, transport, clock, client_context })
    }

    /// Another client in the same process.
    pub(crate) fn another(&self, api: &ApiServer, ca: &Ca, config: &Value, policy: Policy) -> Transport {
        let client_context = ClientContext { policy: policy.into(), ..self.client_context.clone() };
        Setup::connect(api, ca, config, json!({}), false, &client_context).unwrap()
    }

    fn connect(
        api: &ApiServer,
        ca: &Ca,
        config: &Value,
        mut user: Value,
        allow_pin: bool,
        client_context: &ClientContext,
    ) -> Result<Transport, ConfigErrors> {
        let dir = tempfile::tempdir().unwrap();
        user["auth-provider"] = json!({"name": "externalSigner", "config": config});
        let path = Kubeconfig::new(api.url()).ca(ca).user(user).write(dir.path().join("config"));
        let options = ConfigOptions::new(client_context.environment.clone(), dir.path())
            .kubeconfig(&path)
            .clock(Arc::clone(&client_context.clock))
            .plugin_policy(client_context.policy.clone())
            .allow_pin_in_kubeconfig(allow_pin);
        // What the policy denies is denied again when a request is sent.
        let report = options.report(&options.load()?);
        let config = match report.config() {
            Some(config) => config.clone(),
            None => report.into_result()?,
        };
        let builder = Client::builder(config).client_context(client_context.clone());
        Ok(builder.build().unwrap().into())
    }

    pub(crate) async fn status(&self) -> Result<u16, TransportError> {
        status(&self.transport).await
    }
}

pub(crate) async fn status(transport: &Transport) -> Result<u16, TransportError> {
    let request = http::Request::get("/version").body(Body::empty()).unwrap();
    let response = wait::within("a response", transport.clone().send(request)).await?;
    Ok(response.status().as_u16())
}
