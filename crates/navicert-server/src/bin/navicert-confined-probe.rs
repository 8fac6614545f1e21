//! Test program: a server that confines itself as `navicert serve` does, and then tries, for every request and on a thread
//! of its runtime, what confinement forbids.
//!
//! Arguments: `confined`, `plugin` (a program may be started) or `free`, then the file that may be read and the file that
//! may be written. It prints the report and its address. `GET /read`, `/create`, `/execute` and `/load` take a path in
//! the header `path`, `/listen` takes none; the response is `done` or the error.

use std::fs::{self, OpenOptions};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Incoming;
use navicert_client::transport::TokioTimer;
use navicert_server::confinement::{ConfinedFiles, ConfinementPlan};
use navicert_server::health::Health;
use navicert_server::listener::{Handler, Peer, Security};
use navicert_server::metrics::{ListenerMetrics, Registry};
use navicert_server::serving::{BoundListener, Server, ServerRuntime, ShutdownTiming};
use navicert_server::{ReplyBody, ServerLimits};
use navicert_signer::pkcs11::Pkcs11Module;
use navicert_types::{SystemClock, error_chain};

#[expect(clippy::print_stdout, reason = "its result is read by a test")]
fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stdout, reason = "its result is read by a test")]
fn serve() -> Result<(), String> {
    let mut arguments = std::env::args_os().skip(1);
    let mode = arguments.next().ok_or("missing argument: mode")?;
    let mut file = || arguments.next().map(PathBuf::from).ok_or("missing argument: file");
    let mut files = ConfinedFiles::of_system();
    files.allow_reading(&file()?);
    files.allow_appending(&file()?);
    let program = (mode == "plugin").then(|| "credential plugin `probe`".to_owned());
    let plan = ConfinementPlan { files, program, ..ConfinementPlan::default() };
    let bound =
        BoundListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).map_err(|error| error_chain(&error))?;
    if mode != "free" {
        let report = plan.apply().map_err(|error| error.to_string())?;
        println!("no_new_privs: {}", report.no_new_privileges);
        println!("landlock: {}", report.landlock);
        println!("seccomp: {}", report.seccomp);
        println!("threads: {:?}", report.unconfined_threads);
    }
    let address = bound.address();
    let server = Server {
        bound,
        security: Security::Plain,
        limits: ServerLimits::default(),
        metrics: ListenerMetrics::new("probe", Arc::new(SystemClock)),
        handler: Arc::new(Probe),
    };
    let lifecycle = ServerRuntime {
        health: Health::default(),
        metrics: Registry::default(),
        shutdown: ShutdownTiming::default(),
        timer: Arc::new(TokioTimer),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    println!("listening on {address}.");
    // The test ends the process.
    let served = runtime.block_on(lifecycle.serve(server, None, std::future::pending()));
    served.map_err(|error| error.to_string())
}

#[derive(Debug)]
struct Probe;

impl Handler for Probe {
    async fn handle(&self, request: Request<Incoming>, _: &Peer) -> Response<ReplyBody> {
        let path = request.headers().get("path").and_then(|path| path.to_str().ok()).unwrap_or_default();
        let outcome = attempt(request.uri().path(), Path::new(path));
        let text = outcome.err().unwrap_or_else(|| "done".to_owned());
        Response::new(ReplyBody::full(Bytes::from(text)))
    }
}

#[expect(clippy::disallowed_methods, reason = "starting a program is what is tested")]
fn attempt(what: &str, path: &Path) -> Result<(), String> {
    let told = |error: std::io::Error| error.to_string();
    match what {
        "/read" => fs::read(path).map(|_| ()).map_err(told),
        "/create" => OpenOptions::new().append(true).create(true).open(path).map(|_| ()).map_err(told),
        "/execute" => Command::new(path).status().map(|_| ()).map_err(told),
        "/listen" => TcpListener::bind("127.0.0.1:0").map(|_| ()).map_err(told),
        // The library is no PKCS#11 module; what matters is whether it is loaded before that is noticed.
        "/load" => Pkcs11Module::load(path).map(|_| ()).map_err(|error| error_chain(&error)),
        _ => Err(format!("unknown attempt {what}")),
    }
}
