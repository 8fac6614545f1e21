//! `navicert whoami`: the user the server authenticates the client as.

use std::fmt::Write as _;
use std::time::Duration;

use navicert_client::report::WhoamiReport;
use navicert_client::transport::TransportError;
use navicert_client::whoami::{WhoamiError, whoami};
use navicert_client::{Client, Config};
use navicert_types::{error_chain, redact};

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
                output.json(&WhoamiReport::from(&review))?;
            } else if args.times > 1 {
                output.text(&format!("{time}  {}\n", redact::line(&review.user.username)))?;
            } else {
                output.text(&review.user.to_string())?;
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
