//! `navicert run` and the gateway against Debian's kubectl: what the detour costs a command, and how the gateway compares
//! with `kubectl proxy`, which takes plain HTTP where the gateway takes TLS.

pub(crate) mod load;

use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use navicert_testkit::cli::program::Running;
use navicert_testkit::{Ca, Kubeconfig, Program, wait};
use navicert_types::kubeconfig;

use crate::needs::{self, Need};
use crate::race::{BothSides, Contest, Contestant, Fault, Meter, Race, Shared, Unit};
use load::{Load, Upstream};

/// Connections at a time, and requests on each of them per turn.
const CONNECTIONS: usize = 8;
const REQUESTS: usize = 60;
/// The same where CPU time is read at both ends: threads fall asleep and are woken, and it should even out.
const MANY: usize = 100;
/// The same where one connection is asked alone.
const ALONE: usize = 100;

pub(crate) fn races() -> Vec<Race> {
    let throughput = "gateway: GETs over 8 connections, TLS in / kubectl proxy, plain in";
    let cpu = "gateway: CPU time of a GET / kubectl proxy's";
    let latency = "gateway: what it adds to the median latency of such GETs / what kubectl proxy adds";
    let alone = "gateway: what it adds to the median latency of a GET at a time / what kubectl proxy adds";
    let run = "run: navicert run -- kubectl version / kubectl version";
    let setup = Shared::new(Setup::new);
    let race = |what, limit, contest: fn(&Rc<Setup>) -> Contest| {
        let setup = setup.clone();
        let needs = [Need::Installed("kubectl"), Need::Built("navicert")];
        Race::new(what, limit, move || Ok(contest(&setup.get()?))).needs(&needs)
    };
    vec![
        race(run, 1.4, |setup| Contest::time(version(setup, true), version(setup, false))),
        race(alone, 0.5, |setup| Contest::Together {
            unit: Unit::Seconds,
            both: added_latency(setup, |way| way.latencies(1, ALONE)),
        })
        .on_one_processor(),
        race(throughput, 1.0 / 1.8, |setup| Contest::time(many(setup, true), many(setup, false)))
            .with_long_rounds(),
        race(cpu, 1.0 / 3.0, |setup| Contest::Cost {
            ours: cpu_time(setup, true),
            reference: cpu_time(setup, false),
        })
        .on_one_processor(),
        race(latency, 0.6, |setup| Contest::Together {
            unit: Unit::Seconds,
            both: added_latency(setup, |way| way.latencies(CONNECTIONS, REQUESTS)),
        }),
    ]
}

/// An API server that demands a certificate, a kubeconfig that has one, a gateway and a `kubectl proxy` in front of it.
struct Setup {
    folder: tempfile::TempDir,
    kubectl: PathBuf,
    navicert: PathBuf,
    gateway: (Running, Load),
    proxy: (Running, Load),
    direct: Load,
}

impl Setup {
    fn new() -> Result<Self, Fault> {
        let ca = Ca::new("gateway bench");
        let upstream = Upstream::start(&ca)?;
        let folder = tempfile::tempdir()?;
        let identity = ca.client("ann").issue();
        let files = identity.write_to(folder.path(), "ann");
        let path = Kubeconfig::new(upstream.url())
            .ca(&ca)
            .certificate(files.certificate, files.key)
            .write(folder.path().join("config"));
        let (kubectl, navicert) = (needs::installed("kubectl")?, needs::built("navicert")?);

        let gateway = program(&navicert, &path, folder.path()).arguments(["gateway"]).start_running()?;
        let told = wait::blocking(gateway.wait_for_output("\n"));
        let through_gateway =
            Load::of_kubeconfig(&kubeconfig::decode(&fs::read(told.trim())?)?, CONNECTIONS)?;

        let proxy =
            program(&kubectl, &path, folder.path()).arguments(["proxy", "--port=0"]).start_running()?;
        let told = wait::blocking(proxy.wait_for_output("\n"));
        let address = told.trim().rsplit(' ').next().ok_or("kubectl proxy says nothing")?;
        let through_proxy = Load::plain(address, CONNECTIONS)?;
        let direct = Load::direct(&upstream, &ca, &identity, CONNECTIONS)?;
        Ok(Setup {
            folder,
            kubectl,
            navicert,
            gateway: (gateway, through_gateway),
            proxy: (proxy, through_proxy),
            direct,
        })
    }

    fn side(&self, ours: bool) -> &(Running, Load) {
        if ours { &self.gateway } else { &self.proxy }
    }
}

fn version(setup: &Rc<Setup>, ours: bool) -> Contestant {
    let setup = Rc::clone(setup);
    Box::new(move || {
        let config = setup.folder.path().join("config");
        let kubectl = setup.kubectl.to_string_lossy().into_owned();
        let program = if ours {
            program(&setup.navicert, &config, setup.folder.path())
                .arguments(["run", "--", &kubectl, "version"])
        } else {
            program(&setup.kubectl, &config, setup.folder.path()).arguments(["version"])
        };
        let outcome = program.run()?;
        match outcome.code() {
            Some(0) => Ok(()),
            code => Err(format!("exit code {code:?}: {}", String::from_utf8_lossy(&outcome.stderr)).into()),
        }
    })
}

fn many(setup: &Rc<Setup>, ours: bool) -> Contestant {
    let setup = Rc::clone(setup);
    Box::new(move || setup.side(ours).1.ask(REQUESTS))
}

/// The time its threads spent on a processor, per request.
fn cpu_time(setup: &Rc<Setup>, ours: bool) -> Meter {
    let setup = Rc::clone(setup);
    Box::new(move || {
        let (process, load) = setup.side(ours);
        let before = on_processor(process.pid())?;
        load.ask(MANY)?;
        let spent = on_processor(process.pid())?.saturating_sub(before);
        Ok(spent / u32::try_from(CONNECTIONS * MANY)?)
    })
}

fn added_latency(setup: &Rc<Setup>, ask: fn(&Load) -> Result<Vec<Duration>, Fault>) -> BothSides {
    let setup = Rc::clone(setup);
    Box::new(move || load::added_latency([&setup.gateway.1, &setup.proxy.1, &setup.direct], ask))
}

/// From the scheduler's own books, in nanoseconds: the first figure of every thread's `schedstat`.
pub(crate) fn on_processor(pid: u32) -> Result<Duration, Fault> {
    let mut total = Duration::ZERO;
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = fs::read_to_string(thread?.path().join("schedstat"))?;
        let nanos = text.split(' ').next().ok_or("an empty schedstat")?.parse()?;
        total = total.saturating_add(Duration::from_nanos(nanos));
    }
    Ok(total)
}

fn program(path: &Path, kubeconfig: &Path, home: &Path) -> Program {
    Program::new(path)
        .own_environment()
        .variable("PATH", "/usr/bin:/bin")
        .variable("HOME", home)
        .variable("KUBECONFIG", kubeconfig)
        .directory(home)
}

/// Shared by everything that speaks TLS here.
pub(crate) fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}
