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
use crate::context::ProviderContext;
use crate::ecr::Ecr;
use crate::error::{RegistryError, chain};
use crate::gcp::{AuthFlow, Federation, Gcp};
use crate::host::EcrHost;
use crate::http::Sleep;
use crate::provider::{ProviderCredentials, RegistryProvider, provide};

pub use flags::Flags;

/// Which program this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramKind {
    /// `ecr-credential-provider`
    Ecr,
    /// `auth-provider-gcp`, `gcp-credential-provider`
    Gcp,
    /// `acr-credential-provider`
    Acr,
}

/// A provider as a program. Each binary is made for one of them and has nothing of the others in it: code that is not
/// there costs a node no memory.
pub trait ProviderProgram: RegistryProvider + Sized {
    /// Which one it is.
    const KIND: ProgramKind;

    /// Sets it up as the command line and the environment say.
    ///
    /// # Errors
    /// If they contradict themselves, or a file they name is wrong.
    fn from_flags(flags: &Flags, context: &ProviderContext) -> Result<Self, RegistryError>;
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
    pub sleep: Box<dyn Sleep>,
}

/// What a program leaves.
#[derive(Debug, Default)]
pub struct ProgramOutput {
    /// For standard output; it may hold a password.
    pub stdout: Secret<Vec<u8>>,
    /// For standard error; never a password.
    pub stderr: String,
    /// The exit code.
    pub code: u8,
}

/// Runs a program.
pub fn run<P: ProviderProgram>(invocation: Invocation, stdin: &mut dyn Read) -> ProgramOutput {
    let name = Path::new(&invocation.name).file_name().unwrap_or(OsStr::new("provider"));
    let name = name.to_string_lossy().into_owned();
    if name.starts_with("docker-credential-") {
        return helper::run::<P>(&name, invocation, stdin);
    }
    run_provider::<P>(&name, invocation, stdin).unwrap_or_else(|error| error_output(&name, &error, &[]))
}

fn run_provider<P: ProviderProgram>(
    name: &str,
    invocation: Invocation,
    stdin: &mut dyn Read,
) -> Result<ProgramOutput, RegistryError> {
    let which = P::KIND;
    let flags = Flags::parse(which, &invocation.arguments)?;
    if flags.help {
        return Ok(ProgramOutput {
            stdout: Secret::new(flags::usage(which).into_bytes()),
            ..ProgramOutput::default()
        });
    }
    if flags.version {
        let version = format!("{name} {} (navicert)\n", env!("CARGO_PKG_VERSION"));
        return Ok(ProgramOutput { stdout: Secret::new(version.into_bytes()), ..ProgramOutput::default() });
    }
    let context =
        ProviderContext::new(invocation.environment, invocation.clock, invocation.sleep, flags.timeout)?;
    if let Some(image) = flags.explain.clone() {
        return Ok(explain::<P>(&flags, &context, &image, stdin));
    }
    let answered = read_request(stdin).map_err(RegistryError::from).and_then(|(request, version)| {
        let grant = provide_with::<P>(&flags, &context, &request)?;
        Ok(grant.into_response()?.encode(version))
    });
    Ok(match answered {
        Ok(stdout) => ProgramOutput { stdout, stderr: warnings(name, &context), code: 0 },
        Err(error) => error_output(name, &error, &context.journal.warnings()),
    })
}

/// Sets a provider up, and asks it.
fn provide_with<P: ProviderProgram>(
    flags: &Flags,
    context: &ProviderContext,
    request: &CredentialProviderRequest,
) -> Result<ProviderCredentials, RegistryError> {
    provide(&P::from_flags(flags, context)?, context, request)
}

impl ProviderProgram for Ecr {
    const KIND: ProgramKind = ProgramKind::Ecr;

    fn from_flags(flags: &Flags, context: &ProviderContext) -> Result<Self, RegistryError> {
        let told = flags.registry_hosts(context).map(|entry| {
            let pair = entry.split_once('=').filter(|(_, region)| EcrHost::in_region(region).is_some());
            let (host, region) = pair.ok_or_else(|| {
                let example = "write `registry.example=us-west-2`";
                RegistryError::Usage(format!("`{entry}` is not a host and a region: {example}"))
            })?;
            Ok((host.to_ascii_lowercase(), region.to_owned()))
        });
        Ok(Ecr { custom_hosts: told.collect::<Result<_, RegistryError>>()? })
    }
}

impl ProviderProgram for Gcp {
    const KIND: ProgramKind = ProgramKind::Gcp;

    fn from_flags(flags: &Flags, context: &ProviderContext) -> Result<Self, RegistryError> {
        let flow = flags.value("authFlow").map(AuthFlow::parse).transpose()?.unwrap_or_default();
        let federation = match (flags.value("identity-provider"), flags.value("project-id")) {
            (Some(provider), Some(project)) => {
                Some(Federation { identity_provider: provider.to_owned(), project: project.to_owned() })
            }
            (Some(_), None) => {
                return Err(RegistryError::Usage("--identity-provider needs --project-id".to_owned()));
            }
            (None, _) => None,
        };
        let told = flags.registry_hosts(context).map(str::to_ascii_lowercase).collect();
        Ok(Gcp { flow, federation, custom_hosts: told })
    }
}

impl ProviderProgram for Acr {
    const KIND: ProgramKind = ProgramKind::Acr;

    fn from_flags(flags: &Flags, context: &ProviderContext) -> Result<Self, RegistryError> {
        let config = match flags.positional.as_slice() {
            [path] => CloudConfig::load(context, Path::new(path))?,
            [] if flags.from_environment => match context.variable("NAVICERT_ACR_CONFIG") {
                Some(path) => CloudConfig::load(context, Path::new(path))?,
                None => CloudConfig::from_environment(context),
            },
            [] => return Err(RegistryError::Usage("config file is not specified".to_owned())),
            _ => return Err(RegistryError::Usage("more than one config file is specified".to_owned())),
        };
        let (mirrors, refused) = Mirrors::parse(flags.value("registry-mirror").unwrap_or_default());
        for entry in refused {
            context
                .journal
                .warn(format!("--registry-mirror: `{entry}` is not `source:mirror` and is left out"));
        }
        Ok(Acr { config, mirrors, bindings: identity_bindings(flags)? })
    }
}

fn identity_bindings(flags: &Flags) -> Result<Option<IdentityBindings>, RegistryError> {
    let Some(server_name) = flags.value("ib-sni-name") else { return Ok(None) };
    let address = flags.value("ib-apiserver-ip").and_then(|address| address.parse().ok());
    let address = address.ok_or_else(|| {
        RegistryError::Usage("--ib-sni-name needs --ib-apiserver-ip with an address".to_owned())
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
fn explain<P: ProviderProgram>(
    flags: &Flags,
    context: &ProviderContext,
    image: &str,
    stdin: &mut dyn Read,
) -> ProgramOutput {
    let request = if image == "-" {
        read_request(stdin).map(|(request, _)| request).map_err(RegistryError::from)
    } else {
        Ok(CredentialProviderRequest { image: image.to_owned(), ..CredentialProviderRequest::default() })
    };
    let answered = request.and_then(|request| {
        let grant = provide_with::<P>(flags, context, &request)?;
        let response = grant.into_response()?;
        context.journal.note("answer", format!("{} bytes", response.encode(WireVersion::V1).expose().len()));
        Ok(())
    });
    let code = answered.as_ref().map_or_else(RegistryError::exit_code, |()| 0);
    if let Err(error) = answered {
        context.journal.note("failed", chain(&error));
        if let Some(hint) = error.hint() {
            context.journal.note("hint", hint);
        }
    }
    ProgramOutput {
        stdout: Secret::new(context.journal.to_string().into_bytes()),
        stderr: String::new(),
        code,
    }
}

fn warnings(name: &str, context: &ProviderContext) -> String {
    context.journal.warnings().iter().map(|warning| format!("{name}: warning: {warning}\n")).collect()
}

/// A failure in words: what, why, and what usually helps.
fn error_output(name: &str, error: &RegistryError, warnings: &[String]) -> ProgramOutput {
    let mut stderr: String = warnings.iter().map(|warning| format!("{name}: warning: {warning}\n")).collect();
    stderr.push_str(&format!("{name}: {}\n", redact::terminal(&chain(error))));
    if let Some(hint) = error.hint() {
        stderr.push_str(&format!("{name}: hint: {hint}\n"));
    }
    ProgramOutput { stdout: Secret::default(), stderr, code: error.exit_code() }
}
