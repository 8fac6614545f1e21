//! `navicert serve proxy` against Debian's nginx as a plain reverse proxy (TLS in, TLS to the API server over connections that
//! are kept, two workers), without authentication; against itself without confinement; a watch against a bare copy loop; and what a
//! thousand watches and ten thousand idle connections weigh.

mod idle_connections;
mod watching;

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use navicert_testkit::cli::program::Running;
use navicert_testkit::{Ca, Issuer, Kubeconfig, Program, wait};
use navicert_types::{Clock, SystemClock};
use serde_json::json;

use crate::gateway::load::{self, Load, Upstream};
use crate::gateway::on_processor;
use crate::needs::{self, Need};
use crate::race::{BothSides, Contest, Contestant, Fault, Meter, Race, Shared, Unit};

/// Connections at a time, and requests on each of them per round.
const CONNECTIONS: usize = 16;
const REQUESTS: usize = 60;
/// Requests of a turn whose median latency counts, on each of the three ways.
const ALONE: usize = 100;
/// The `NavicertConfiguration` of a proxy, and what it has besides to be unconfined.
const SETTINGS: &str =
    "apiVersion: navicert/v1alpha1\nkind: NavicertConfiguration\nservers:\n  proxy: {selfCheck: off}\n";
const UNCONFINED: &str = "  confinement: {noNewPrivileges: off, landlock: off, seccomp: off}\n";

pub(crate) fn races() -> Vec<Race> {
    let throughput = "proxy: GETs over 16 connections / nginx";
    let cpu = "proxy: CPU time of a GET / nginx";
    let confined = "proxy: CPU time of a GET / without confinement";
    let latency = "proxy: what it adds to a GET's median latency / what nginx adds";
    let event = "proxy: median delay of a watch's event / a bare copy loop";
    let weight = "proxy: memory with 1000 idle watches / 64 MiB";
    let idle = "proxy: memory with 10000 idle connections / 200 MiB";
    let setup = Shared::new(Setup::new);
    let against_nginx = |what, limit, contest: fn(&Rc<Setup>) -> Contest| {
        let setup = setup.clone();
        let needs = [Need::Installed("nginx"), Need::Built("navicert")];
        Race::new(what, limit, move || Ok(contest(&setup.get()?))).needs(&needs)
    };
    let events = || Ok(Contest::Cost { ours: watching::event(true)?, reference: watching::event(false)? });
    vec![
        against_nginx(throughput, 1.1, |setup| Contest::time(many(setup, true), many(setup, false)))
            .with_long_rounds(),
        against_nginx(cpu, 1.2, |setup| Contest::Cost {
            ours: cpu_time(setup, true),
            reference: cpu_time(setup, false),
        })
        .on_one_processor(),
        Race::new(confined, 1.1, || {
            let meter = |settings| -> Result<Meter, Fault> {
                let (front, load, upstream) = alone(settings)?;
                let pid = front.program.pid();
                Ok(Box::new(move || {
                    let _kept = (&front, &upstream);
                    cpu_time_of(pid, &load)
                }))
            };
            Ok(Contest::Cost { ours: meter("")?, reference: meter(UNCONFINED)? })
        })
        .needs(&[Need::Built("navicert")])
        .on_one_processor(),
        against_nginx(latency, 1.3, |setup| Contest::Together {
            unit: Unit::Seconds,
            both: added_latency(setup),
        })
        .on_one_processor(),
        Race::new(event, 1.5, events).needs(&[Need::Built("navicert")]).on_one_processor(),
        Race::new(weight, 1.0, || Ok(Contest::sizes(watching::weight, || Ok(64 << 20))))
            .needs(&[Need::Built("navicert")])
            .with_few_rounds(),
        Race::new(idle, 1.0, || Ok(Contest::sizes(idle_connections::weight, || Ok(200 << 20))))
            .needs(&[Need::Built("navicert")])
            .with_few_rounds(),
    ]
}

/// A proxy with these settings besides, requests through it, and the API server behind it.
fn alone(settings: &str) -> Result<(Front, Load, Upstream), Fault> {
    let ca = Ca::new("proxy bench");
    let upstream = Upstream::start(&ca)?;
    let front = Front::start_with(&ca, &upstream.url(), settings)?;
    let load = Load::secured(front.address, &ca, &front.authorization(), CONNECTIONS)?;
    Ok((front, load, upstream))
}

/// An API server that demands a certificate, a proxy and an nginx before it that have one.
struct Setup {
    _issuer: Issuer,
    _folder: tempfile::TempDir,
    ours: (Running, Load),
    nginx: (Option<Running>, Load),
    direct: Load,
}

/// nginx's workers end only if nginx ends them.
impl Drop for Setup {
    fn drop(&mut self) {
        if let Some(nginx) = self.nginx.0.take() {
            nginx.signal("TERM");
            wait::blocking(nginx.wait());
        }
    }
}

impl Setup {
    fn new() -> Result<Self, Fault> {
        let ca = Ca::new("proxy bench");
        let upstream = Upstream::start(&ca)?;
        let front = Front::start(&ca, &upstream.url())?;
        let authorization = front.authorization();
        let ours = Load::secured(front.address, &ca, &authorization, CONNECTIONS)?;
        let (nginx, address) = nginx(front.folder.path(), &upstream.url())?;
        let through_nginx = Load::secured(address, &ca, &authorization, CONNECTIONS)?;
        let direct = Load::direct(&upstream, &ca, &ca.client("navicert-proxy").issue(), 1)?;
        let Front { program, issuer, folder, .. } = front;
        Ok(Setup {
            _issuer: issuer,
            _folder: folder,
            ours: (program, ours),
            nginx: (Some(nginx), through_nginx),
            direct,
        })
    }

    fn load(&self, ours: bool) -> &Load {
        if ours { &self.ours.1 } else { &self.nginx.1 }
    }

    fn pid(&self, ours: bool) -> Option<u32> {
        if ours { Some(self.ours.0.pid()) } else { self.nginx.0.as_ref().map(Running::pid) }
    }
}

/// A proxy before an API server, and a token that is good there.
struct Front {
    program: Running,
    address: SocketAddr,
    token: String,
    issuer: Issuer,
    folder: tempfile::TempDir,
}

impl Front {
    /// The header line that its requests need.
    fn authorization(&self) -> String {
        format!("authorization: Bearer {}\r\n", self.token)
    }

    fn start(ca: &Ca, upstream: &str) -> Result<Self, Fault> {
        Front::start_with(ca, upstream, "")
    }

    fn start_with(ca: &Ca, upstream: &str, settings: &str) -> Result<Self, Fault> {
        let (issuer, folder) = (Issuer::start(ca), tempfile::tempdir()?);
        let path = |name: &str| folder.path().join(name);
        ca.server().issue().write_to(folder.path(), "server");
        let own = ca.client("navicert-proxy").issue().write_to(folder.path(), "proxy");
        fs::write(path("ca.crt"), ca.pem())?;
        let config = json!({
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",
            "jwt": [{
                "issuer": {
                    "url": issuer.issuer_url(), "audiences": ["kubernetes"], "certificateAuthority": ca.pem(),
                },
                "claimMappings": {
                    "username": {"claim": "sub", "prefix": "corp:"}, "groups": {"claim": "groups", "prefix": "corp:"},
                },
            }],
        });
        fs::write(path("authentication.yaml"), config.to_string())?;
        fs::write(path("navicert.yaml"), format!("{SETTINGS}{settings}"))?;
        let kubeconfig = Kubeconfig::new(upstream).ca_file(path("ca.crt"));
        kubeconfig.certificate(own.certificate, own.key).write(path("proxy.kubeconfig"));
        let program = Program::new(needs::built("navicert")?)
            .arguments(["serve", "proxy", "--authentication-config", "authentication.yaml"])
            .arguments(["--navicert-config", "navicert.yaml", "--kubeconfig", "proxy.kubeconfig"])
            .arguments(["--tls-cert-file", "server.crt", "--tls-private-key-file", "server.key"])
            .arguments(["--listen", "127.0.0.1:0", "--health-listen", "127.0.0.1:0", "--log-level", "error"])
            .own_environment()
            .variable("PATH", "/usr/bin:/bin")
            .variable("HOME", folder.path())
            .directory(folder.path())
            .start_running()?;
        let told = wait::blocking(program.wait_for_output("listening on "));
        let addresses: Vec<SocketAddr> =
            told.split([' ', ',', '\n']).filter_map(|word| word.parse().ok()).collect();
        let &[address, health] = addresses.as_slice() else { return Err("no addresses".into()) };
        until_ready(health)?;
        let mut claims = issuer.claims("ann", "kubernetes", SystemClock.now());
        if let Some(claims) = claims.as_object_mut() {
            claims.insert("groups".to_owned(), json!(["developers", "operators"]));
            claims.insert("exp".to_owned(), json!(SystemClock.now().as_second() + 3_600));
        }
        let token = issuer.token(&claims);
        Ok(Front { program, address, token, issuer, folder })
    }
}

/// Until the issuer's keys are there.
fn until_ready(health: SocketAddr) -> Result<(), Fault> {
    for _ in 0..500 {
        let mut stream = TcpStream::connect(health)?;
        stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        if answer.starts_with("HTTP/1.1 200 ") {
            return Ok(());
        }
        std::thread::park_timeout(Duration::from_millis(20));
    }
    Err("the proxy does not become ready".into())
}

/// Two workers, TLS on both sides, connections kept on both sides; everything that nginx writes is in the folder.
fn nginx(folder: &Path, upstream: &str) -> Result<(Running, SocketAddr), Fault> {
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let (place, server) = (folder.display(), upstream.trim_start_matches("https://"));
    let config = format!(
        "daemon off; worker_processes 2; pid {place}/nginx.pid; error_log stderr error;\n\
         events {{ worker_connections 4096; }}\n\
         http {{\n  access_log off; keepalive_requests 100000000;\n  client_body_temp_path {place}/body; \
         proxy_temp_path {place}/proxy; fastcgi_temp_path {place}/fastcgi; uwsgi_temp_path {place}/uwsgi; \
         scgi_temp_path {place}/scgi;\n  upstream api {{ server {server}; keepalive 64; keepalive_requests 100000000; }}\n  \
         server {{\n    listen {address} ssl; ssl_certificate {place}/server.crt; ssl_certificate_key {place}/server.key;\n    \
         location / {{ proxy_pass https://api; proxy_http_version 1.1; proxy_set_header Connection \"\"; \
         proxy_buffering off; proxy_ssl_certificate {place}/proxy.crt; proxy_ssl_certificate_key {place}/proxy.key; \
         proxy_ssl_protocols TLSv1.3; }}\n  }}\n}}\n"
    );
    let path = folder.join("nginx.conf");
    fs::write(&path, config)?;
    let program =
        Program::new(needs::installed("nginx")?).arguments(["-c"]).arguments([path]).start_running()?;
    for _ in 0..200 {
        if TcpStream::connect(address).is_ok() {
            return Ok((program, address));
        }
        std::thread::park_timeout(Duration::from_millis(20));
    }
    Err(format!("nginx does not listen: {}", program.output()).into())
}

fn many(setup: &Rc<Setup>, ours: bool) -> Contestant {
    let setup = Rc::clone(setup);
    Box::new(move || setup.load(ours).ask(REQUESTS))
}

/// The time its threads (and nginx's workers) spent on a processor, per request.
fn cpu_time(setup: &Rc<Setup>, ours: bool) -> Meter {
    let setup = Rc::clone(setup);
    Box::new(move || cpu_time_of(setup.pid(ours).ok_or("nginx is gone")?, setup.load(ours)))
}

/// The same of a process and its children.
fn cpu_time_of(pid: u32, load: &Load) -> Result<Duration, Fault> {
    let spent = || -> Result<Duration, Fault> {
        let mut total = on_processor(pid)?;
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
        for child in children.split_whitespace() {
            total = total.saturating_add(on_processor(child.parse()?)?);
        }
        Ok(total)
    };
    let before = spent()?;
    load.ask(REQUESTS)?;
    Ok(spent()?.saturating_sub(before) / u32::try_from(CONNECTIONS * REQUESTS)?)
}

/// One GET at a time.
fn added_latency(setup: &Rc<Setup>) -> BothSides {
    let setup = Rc::clone(setup);
    let ask = |way: &Load| way.latencies(1, ALONE);
    Box::new(move || load::added_latency([&setup.ours.1, &setup.nginx.1, &setup.direct], ask))
}
