//! A stand-in for kubectl on machines without it: this program, linked as `kubectl`, with the two commands that the demo runs.
//! It reads the kubeconfig of `KUBECONFIG` and sends the request of each command, as kubectl does.

#![expect(clippy::print_stdout, reason = "the demo reads the output through a pipe and shows it")]

use std::process::ExitCode;

use navicert_testkit::{HttpClient, wait};
use navicert_types::kubeconfig;
use serde_json::Value;

const PODS: &str = "/api/v1/namespaces/default/pods";

/// Runs `get pods -o name` or `delete pod NAME`.
pub(super) fn run(arguments: &[String]) -> ExitCode {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["get", "pods", "-o", "name"] => send("GET", PODS).map(|pods| names(&pods)),
        ["delete", "pod", name] => {
            send("DELETE", &format!("{PODS}/{name}")).map(|_| format!("pod \"{name}\" deleted\n"))
        }
        _ => Err("unknown command; the stand-in has `get pods -o name` and `delete pod NAME`".to_owned()),
    };
    match result {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(problem) => {
            println!("{problem}");
            ExitCode::FAILURE
        }
    }
}

/// Sends a request to the cluster of the kubeconfig and returns the response, or the server's error.
fn send(method: &str, path: &str) -> Result<Value, String> {
    #[expect(
        clippy::disallowed_methods,
        reason = "a separate program that finds its kubeconfig like kubectl"
    )]
    let file = std::env::var("KUBECONFIG").map_err(|_| "missing KUBECONFIG".to_owned())?;
    let text = std::fs::read(&file).map_err(|error| format!("failed to read {file}: {error}"))?;
    let config = kubeconfig::decode(&text).map_err(|_| format!("invalid kubeconfig {file}"))?;
    let (Some(cluster), Some(user)) = (config.clusters.first(), config.users.first()) else {
        return Err(format!("missing cluster or user in {file}"));
    };
    let request = http::Request::builder()
        .method(method)
        .uri(format!("{}{path}", cluster.cluster.server))
        .header("authorization", format!("Bearer {}", user.user.token.expose()))
        .body(bytes::Bytes::new())
        .map_err(|error| error.to_string())?;
    let reply = HttpClient::trusting_pem(&cluster.cluster.certificate_authority_data)
        .and_then(|client| wait::blocking(async { client.send(request).await }))
        .map_err(|error| format!("failed to reach the server: {error}"))?;
    let response: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    if reply.status.is_success() {
        return Ok(response);
    }
    let text = |name: &str| response.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    Err(format!("Error from server ({}): {}", text("reason"), text("message")))
}

fn names(pods: &Value) -> String {
    let items = pods.get("items").and_then(Value::as_array).into_iter().flatten();
    items
        .filter_map(|pod| pod.pointer("/metadata/name").and_then(Value::as_str))
        .map(|name| format!("pod/{name}\n"))
        .collect()
}
