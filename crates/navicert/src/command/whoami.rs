//! `navicert whoami`: the user the server authenticates the client as.

use std::fmt::Write as _;
use std::time::Duration;

use navicert_client::transport::TransportError;
use navicert_client::whoami::{SelfSubjectReview, WhoamiError, whoami};
use navicert_client::{Client, Config};
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
    let options = connect::options(&args.connection, args.plugins.kuberc.as_deref(), environment);
    let config = connect::resolve(&options, output)?;
    for warning in config.warnings() {
        output.warning(&redact::terminal(&warning.to_string()));
    }
    let doctor = doctor_command(args, &config);
    let client = Client::new(config).map_err(|error| connect::build_failure(&error))?;
    connect::block_on(async {
        let mut seconds = tokio::time::interval(Duration::from_secs(1));
        for time in 1..=args.times {
            seconds.tick().await;
            let review =
                whoami(client.transport()).await.map_err(|error| request_failure(&error, &doctor))?;
            if output.is_json() {
                output.json(&as_json(&review))?;
            } else if args.times > 1 {
                output.text(&format!("{time}  {}\n", redact::line(&review.user.username)))?;
            } else {
                output.text(&as_text(&review))?;
            }
        }
        Ok(Exit::Done)
    })?
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
fn request_failure(error: &WhoamiError, doctor: &str) -> Failure {
    let text = slow_signer(error)
        .unwrap_or_else(|| format!("{}; run `{doctor}` to diagnose", redact::line(&error_chain(error))));
    Failure::Message { exit: exit(error), text }
}

/// The message for a signer that is too slow: the command that asks for the PIN beforehand.
fn slow_signer(error: &WhoamiError) -> Option<String> {
    let WhoamiError::Transport(TransportError::SlowSigner { .. }) = error else { return None };
    Some(format!("{}; `navicert signer serve` asks for it once", redact::line(&error_chain(error))))
}

/// The command that diagnoses the same context, ready to be pasted.
fn doctor_command(args: &WhoamiArgs, config: &Config) -> String {
    let mut command = String::from("navicert doctor");
    if let Some(path) = &args.connection.kubeconfig {
        let _ = write!(command, " --kubeconfig {}", shell_word(&path.display().to_string()));
    }
    if let Some(context) = config.context() {
        let _ = write!(command, " --context {}", shell_word(context));
    }
    command
}

/// Quotes a word for a POSIX shell if it needs to be.
fn shell_word(word: &str) -> String {
    let word = redact::line(word);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.into_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

fn as_text(review: &SelfSubjectReview) -> String {
    let user = &review.user;
    let list = |texts: &[String]| redact::line(&texts.join(", ")).into_owned();
    let mut text = format!("username  {}\n", redact::line(&user.username));
    if !user.uid.is_empty() {
        let _ = writeln!(text, "uid       {}", redact::line(&user.uid));
    }
    if !user.groups.is_empty() {
        let _ = writeln!(text, "groups    {}", list(&user.groups));
    }
    for (index, (key, values)) in user.extra.iter().enumerate() {
        let label = if index == 0 { "extra" } else { "" };
        let _ = writeln!(text, "{label:<10}{}: {}", redact::line(key), list(values));
    }
    text
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
    fn words_are_quoted_for_a_shell_only_if_needed() {
        for (word, quoted) in [
            ("prod", "prod"),
            ("/a/b.yaml", "/a/b.yaml"),
            ("a b", "'a b'"),
            ("it's", "'it'\\''s'"),
            ("", "''"),
        ] {
            assert_eq!(shell_word(word), quoted);
        }
    }

    #[test]
    fn slow_signer_is_reported_with_the_command_that_logs_in_beforehand() {
        let slow = TransportError::SlowSigner { name: "api.example".to_owned(), seconds: 40 };
        let text = slow_signer(&WhoamiError::Transport(slow)).unwrap();
        assert!(text.contains("signing took 40 s") && text.contains("`navicert signer serve`"), "{text}");
    }
}
