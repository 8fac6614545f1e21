//! What credentials add to a request: to every one, and to the first, which has to run a plugin and connect.

mod kubeconfig;
mod server;
mod start;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue, Request};
use http_body_util::BodyExt;
use navicert_client::credential::CredentialSource;
use navicert_client::exec::AuthenticatorRegistry;
use navicert_client::kubeconfig::MemoryFileSystem;
use navicert_client::metrics::{CallStatus, Metrics, NoopRecorder, Recorder};
use navicert_client::transport::{Body, Transport, TransportSettings, Trust, attach_cached};
use navicert_client::{Client, ClientContext, Config, ConfigOptions};
use navicert_plugin::Environment;
use navicert_testkit::{Ca, Kubeconfig};

pub(crate) use kubeconfig::text as a_thousand_contexts;

use crate::plugin::bare::BareProgram;
use crate::race::{Contest, Fault, Race, Shared};
use server::{BareClient, BareServer};

pub(crate) fn races() -> Vec<Race> {
    let attach = "client: attach a plugin's cached credential / a keep-alive request";
    let first = "client: first request with a trivial plugin / bare spawn, connect, request";
    let crowd = "client: 64 first requests at once, one plugin run / 64 bare runs of the plugin";
    let setup = Shared::new(Setup::new);
    let on_stage = |contest: fn(&Rc<Setup>) -> Result<Contest, Fault>| {
        let setup = setup.clone();
        move || contest(&setup.get()?)
    };
    vec![
        Race::new(attach, 0.02, on_stage(|setup| Ok(Contest::time(attached(setup)?, kept_alive(setup)?))))
            .allocations_at_most(0),
        Race::new(
            first,
            1.15,
            on_stage(|setup| Ok(Contest::time(first_request(setup)?, bare_first(setup)?))),
        ),
        Race::new(
            crowd,
            1.0,
            on_stage(|setup| Ok(Contest::time(concurrent_first_requests(setup)?, bare_runs(setup)?))),
        ),
        kubeconfig::race(),
        start::version(),
        start::doctor(),
    ]
}

/// A server, and a plugin that is a file which prints itself: its first line is a comment in YAML.
struct Setup {
    ca: Ca,
    server: BareServer,
    plugin: PathBuf,
    config: Config,
    _folder: tempfile::TempDir,
}

impl Setup {
    fn new() -> Result<Self, Fault> {
        let dir = tempfile::tempdir()?;
        let plugin = dir.path().join("plugin");
        let response = "#!/bin/cat\n{\"apiVersion\": \"client.authentication.k8s.io/v1\", \"kind\": \"ExecCredential\", \
            \"status\": {\"token\": \"a-token-of-some-length\", \"expirationTimestamp\": \"2100-01-01T00:00:00Z\"}}\n";
        fs::write(&plugin, response)?;
        fs::set_permissions(&plugin, fs::Permissions::from_mode(0o755))?;
        let ca = Ca::new("bench");
        let server = BareServer::start(&ca)?;
        let config = plugin_config(&plugin, &server.url())?;
        Ok(Setup { ca, server, plugin, config, _folder: dir })
    }

    fn source(&self) -> Result<Arc<dyn CredentialSource>, Fault> {
        self.source_counted_by(Arc::new(NoopRecorder))
    }

    fn source_counted_by(&self, recorder: Arc<dyn Recorder>) -> Result<Arc<dyn CredentialSource>, Fault> {
        let builder =
            Client::builder(self.config.clone()).registry(AuthenticatorRegistry::new()).metrics(recorder);
        Ok(builder.credential_source())
    }

    fn transport(&self) -> Result<Transport, Fault> {
        self.transport_counted_by(Arc::new(NoopRecorder))
    }

    fn transport_counted_by(&self, recorder: Arc<dyn Recorder>) -> Result<Transport, Fault> {
        let trust = Trust::Pem(self.ca.pem().into_bytes());
        let settings = TransportSettings { trust, ..TransportSettings::new(self.server.url()) };
        Ok(Transport::new(settings, self.source_counted_by(recorder)?, ClientContext::system())?)
    }
}

/// A configuration whose user has this exec plugin, with an empty environment.
pub(crate) fn plugin_config(plugin: &Path, server: &str) -> Result<Config, Fault> {
    let kubeconfig = Kubeconfig::new(server).exec(plugin);
    let files = MemoryFileSystem::new("/", [(PathBuf::from("config"), kubeconfig.to_string().into_bytes())]);
    let options = ConfigOptions::new(Environment::empty(), "/").files(Arc::new(files));
    Ok(options.kubeconfig("config").resolve()?)
}

fn runtime() -> Result<tokio::runtime::Runtime, Fault> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

async fn ask(transport: &Transport) -> Result<(), Fault> {
    let response = transport.send(Request::get("/version").body(Body::empty())?).await?;
    if !response.status().is_success() {
        return Err(format!("answered with {}", response.status()).into());
    }
    response.into_body().collect().await?;
    Ok(())
}

/// A request's headers are there, its credential is cached: what every request pays.
fn attached(setup: &Rc<Setup>) -> Result<impl FnMut() -> Result<(), Fault> + use<>, Fault> {
    let (setup, runtime) = (Rc::clone(setup), runtime()?);
    let source = setup.source()?;
    runtime.block_on(source.get(Default::default()))?;
    let mut headers = HeaderMap::with_capacity(8);
    headers.insert("accept", HeaderValue::from_static("application/json"));
    headers.insert("user-agent", HeaderValue::from_static("bench"));
    Ok(move || {
        let credential = attach_cached(&*source, &mut headers).ok_or("nothing is cached")?;
        std::hint::black_box(&credential);
        headers.remove(AUTHORIZATION).map(drop).ok_or_else(|| "nothing was attached".into())
    })
}

/// A whole request through the same stack, on a connection that is open.
fn kept_alive(setup: &Rc<Setup>) -> Result<impl FnMut() -> Result<(), Fault> + use<>, Fault> {
    let (setup, runtime) = (Rc::clone(setup), runtime()?);
    let transport = setup.transport()?;
    Ok(move || runtime.block_on(ask(&transport)))
}

/// Everything new: plugin, connection, request.
fn first_request(setup: &Rc<Setup>) -> Result<impl FnMut() -> Result<(), Fault> + use<>, Fault> {
    let (setup, runtime) = (Rc::clone(setup), runtime()?);
    Ok(move || {
        let transport = setup.transport()?;
        runtime.block_on(ask(&transport))
    })
}

/// Requests at once.
const CONCURRENT: usize = 64;

/// Everything new, for many at once, with one run of the plugin.
fn concurrent_first_requests(setup: &Rc<Setup>) -> Result<impl FnMut() -> Result<(), Fault> + use<>, Fault> {
    let (setup, runtime) = (Rc::clone(setup), runtime()?);
    Ok(move || {
        let metrics = Arc::new(Metrics::new());
        let transport = setup.transport_counted_by(Arc::clone(&metrics) as Arc<dyn Recorder>)?;
        runtime.block_on(async {
            let asked = (0..CONCURRENT).map(|_| ask(&transport));
            futures_util::future::try_join_all(asked).await
        })?;
        match metrics.calls(CallStatus::NoError, 0) {
            1 => Ok(()),
            runs => Err(format!("the plugin ran {runs} times").into()),
        }
    })
}

/// What it costs to run the plugin for each.
fn bare_runs(setup: &Rc<Setup>) -> Result<impl FnMut() -> Result<(), Fault> + use<>, Fault> {
    let path = setup.plugin.to_string_lossy().into_owned();
    let program = BareProgram::new(&path, vec!["KUBERNETES_EXEC_INFO={}".to_owned()])?;
    Ok(move || {
        for _ in 0..CONCURRENT {
            program.run()?;
        }
        Ok(())
    })
}

/// The least that the same can cost.
fn bare_first(setup: &Rc<Setup>) -> Result<impl FnMut() -> Result<(), Fault> + use<>, Fault> {
    let setup = Rc::clone(setup);
    let path = setup.plugin.to_string_lossy().into_owned();
    let program = BareProgram::new(&path, vec!["KUBERNETES_EXEC_INFO={}".to_owned()])?;
    let client = BareClient::new(&setup.ca)?;
    Ok(move || {
        let (bytes, status) = program.run()?;
        if bytes == 0 || status != 0 {
            return Err(format!("the plugin printed {bytes} bytes and ended with {status}").into());
        }
        client.ask_once(&setup.server)
    })
}
