//! docker's credential-helper protocol: the server's name on standard input, one credential on standard output, and
//! "not found" for every server that is not exactly one of this cloud's (CVE-2021-41092).

use std::io::Read;

use navicert_image::docker_helper::{HelperAnswer, HelperError, NOT_FOUND, normalise_server};
use navicert_image::{Credential, Keyring, Profile};
use navicert_types::Secret;
use navicert_types::image_credential::CredentialProviderRequest;

use super::flags::Flags;
use super::{Invocation, Outcome, Program, ask};
use crate::context::Context;
use crate::error::{ProviderError, chain};

/// No server's name is longer.
const LONGEST_INPUT: u64 = 64 << 10;

pub(super) fn run<P: Program>(name: &str, invocation: Invocation, stdin: &mut dyn Read) -> Outcome {
    let verb = match invocation.arguments.as_slice() {
        [verb] => verb.to_string_lossy().into_owned(),
        _ => String::new(),
    };
    match verb.as_str() {
        "get" => get::<P>(name, invocation, stdin),
        "list" => said("{}\n".to_owned(), 0),
        "erase" => said(String::new(), 0),
        "store" => said(format!("{name} asks the cloud and stores nothing\n"), 1),
        "version" => said(format!("{name} {} (navicert)\n", env!("CARGO_PKG_VERSION")), 0),
        _ => said(format!("usage: {name} get|list|erase|store|version\n"), 1),
    }
}

fn said(text: String, code: u8) -> Outcome {
    Outcome { stdout: Secret::new(text.into_bytes()), stderr: String::new(), code }
}

fn get<P: Program>(name: &str, invocation: Invocation, stdin: &mut dyn Read) -> Outcome {
    let mut server = String::new();
    if stdin.take(LONGEST_INPUT).read_to_string(&mut server).is_err() {
        return said("refused: the server name is no text\n".to_owned(), 1);
    }
    let flags = Flags::none();
    let context = Context::new(invocation.environment, invocation.clock, invocation.pause, flags.timeout);
    let answered = normalise_server(&server).map_err(Refusal::from).and_then(|image| {
        let context = context?;
        find::<P>(&flags, &context, server.trim(), &image)
    });
    match answered {
        Ok(answer) => Outcome { stdout: answer.encode(), ..Outcome::default() },
        Err(Refusal { stdout, hint }) => {
            let stderr = hint.map(|hint| format!("{name}: hint: {hint}\n")).unwrap_or_default();
            Outcome { stderr, ..said(format!("{stdout}\n"), 1) }
        }
    }
}

/// What docker shows, and what a person may want to know.
struct Refusal {
    stdout: String,
    hint: Option<&'static str>,
}

impl From<HelperError> for Refusal {
    fn from(error: HelperError) -> Self {
        Refusal { stdout: error.to_string(), hint: None }
    }
}

impl From<ProviderError> for Refusal {
    fn from(error: ProviderError) -> Self {
        Refusal { stdout: chain(&error), hint: error.hint() }
    }
}

fn find<P: Program>(
    flags: &Flags,
    context: &Context,
    server: &str,
    image: &str,
) -> Result<HelperAnswer, Refusal> {
    let request =
        CredentialProviderRequest { image: image.to_owned(), ..CredentialProviderRequest::default() };
    let grant = ask::<P>(flags, context, &request)?;
    let logins =
        grant.logins.into_iter().map(|login| (login.key, Credential::new(login.username, login.password)));
    let keyring = Keyring::new(logins, Profile::Hardened);
    let found = keyring.lookup(image).into_iter().find(|credential| !credential.is_anonymous()).cloned();
    let credential = found.ok_or_else(|| Refusal { stdout: NOT_FOUND.to_owned(), hint: None })?;
    Ok(HelperAnswer {
        server: server.to_owned(),
        username: credential.username.clone(),
        secret: credential.password.clone(),
    })
}
