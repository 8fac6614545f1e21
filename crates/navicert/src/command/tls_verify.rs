//! `navicert tls-verify --jsonl`: verifies server certificates as a client does, for tests that compare clients.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use navicert_go::base64::STANDARD;
use navicert_tls::{ServerVerifier, TrustedRoots};
use navicert_types::report::string_member;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use serde::Serialize;
use serde_json::Value;

use super::batch::process_lines;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Verifies every line of standard input.
pub(crate) fn run(output: &mut Output) -> Result<Exit, Failure> {
    process_lines(process, output)
}

/// Whether a client accepts the certificate.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct TlsVerifyReport {
    /// Whether it does.
    ok: bool,
    /// Why it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

fn process(request: &Value) -> Result<TlsVerifyReport, String> {
    let (chain, roots) = (certificates(request, "chain")?, certificates(request, "roots")?);
    let [certificate, intermediates @ ..] = chain.as_slice() else {
        return Err("`chain` has no certificate".to_owned());
    };
    let now = request.get("now").and_then(Value::as_u64).ok_or("`now` must be in whole seconds")?;
    let rejected = |error: String| Ok(TlsVerifyReport { ok: false, error: Some(error) });
    let name = match ServerName::try_from(string_member(request, "name")?) {
        Ok(name) => name,
        Err(error) => return rejected(error.to_string()),
    };
    let roots = Arc::new(TrustedRoots::from_iter(roots));
    let verifier = ServerVerifier::new(roots, &aws_lc_rs::default_provider());
    let now = UnixTime::since_unix_epoch(Duration::from_secs(now));
    match verifier.verify(certificate, intermediates, &name, now) {
        Ok(()) => Ok(TlsVerifyReport { ok: true, error: None }),
        Err(error) => rejected(error.to_string()),
    }
}

fn certificates(request: &Value, name: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let list =
        request.get(name).and_then(Value::as_array).ok_or_else(|| format!("`{name}` must be a list"))?;
    list.iter()
        .map(|text| {
            let der = text.as_str().and_then(|text| STANDARD.decode(text).ok());
            der.map(CertificateDer::from).ok_or_else(|| format!("`{name}` must have certificates in base64"))
        })
        .collect()
}
