//! Compares with recorded client-go runs, request by request, with the same plugin output, responses and clock
//! (exec-flow.jsonl).

use std::sync::Arc;
use std::time::Duration;

use navicert_client::credential::{CredentialSource, Rejection, RequestOrigin, block_on};
use navicert_client::exec::interactive::FixedTerminal;
use navicert_client::exec::{Authenticator, AuthenticatorRegistry, ExecSettings};
use navicert_client::{ClientContext, Config};
use navicert_plugin::{Environment, Script, ScriptedRunner};
use navicert_testkit::k8s::vectors::{self, Vector};
use navicert_types::clock::ManualClock;
use navicert_types::{Clock, Timestamp};
use serde_json::Value;

use super::TestDirectory;

/// The settings the vectors require: no leeway, no back-off, no grace for expired credentials, no retry.
fn settings() -> ExecSettings {
    ExecSettings {
        leeway: Duration::ZERO,
        past_expiry: Duration::ZERO,
        backoff: None,
        ..ExecSettings::default()
    }
}

fn authenticator(clock: &Arc<ManualClock>, runner: &Arc<ScriptedRunner>) -> Authenticator {
    let test_dir = TestDirectory::new("Never", &[]);
    let config = Config::from_kubeconfig(test_dir.config()).unwrap();
    let client_context = ClientContext {
        clock: Arc::clone(clock) as Arc<dyn Clock>,
        runner: Arc::clone(runner) as Arc<dyn navicert_plugin::Runner>,
        terminal: Arc::new(FixedTerminal::default()),
        registry: AuthenticatorRegistry::new(),
        ..ClientContext::new(Environment::empty())
    };
    Authenticator::new(config.exec_plugin().unwrap().clone(), settings(), client_context)
}

fn script(output: &Value) -> Script {
    let exit = i32::try_from(output["exit"].as_i64().unwrap()).unwrap();
    Script::exits(exit).stdout(output["stdout"].as_str().unwrap())
}

// C410, C430, C434
#[test]
fn every_recorded_flow_agrees() {
    vectors::run_suite("exec-flow", "exec-flow.jsonl", |vector| {
        let (expected, found) = (expected(vector), replay(vector));
        if expected == found { Ok(()) } else { Err(format!("{found:?} instead of {expected:?}")) }
    });
}

/// The header of each request (`None` for no credential) and the number of runs after each.
type Flow = Vec<(Option<String>, usize)>;

fn expected(vector: &Vector) -> Flow {
    let headers = vector.expect["authorization"].as_array().unwrap().iter();
    let runs = vector.expect["runsAfter"].as_array().unwrap().iter();
    let mut flow: Flow = headers
        .zip(runs)
        .map(|(header, runs)| {
            let runs = usize::try_from(runs.as_u64().unwrap()).unwrap();
            (header.as_str().map(str::to_owned), runs)
        })
        .collect();
    // `atomic`: client-go keeps the old credential with the new one's expiry. Here it stays expired, so the third request
    // runs the plugin again and gets the third output, which the fourth request also uses.
    if vector.note == "broken key pair with a later expiry" {
        flow[2] = (Some("Bearer a3".to_owned()), 3);
    }
    flow
}

fn replay(vector: &Vector) -> Flow {
    let outputs = vector.input["outputs"].as_array().unwrap();
    let last = outputs.last().unwrap();
    let scripts = outputs.iter().chain(std::iter::repeat_n(last, 50)).map(script);
    let runner = Arc::new(ScriptedRunner::new(scripts));
    let clock = Arc::new(ManualClock::at(1_900_000_000));
    let authenticator = authenticator(&clock, &runner);
    let times = vector.input["now"].as_array();
    let mut flow = Flow::new();
    for (index, status) in vector.input["statuses"].as_array().unwrap().iter().enumerate() {
        if let Some(now) = times.and_then(|times| times.get(index).or(times.last())) {
            clock.set_wall(now.as_str().unwrap().parse::<Timestamp>().unwrap());
        }
        let header = request(&authenticator, status.as_u64() == Some(401));
        flow.push((header, runner.commands().len()));
    }
    flow
}

fn request(authenticator: &Authenticator, is_rejected: bool) -> Option<String> {
    let credential = block_on(authenticator.get(RequestOrigin::Background)).ok()?;
    if is_rejected {
        // A failed refresh changes nothing.
        let _ =
            block_on(authenticator.refresh_rejected(credential.generation, Rejection::Unauthorized(None)));
    }
    let header = credential.authorization.as_ref().map(|value| value.to_str().unwrap().to_owned());
    Some(header.unwrap_or_default())
}
