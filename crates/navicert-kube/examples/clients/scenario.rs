//! What happens to a client, and what the server and the plugin's desk saw of it: every cell of the table is computed from
//! their records.

use std::collections::HashSet;
use std::fs;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use navicert_testkit::{Answer, ApiServer, Ca, PluginDesk};
use navicert_types::{Clock, SystemClock};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use serde_json::{Value, json};

use crate::Fault;
use crate::client::Client;

/// How long a credential lives where it expires.
const LIFE: Duration = Duration::from_secs(3);
/// How many requests are sent at once, and how many one after the other when something has changed.
const CROWD: usize = 16;
const AFTER: usize = 3;

/// Something that happens to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scenario {
    /// The token expires, as the plugin said it would.
    Expiry,
    /// The token, which does not expire, is revoked.
    Revocation,
    /// The certificate expires, and the plugin has another.
    Certificate,
    /// Many requests come at once, before there is any credential.
    Concurrency,
}

/// One request as the server saw it: the credential, and whether it was good.
type Event = (String, bool);

/// What is kept in common with the server.
#[derive(Clone, Default)]
struct Record {
    events: Arc<Mutex<Vec<Event>>>,
    refused: Arc<Mutex<HashSet<String>>>,
}

impl Record {
    fn events(&self) -> Vec<Event> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn refuse(&self, credential: &str) {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).insert(credential.to_owned());
    }

    fn judge(&self, credential: Option<&str>) -> Answer {
        let credential = credential.unwrap_or_default().to_owned();
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let good = !credential.is_empty() && !refused.contains(&credential);
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push((credential, good));
        if good {
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

    /// The head of the column.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Scenario::Expiry => "the token expires",
            Scenario::Revocation => "the token is revoked (401)",
            Scenario::Certificate => "the certificate rotates",
            Scenario::Concurrency => "16 first requests at once",
        }
    }

    /// Plays it with one client and says what was seen.
    pub(crate) async fn play(self, client: Client) -> Result<String, Fault> {
        let ca = Ca::new("clients");
        let (api, record) = (ApiServer::start(&ca), Record::default());
        let judge = record.clone();
        api.answer_with("/version*", move |request| {
            let name = request.client.as_ref().map(|client| client.common_name.as_str());
            judge.judge(request.bearer_token().or(name))
        });
        let issuer = ca.clone();
        let desk = PluginDesk::start_in("client.authentication.k8s.io/v1beta1", move |run| {
            self.status(run, &issuer)
        });
        let folder = tempfile::tempdir()?;
        fs::write(folder.path().join("ca.crt"), ca.pem())?;
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "x",
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {
                "server": api.url(), "certificate-authority": folder.path().join("ca.crt"),
            }}],
            "users": [{"name": "u", "user": {"exec": {
                "apiVersion": "client.authentication.k8s.io/v1beta1", "interactiveMode": "Never",
                "command": desk.write_plugin(folder.path()), "args": [], "env": [], "provideClusterInfo": false,
            }}}],
        });
        let path = folder.path().join("config");
        fs::write(&path, config.to_string())?;
        let mut session = client.start(&path).await?;
        if self == Scenario::Concurrency {
            session.ask(CROWD).await?;
            let good = record.events().iter().filter(|(_, good)| *good).count();
            return Ok(format!("{}, {good} answered", runs(&desk)));
        }
        session.ask(1).await?;
        let before = record.events();
        if before.iter().filter(|(_, good)| *good).count() != 1 {
            return Ok(format!("does not work at all ({})", runs(&desk)));
        }
        if self != Scenario::Revocation {
            until_expired(&desk).await?;
        }
        // Every credential that has been given so far is worth nothing any more.
        for run in 1..=desk.runs().len() {
            record.refuse(&name(run));
        }
        let mut failed = Vec::new();
        for _ in 0..AFTER {
            let seen = record.events().len();
            session.ask(1).await?;
            let answers: Vec<bool> = record.events().into_iter().skip(seen).map(|(_, good)| good).collect();
            failed.push(answers.last() != Some(&true));
        }
        Ok(format!("{}; {}", outcome(&failed), runs(&desk)))
    }

    /// What the plugin says at this run.
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
            let end = SystemClock.now() + LIFE;
            // Whole seconds, which every client reads.
            let text = end.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
            object.insert("expirationTimestamp".to_owned(), json!(text));
        }
        status
    }
}

fn name(run: usize) -> String {
    format!("credential-{run}")
}

fn runs(desk: &PluginDesk) -> String {
    match desk.runs().len() {
        1 => "1 run".to_owned(),
        runs => format!("{runs} runs"),
    }
}

/// How the requests after the change went.
fn outcome(failed: &[bool]) -> String {
    let bad = failed.iter().filter(|failed| **failed).count();
    match bad {
        0 => "no request fails".to_owned(),
        _ if bad == failed.len() => "every request fails".to_owned(),
        1 if failed.first() == Some(&true) => "the first request fails".to_owned(),
        _ => format!("{bad} of {} requests fail", failed.len()),
    }
}

/// Waits until whatever the plugin gave last has expired, by the clock that the clients look at: other programs cannot be
/// given another one, so the system says when that moment has come.
async fn until_expired(desk: &PluginDesk) -> Result<(), Fault> {
    let Some(last) = desk.runs().last().copied() else { return Ok(()) };
    // The credential was made a moment after the run was recorded.
    let moment = (last + LIFE + Duration::from_millis(100)).as_duration();
    let value = Itimerspec {
        it_interval: Timespec::default(),
        it_value: Timespec { tv_sec: moment.as_secs(), tv_nsec: moment.subsec_nanos().into() },
    };
    let alarm = timerfd_create(TimerfdClockId::Realtime, TimerfdFlags::CLOEXEC)?;
    timerfd_settime(&alarm, TimerfdTimerFlags::ABSTIME, &value)?;
    tokio::task::spawn_blocking(move || rustix::io::read(alarm, &mut [0; 8])).await??;
    Ok(())
}
