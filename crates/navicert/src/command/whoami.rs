//! `navicert whoami`: the user the server authenticates the client as.

use std::fmt::Write as _;
use std::time::Duration;

use navicert_client::in_cluster;
use navicert_client::kubeconfig::{Effective, OsFileSystem};
use navicert_client::transport::{self, TransportError};
use navicert_client::whoami::{SelfSubjectReview, WhoamiError, whoami};
use navicert_types::{error_chain, redact};
use serde_json::{Map, Value, json};

use super::connect;
use crate::args::client::WhoamiArgs;
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Sends a SelfSubjectReview and prints the user.
pub(crate) fn run(
    args: &WhoamiArgs,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let effective = selected(args, environment, output)?;
    let patient = connect::patient(&args.connection, &args.plugins, environment);
    let transport = transport::connect(&effective, &patient.exec, &patient.around, &patient.transport)
        .map_err(|error| failure(Exit::No, &error, &effective))?;
    connect::block_on(async {
        let mut seconds = tokio::time::interval(Duration::from_secs(1));
        for time in 1..=args.times {
            seconds.tick().await;
            let review = whoami(&transport).await.map_err(|error| request_failure(&error, &effective))?;
            if output.is_json() {
                output.json(&as_json(&review))?;
            } else if args.times > 1 {
                output.text(&format!("{time}  {}\n", redact::terminal(&review.user.username)))?;
            } else {
                output.text(&as_text(&review))?;
            }
        }
        Ok(Exit::Done)
    })?
}

/// The cluster and user the kubeconfig selects; without a kubeconfig, the pod's service account.
fn selected(args: &WhoamiArgs, environment: &Environment, output: &mut Output) -> Result<Effective, Failure> {
    let merged = super::kubeconfig::merged(&args.connection, environment, output)?;
    let overrides = args.connection.overrides(&environment.current_dir);
    if merged.origins().is_empty() {
        let pod = connect::patient(&args.connection, &args.plugins, environment).pod;
        if let Some(effective) = in_cluster::configuration(&pod, &overrides, &OsFileSystem) {
            return Ok(effective);
        }
    }
    let effective = merged.select(&overrides, &OsFileSystem).map_err(|problems| {
        for problem in &problems {
            let way_out = problem.way_out().map(|hint| format!("; {hint}")).unwrap_or_default();
            output.error(&format!("{problem}{way_out}"));
        }
        Failure::AlreadyReported(Exit::No)
    })?;
    for advice in effective.advice() {
        output.warning(&advice.to_string());
    }
    Ok(effective)
}

fn exit(error: &WhoamiError) -> Exit {
    if error.is_denied() {
        Exit::Denied
    } else if error.is_unreachable() {
        Exit::Unreachable
    } else {
        Exit::No
    }
}

/// The error of a request, with the command that fixes or diagnoses it.
fn request_failure(error: &WhoamiError, effective: &Effective) -> Failure {
    match slow_signer(error) {
        Some(text) => Failure::Message { exit: exit(error), text },
        None => failure(exit(error), error, effective),
    }
}

/// The message for a signer that is too slow: the command that asks for the PIN beforehand.
fn slow_signer(error: &WhoamiError) -> Option<String> {
    let WhoamiError::Transport(TransportError::SlowSigner { .. }) = error else { return None };
    Some(format!("{}; `navicert signer serve` asks for it once", redact::terminal(&error_chain(error))))
}

/// The error message, with the command that diagnoses it.
fn failure(exit: Exit, error: &dyn std::error::Error, effective: &Effective) -> Failure {
    let context = effective.context.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
    let text = error_chain(error);
    let text = format!("{}; run `navicert doctor{context}` to diagnose", redact::terminal(&text));
    Failure::Message { exit, text }
}

fn as_text(review: &SelfSubjectReview) -> String {
    let user = &review.user;
    let mut text = format!("username  {}\n", user.username);
    if !user.uid.is_empty() {
        let _ = writeln!(text, "uid       {}", user.uid);
    }
    if !user.groups.is_empty() {
        let _ = writeln!(text, "groups    {}", user.groups.join(", "));
    }
    for (index, (key, values)) in user.extra.iter().enumerate() {
        let label = if index == 0 { "extra" } else { "" };
        let _ = writeln!(text, "{label:<10}{key}: {}", values.join(", "));
    }
    redact::terminal(&text).into_owned()
}

/// The SelfSubjectReview object, as `kubectl auth whoami -o json` prints it.
fn as_json(review: &SelfSubjectReview) -> Value {
    let user = &review.user;
    let mut info = Map::new();
    info.insert("username".to_owned(), json!(user.username));
    if !user.uid.is_empty() {
        info.insert("uid".to_owned(), json!(user.uid));
    }
    if !user.groups.is_empty() {
        info.insert("groups".to_owned(), json!(user.groups));
    }
    if !user.extra.is_empty() {
        let extra: Map<String, Value> =
            user.extra.iter().map(|(key, values)| (key.clone(), json!(values))).collect();
        info.insert("extra".to_owned(), Value::Object(extra));
    }
    json!({
        "apiVersion": review.api_version,
        "kind": "SelfSubjectReview",
        "metadata": {},
        "status": {"userInfo": info},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_signer_is_reported_with_the_command_that_logs_in_beforehand() {
        let slow = TransportError::SlowSigner { name: "api.example".to_owned(), seconds: 40 };
        let text = slow_signer(&WhoamiError::Transport(slow)).unwrap();
        assert!(text.contains("signing took 40 s") && text.contains("`navicert signer serve`"), "{text}");
    }
}
