//! What the three programs have in common: the command line, the kubelet's protocol, docker's, `--explain`, and what
//! is said on standard error.

mod flags;
mod helper;

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use navicert_image::author::read_request;
use navicert_plugin::Environment;
use navicert_types::image_credential::{CredentialProviderRequest, WireVersion};
use navicert_types::{Clock, Secret, redact};

use crate::acr::{Acr, CloudConfig, IdentityBindings, Mirrors};
use crate::context::Context;
use crate::ecr::Ecr;
use crate::error::{ProviderError, chain};
use crate::gcp::{AuthFlow, Federation, Gcp};
use crate::host::EcrHost;
use crate::http::Pause;
use crate::provider::{Grant, Provider, provide};

pub use flags::Flags;

/// Which program this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// `ecr-credential-provider`
    Ecr,
    /// `auth-provider-gcp`, `gcp-credential-provider`
    Gcp,
    /// `acr-credential-provider`
    Acr,
}

/// A provider as a program. Each binary is made for one of them and has nothing of the others in it: code that is not
/// there costs a node no memory.
pub trait Program: Provider + Sized {
    /// Which one it is.
    const WHICH: Which;

    /// Sets it up as the command line and the environment say.
    ///
    /// # Errors
    /// If they contradict themselves, or a file they name is wrong.
    fn set_up(flags: &Flags, context: &Context) -> Result<Self, ProviderError>;
}

/// How a program was started.
#[derive(Debug)]
pub struct Invocation {
    /// What it was called as. `docker-credential-…` makes it a helper of docker's.
    pub name: OsString,
    /// Its arguments, without that name.
    pub arguments: Vec<OsString>,
    /// Its environment.
    pub environment: Environment,
    /// Its clock.
    pub clock: Arc<dyn Clock>,
    /// How it waits.
    pub pause: Box<dyn Pause>,
}

/// What a program leaves.
#[derive(Debug, Default)]
pub struct Outcome {
    /// For standard output; it may hold a password.
    pub stdout: Secret<Vec<u8>>,
    /// For standard error; never a password.
    pub stderr: String,
    /// The exit code.
    pub code: u8,
}

/// Runs a program.
pub fn run<P: Program>(invocation: Invocation, stdin: &mut dyn Read) -> Outcome {
    let name = Path::new(&invocation.name).file_name().unwrap_or(OsStr::new("provider"));
    let name = name.to_string_lossy().into_owned();
    if name.starts_with("docker-credential-") {
        return helper::run::<P>(&name, invocation, stdin);
    }
    run_provider::<P>(&name, invocation, stdin).unwrap_or_else(|error| failed(&name, &error, &[]))
}

fn run_provider<P: Program>(
    name: &str,
    invocation: Invocation,
    stdin: &mut dyn Read,
) -> Result<Outcome, ProviderError> {
    let which = P::WHICH;
    let flags = Flags::parse(which, &invocation.arguments)?;
    if flags.help {
        return Ok(Outcome { stdout: Secret::new(flags::usage(which).into_bytes()), ..Outcome::default() });
    }
    if flags.version {
        let version = format!("{name} {} (navicert)\n", env!("CARGO_PKG_VERSION"));
        return Ok(Outcome { stdout: Secret::new(version.into_bytes()), ..Outcome::default() });
    }
    let context = Context::new(invocation.environment, invocation.clock, invocation.pause, flags.timeout)?;
    if let Some(image) = flags.explain.clone() {
        return Ok(explain::<P>(&flags, &context, &image, stdin));
    }
    let answered = read_request(stdin).map_err(ProviderError::from).and_then(|(request, version)| {
        let grant = ask::<P>(&flags, &context, &request)?;
        Ok(grant.into_response()?.encode(version))
    });
    Ok(match answered {
        Ok(stdout) => Outcome { stdout, stderr: warnings(name, &context), code: 0 },
        Err(error) => failed(name, &error, &context.journal.warnings()),
    })
}

/// Sets a provider up, and asks it.
fn ask<P: Program>(
    flags: &Flags,
    context: &Context,
    request: &CredentialProviderRequest,
) -> Result<Grant, ProviderError> {
    provide(&P::set_up(flags, context)?, context, request)
}

impl Program for Ecr {
    const WHICH: Which = Which::Ecr;

    fn set_up(flags: &Flags, context: &Context) -> Result<Self, ProviderError> {
        let told = flags.registry_hosts(context).map(|entry| {
            let pair = entry.split_once('=').filter(|(_, region)| EcrHost::told(region).is_some());
            let (host, region) = pair.ok_or_else(|| {
                let example = "write `registry.example=us-west-2`";
                ProviderError::Usage(format!("`{entry}` is not a host and a region: {example}"))
            })?;
            Ok((host.to_ascii_lowercase(), region.to_owned()))
        });
        Ok(Ecr { told: told.collect::<Result<_, ProviderError>>()? })
    }
}

impl Program for Gcp {
    const WHICH: Which = Which::Gcp;

    fn set_up(flags: &Flags, context: &Context) -> Result<Self, ProviderError> {
        let flow = flags.value("authFlow").map(AuthFlow::parse).transpose()?.unwrap_or_default();
        let federation = match (flags.value("identity-provider"), flags.value("project-id")) {
            (Some(provider), Some(project)) => {
                Some(Federation { identity_provider: provider.to_owned(), project: project.to_owned() })
            }
            (Some(_), None) => {
                return Err(ProviderError::Usage("--identity-provider needs --project-id".to_owned()));
            }
            (None, _) => None,
        };
        let told = flags.registry_hosts(context).map(str::to_ascii_lowercase).collect();
        Ok(Gcp { flow, federation, told })
    }
}

impl Program for Acr {
    const WHICH: Which = Which::Acr;

    fn set_up(flags: &Flags, context: &Context) -> Result<Self, ProviderError> {
        let config = match flags.positional.as_slice() {
            [path] => CloudConfig::load(context, Path::new(path))?,
            [] if flags.from_environment => match context.variable("NAVICERT_ACR_CONFIG") {
                Some(path) => CloudConfig::load(context, Path::new(path))?,
                None => CloudConfig::from_environment(context),
            },
            [] => return Err(ProviderError::Usage("config file is not specified".to_owned())),
            _ => return Err(ProviderError::Usage("more than one config file is specified".to_owned())),
        };
        let (mirrors, refused) = Mirrors::parse(flags.value("registry-mirror").unwrap_or_default());
        for entry in refused {
            context
                .journal
                .warn(format!("--registry-mirror: `{entry}` is not `source:mirror` and is left out"));
        }
        Ok(Acr { config, mirrors, bindings: bindings(flags)? })
    }
}

fn bindings(flags: &Flags) -> Result<Option<IdentityBindings>, ProviderError> {
    let Some(server_name) = flags.value("ib-sni-name") else { return Ok(None) };
    let address = flags.value("ib-apiserver-ip").and_then(|address| address.parse().ok());
    let address = address.ok_or_else(|| {
        ProviderError::Usage("--ib-sni-name needs --ib-apiserver-ip with an address".to_owned())
    })?;
    let mut bindings = IdentityBindings::new(server_name.to_owned(), address);
    bindings.default_client = flags.value("ib-default-client-id").map(str::to_owned);
    bindings.default_tenant = flags.value("ib-default-tenant-id").map(str::to_owned);
    if let Some(path) = flags.value("ib-ca-file") {
        bindings = bindings.with_authority(Path::new(path));
    }
    Ok(Some(bindings))
}

/// Every step in words, on standard output; `-` explains the request on standard input.
fn explain<P: Program>(flags: &Flags, context: &Context, image: &str, stdin: &mut dyn Read) -> Outcome {
    let request = if image == "-" {
        read_request(stdin).map(|(request, _)| request).map_err(ProviderError::from)
    } else {
        Ok(CredentialProviderRequest { image: image.to_owned(), ..CredentialProviderRequest::default() })
    };
    let answered = request.and_then(|request| {
        let grant = ask::<P>(flags, context, &request)?;
        let response = grant.into_response()?;
        context.journal.note("answer", format!("{} bytes", response.encode(WireVersion::V1).expose().len()));
        Ok(())
    });
    let code = answered.as_ref().map_or_else(ProviderError::exit_code, |()| 0);
    if let Err(error) = answered {
        context.journal.note("failed", chain(&error));
        if let Some(hint) = error.hint() {
            context.journal.note("hint", hint);
        }
    }
    Outcome { stdout: Secret::new(context.journal.to_string().into_bytes()), stderr: String::new(), code }
}

fn warnings(name: &str, context: &Context) -> String {
    context.journal.warnings().iter().map(|warning| format!("{name}: warning: {warning}\n")).collect()
}

/// A failure in words: what, why, and what usually helps.
fn failed(name: &str, error: &ProviderError, warnings: &[String]) -> Outcome {
    let mut stderr: String = warnings.iter().map(|warning| format!("{name}: warning: {warning}\n")).collect();
    stderr.push_str(&format!("{name}: {}\n", redact::terminal(&chain(error))));
    if let Some(hint) = error.hint() {
        stderr.push_str(&format!("{name}: hint: {hint}\n"));
    }
    Outcome { stdout: Secret::default(), stderr, code: error.exit_code() }
}
