//! `navicert signer setup`: writes the user of a kubeconfig for a key, and the kuberc entry that allows its signer.

use std::path::PathBuf;

use navicert_client::edit::{AllowedProgram, KubeconfigChanges};
use navicert_client::report::SignerSetupReport;
use navicert_plugin::resolve::resolve;
use navicert_signer::pkcs11::Pkcs11Uri;
use navicert_signer::program::SignerEnvironment;
use navicert_signer::report::{KeyReport, ListReport, SIGNER_PROGRAM};
use navicert_types::redact;

use super::list;
use crate::args::signer::SetupArgs;
use crate::command::connect;
use crate::command::write_files::{self, Questions};
use crate::env::Environment;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Writes both files.
pub(super) fn run(
    args: &SetupArgs,
    around: &SignerEnvironment,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let wanted = args.uri.as_deref().map(parse_uri).transpose()?;
    let named = wanted.as_ref().and_then(|uri| uri.module_path.as_ref()).map(PathBuf::from);
    let modules = if args.module.is_empty() { named.into_iter().collect() } else { args.module.clone() };
    let report = list::search(&modules, around, output)?;
    let key = one_key(&report, wanted.as_ref())?;
    let uri = with_pin_source(&key.uri, wanted.as_ref())?;
    let user = user_name(args, key)?;
    if resolve(SIGNER_PROGRAM.as_ref(), environment.variable("PATH").as_deref()).is_err() {
        output.warning(&format!("`{SIGNER_PROGRAM}` is not in PATH; install it before you use the key"));
    }
    let questions = Questions::new(args.write.yes);
    let options = connect::located(args.write.kubeconfig.as_deref(), environment);
    let mut kubeconfig = KubeconfigChanges::load(&options.located(), &environment.current_dir)?;
    kubeconfig.put_user(&user, &KeyReport::kubeconfig_user(&uri), args.write.force)?;
    if let Some(context) = &args.context {
        kubeconfig.set_context_user(context, &user)?;
    }
    let mut kuberc = write_files::kuberc(args.write.kuberc.as_deref(), environment)?;
    let libraries = vec![key.module_path().to_owned()];
    let entry = AllowedProgram { command: SIGNER_PROGRAM.to_owned(), libraries, ..AllowedProgram::default() };
    kuberc.allow(&entry, args.write.force)?;
    let merged = options.load().unwrap_or_default();
    let other_plugins = write_files::offer_plugins_in_use(
        &mut kuberc,
        &merged,
        args.write.add_plugins_in_use,
        questions,
        (environment, output),
    )?;
    let changes: Vec<_> = [kuberc.finish()?].into_iter().chain(kubeconfig.finish()?).collect();
    let outcome = write_files::write(&changes, questions, output)?;
    if output.is_json() {
        output.json(&SignerSetupReport { user, uri, other_plugins, files: outcome.files })?;
    } else {
        output.text(&outcome.text())?;
    }
    Ok(outcome.exit)
}

fn parse_uri(text: &str) -> Result<Pkcs11Uri, Failure> {
    text.parse()
        .map_err(|error| Failure::Message { exit: Exit::Usage, text: format!("invalid URI: {error}") })
}

/// The key, if exactly one with a certificate is selected.
fn one_key<'r>(report: &'r ListReport, uri: Option<&Pkcs11Uri>) -> Result<&'r KeyReport, Failure> {
    let selected = report.select(uri);
    let usable: Vec<&KeyReport> = selected.iter().copied().filter(|key| key.certificate.is_some()).collect();
    let failure = |exit, text: String| Err(Failure::Message { exit, text });
    match (usable.as_slice(), selected.is_empty()) {
        ([key], _) => Ok(*key),
        ([], true) => {
            failure(Exit::No, "no key found; `navicert signer list` shows what there is".to_owned())
        }
        ([], false) => {
            failure(Exit::No, "the key has no certificate; import one with the same id to use it".to_owned())
        }
        (keys, _) => {
            let uris: String = keys.iter().map(|key| format!("\n  {}", redact::line(&key.uri))).collect();
            failure(Exit::Usage, format!("several keys are found; name one of them:{uris}"))
        }
    }
}

/// The key's URI with the location of the PIN that was asked for.
fn with_pin_source(uri: &str, wanted: Option<&Pkcs11Uri>) -> Result<String, Failure> {
    let pin_source = wanted.and_then(|wanted| wanted.pin_source.clone());
    Ok(Pkcs11Uri { pin_source, ..parse_uri(uri)? }.to_string())
}

fn user_name(args: &SetupArgs, key: &KeyReport) -> Result<String, Failure> {
    let common_name = key.certificate.as_ref().map(|certificate| certificate.common_name.clone());
    let name = args.user.clone().or(common_name).filter(|name| !name.is_empty());
    name.ok_or_else(|| Failure::Message {
        exit: Exit::Usage,
        text: "the certificate has no common name; name the user with `--user`".to_owned(),
    })
}
