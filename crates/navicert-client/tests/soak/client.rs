//! The client's process: sends rounds of requests, over HTTP/2 and HTTP/1.1, and advances its clock between two rounds. Its
//! descriptors and memory are those of a client only.

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use http_body_util::BodyExt;
use navicert_client::exec::AuthenticatorRegistry;
use navicert_client::transport::{Body, Transport};
use navicert_client::{Client, ClientContext, ConfigOptions};
use navicert_plugin::Environment;
use navicert_types::clock::ManualClock;
use navicert_types::{Clock, Timestamp, error_chain};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{REQUESTS_PER_ROUND, ROUND, START, TIME_HEADER};

type Fault = Box<dyn Error + Send + Sync>;

/// What the client's process gets from the test, as JSON.
pub(crate) struct Plan {
    pub(crate) kubeconfig: PathBuf,
    pub(crate) rounds: u64,
    /// File for the report.
    pub(crate) report: PathBuf,
}

impl Plan {
    pub(crate) fn to_json(&self) -> String {
        json!({"kubeconfig": self.kubeconfig, "rounds": self.rounds, "report": self.report}).to_string()
    }

    fn from_json(text: &str) -> Self {
        let plan: Value = serde_json::from_str(text).unwrap();
        let path = |name: &str| PathBuf::from(plan[name].as_str().unwrap());
        Plan {
            kubeconfig: path("kubeconfig"),
            rounds: plan["rounds"].as_u64().unwrap(),
            report: path("report"),
        }
    }
}

/// Sends the requests of the plan and writes the report.
pub(crate) async fn run(plan: &str) {
    let plan = Plan::from_json(plan);
    let clock = Arc::new(ManualClock::at(START));
    let registry = AuthenticatorRegistry::new();
    let transports = [true, false].map(|http2| transport(&plan, &clock, &registry, http2));
    let (mut good, mut failures, mut early) = (0, Vec::new(), None);
    for round in 0..plan.rounds {
        let mut in_flight = JoinSet::new();
        for transport in transports.iter().cycle().take(REQUESTS_PER_ROUND) {
            in_flight.spawn(status(transport.clone(), clock.now()));
        }
        while let Some(ended) = in_flight.join_next().await {
            match ended.unwrap() {
                Ok(200) => good += 1,
                Ok(other) => failures.push(format!("round {round}: status {other}")),
                Err(error) => failures.push(format!("round {round}: {}", error_chain(&*error))),
            }
        }
        clock.advance(ROUND);
        // Measured after a quarter of the rounds, when everything is warmed up; compared with the values at the end.
        if round == plan.rounds / 4 {
            early = Some(resource_usage());
        }
    }
    let (early, late) = (early.unwrap(), resource_usage());
    let report = json!({
        "good": good, "failures": failures,
        "descriptors": [early.0, late.0], "kibibytes": [early.1, late.1],
    });
    fs::write(&plan.report, report.to_string()).unwrap();
}

fn transport(
    plan: &Plan,
    clock: &Arc<ManualClock>,
    registry: &AuthenticatorRegistry,
    http2: bool,
) -> Transport {
    let clock = Arc::clone(clock) as Arc<dyn Clock>;
    let environment: Environment = [("PATH", "/usr/bin:/bin")].into_iter().collect();
    let options = ConfigOptions::new(environment.clone(), "/").kubeconfig(&plan.kubeconfig);
    let config = options.clock(Arc::clone(&clock)).resolve().unwrap();
    let context = ClientContext { clock, registry: registry.clone(), ..ClientContext::new(environment) };
    Client::builder(config).client_context(context).http2(http2).build().unwrap().into()
}

/// Sends a request that says when it was sent, by the client's clock.
async fn status(transport: Transport, now: Timestamp) -> Result<u16, Fault> {
    let request = http::Request::get("/version").header(TIME_HEADER, now.to_string());
    let response = transport.send(request.body(Body::empty())?).await?;
    let status = response.status().as_u16();
    response.into_body().collect().await?;
    Ok(status)
}

/// Number of open descriptors, and resident memory in KiB.
fn resource_usage() -> (usize, u64) {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let memory = resident.trim().trim_end_matches(" kB").parse().unwrap();
    (fs::read_dir("/proc/self/fd").unwrap().count(), memory)
}
