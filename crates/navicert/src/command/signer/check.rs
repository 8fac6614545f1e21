//! `navicert signer check`: creates and verifies one test signature per scheme.

use std::fmt::Write as _;

use navicert_signer::pkcs11::open;
use navicert_signer::program::SignerEnvironment;
use navicert_signer::remote::wire::sample_message;
use navicert_signer::{Input, Scheme, SignError, SigningIdentity};
use navicert_types::{Clock, SystemClock, error_chain, redact};
use serde_json::{Value, json};

use super::{failure, selection};
use crate::args::signer::CheckArgs;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Creates and verifies the test signatures.
pub(super) fn run(
    args: &CheckArgs,
    around: &SignerEnvironment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let selection = selection(&args.uri, around.default_module().as_deref())?;
    let ask = around.pin_provider_factory()(&selection, true).map_err(|error| failure(&error))?;
    let (identity, key) = open(&selection, ask).map_err(|error| failure(&error))?;
    key.log_in().map_err(|error| failure(&error))?;
    let tried: Vec<_> =
        identity.schemes().iter().map(|scheme| (*scheme, attempt(&identity, *scheme))).collect();
    let not_after = identity.validity().1;
    let is_over = not_after < SystemClock.now();
    if output.is_json() {
        let schemes: Vec<Value> = tried.iter().map(|(scheme, tried)| as_json(*scheme, tried)).collect();
        output.json(&json!({
            "token": key.token(), "kind": identity.public_key().algorithm().name(),
            "notAfter": not_after.to_string(), "expired": is_over, "schemes": schemes,
        }))?;
    } else {
        output.text(&redact::terminal(&as_text(&identity, key.token(), &tried, is_over)))?;
    }
    let all_fine = tried.iter().all(|(_, tried)| tried.is_ok()) && !is_over;
    Ok(if all_fine { Exit::Done } else { Exit::No })
}

/// Creates one signature and returns the elapsed time in microseconds.
fn attempt(identity: &SigningIdentity, scheme: Scheme) -> Result<u128, SignError> {
    let started = SystemClock.monotonic();
    identity.sign(scheme, Input::Message(&sample_message(0)))?;
    Ok(SystemClock.monotonic().saturating_sub(started).as_micros())
}

fn as_text(
    identity: &SigningIdentity,
    token: &str,
    tried: &[(Scheme, Result<u128, SignError>)],
    is_over: bool,
) -> String {
    let kind = identity.public_key().algorithm();
    let mut text =
        format!("key in token {token}: {kind}, certificate chain length {}\n", identity.chain().len());
    for (scheme, tried) in tried {
        let name = scheme.name();
        let _ = match tried {
            Ok(microseconds) => {
                writeln!(text, "  ok      {name}  {}.{:03} ms", microseconds / 1000, microseconds % 1000)
            }
            Err(error) => writeln!(text, "  failed  {name}  {}", error_chain(error)),
        };
    }
    if !tried.iter().any(|(scheme, tried)| tried.is_ok() && scheme.is_in_tls13()) {
        text.push_str("  this key does not support TLS 1.3; TLS 1.2 is used\n");
    }
    let word = if is_over { "expired" } else { "valid until" };
    let _ = writeln!(text, "  certificate {word} {}", identity.validity().1);
    text
}

fn as_json(scheme: Scheme, tried: &Result<u128, SignError>) -> Value {
    match tried {
        Ok(microseconds) => {
            json!({"scheme": scheme.name(), "ok": true, "microseconds": u64::try_from(*microseconds).unwrap_or(u64::MAX)})
        }
        Err(error) => json!({"scheme": scheme.name(), "ok": false, "error": error_chain(error)}),
    }
}
