//! Docker's credential-helper protocol: reads the server name from standard input and prints one credential. Servers that
//! do not belong to this cloud get "not found" (CVE-2021-41092).

use std::io::Read;

use navicert_image::docker_helper::{HelperAnswer, HelperError, NOT_FOUND, normalise_server};
use navicert_image::{Keyring, Profile, RegistryCredential};
use navicert_types::image_credential::CredentialProviderRequest;
use navicert_types::{Secret, error_chain};

use super::flags::Flags;
use super::{Invocation, ProviderOutput, ProviderProgram, provide_with};
use crate::context::ProviderContext;
use crate::error::RegistryError;

/// Maximum length of a server name.
const MAX_INPUT_BYTES: u64 = 64 << 10;

pub(super) fn run<P: ProviderProgram>(
    name: &str,
    invocation: Invocation,
    stdin: &mut dyn Read,
) -> ProviderOutput {
    let verb = match invocation.arguments.as_slice() {
        [verb] => verb.to_string_lossy().into_owned(),
        _ => String::new(),
    };
    match verb.as_str() {
        "get" => get::<P>(name, invocation, stdin),
        "list" => output("{}\n".to_owned(), 0),
        "erase" => output(String::new(), 0),
        "store" => {
            output(format!("storing credentials is not supported: {name} gets them from the cloud\n"), 1)
        }
        "version" => output(format!("{name} {} (navicert)\n", env!("CARGO_PKG_VERSION")), 0),
        _ => output(format!("usage: {name} get|list|erase|store|version\n"), 1),
    }
}

fn output(text: String, code: u8) -> ProviderOutput {
    ProviderOutput { stdout: Secret::new(text.into_bytes()), stderr: String::new(), code }
}

fn get<P: ProviderProgram>(name: &str, invocation: Invocation, stdin: &mut dyn Read) -> ProviderOutput {
    let mut server = String::new();
    if stdin.take(MAX_INPUT_BYTES).read_to_string(&mut server).is_err() {
        return output("invalid server name: not UTF-8 text\n".to_owned(), 1);
    }
    let flags = Flags::none();
    let context =
        ProviderContext::new(invocation.environment, invocation.clock, invocation.sleep, flags.timeout);
    let answered = normalise_server(&server)
        .map_err(HelperFailure::from)
        .and_then(|image| find::<P>(&flags, &context, server.trim(), &image));
    match answered {
        Ok(answer) => ProviderOutput { stdout: answer.encode(), ..ProviderOutput::default() },
        Err(HelperFailure { stdout, hint }) => {
            let stderr = hint.map(|hint| format!("{name}: hint: {hint}\n")).unwrap_or_default();
            ProviderOutput { stderr, ..output(format!("{stdout}\n"), 1) }
        }
    }
}

/// An error message for docker, and a hint for standard error.
struct HelperFailure {
    stdout: String,
    hint: Option<&'static str>,
}

impl From<HelperError> for HelperFailure {
    fn from(error: HelperError) -> Self {
        HelperFailure { stdout: error.to_string(), hint: None }
    }
}

impl From<RegistryError> for HelperFailure {
    fn from(error: RegistryError) -> Self {
        HelperFailure { stdout: error_chain(&error), hint: error.hint() }
    }
}

fn find<P: ProviderProgram>(
    flags: &Flags,
    context: &ProviderContext,
    server: &str,
    image: &str,
) -> Result<HelperAnswer, HelperFailure> {
    let request =
        CredentialProviderRequest { image: image.to_owned(), ..CredentialProviderRequest::default() };
    let credentials = provide_with::<P>(flags, context, &request)?;
    let logins = credentials
        .logins
        .into_iter()
        .map(|login| (login.key, RegistryCredential::new(login.username, login.password)));
    let keyring = Keyring::new(logins, Profile::Hardened);
    let found = keyring.lookup(image).into_iter().find(|credential| !credential.is_anonymous()).cloned();
    let credential = found.ok_or_else(|| HelperFailure { stdout: NOT_FOUND.to_owned(), hint: None })?;
    Ok(HelperAnswer {
        server: server.to_owned(),
        username: credential.username.clone(),
        secret: credential.password.clone(),
    })
}
