//! What connections weigh on which a client has sent one request and nothing since.

use navicert_testkit::Ca;
use navicert_testkit::cli::process::Process;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::Front;
use crate::gateway::load::{Load, Upstream};
use crate::race::Fault;

/// Connections that are held, and how many are opened at the same time.
const CONNECTIONS: usize = 10_000;
const AT_ONCE: usize = 50;
/// All of them are one user's, who gets eight ninths of what the server accepts.
const LIMITS: &str = "  limits: {connections: 12000}\n";

/// The resident memory of the proxy; its clients are in this process.
pub(super) fn weight() -> Result<u64, Fault> {
    let files = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: files.maximum, maximum: files.maximum })?;
    let ca = Ca::new("idle connections bench");
    let upstream = Upstream::start(&ca)?;
    let front = Front::start_with(&ca, &upstream.url(), LIMITS)?;
    let authorization = front.authorization();
    let mut clients = Vec::new();
    for _ in 0..CONNECTIONS / AT_ONCE {
        let client = Load::secured(front.address, &ca, &authorization, AT_ONCE)?;
        client.ask(1)?;
        clients.push(client);
    }
    let kibibytes = Process(front.program.pid()).resident()?;
    // One that the server has closed meanwhile would not count.
    clients.iter().try_for_each(|client| client.ask(1))?;
    Ok(kibibytes << 10)
}
