//! `navicert signer request`: a certificate for a key that stays in its token, from the request to the stored certificate.

use std::fs;
use std::time::Duration;

use navicert_client::Client;
use navicert_client::certificate_signing::{
    self, KUBE_APISERVER_CLIENT, MIN_EXPIRATION, SigningRequest, SigningRequestError,
};
use navicert_client::transport::TokioTimer;
use navicert_signer::certificate_request::{
    CertificateSubject, certificate_request, pem, self_signed_certificate,
};
use navicert_signer::pkcs11::{DeviceKey, NewKey};
use navicert_signer::pki_types::CertificateDer;
use navicert_signer::pki_types::pem::PemObject as _;
use navicert_signer::program::SignerEnvironment;
use navicert_signer::report::RequestReport;
use navicert_types::{Clock as _, SystemClock, Timestamp, error_chain, redact};

use super::{failure, selection};
use crate::args::signer::{NewKeyArg, RequestArgs};
use crate::command::connect;
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// How long to wait for approval by default.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10 * 60);
/// The validity of a self-signed certificate by default.
const DEFAULT_VALIDITY: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// A self-signed certificate begins this long ago: clocks differ.
const CLOCK_SKEW: Duration = Duration::from_secs(5 * 60);

/// Makes the request, and does with it what the flags say.
pub(super) fn run(
    args: &RequestArgs,
    around: &SignerEnvironment,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    check_flags(args)?;
    let selection = selection(&args.uri, around.default_module().as_deref())?;
    // What the user wrote is checked before the device asks for a PIN.
    let subject = args.common_name.as_deref().map(|name| subject(name, args)).transpose()?;
    let given = args.certificate.as_deref().map(read_certificate).transpose()?;
    let client = (args.submit || args.wait).then(|| client(args, environment, output)).transpose()?;
    let ask = around.pin_provider_factory()(&selection, true).map_err(|error| failure(&error))?;
    let missing = args.generate.map(|kind| match kind {
        NewKeyArg::EcP256 => NewKey::EcP256,
        NewKeyArg::Rsa2048 => NewKey::Rsa2048,
    });
    let key = DeviceKey::open(&selection, ask, missing).map_err(|error| failure(&error))?;
    let mut report = RequestReport {
        token: key.token().to_owned(),
        uri: key.uri().to_string(),
        key_created: key.is_new(),
        certificate: given,
        ..RequestReport::default()
    };
    if let Some(subject) = &subject {
        sign(args, subject, &key, &mut report)?;
    }
    if let Some(client) = &client {
        submit(args, client, &mut report, output)?;
    }
    store(args, &key, &mut report, output)?;
    write_pem(args, &report, output)?;
    Ok(Exit::Done)
}

/// Writes the PEM text to a file if one is named, and prints the rest.
fn write_pem(args: &RequestArgs, report: &RequestReport, output: &mut Output) -> Result<(), Failure> {
    let pem = report.certificate.as_deref().or(report.request.as_deref());
    let (Some(path), Some(pem)) = (&args.out, pem) else { return output.report(report) };
    fs::write(path, pem)
        .map_err(|error| Failure::bad_input(format!("failed to write `{}`: {error}", path.display())))?;
    let is_submitted = report.name.is_some() && report.certificate.is_none();
    if output.is_json() || report.stored || is_submitted {
        return output.report(report);
    }
    output.text(&format!("wrote {}\n", redact::line(&path.display().to_string())))
}

/// Combinations that the parser does not reject.
fn check_flags(args: &RequestArgs) -> Result<(), Failure> {
    let usage = |text: &str| Err(Failure::Message { exit: Exit::Usage, text: text.to_owned() });
    let is_submitted_before = args.wait && !args.submit;
    if is_submitted_before && args.name.is_none() {
        return usage(
            "`--wait` needs `--submit`, or `--name` of a CertificateSigningRequest that was submitted before",
        );
    }
    if args.common_name.is_none() && args.certificate.is_none() && !is_submitted_before {
        return usage("missing `--common-name`: the user that the API server sees");
    }
    if args.store && !(args.wait || args.self_signed || args.certificate.is_some()) {
        return usage("`--store` needs a certificate: add `--wait`, `--self-signed` or `--certificate`");
    }
    if args.submit && args.valid_for.is_some_and(|duration| duration < MIN_EXPIRATION) {
        return usage("invalid `--valid-for`: a CertificateSigningRequest takes at least 10m");
    }
    Ok(())
}

fn subject(common_name: &str, args: &RequestArgs) -> Result<CertificateSubject, Failure> {
    CertificateSubject::new(common_name, &args.organization)
        .map_err(|error| Failure::Message { exit: Exit::Usage, text: error.to_string() })
}

fn read_certificate(path: &std::path::Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|error| {
        Failure::bad_input(format!("failed to read certificate `{}`: {error}", path.display()))
    })
}

fn client(args: &RequestArgs, environment: &Environment, output: &mut Output) -> Result<Client, Failure> {
    let options = connect::options(&args.connection, args.plugins.kuberc.as_deref(), environment);
    let config = connect::resolve(&options, output)?;
    Client::new(config).map_err(|error| connect::build_failure(&error))
}

/// Signs a request or a certificate with the key.
fn sign(
    args: &RequestArgs,
    subject: &CertificateSubject,
    key: &DeviceKey,
    report: &mut RequestReport,
) -> Result<(), Failure> {
    if !args.self_signed {
        let der = certificate_request(subject, key.key()).map_err(|error| failure(&error))?;
        report.request = Some(pem("CERTIFICATE REQUEST", &der));
        return Ok(());
    }
    let now = SystemClock.now();
    let from = now.saturating_sub(CLOCK_SKEW).unwrap_or(Timestamp::MIN);
    let to = now.saturating_add(args.valid_for.unwrap_or(DEFAULT_VALIDITY)).unwrap_or(Timestamp::MAX);
    let der = self_signed_certificate(subject, key.key(), (from, to)).map_err(|error| failure(&error))?;
    report.certificate = Some(pem("CERTIFICATE", &der));
    Ok(())
}

/// Submits the request, and waits for the certificate.
fn submit(
    args: &RequestArgs,
    client: &Client,
    report: &mut RequestReport,
    output: &mut Output,
) -> Result<(), Failure> {
    let transport = client.transport();
    let failed = |error: SigningRequestError| {
        let exit = if error.is_unreachable() { Exit::Unreachable } else { Exit::No };
        Failure::Message { exit, text: redact::line(&error_chain(&error)).into_owned() }
    };
    connect::block_on(async {
        report.name.clone_from(&args.name);
        if let Some(request_pem) = report.request.clone().filter(|_| args.submit) {
            let request = SigningRequest {
                request_pem,
                name: args.name.clone(),
                signer_name: args.signer_name.clone().unwrap_or_else(|| KUBE_APISERVER_CLIENT.to_owned()),
                expiration: args.valid_for,
            };
            report.name = Some(certificate_signing::submit(transport, &request).await.map_err(failed)?);
        }
        let Some(name) = report.name.clone().filter(|_| args.wait) else { return Ok(()) };
        if args.submit {
            output.note(&format!("submitted {name}; to approve it: kubectl certificate approve {name}"));
        }
        let limit = args.timeout.unwrap_or(DEFAULT_TIMEOUT);
        let chain = certificate_signing::wait(transport, &TokioTimer, &name, limit).await.map_err(failed)?;
        report.certificate = Some(chain);
        Ok(())
    })?
}

/// Checks the certificate, and stores it.
fn store(
    args: &RequestArgs,
    key: &DeviceKey,
    report: &mut RequestReport,
    output: &mut Output,
) -> Result<(), Failure> {
    let Some(text) = &report.certificate else { return Ok(()) };
    let chain: Result<Vec<CertificateDer<'static>>, _> =
        CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    let chain = chain.ok().filter(|chain| !chain.is_empty());
    let chain = chain.ok_or_else(|| Failure::bad_input("the certificate is not PEM"))?;
    let [leaf, issuers @ ..] = chain.as_slice() else { return Ok(()) };
    let not_after = key.certificate_expiry(leaf).map_err(|error| failure(&error))?;
    report.not_after = Some(not_after.to_string());
    if !args.store {
        return Ok(());
    }
    key.store_certificate(leaf).map_err(|error| failure(&error))?;
    report.stored = true;
    // Not every token has room for further certificates, and the certificate may work without them.
    match key.store_issuers(issuers) {
        Ok(count) => report.issuers_stored = count,
        Err(error) => output.warning(&format!(
            "the certificate is stored, but not its issuers, which an API server may need: {}; \
             keep the chain with `--out FILE`, and store them with the token's own tool",
            redact::line(&error_chain(&error))
        )),
    }
    Ok(())
}
