//! The scenarios. Every cell of the table is computed from what the server and the plugin recorded.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use navicert_testkit::{Answer, ApiServer, Ca, FakeExecPlugin, Kubeconfig};
use navicert_types::{Clock, SystemClock};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use serde_json::{Value, json};

use crate::Fault;
use crate::client::Client;

/// Lifetime of credentials that expire.
const CREDENTIAL_LIFETIME: Duration = Duration::from_secs(3);
/// Number of concurrent requests, and of sequential requests after a change.
const CONCURRENT_REQUESTS: usize = 16;
const REQUESTS_AFTER_CHANGE: usize = 3;

/// A scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scenario {
    /// The token expires at the time the plugin gave.
    Expiry,
    /// A token without expiry is revoked.
    Revocation,
    /// The certificate expires, and the plugin returns a new one.
    Certificate,
    /// Concurrent requests before there is a credential.
    Concurrency,
}

/// One request as the server received it: the credential, and whether it was accepted.
type Event = (String, bool);

/// The server's log and the rejected credentials.
#[derive(Clone, Default)]
struct Record {
    events: Arc<Mutex<Vec<Event>>>,
    rejected: Arc<Mutex<HashSet<String>>>,
}

impl Record {
    fn events(&self) -> Vec<Event> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn reject(&self, credential: &str) {
        self.rejected.lock().unwrap_or_else(PoisonError::into_inner).insert(credential.to_owned());
    }

    fn respond(&self, credential: Option<&str>) -> Answer {
        let credential = credential.unwrap_or_default().to_owned();
        let rejected = self.rejected.lock().unwrap_or_else(PoisonError::into_inner);
        let accepted = !credential.is_empty() && !rejected.contains(&credential);
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push((credential, accepted));
        if accepted {
            Answer::json(&json!({
                "major": "1", "minor": "34", "gitVersion": "v1.34.0", "gitCommit": "", "gitTreeState": "clean",
                "buildDate": "2026-01-01T00:00:00Z", "goVersion": "", "compiler": "gc", "platform": "linux/amd64",
            }))
        } else {
            Answer::unauthorized()
        }
    }
}

impl Scenario {
    /// The columns, in order.
    pub(crate) const ALL: [Scenario; 4] =
        [Scenario::Expiry, Scenario::Revocation, Scenario::Certificate, Scenario::Concurrency];

    /// The column title.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Scenario::Expiry => "the token expires",
            Scenario::Revocation => "the token is revoked (401)",
            Scenario::Certificate => "the certificate rotates",
            Scenario::Concurrency => "16 first requests at once",
        }
    }

    /// Runs the scenario with one client and returns the table cell.
    pub(crate) async fn run(self, client: Client) -> Result<String, Fault> {
        let ca = Ca::new("clients");
        let (api, record) = (ApiServer::start(&ca), Record::default());
        let responder = record.clone();
        api.answer_with("/version*", move |request| {
            let name = request.client.as_ref().map(|client| client.common_name.as_str());
            responder.respond(request.bearer_token().or(name))
        });
        let issuer = ca.clone();
        let plugin = FakeExecPlugin::start_in("client.authentication.k8s.io/v1beta1", move |run| {
            self.status(run, &issuer)
        });
        let dir = tempfile::tempdir()?;
        let user = json!({"exec": {
            "apiVersion": "client.authentication.k8s.io/v1beta1", "interactiveMode": "Never",
            "command": plugin.write_plugin(dir.path()), "args": [], "env": [], "provideClusterInfo": false,
        }});
        let path = Kubeconfig::new(api.url()).ca(&ca).user(user).write(dir.path().join("config"));
        let mut session = client.start(&path).await?;
        if self == Scenario::Concurrency {
            session.send(CONCURRENT_REQUESTS).await?;
            let good = record.events().iter().filter(|(_, good)| *good).count();
            return Ok(format!("{}, {good} answered", runs(&plugin)));
        }
        session.send(1).await?;
        let before = record.events();
        if before.iter().filter(|(_, good)| *good).count() != 1 {
            return Ok(format!("does not work at all ({})", runs(&plugin)));
        }
        if self != Scenario::Revocation {
            until_expired(&plugin).await?;
        }
        // Reject every credential issued so far.
        for run in 1..=plugin.runs().len() {
            record.reject(&name(run));
        }
        let mut failed = Vec::new();
        for _ in 0..REQUESTS_AFTER_CHANGE {
            let seen = record.events().len();
            session.send(1).await?;
            let answers: Vec<bool> = record.events().into_iter().skip(seen).map(|(_, good)| good).collect();
            failed.push(answers.last() != Some(&true));
        }
        Ok(format!("{}; {}", outcome(&failed), runs(&plugin)))
    }

    /// The plugin's output for this run.
    fn status(self, run: usize, ca: &Ca) -> Value {
        let mut status = match self {
            Scenario::Certificate => {
                let identity = ca.client(&name(run)).issue();
                json!({"clientCertificateData": identity.chain_pem(), "clientKeyData": identity.key_pem()})
            }
            _ => json!({"token": name(run)}),
        };
        if matches!(self, Scenario::Expiry | Scenario::Certificate)
            && let Some(object) = status.as_object_mut()
        {
            let end = SystemClock.now() + CREDENTIAL_LIFETIME;
            // Whole seconds, which every client can parse.
            let text = end.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
            object.insert("expirationTimestamp".to_owned(), json!(text));
        }
        status
    }
}

fn name(run: usize) -> String {
    format!("credential-{run}")
}

fn runs(plugin: &FakeExecPlugin) -> String {
    match plugin.runs().len() {
        1 => "1 run".to_owned(),
        runs => format!("{runs} runs"),
    }
}

/// Summarises the requests after the change.
fn outcome(failed: &[bool]) -> String {
    let bad = failed.iter().filter(|failed| **failed).count();
    match bad {
        0 => "no request fails".to_owned(),
        _ if bad == failed.len() => "every request fails".to_owned(),
        1 if failed.first() == Some(&true) => "the first request fails".to_owned(),
        _ => format!("{bad} of {} requests fail", failed.len()),
    }
}

/// Waits until the last credential has expired on the system clock, which is the one that the clients use.
async fn until_expired(plugin: &FakeExecPlugin) -> Result<(), Fault> {
    let Some(last) = plugin.runs().last().copied() else { return Ok(()) };
    // The credential was created shortly after the run was recorded.
    let moment = (last + CREDENTIAL_LIFETIME + Duration::from_millis(100)).as_duration();
    let value = Itimerspec {
        it_interval: Timespec::default(),
        it_value: Timespec { tv_sec: moment.as_secs(), tv_nsec: moment.subsec_nanos().into() },
    };
    let alarm = timerfd_create(TimerfdClockId::Realtime, TimerfdFlags::CLOEXEC)?;
    timerfd_settime(&alarm, TimerfdTimerFlags::ABSTIME, &value)?;
    tokio::task::spawn_blocking(move || rustix::io::read(alarm, &mut [0; 8])).await??;
    Ok(())
}
